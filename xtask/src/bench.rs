//! `bench`: runs the benchmarks. They print their own ratios; nothing is read here.

use crate::{Failure, cargo};

pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    let bench = [
        "bench",
        "--package",
        "adjutant-tests",
        "--benches",
        "--locked",
        "--",
    ];
    cargo::step("bench", &[bench.as_slice(), arguments].concat())
}
