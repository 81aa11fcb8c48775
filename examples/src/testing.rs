//! The code blocks of `docs/testing.md`, compiled by the doc tests.
