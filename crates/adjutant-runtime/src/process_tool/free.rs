//! Replaces `held.rs` on systems without a sandbox: a program runs only if the manifest permits it.
//!
//! A call is a process group that receives its input, is read, and is killed at the end of the call.

use std::{io, path::Path, pin::pin, process::Stdio, time::Duration};

use adjutant_tool::{Cancel, ToolError, ToolErrorKind};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStdin, Command},
    time::{Instant, sleep_until, timeout},
};
use uuid::Uuid;

use super::{
    CALL_VARIABLE, FOREVER, ProgramPlan,
    output::{Done, MAX_ERRORS, ProgramEnd, TrimmedOutput},
};
use crate::{
    manifest::ProcessTool,
    processes::{Mark, kill_group_now, kill_marked},
};

/// The time for a process group to exit after a signal; shorter than a cancelled call's.
const GRACE: Duration = Duration::from_millis(500);
/// The time for remaining processes to finish their output after the exit of the program.
const DRAIN: Duration = Duration::from_millis(200);
/// The number of bytes per read.
const CHUNK: usize = 64 << 10;
/// The number of retries for a program whose file is open for writing, and the delay before each.
const BUSY: (u32, Duration) = (50, Duration::from_millis(4));

/// The sandbox of programs: none.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProgramHolder(());

/// Whether a program may run.
#[derive(Debug)]
pub(super) struct Hold {
    is_free: bool,
}

impl ProgramHolder {
    /// Returns the sandbox of servers.
    #[cfg(feature = "mcp")]
    pub(crate) fn sandbox(&self) -> adjutant_toolkit::Sandbox {
        adjutant_toolkit::Sandbox::new()
    }

    pub(super) fn of(&self, _: &Path, tool: &ProcessTool) -> Hold {
        Hold {
            is_free: tool.sandbox.danger_without_any,
        }
    }
}

/// Runs a program to its end.
///
/// Cancel: it is killed immediately.
///
/// # Errors
/// `Denied` if it is not permitted; `Failed` if it cannot be started.
pub(super) async fn run(
    plan: &ProgramPlan,
    hold: &Hold,
    words: &[String],
    line: Vec<u8>,
    cancel: &Cancel,
) -> Result<Done, ToolError> {
    if !hold.is_free {
        let why = "no program runs without a sandbox, and there is none here";
        let cure = "use Linux with the feature `shell`, or say `sandbox: {danger_without_any: true}` of this tool";
        return Err(ToolError::new(
            ToolErrorKind::Denied,
            format!("{why}; hint: {cure}"),
        ));
    }
    let started = Started::new(plan, words).await?;
    Ok(started
        .finish(line, plan.timeout, cancel, plan.max_output)
        .await)
}

/// A running program.
#[derive(Debug)]
struct Started {
    child: Child,
    group: Group,
}

/// The processes of a call; all are killed on drop.
#[derive(Debug)]
struct Group {
    id: u32,
    mark: Mark,
    is_gone: bool,
}

impl Started {
    /// Starts the program.
    ///
    /// # Errors
    /// `Failed` if it cannot be started.
    async fn new(plan: &ProgramPlan, words: &[String]) -> Result<Self, ToolError> {
        let call = Uuid::new_v4();
        let mut command = command(plan, words, call);
        let (mut tries, wait) = BUSY;
        let child = loop {
            match command.spawn() {
                Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && tries > 0 => {
                    tries -= 1;
                    tokio::time::sleep(wait).await;
                }
                spawned => break spawned.map_err(|error| cannot_start(plan, &error))?,
            }
        };
        // The id is missing only after it was waited for.
        let id = child.id().unwrap_or_default();
        Ok(Self {
            child,
            group: Group {
                id,
                mark: Mark::of(CALL_VARIABLE, call),
                is_gone: false,
            },
        })
    }

