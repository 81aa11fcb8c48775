//! `crash`: the kill test, whole: 200 trials for each kind of storage, each with as many kills as it takes.

use crate::{Failure, cargo};

/// How many trials there are for each kind of storage.
const TIMES: &str = "200";
const RUN: &str = "run --package adjutant-tests --bin kill --locked -- trials all --times";

pub(crate) fn run(options: &[&str]) -> Result<(), Failure> {
    let times = [TIMES];
    cargo::step_with(RUN, &[&times[..], options].concat())
}
