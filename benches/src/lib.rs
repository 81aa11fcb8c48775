//! The rows that the benchmarks print: each beside its limit. A program with a row past its limit fails.
#![expect(clippy::print_stdout, reason = "a benchmark")]

use std::process::ExitCode;

/// The rows of one program.
#[derive(Debug, Default)]
pub struct Rows {
    past: usize,
}

impl Rows {
    /// Prints a figure beside its limit, with what else was measured; an infinite limit is none.
    pub fn row(&mut self, what: &str, measured: &str, figure: f64, limit: f64) {
        if limit.is_infinite() {
            return println!("| {what} | {measured} | {figure:.2} | | |");
        }
        let held = figure <= limit;
        self.past += usize::from(!held);
        let verdict = if held { "held" } else { "PAST" };
        println!("| {what} | {measured} | {figure:.2} | {limit} | {verdict} |");
    }

    /// Prints a figure that has no limit.
    pub fn figure(&mut self, what: &str, measured: &str, figure: f64) {
        self.row(what, measured, figure, f64::INFINITY);
    }

    /// Says that something cannot be measured here.
    pub fn skipped(&self, what: &str, why: impl std::fmt::Display) {
        println!("| {what} | SKIPPED: {why} | | | |");
    }

    /// Ends the program: with failure if a row was past its limit.
    pub fn end(&self) -> ExitCode {
        if self.past == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

/// The middle one of some figures.
pub fn median(figures: impl IntoIterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.into_iter().collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
