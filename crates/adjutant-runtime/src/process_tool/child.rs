//! One call of a program: a group of processes that is fed, read, and gone when the call is.

use std::{
    io,
    os::unix::process::ExitStatusExt,
    pin::pin,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use adjutant_tool::{Cancel, ToolError};
use tokio::{
    io::AsyncWriteExt,
    process::{Child, ChildStdin, Command},
    time::{Instant, sleep_until, timeout},
};
use uuid::Uuid;

use super::{ProgramPlan, output::TrimmedOutput};
use crate::processes::{CALL_VARIABLE, Mark, START_VARIABLE, kill_group, kill_group_now, kill_marked};

/// The variable that tells which agent a process belongs to.
const AGENT_VARIABLE: &str = "ADJUTANT_AGENT";
/// The time that a group has to end when it is asked to; shorter than a cancelled call has.
const GRACE: Duration = Duration::from_millis(500);
/// The time that the remaining processes have to finish their output, when the program itself has ended.
const DRAIN: Duration = Duration::from_millis(200);
/// The largest number of bytes of error output that are kept.
const MAX_ERRORS: usize = 8 << 10;
/// The number of times that a program is started again while somebody is about to write it, and the wait before each.
const BUSY: (u32, Duration) = (50, Duration::from_millis(4));

/// A program that runs.
#[derive(Debug)]
pub(super) struct Started {
    child: Child,
    group: Group,
}

/// A program that has ended.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) ended: ProgramEnd,
    pub(super) output: TrimmedOutput,
    errors: TrimmedOutput,
}

/// The way a program ended.
#[derive(Debug)]
pub(super) enum ProgramEnd {
    Exit(ExitStatus),
    Lost(io::Error),
    Late,
    Cancelled,
}

/// The processes of a call: whoever drops this kills them all.
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
    pub(super) async fn new(plan: &ProgramPlan, words: &[String]) -> Result<Self, ToolError> {
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
        // It has no id only once it was waited for.
        let id = child.id().unwrap_or_default();
        Ok(Self { child, group: Group { id, mark: Mark::call(call), is_gone: false } })
    }

    /// Feeds it, reads it to its end, and kills what it leaves behind.
    ///
    /// Cancel: everything is killed at once.
    pub(super) async fn finish(mut self, line: Vec<u8>, within: Duration, cancel: &Cancel, max: usize) -> Done {
        let (mut output, mut errors) = (TrimmedOutput::both(max), TrimmedOutput::end(MAX_ERRORS));
        let pipes = (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take());
        let ended = {
            let talk = async {
                let (stdin, stdout, stderr) = pipes;
                let read = async {
                    if let Some(pipe) = stdout {
                        output.read(pipe).await
                    }
                };
                let fail = async {
                    if let Some(pipe) = stderr {
                        errors.read(pipe).await
                    }
                };
                tokio::join!(feed(stdin, &line), read, fail);
            };
            let (mut talk, mut is_told, late) = (pin!(talk), false, Instant::now() + within.min(FOREVER));
            let ended = loop {
                tokio::select! {
                    status = self.child.wait() => break status.map_or_else(ProgramEnd::Lost, ProgramEnd::Exit),
                    () = &mut talk, if !is_told => is_told = true,
                    () = cancel.cancelled() => break ProgramEnd::Cancelled,
                    () = sleep_until(late) => break ProgramEnd::Late,
                }
            };
            let is_over = matches!(ended, ProgramEnd::Exit(_) | ProgramEnd::Lost(_));
            if is_over && !is_told {
                is_told = timeout(DRAIN, &mut talk).await.is_ok();
            }
            let grace = if is_over { Duration::ZERO } else { GRACE };
            let listen = async {
                if !is_told {
                    // A process that cannot be killed cannot be waited for.
                    let _ = timeout(grace + DRAIN, &mut talk).await;
                }
            };
            tokio::join!(self.end(grace), listen);
            ended
        };
        Done { ended, output, errors }
    }

    /// Ends every process of the call.
    async fn end(&mut self, grace: Duration) {
        if grace.is_zero() {
            kill_group_now(self.group.id);
        } else {
            kill_group(self.group.id, grace).await;
        }
        let mark = self.group.mark.clone();
        let killed = tokio::task::spawn_blocking(move || kill_marked(&mark)).await;
        self.group.is_gone = killed.is_ok();
        // It was killed: there is nothing else to learn.
        let _ = self.child.wait().await;
    }
}

/// The longest time that is waited for.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

fn command(plan: &ProgramPlan, words: &[String], call: Uuid) -> Command {
    let around = &plan.around;
    let mut command = Command::new(plan.binary.path());
    command.args(words).env_clear().current_dir(&around.work).process_group(0).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command.env("HOME", &around.home).env("TMPDIR", &around.tmp).env("LANG", "C.UTF-8");
    command.envs(&around.environment).envs(&plan.environment);
    for variable in [AGENT_VARIABLE, START_VARIABLE] {
        match std::env::var_os(variable) {
            Some(value) => command.env(variable, value),
            None => command.env_remove(variable),
        };
    }
    command.env(CALL_VARIABLE, call.to_string());
    command
}

fn cannot_start(plan: &ProgramPlan, error: &io::Error) -> ToolError {
    let shown = plan.binary.path().display();
    ToolError::failed(match error.kind() {
        io::ErrorKind::NotFound => {
            format!("the program, the interpreter that it names, or its working folder is not there: {shown}")
        }
        io::ErrorKind::PermissionDenied => format!("the program may not be executed: {shown}"),
        io::ErrorKind::ArgumentListTooLong => "the arguments are longer than a command line can be".to_owned(),
        _ => format!("the program cannot be started: {shown}: {error}"),
    })
}

/// Writes the line, and closes. A program that does not want to read it need not.
async fn feed(stdin: Option<ChildStdin>, line: &[u8]) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(line).await;
        let _ = stdin.shutdown().await;
    }
}

/// Returns in words how a program ended.
pub(super) fn told(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("the program ended with exit code {code}"),
        (None, Some(signal)) => format!("the program was ended by signal {signal}"),
        (None, None) => format!("the program ended: {status}"),
    }
}

impl Done {
    /// Returns how it failed, with what it wrote.
    pub(super) fn failure(&self, how: &str) -> String {
        let mut text = how.to_owned();
        for (name, kept) in [("output", &self.output), ("standard error", &self.errors)] {
            if !kept.is_empty() {
                text.push_str(&format!("\n{name}:\n{}", kept.text().trim_end()));
            }
        }
        text
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
