//! The tools `command_output` and `stop_command`.

use std::sync::PoisonError;

use adjutant_llm::CallResult;
use adjutant_tool::{CallContext, Replay, Tool, ToolError, ToolHints, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Shell, kept::Command, output::SHOWN};
use crate::files::work;

/// Shows what a command wrote so far, and whether it still runs. A long output is shown in parts: read on where it says.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OutputArgs {
    /// The id of the command.
    id: String,
    /// The first line to show, counted from 1; without it, the beginning and the end are shown.
    #[serde(default)]
    #[schemars(range(min = 1))]
    from_line: Option<u64>,
}

/// Ends a command in the background, with everything that it started, and shows what it wrote.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StopArgs {
    /// The id of the command.
    id: String,
}

/// The tool that returns the output of a command.
#[derive(Debug)]
pub(super) struct CommandOutput(Shell);

/// Ends a command.
#[derive(Debug)]
pub(super) struct StopCommand(Shell);

impl CommandOutput {
    pub(super) fn new(shell: Shell) -> Self {
        Self(shell)
    }
}

impl StopCommand {
    pub(super) fn new(shell: Shell) -> Self {
        Self(shell)
    }
}

impl Tool for CommandOutput {
    type Args = OutputArgs;
    type Output = CallResult;

    fn spec(&self) -> ToolSpec {
        let spec = work::spec::<OutputArgs>("command_output");
        ToolSpec {
            title: Some("Show a command's output".into()),
            max_output: Some(2 * SHOWN),
            ..spec
        }
    }

    async fn call(&self, args: OutputArgs, cx: CallContext) -> Result<CallResult, ToolError> {
        let command = get(&self.0, &args.id)?;
        let Some(from) = args.from_line else {
            return Ok(CallResult::ok(state(&command)));
        };
        let source = command
            .output
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .source();
        let lines = work::blocking(&cx, move |_| {
            source
                .lines(from)
                .map_err(|error| ToolError::failed("the output cannot be read").with_source(error))
        });
        let lines = lines.await?;
        let rest = lines.next.map_or("[end of the output]".to_owned(), |next| {
            format!("[it goes on at line {next}]")
        });
        Ok(CallResult::ok(format!("{}\n{rest}", lines.text)))
    }
}

impl Tool for StopCommand {
    type Args = StopArgs;
    type Output = CallResult;

    fn spec(&self) -> ToolSpec {
        // Twice is as good as once.
        let hints = ToolHints {
            idempotent: Some(true),
            ..work::CHANGES
        };
        let spec = ToolSpec {
            replay: Replay::Idempotent,
            hints,
            ..work::spec::<StopArgs>("stop_command")
        };
        ToolSpec {
            title: Some("Stop a command".into()),
            max_output: Some(2 * SHOWN),
            ..spec
        }
    }

    async fn call(&self, args: StopArgs, _: CallContext) -> Result<CallResult, ToolError> {
        let command = get(&self.0, &args.id)?;
        command.stop();
        let mut ended = command.ended.clone();
        // The sender may be gone: then the current output is returned.
        let _ = ended.wait_for(Option::is_some).await;
        Ok(CallResult::ok(state(&command)))
    }
}

fn get(shell: &Shell, id: &str) -> Result<Command, ToolError> {
    let kept = shell.kept();
    kept.get(id)
        .ok_or_else(|| ToolError::failed(format!("there is no command of this id; {}", kept.ids())))
}

fn state(command: &Command) -> String {
    let shown = command
        .output
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .shown(&command.id);
    let state = command
        .ended
        .borrow()
        .as_ref()
        .map_or("it still runs".into(), |(text, _)| text.clone());
    format!("{shown}\n[{state}]")
}
