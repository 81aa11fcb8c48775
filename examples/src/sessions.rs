//! The code blocks of `docs/sessions.md`, compiled by the doc tests.
