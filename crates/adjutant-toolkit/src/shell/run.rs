//! The tool `run_command`.

use std::{
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use adjutant_llm::{CallResult, Status};
use adjutant_tool::{
    CallContext, Progress, Replay, Tool, ToolError, ToolErrorKind, ToolHints, ToolSpec,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::{mpsc, watch};

use super::{
    Shell, identity,
    kept::{Command, RUNNING},
    output::{Output, SHOWN},
};
#[cfg(target_os = "linux")]
use crate::sandbox::secrets;
use crate::{
    Network,
    files::work,
    rules::{self, GIT_VARIABLES},
    sandbox::{
        job::{Access, CommandEnd, CommandInput, CommandJob},
        launch::Running,
    },
};

/// The time that a command has, if nothing is said, and the most that can be asked for.
const TIMEOUT: Duration = Duration::from_secs(120);
const MOST: u64 = 3_600;
/// The time that a command in the background has.
const BACKGROUND: Duration = Duration::from_secs(24 * 3_600);
/// The time between two messages about what a command has written.
const TICK: Duration = Duration::from_millis(250);
/// The longest command line, in bytes.
const LINE: usize = 100_000;
/// The places of bash; the settings of a user or of a project are never read.
const BASH: [&str; 2] = ["/bin/bash", "/usr/bin/bash"];
/// The time beyond its limit until a command is gone.
const ENDING: u64 = 15;

/// Runs a command in a sandbox: it may read programs, read and change the root, and has no network unless one was given. It has no
/// input. What it starts ends with it. Its output is shown with its beginning and its end.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// A command line for `bash`, or for `sh` where there is no bash. Give this or `argv`.
    #[serde(default)]
    command: Option<String>,
    /// The program and its arguments, run without a shell.
    #[serde(default)]
    argv: Option<Vec<String>>,
    /// The directory to run it in, relative to the root or absolute inside it; the root by default.
    #[serde(default)]
    cwd: Option<String>,
    /// The seconds that it may take; 120 by default, 3600 at most.
    #[serde(default)]
    #[schemars(range(min = 1, max = 3600))]
    timeout_secs: Option<u64>,
    /// Files that the command changes although other programs obey them, as `.git/config` or `.envrc`: the user decides. Only needed
    /// when a result names it.
    #[serde(default)]
    writes: Vec<String>,
    /// True to go on at once: `command_output` and `stop_command` take the id that is told.
    #[serde(default)]
    background: bool,
    /// True to let a command in the background go on when the run has ended.
    #[serde(default)]
    keep: bool,
}

/// Runs a command.
#[derive(Debug)]
pub(super) struct RunCommand {
    shell: Shell,
}

impl RunCommand {
    pub(super) fn new(shell: Shell) -> Self {
        Self { shell }
    }
}

impl Tool for RunCommand {
    type Args = Args;
    type Output = CallResult;

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            title: Some("Run a command".into()),
            replay: Replay::Once,
            sequential: true,
            timeout: Some(Duration::from_secs(MOST + ENDING)),
            max_output: Some(2 * SHOWN),
            hints: ToolHints {
                open_world: Some(true),
                ..work::CHANGES
            },
            ..work::spec::<Args>("run_command")
        }
    }

    async fn call(&self, args: Args, cx: CallContext) -> Result<CallResult, ToolError> {
        let limit = match (args.timeout_secs, args.background) {
            (Some(seconds), _) => Duration::from_secs(seconds.clamp(1, MOST)),
            (None, true) => BACKGROUND,
            (None, false) => TIMEOUT,
        };
        let job = self.job(&args, limit)?;
        let inner = &self.shell.inner;
        let (id, running) = {
            let mut kept = self.shell.kept();
            (kept.name(), kept.running())
        };
        if args.background && running >= RUNNING {
            let message =
                format!("{RUNNING} commands run in the background already: stop one of them first");
            return Err(ToolError::failed(message));
        }
        let output = Arc::new(Mutex::new(Output::new(
            inner.folder.path().join(format!("output-{id}")),
        )));
        let (told, mut ended) = watch::channel(None);
        let (tick, mut ticks) = mpsc::channel(1);
        let sink = {
            let (output, mut next) = (Arc::clone(&output), Instant::now() + TICK);
            Box::new(move |_, bytes: &[u8]| {
                output
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .add(bytes);
                if Instant::now() >= next {
                    next = Instant::now() + TICK;
                    // If one waits already, that one tells it too.
                    let _ = tick.try_send(());
                }
            })
        };
        let on_end = Box::new(move |how| {
            told.send_replace(Some((told_end(how, limit), how)));
        });
        let sandbox = match job.access {
            Access::Read => &inner.sandbox.clone().network(Network::None),
            Access::Write => &inner.sandbox,
        };
        let running = Running::start(sandbox, job, sink, on_end).await?;
        let command = Command {
            id: Arc::clone(&id),
            output: Arc::clone(&output),
            ended: ended.clone(),
            running: Arc::new(Mutex::new(Some(running))),
            is_kept: args.keep,
        };
        if args.background {
            self.shell.kept().add(command);
            let text = format!(
                "[it runs in the background as {id}: command_output shows what it wrote, stop_command ends it]"
            );
            return Ok(CallResult {
                details: json!({ "id": &*id }),
                ..CallResult::ok(text)
            });
        }
        let guard = StopOnDrop(command);
        let (how, is_cancelled) = loop {
            tokio::select! {
                done = ended.wait_for(Option::is_some) => {
                    break (done.map_or(None, |done| done.clone()), cx.cancel.is_cancelled());
                }
                () = cx.cancel.cancelled(), if !cx.cancel.is_cancelled() => guard.0.stop(),
                Some(()) = ticks.recv() => {
                    let text = output.lock().unwrap_or_else(PoisonError::into_inner).progress();
                    cx.progress(Progress::text(text));
                }
            }
        };
        let shown = output
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .shown(&id);
        self.shell.kept().add(guard.0.clone());
        let (text, how) =
            how.unwrap_or_else(|| (told_end(CommandEnd::Lost, limit), CommandEnd::Lost));
        let mut text = format!("{shown}\n[{text}]");
        if let Some(note) = inner.sandbox.explain(&shown, &inner.root) {
            text.push_str(&format!("\n[{note}]"));
        }
        match how {
            CommandEnd::Exited(status) => {
                let kind = if status.success() {
                    Status::Ok
                } else {
                    Status::Failed
                };
                let details = json!({ "id": &*id, "exit_code": status.code() });
                Ok(CallResult {
                    details,
                    ..CallResult::new(kind, text)
                })
            }
            CommandEnd::Late => Err(ToolError::new(ToolErrorKind::TimedOut, text)),
            CommandEnd::Stopped if is_cancelled => {
                Err(ToolError::new(ToolErrorKind::Cancelled, text))
            }
            CommandEnd::Stopped | CommandEnd::Limited(_) | CommandEnd::Lost => {
                Err(ToolError::failed(text))
            }
        }
    }
}

