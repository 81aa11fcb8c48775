//! The crew drill in short; `cargo xtask crash` runs it whole.

use std::process::Command;

#[test]
fn every_task_ends_once_when_workers_of_one_board_are_killed() {
    let drills = Command::new(env!("CARGO_BIN_EXE_crew"))
        .args(["drill", "all", "--times", "1", "--tasks", "40"])
        .output();
    let drills = drills.expect("the program starts");
    let (said, complained) = (
        String::from_utf8_lossy(&drills.stdout),
        String::from_utf8_lossy(&drills.stderr),
    );
    // The seed is told in any case.
    eprintln!("{said}{complained}");
    assert!(drills.status.success(), "{said}{complained}");
    assert!(said.contains("crew: sqlite: Survived"), "{said}");
}