    /// Writes its input, reads its output to the end, and kills its remaining processes.
    ///
    /// Cancel: everything is killed immediately.
    async fn finish(
        mut self,
        line: Vec<u8>,
        within: Duration,
        cancel: &Cancel,
        max: usize,
    ) -> Done {
        let (mut output, mut errors) = (TrimmedOutput::both(max), TrimmedOutput::end(MAX_ERRORS));
        let pipes = (
            self.child.stdin.take(),
            self.child.stdout.take(),
            self.child.stderr.take(),
        );
        let ended = {
            let talk = async {
                let (stdin, stdout, stderr) = pipes;
                let read = async {
                    if let Some(pipe) = stdout {
                        read_all(&mut output, pipe).await
                    }
                };
                let fail = async {
                    if let Some(pipe) = stderr {
                        read_all(&mut errors, pipe).await
                    }
                };
                tokio::join!(feed(stdin, &line), read, fail);
            };
            let (mut talk, mut is_told, late) =
                (pin!(talk), false, Instant::now() + within.min(FOREVER));
            let ended = loop {
                tokio::select! {
                    status = self.child.wait() => break status.map_or(ProgramEnd::Lost, ProgramEnd::Exit),
                    () = &mut talk, if !is_told => is_told = true,
                    () = cancel.cancelled() => break ProgramEnd::Cancelled,
                    () = sleep_until(late) => break ProgramEnd::Late,
                }
            };
            let is_over = matches!(ended, ProgramEnd::Exit(_) | ProgramEnd::Lost);
            if is_over && !is_told {
                is_told = timeout(DRAIN, &mut talk).await.is_ok();
            }
            let grace = if is_over { Duration::ZERO } else { GRACE };
            let listen = async {
                if !is_told {
                    // Waits with a timeout, because a process may be unkillable.
                    let _ = timeout(grace + DRAIN, &mut talk).await;
                }
            };
            tokio::join!(self.end(grace), listen);
            ended
        };
        Done {
            ended,
            output,
            errors,
        }
    }

    /// Terminates every process of the call.
    async fn end(&mut self, grace: Duration) {
        if !grace.is_zero() {
            if let Some(group) = i32::try_from(self.group.id).ok().and_then(Pid::from_raw) {
                let _ = kill_process_group(group, Signal::TERM);
            }
            // Time for an orderly exit.
            let _ = timeout(grace, self.child.wait()).await;
        }
        kill_group_now(self.group.id);
        let mark = self.group.mark.clone();
        let killed = tokio::task::spawn_blocking(move || kill_marked(&mark)).await;
        self.group.is_gone = killed.is_ok();
        // It was killed, so its exit contains no information.
        let _ = self.child.wait().await;
    }
}

fn command(plan: &ProgramPlan, words: &[String], call: Uuid) -> Command {
    let mut command = Command::new(plan.binary.path());
    command.args(words).env_clear().envs(plan.variables(call));
    command
        .current_dir(&plan.around.work)
        .process_group(0)
        .kill_on_drop(true);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn cannot_start(plan: &ProgramPlan, error: &io::Error) -> ToolError {
    let shown = plan.binary.path().display();
    ToolError::failed(match error.kind() {
        io::ErrorKind::NotFound => {
            format!(
                "the program, the interpreter that it names, or its working folder is not there: {shown}"
            )
        }
        io::ErrorKind::PermissionDenied => format!("the program may not be executed: {shown}"),
        io::ErrorKind::ArgumentListTooLong => {
            "the arguments are longer than a command line can be".to_owned()
        }
        _ => format!("the program cannot be started: {shown}: {error}"),
    })
}

/// Reads to the end, or to an error.
async fn read_all(output: &mut TrimmedOutput, mut from: impl AsyncRead + Unpin) {
    let mut chunk = vec![0; CHUNK];
    while let Ok(read) = from.read(&mut chunk).await {
        match chunk.get(..read) {
            Some(bytes) if !bytes.is_empty() => output.add(bytes),
            _ => break,
        }
    }
}

/// Writes the line, and closes the pipe. The program need not read it.
async fn feed(stdin: Option<ChildStdin>, line: &[u8]) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(line).await;
        let _ = stdin.shutdown().await;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.is_gone {
            kill_group_now(self.id);
            kill_marked(&self.mark);
        }
    }
}
