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

    /// Ends the program: with failure if a row was past its limit.
    pub fn end(&self) -> ExitCode {
        if self.past == 0 {
            return ExitCode::SUCCESS;
        }
        println!("rows past their limits: {}", self.past);
        ExitCode::FAILURE
    }
}
