//! `bench`: runs the benchmarks. They print their rows with limits and fail past one; nothing is read here.

use crate::{Failure, cargo};

pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    let is_counted = arguments == ["--instructions"];
    let which = if is_counted { "--bench overhead" } else { "--benches --no-fail-fast" };
    cargo::step_with(&format!("bench --package adjutant-benches {which} --locked --"), arguments)
}
