//! The drill of the Model Context Protocol in short; `cargo xtask crash --mcp` runs it whole.

use std::process::Command;

#[test]
fn calls_of_a_server_are_done_once_when_it_and_its_client_are_killed() {
    let options = ["--sessions", "8", "--kills", "6", "--falls", "3"];
    let drill = Command::new(env!("CARGO_BIN_EXE_mcp"))
        .args(["drill", "all"])
        .args(options)
        .output();
    let drill = drill.expect("the program starts");
    let (said, complained) = (
        String::from_utf8_lossy(&drill.stdout),
        String::from_utf8_lossy(&drill.stderr),
    );
    // The seed is told in any case.
    eprintln!("{said}{complained}");
    assert!(
        drill.status.success() && said.contains("mcp: sqlite: "),
        "{said}{complained}"
    );
}
