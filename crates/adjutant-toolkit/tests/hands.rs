//! Commands, git, and the sandbox that holds them.
#![cfg(target_os = "linux")]

#[path = "hands/attacks.rs"]
mod attacks;
#[path = "hands/escapes.rs"]
mod escapes;
#[path = "hands/git.rs"]
mod git;
#[path = "hands/limits.rs"]
mod limits;
#[path = "hands/protected.rs"]
mod protected;
#[path = "hands/rows.rs"]
mod rows;
#[path = "hands/runtimes.rs"]
mod runtimes;
#[path = "hands/shell.rs"]
mod shell;
#[path = "hands/who.rs"]
mod who;

use adjutant_llm::CallResult;
use adjutant_tool::{CallContext, ToolError, Tools};
use serde_json::Value;

/// Calls a tool on a runtime of its own, without timers or input of the system.
fn ask(tools: &Tools, tool: &str, args: Value) -> Result<CallResult, ToolError> {
    let tool = tools
        .toolset()
        .get(tool)
        .expect("the toolbox holds the tool")
        .clone();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    runtime.block_on(tool.call(args, CallContext::detached()))
}

/// What the model is shown, whether it failed or not.
fn said(tools: &Tools, tool: &str, args: Value) -> String {
    ask(tools, tool, args).map_or_else(|error| error.message.to_string(), |result| result.text())
}

/// Shows a row of a table, whoever looks.
fn tell(row: std::fmt::Arguments<'_>) {
    use std::io::Write;
    // A closed output is no failure of what is tested.
    let _ = writeln!(std::io::stdout(), "{row}");
}
