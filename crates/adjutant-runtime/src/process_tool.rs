//! Tools that are programs.
