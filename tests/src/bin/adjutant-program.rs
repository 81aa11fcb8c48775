//! The command once more: cargo builds a binary of this package before its tests, and tells them where it is.

use std::process::ExitCode;

fn main() -> ExitCode {
    adjutant_cli::main()
}
