//! Read-only tools for a repository: `git_status`, `git_diff` and `git_log`. They run git in the sandbox.

use std::{
    ffi::OsString,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use adjutant_llm::{CallResult, Status};
use adjutant_tool::{CallContext, Tool, ToolError, ToolErrorKind, ToolSpec, Tools};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    Error, Sandbox,
    files::work,
    sandbox::job::{Access, CommandEnd, CommandInput, CommandJob, OutputPipe},
    shell,
};

/// The maximum number of bytes of git's output in a result.
const SHOWN: usize = 64 << 10;
/// The timeout of git.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The default number of commits in a result, and the maximum.
const COMMITS: (u32, u32) = (20, 200);
/// The settings with which a repository names programs that filter compared files.
const FILTERS: &str = "^filter\\.";
/// Settings that override the repository's settings, which can name programs that git runs.
const SETTINGS: [&str; 8] = [
    "color.ui=never",
    "status.relativePaths=true",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "diff.external=",
    "log.showSignature=false",
    "safe.directory=*",
];

/// Read-only tools for the git repository of a directory. Cheap to clone.
///
/// git runs in the sandbox, with read access to the directory only, and starts no program that the repository names.
#[derive(Debug, Clone)]
pub struct Git {
    root: PathBuf,
    sandbox: Sandbox,
}

impl Git {
    /// The repository of this directory.
    ///
    /// # Errors
    /// `Root` if it is not a directory.
    pub fn new(root: impl AsRef<Path>, sandbox: Sandbox) -> Result<Self, Error> {
        Ok(Self {
            root: shell::found(root.as_ref())?,
            sandbox,
        })
    }

    /// The toolbox `git`: `git_status`, `git_diff` and `git_log`, all of them pure.
    pub fn toolbox(&self) -> Tools {
        Tools::new("git")
            .tool(GitStatus(self.clone()))
            .tool(GitDiff(self.clone()))
            .tool(GitLog(self.clone()))
    }

    /// Runs git without the filters of the repository: status and diff would run their programs.
    async fn run(&self, cx: &CallContext, words: Vec<OsString>) -> Result<CallResult, ToolError> {
        #[cfg(target_os = "linux")]
        if crate::sandbox::repository::Repository::find(&self.root).is_none() {
            return Err(ToolError::failed("this folder is in no git repository"));
        }
        let asked = ["config", "--null", "--name-only", "--get-regexp", FILTERS]
            .map(Into::into)
            .into();
        // Without filters, or outside of a repository, the output is empty.
        let (_, names, dropped) = self.output(cx, asked, true).await?;
        let mut all: Vec<OsString> = Vec::new();
        for name in names
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
        {
            // A filter whose name contains `=` cannot be overridden on a command line.
            if name.contains(&b'=') || dropped > 0 {
                return Err(ToolError::failed(
                    "the repository names filters that cannot be switched off",
                ));
            }
            let value: &[u8] = if name.to_ascii_lowercase().ends_with(b".required") {
                b"=false"
            } else {
                b"="
            };
            all.extend(["-c".into(), OsString::from_vec([name, value].concat())]);
        }
        all.extend(words);
        let (how, bytes, dropped) = self.output(cx, all, false).await?;
        let mut text = shell::plain_text(&bytes).trim_end().to_owned();
        if dropped > 0 {
            text.push_str(&format!(
                "\n[{dropped} bytes left out: name a path, or fewer commits]"
            ));
        }
        match how {
            CommandEnd::Exited(status) if status.success() && text.is_empty() => {
                Ok(CallResult::ok("[nothing]"))
            }
            CommandEnd::Exited(status) if status.success() => Ok(CallResult::ok(text)),
            CommandEnd::Exited(status) if status.code() == Some(127) => {
                Err(ToolError::failed("git is not installed"))
            }
            CommandEnd::Exited(_) if text.contains("not a git repository") => {
                Err(ToolError::failed("this folder is in no git repository"))
            }
            CommandEnd::Exited(_) => Ok(CallResult::new(Status::Failed, first_error(&text))),
            CommandEnd::Late => Err(ToolError::new(
                ToolErrorKind::TimedOut,
                "git took longer than 30 s and was killed",
            )),
            CommandEnd::Stopped => Err(ToolError::new(ToolErrorKind::Cancelled, "git was stopped")),
            CommandEnd::Limited(limit) => {
                Err(ToolError::failed(format!("git was killed: {limit}")))
            }
            CommandEnd::Lost => Err(ToolError::failed("it is not known how git ended")),
        }
    }

