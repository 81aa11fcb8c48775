//! `bench`: runs the benchmarks. They print their rows with limits and fail past one; nothing is read here.

use crate::{Failure, cargo};

pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    if arguments == ["--instructions"] {
        return cargo::step("bench --package adjutant-benches --bench overhead --locked -- instructions");
    }
    cargo::step_with("bench --package adjutant-benches --benches --locked --no-fail-fast --", arguments)
}
