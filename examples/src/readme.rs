//! The code blocks of the README, compiled by the doc tests.
