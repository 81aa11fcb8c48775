//! The `adjutant` command with one wire more: `adjutant-ollama run --model ollama-native/qwen3 "…"`.

use std::process::ExitCode;

fn main() -> ExitCode {
    match adjutant_example_ollama::register() {
        Ok(()) => adjutant_cli::main(),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
