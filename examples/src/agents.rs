//! The code blocks of `docs/agents.md`, compiled by the doc tests.
