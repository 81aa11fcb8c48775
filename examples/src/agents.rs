//! The code blocks of `docs/models.md`, compiled by the doc tests.
