//! Tests of the lifecycle.
