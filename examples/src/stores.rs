//! The code blocks of `docs/stores.md`, compiled by the doc tests.