impl RunCommand {
    fn job(&self, args: &Args, limit: Duration) -> Result<CommandJob, ToolError> {
        let inner = &self.shell.inner;
        let (words, cwd) = (words(args)?, self.cwd(args.cwd.as_deref())?);
        let folder = inner.folder.path();
        inner.identity.call_once(|| {
            identity::copy_settings(&inner.root, &folder.join("home"));
            #[cfg(target_os = "linux")]
            secrets::copy_settings(&folder.join("home"));
        });
        // A harmless command needed no approval, so it can change nothing.
        let cwd_text = args.cwd.as_deref().unwrap_or_default();
        let is_harmless = rules::is_harmless(
            args.command.as_deref(),
            args.argv.as_deref(),
            Path::new(cwd_text),
            &inner.root,
        );
        let mut environment = inner.environment.clone();
        let mut access = Access::Write;
        if is_harmless {
            access = Access::Read;
            environment.extend(GIT_VARIABLES.map(|(name, value)| (name.into(), value.into())));
        }
        Ok(CommandJob {
            words,
            root: inner.root.clone(),
            access,
            cwd,
            home: folder.join("home"),
            tmp: folder.join("tmp"),
            folder: None,
            session: Some(Arc::clone(&inner.session)),
            writes: self.writes(args)?,
            environment,
            has_usual: true,
            input: CommandInput::None,
            is_split: false,
            limit,
        })
    }

