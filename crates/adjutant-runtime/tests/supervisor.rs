//! Tests of the supervisor.
