//! `conformance`: plays every hazard on every wire and prints the table. The test that it runs holds the list of wires.

use crate::{Failure, cargo};

/// The one test; `cargo xtask check` runs it too, without the table.
const TEST: &str = "test --package adjutant-tests --test whole --locked -- --nocapture --exact";

pub(crate) fn run() -> Result<(), Failure> {
    cargo::step_with(TEST, &["conformance::wires_bear_every_hazard"])
}
