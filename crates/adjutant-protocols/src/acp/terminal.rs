//! The tool `run_in_terminal`. Commands in a terminal of the editor run without a sandbox: each one needs an
//! approval.

use std::{path::Path, time::Duration};

use adjutant_llm::{CallResult, Status};
use adjutant_tool::{
    Ask, CallContext, Replay, Tool, ToolError, ToolErrorKind, ToolHints, ToolSpec, Tools,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::editor::Editor;
use crate::answer;

/// The default time limit of a command, and the largest.
const TIMEOUT: u64 = 120;
const MOST: u64 = 3_600;
/// The time beyond its limit until its output is there.
const ENDING: u64 = 60;
/// The largest number of bytes of its output.
const MAX_OUTPUT: u64 = 64 << 10;
const ABOUT: &str = "Runs a command line for `sh` in a terminal of the user's editor: outside the sandbox, with the user's \
    programs, environment and network. The user is asked about each. Take it for what cannot be done in the sandbox.";

/// Commands in the terminals of an editor: the toolbox `terminal`.
pub(super) fn toolbox(editor: Editor) -> Tools {
    Tools::new("terminal").tool(RunInTerminal { editor })
}

#[derive(Deserialize)]
struct Args {
    command: String,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    timeout_secs: Option<u64>,
}

struct RunInTerminal {
    editor: Editor,
}

/// A terminal; dropping it releases it, and ends its command.
struct Terminal<'a> {
    editor: &'a Editor,
    id: String,
}

impl Tool for RunInTerminal {
    type Args = Args;
    type Output = CallResult;

    fn spec(&self) -> ToolSpec {
        let schema = json!({
            "type": "object",
            "properties": {
                "command": {"type": "string", "minLength": 1, "maxLength": 100_000, "description": "The command line."},
                "cwd": {"type": "string", "description": "The folder to run it in, below the root; the root by default."},
                "timeout_secs": {
                    "type": "integer", "minimum": 1, "maximum": MOST,
                    "description": "The seconds that it may take; 120 by default.",
                },
            },
            "required": ["command"],
            "additionalProperties": false,
        });
        ToolSpec {
            title: Some("Run in the editor's terminal".into()),
            replay: Replay::Once,
            timeout: Some(Duration::from_secs(MOST + 2 * ENDING)),
            hints: ToolHints {
                reads_only: Some(false),
                destructive: Some(true),
                open_world: Some(true),
                idempotent: None,
            },
            ..ToolSpec::new("run_in_terminal", ABOUT, schema)
        }
    }

    fn approval(&self, args: &Value) -> Option<Ask> {
        let command = args["command"].as_str().unwrap_or_default();
        Some(Ask::approval(format!(
            "Run this in the editor's terminal, where no sandbox holds it? {command}"
        )))
    }

    async fn call(&self, args: Args, cx: CallContext) -> Result<CallResult, ToolError> {
        let cwd = Path::new(args.cwd.as_deref().unwrap_or_default());
        let is_below = cwd.components().all(|part| {
            matches!(
                part,
                std::path::Component::Normal(_) | std::path::Component::CurDir
            )
        });
        if !is_below {
            return Err(ToolError::new(
                ToolErrorKind::Denied,
                "cwd is no folder below the root",
            ));
        }
        let wish = json!({
            "command": "sh", "args": ["-c", args.command], "cwd": self.editor.root.join(cwd), "outputByteLimit": MAX_OUTPUT,
        });
        let made = self.editor.ask_now("terminal/create", wish).await?;
        let id = made["terminalId"]
            .as_str()
            .ok_or_else(|| ToolError::failed("the editor named no terminal"))?;
        let terminal = Terminal {
            editor: &self.editor,
            id: id.to_owned(),
        };
        terminal.show(&cx).await?;
        let limit = args.timeout_secs.unwrap_or(TIMEOUT).clamp(1, MOST);
        let ended = tokio::select! {
            ended = timeout(Duration::from_secs(limit), terminal.ask("terminal/wait_for_exit")) => ended.ok().transpose()?,
            () = cx.cancel.cancelled() => return Err(ToolError::new(ToolErrorKind::Cancelled, "stopped")),
        };
        let said = tokio::select! {
            said = timeout(Duration::from_secs(ENDING), terminal.ask("terminal/output")) => said,
            () = cx.cancel.cancelled() => return Err(ToolError::new(ToolErrorKind::Cancelled, "stopped")),
        };
        let late = |_| {
            Err(ToolError::new(
                ToolErrorKind::TimedOut,
                "the editor did not return the output of the command",
            ))
        };
        let said = said.unwrap_or_else(late)?;
        let cut = if said["truncated"] == true {
            "[its beginning is left out]\n"
        } else {
            ""
        };
        let output = format!("{cut}{}", said["output"].as_str().unwrap_or_default());
        let Some(ended) = ended else {
            let text = format!("{output}\n[killed: it took longer than {limit} s]");
            return Err(ToolError::new(ToolErrorKind::TimedOut, text));
        };
        let (how, status) = match (ended["exitCode"].as_u64(), ended["signal"].as_str()) {
            (Some(0), _) => ("exit code 0".to_owned(), Status::Ok),
            (Some(code), _) => (format!("exit code {code}"), Status::Failed),
            (None, Some(signal)) => (format!("ended by signal {signal}"), Status::Failed),
            (None, None) => ("it is not known how it ended".to_owned(), Status::Failed),
        };
        Ok(CallResult::new(status, format!("{output}\n[{how}]")))
    }
}

impl Terminal<'_> {
    async fn ask(&self, method: &str) -> Result<Value, ToolError> {
        self.editor
            .ask(method, json!({"terminalId": self.id}))
            .await
    }

    /// Shows it in the call that it belongs to.
    async fn show(&self, cx: &CallContext) -> Result<(), ToolError> {
        let (session, root) = self.editor.session()?;
        let Some(call) = cx
            .who
            .call
            .map(|call| answer::call(&cx.who.thread, root, call))
        else {
            return Ok(());
        };
        let content = json!([{"type": "terminal", "terminalId": self.id}]);
        let told =
            json!({"sessionUpdate": "tool_call_update", "toolCallId": call, "content": content});
        self.editor.link.update(session, told).await;
        Ok(())
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        if let Ok((session, _)) = self.editor.session() {
            self.editor.link.call_later(
                "terminal/release",
                json!({"sessionId": session, "terminalId": self.id}),
            );
        }
    }
}
