//! The chaos drill in short; `cargo xtask chaos` runs it whole.
#![cfg(target_os = "linux")]

use std::process::Command;

#[test]
fn agents_stand_where_they_should_when_they_and_their_operator_are_killed() {
    // It is built for this test, and lies beside the one that runs it.
    let program = env!("CARGO_BIN_EXE_adjutant-program");
    assert!(std::path::Path::new(program).is_file());
    let drill = Command::new(env!("CARGO_BIN_EXE_chaos"))
        .args(["drill", "--agents", "3", "--seconds", "2", "--seed", "7"])
        .output();
    let drill = drill.expect("the program starts");
    let (said, complained) = (
        String::from_utf8_lossy(&drill.stdout),
        String::from_utf8_lossy(&drill.stderr),
    );
    // The seed is told in any case.
    eprintln!("{said}{complained}");
    assert!(drill.status.success(), "{said}{complained}");
    assert!(said.contains("chaos: 3 agents, 2 s: Survived"), "{said}");
}
