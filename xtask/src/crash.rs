//! `crash`: the kill test, whole: 200 trials for each kind of storage, each with as many kills as it takes; and the crew
//! drill: three workers on one board of 200 tasks, killed at any moment.

use crate::{Failure, cargo};

/// How many trials there are for each kind of storage.
const TRIALS: &str = "200";
const KILL: &str = "run --package adjutant-tests --bin kill --locked -- trials all --times";
/// How many drills with a shared board there are for each kind of storage.
const DRILLS: &str = "10";
const CREW: &str = "run --package adjutant-tests --bin crew --locked -- drill all --times";

pub(crate) fn run(options: &[&str]) -> Result<(), Failure> {
    cargo::step_with(KILL, &[&[TRIALS], options].concat())?;
    cargo::step_with(CREW, &[&[DRILLS], options].concat())
}