    /// Returns the exit of git, its output, and the number of omitted bytes. With `is_split`, the output does not
    /// include standard error.
    async fn output(
        &self,
        cx: &CallContext,
        words: Vec<OsString>,
        is_split: bool,
    ) -> Result<(CommandEnd, Vec<u8>, usize), ToolError> {
        let folder = shell::folder()
            .map_err(|error| ToolError::failed("no temporary folder").with_source(error))?;
        let mut all: Vec<OsString> = ["git", "--no-optional-locks", "--no-pager"]
            .map(Into::into)
            .into();
        all.extend(
            SETTINGS
                .iter()
                .flat_map(|setting| ["-c".into(), (*setting).into()]),
        );
        all.extend(words);
        let job = CommandJob {
            words: all,
            root: self.root.clone(),
            access: Access::Read,
            cwd: self.root.clone(),
            home: folder.path().join("home"),
            tmp: folder.path().to_owned(),
            folder: Some(folder),
            session: None,
            writes: Vec::new(),
            has_usual: true,
            input: CommandInput::None,
            is_split,
            environment: [
                ("GIT_CONFIG_NOSYSTEM", "1"),
                ("GIT_TERMINAL_PROMPT", "0"),
                ("GIT_ATTR_NOSYSTEM", "1"),
            ]
            .map(|(name, value)| (name.into(), value.into()))
            .into(),
            limit: TIMEOUT,
        };
        let output = Arc::new(Mutex::new((Vec::new(), 0)));
        let sink = {
            let output = Arc::clone(&output);
            Box::new(move |from, bytes: &[u8]| {
                if is_split && from == OutputPipe::Errors {
                    return;
                }
                let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
                let room = SHOWN.saturating_sub(output.0.len()).min(bytes.len());
                output
                    .0
                    .extend_from_slice(bytes.get(..room).unwrap_or_default());
                output.1 += bytes.len() - room;
            })
        };
        let how = self.sandbox.run(job, sink, &cx.cancel).await?;
        let (bytes, dropped) =
            std::mem::take(&mut *output.lock().unwrap_or_else(PoisonError::into_inner));
        Ok((how, bytes, dropped))
    }
}

/// Returns the line with the reason of a failure: after some errors git prints its whole help.
fn first_error(text: &str) -> &str {
    let is_error = |line: &&str| line.starts_with("fatal: ") || line.starts_with("error: ");
    let first = || text.lines().find(|line| !line.trim().is_empty());
    text.lines()
        .find(is_error)
        .or_else(first)
        .unwrap_or("git failed")
}

/// Shows the branch, and which files were changed, added or are not tracked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StatusArgs {}

/// Shows what was changed, line by line: the working tree against the index, or against a revision.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DiffArgs {
    /// A revision, or two joined by `..`; without it, what is not staged is shown.
    #[serde(default)]
    revision: Option<String>,
    /// True to show what is staged.
    #[serde(default)]
    staged: bool,
    /// A file or folder to look at alone.
    #[serde(default)]
    path: Option<String>,
}

/// Shows commits, the newest first: id, date, author, subject.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LogArgs {
    /// A revision to begin at, or a range; the current one by default.
    #[serde(default)]
    revision: Option<String>,
    /// The number of commits; 20 by default, 200 at most.
    #[serde(default)]
    #[schemars(range(min = 1, max = 200))]
    count: Option<u32>,
    /// A file or folder whose commits are shown alone.
    #[serde(default)]
    path: Option<String>,
}

#[derive(Debug)]
struct GitStatus(Git);
#[derive(Debug)]
struct GitDiff(Git);
#[derive(Debug)]
struct GitLog(Git);

impl Tool for GitStatus {
    type Args = StatusArgs;
    type Output = CallResult;

    fn spec(&self) -> ToolSpec {
        work::spec::<StatusArgs>("git_status")
    }

    async fn call(&self, _: StatusArgs, cx: CallContext) -> Result<CallResult, ToolError> {
        let words = [
            "status",
            "--short",
            "--branch",
            "--ignore-submodules=all",
            "--untracked-files=normal",
        ];
        self.0.run(&cx, words.map(Into::into).into()).await
    }
}

impl Tool for GitDiff {
    type Args = DiffArgs;
    type Output = CallResult;

    fn spec(&self) -> ToolSpec {
        work::spec::<DiffArgs>("git_diff")
    }

    async fn call(&self, args: DiffArgs, cx: CallContext) -> Result<CallResult, ToolError> {
        let fixed = [
            "diff",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--ignore-submodules=all",
            "--relative",
        ];
        let mut words: Vec<OsString> = fixed.map(Into::into).into();
        words.extend(args.staged.then(|| "--cached".into()));
        self.0
            .run(&cx, with(words, args.revision, args.path)?)
            .await
    }
}

impl Tool for GitLog {
    type Args = LogArgs;
    type Output = CallResult;

    fn spec(&self) -> ToolSpec {
        work::spec::<LogArgs>("git_log")
    }

    async fn call(&self, args: LogArgs, cx: CallContext) -> Result<CallResult, ToolError> {
        let count = args.count.unwrap_or(COMMITS.0).clamp(1, COMMITS.1);
        let fixed = [
            "log",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--date=short",
            "--format=%h %ad %an: %s",
        ];
        let mut words: Vec<OsString> = fixed.map(Into::into).into();
        words.push(format!("--max-count={count}").into());
        self.0
            .run(&cx, with(words, args.revision, args.path)?)
            .await
    }
}

/// Adds a revision and a path; neither can be parsed as an option.
fn with(
    mut words: Vec<OsString>,
    revision: Option<String>,
    path: Option<String>,
) -> Result<Vec<OsString>, ToolError> {
    if let Some(revision) = revision {
        if revision.starts_with('-') || revision.contains('\0') {
            return Err(ToolError::new(
                ToolErrorKind::InvalidArguments,
                "a revision does not begin with a dash",
            ));
        }
        words.push(revision.into());
    }
    words.push("--".into());
    words.extend(
        path.filter(|path| !path.contains('\0'))
            .map(|path| format!(":(literal){path}").into()),
    );
    Ok(words)
}
