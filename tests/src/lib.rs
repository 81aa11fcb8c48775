//! Cross-crate tests of the workspace live in `tests/`; this library is empty.
