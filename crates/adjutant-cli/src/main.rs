//! The `adjutant` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    adjutant_cli::main()
}
