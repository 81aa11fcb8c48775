//! The supervisor: what should run does, and what should not does not.
