//! `bench`: runs the benchmarks. They print their own ratios; nothing is read here.

use crate::{Failure, cargo};

pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    cargo::step_with("bench --package adjutant-benches --benches --locked --", arguments)
}
