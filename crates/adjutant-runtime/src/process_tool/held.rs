//! One call of a program in its sandbox: it receives its input and is read, and all its processes are killed at the end
//! of the call.

use std::{
    path::Path,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use adjutant_tool::{Cancel, ToolError, ToolErrorKind};
use adjutant_toolkit::{Access, CommandEnd, CommandInput, CommandJob, OutputPipe, Sandbox};
use tokio::time::sleep;
use uuid::Uuid;

use super::sandbox::widened;
use super::{
    FOREVER, ProgramPlan,
    output::{Done, MAX_ERRORS, ProgramEnd, TrimmedOutput},
};
use crate::manifest::ProcessTool;

/// The extra time after the timeout of a program until it is killed, even if its caller was dropped.
const BEYOND: Duration = Duration::from_secs(60);

/// The number of retries for a program whose file is open for writing, and the delay before each.
const BUSY: (u32, Duration) = (50, Duration::from_millis(4));

/// The sandbox of programs; by default Landlock where it works, because bubblewrap does not pass on signals and exit
/// codes.
#[derive(Debug, Clone)]
pub(crate) struct ProgramHolder(pub(crate) Sandbox);

impl Default for ProgramHolder {
    fn default() -> Self {
        let landlock = Sandbox::landlock();
        match landlock.refuses() {
            None => Self(landlock),
            Some(_) => Self(Sandbox::new()),
        }
    }
}

/// The sandbox of one program.
pub(super) type Hold = Sandbox;

impl ProgramHolder {
    /// Returns the sandbox of programs without sandbox settings.
    #[cfg(feature = "mcp")]
    pub(crate) fn sandbox(&self) -> Sandbox {
        self.0.clone()
    }

    /// Returns the sandbox of a program, with the additional permissions of its manifest.
    pub(super) fn program_sandbox(&self, program: &Path, tool: &ProcessTool) -> Hold {
        widened(self.0.clone(), program, &tool.args, &tool.sandbox)
    }
}

/// Runs a program to its end.
///
/// Cancel: it is killed in the background.
///
/// # Errors
/// `Denied` if no sandbox works; `Failed` if it cannot be started.
pub(super) async fn run(
    plan: &ProgramPlan,
    hold: &Hold,
    words: &[String],
    line: Vec<u8>,
    cancel: &Cancel,
) -> Result<Done, ToolError> {
    let (mut tries, wait) = BUSY;
    loop {
        let done = once(plan, hold, job(plan, words, line.clone()), cancel).await?;
        if tries == 0 || !is_busy(plan, &done) {
            return Ok(done);
        }
        tries -= 1;
        sleep(wait).await;
    }
}

/// True if it did not start because its file is open for writing, as reported by the shell that starts it.
fn is_busy(plan: &ProgramPlan, done: &Done) -> bool {
    let is_unfit = matches!(done.ended, ProgramEnd::Exit(status) if status.code() == Some(126));
    let said = || done.errors.text();
    is_unfit
        && done.output.is_empty()
        && said()
            .trim_end()
            .ends_with(&format!("{}: Text file busy", plan.binary.path().display()))
}

async fn once(
    plan: &ProgramPlan,
    hold: &Hold,
    job: CommandJob,
    cancel: &Cancel,
) -> Result<Done, ToolError> {
    let kept = Arc::new(Mutex::new((
        TrimmedOutput::both(plan.max_output),
        TrimmedOutput::end(MAX_ERRORS),
    )));
    let sink = {
        let kept = Arc::clone(&kept);
        Box::new(move |from, bytes: &[u8]| {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            match from {
                OutputPipe::Output => kept.0.add(bytes),
                OutputPipe::Errors => kept.1.add(bytes),
            }
        })
    };
    let (stop, mut why) = (Cancel::new(), None);
    let mut run = pin!(hold.run(job, sink, &stop));
    let mut late = pin!(sleep(plan.timeout.min(FOREVER)));
    let end = loop {
        let wish = tokio::select! {
            end = &mut run => break end,
            () = cancel.cancelled(), if why.is_none() => ProgramEnd::Cancelled,
            () = &mut late, if why.is_none() => ProgramEnd::Late,
        };
        why = Some(wish);
        stop.cancel();
    };
    let ended = match end.map_err(cured)? {
        CommandEnd::Exited(status) => ProgramEnd::Exit(status),
        CommandEnd::Late => ProgramEnd::Late,
        CommandEnd::Stopped => why.unwrap_or(ProgramEnd::Lost),
        CommandEnd::Limited(limit) => {
            return Err(ToolError::failed(format!(
                "the program was killed: {limit}"
            )));
        }
        CommandEnd::Lost => ProgramEnd::Lost,
    };
    let (output, errors) = {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *kept, (TrimmedOutput::end(0), TrimmedOutput::end(0)))
    };
    Ok(Done {
        ended,
        output,
        errors,
    })
}

/// Adds the manifest's remedy to the refusal.
fn cured(error: ToolError) -> ToolError {
    match error.kind {
        ToolErrorKind::Denied => {
            let cure = "or say `sandbox: {danger_without_any: true}` of this tool";
            ToolError::new(error.kind, format!("{}, {cure}", error.message))
        }
        _ => error,
    }
}

fn job(plan: &ProgramPlan, words: &[String], line: Vec<u8>) -> CommandJob {
    let around = &plan.around;
    let program = plan.binary.path().as_os_str().to_owned();
    CommandJob {
        words: [program]
            .into_iter()
            .chain(words.iter().map(Into::into))
            .collect(),
        root: around.work.clone(),
        access: Access::Write,
        cwd: around.work.clone(),
        home: around.home.clone(),
        tmp: around.tmp.clone(),
        folder: None,
        session: None,
        writes: Vec::new(),
        environment: plan.variables(Uuid::new_v4()),
        has_usual: false,
        input: CommandInput::Bytes(line),
        is_split: true,
        limit: plan.timeout.min(FOREVER) + BEYOND,
    }
}
