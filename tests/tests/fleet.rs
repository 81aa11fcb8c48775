//! The drill of workers in short; `cargo xtask crash` runs it with 500 sessions and 100 kills.

use std::process::Command;

#[test]
fn sessions_are_done_once_when_their_workers_are_killed_at_any_moment() {
    let options = [
        "--sessions",
        "40",
        "--workers",
        "3",
        "--kills",
        "6",
        "--lease",
        "1000",
    ];
    let drill = Command::new(env!("CARGO_BIN_EXE_fleet"))
        .args(["drill", "all"])
        .args(options)
        .output();
    let drill = drill.expect("the program starts");
    let (said, complained) = (
        String::from_utf8_lossy(&drill.stdout),
        String::from_utf8_lossy(&drill.stderr),
    );
    eprintln!("{said}{complained}");
    assert!(
        drill.status.success() && said.contains("fleet: sqlite: "),
        "{said}{complained}"
    );
}
