//! Runs as streams.
