//! The kill test in short; `cargo xtask crash` runs it 200 times for each kind of storage.

use std::process::Command;

#[test]
fn agent_is_done_once_when_its_process_is_killed_at_any_moment() {
    let trials = Command::new(env!("CARGO_BIN_EXE_kill"))
        .args(["trials", "all", "--seconds", "3"])
        .output();
    let trials = trials.expect("the program starts");
    let (said, complained) = (
        String::from_utf8_lossy(&trials.stdout),
        String::from_utf8_lossy(&trials.stderr),
    );
    // The seed is told in any case.
    eprintln!("{said}{complained}");
    assert!(trials.status.success(), "{said}{complained}");
    assert!(
        said.contains("kill: sqlite: ") && said.contains("kill: jsonl: "),
        "{said}"
    );
}
