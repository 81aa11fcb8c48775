//! The code blocks of `docs/hands.md`, compiled by the doc tests.
