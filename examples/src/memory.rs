//! The code blocks of `docs/memory.md`, compiled by the doc tests.
