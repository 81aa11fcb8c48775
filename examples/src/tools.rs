//! The code blocks of `docs/tools.md`, compiled by the doc tests.
