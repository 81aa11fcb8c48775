//! The code blocks of `docs/orchestration.md`, compiled by the doc tests.
