//! Runnable examples live in `examples/`; this library only compiles the code of the README as doc tests.

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
mod readme;
