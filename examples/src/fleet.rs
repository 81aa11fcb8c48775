//! The code blocks of `docs/fleet.md`, compiled by the doc tests.