    /// Returns the protected paths that it may write.
    fn writes(&self, args: &Args) -> Result<Vec<PathBuf>, ToolError> {
        let is_plain = |path: &&String| {
            let parts = Path::new(path).components();
            !path.contains('\0')
                && parts
                    .clone()
                    .any(|part| matches!(part, Component::Normal(_)))
                && parts.into_iter().all(|part| part != Component::ParentDir)
        };
        match args.writes.iter().find(|path| !is_plain(path)) {
            Some(path) => Err(ToolError::new(
                ToolErrorKind::InvalidArguments,
                format!("{path:?} in `writes` is not a path from the root"),
            )),
            None => Ok(args.writes.iter().map(PathBuf::from).collect()),
        }
    }

    /// The folder to run in. It need not be below the root: the sandbox decides what can be done there.
    fn cwd(&self, asked: Option<&str>) -> Result<PathBuf, ToolError> {
        let root = &self.shell.inner.root;
        let cwd = root.join(asked.unwrap_or("."));
        match cwd.canonicalize() {
            Ok(cwd) if cwd.starts_with(root) && cwd.is_dir() => Ok(cwd),
            Ok(_) => Err(ToolError::new(
                ToolErrorKind::Denied,
                "cwd is no folder below the root",
            )),
            Err(error) => Err(ToolError::failed(format!(
                "cwd cannot be entered: {}",
                error.kind()
            ))),
        }
    }
}

/// Returns the program bash, if it is installed.
pub(super) fn bash() -> Option<&'static str> {
    BASH.into_iter().find(|bash| Path::new(bash).is_file())
}

fn words(args: &Args) -> Result<Vec<std::ffi::OsString>, ToolError> {
    let wrong = |message: &str| Err(ToolError::new(ToolErrorKind::InvalidArguments, message));
    let words: Vec<String> = match (&args.command, &args.argv) {
        (Some(command), None) if !command.trim().is_empty() => {
            let shell: &[&str] = match bash() {
                Some(bash) => &[bash, "--noprofile", "--norc", "-c"],
                None => &["sh", "-c"],
            };
            let words = shell.iter().copied().chain([command.as_str()]);
            words.map(str::to_owned).collect()
        }
        (None, Some(argv)) if argv.first().is_some_and(|program| !program.is_empty()) => {
            argv.clone()
        }
        (None, None) | (Some(_), Some(_)) => return wrong("give either command or argv"),
        (Some(_), None) | (None, Some(_)) => return wrong("there is no command in it"),
    };
    if words.iter().map(String::len).sum::<usize>() > LINE {
        return wrong("the command is longer than 100,000 bytes: write it to a file first");
    }
    if words.iter().any(|word| word.contains('\0')) {
        return wrong("a command cannot contain the character NUL");
    }
    Ok(words.into_iter().map(Into::into).collect())
}

fn told_end(how: CommandEnd, limit: Duration) -> Arc<str> {
    match how {
        CommandEnd::Exited(status) => match (
            status.code(),
            std::os::unix::process::ExitStatusExt::signal(&status),
        ) {
            (Some(code), _) => format!("exit code {code}"),
            (None, signal) => format!("ended by signal {}", signal.unwrap_or_default()),
        },
        CommandEnd::Late => format!("killed: it took longer than {} s", limit.as_secs()),
        CommandEnd::Stopped => "stopped".to_owned(),
        CommandEnd::Limited(limit) => format!("killed: {limit}"),
        CommandEnd::Lost => "it is not known how it ended".to_owned(),
    }
    .into()
}

/// A command that nobody waits for any more is stopped.
struct StopOnDrop(Command);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}
