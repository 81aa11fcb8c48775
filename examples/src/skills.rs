//! The code blocks of `docs/skills.md`, compiled by the doc tests.
