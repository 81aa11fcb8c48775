//! Tools that are programs: they run in a sandbox, without this process's environment, and never outlive a call.

mod binary;
#[cfg_attr(
    all(feature = "shell", target_os = "linux"),
    path = "process_tool/held.rs"
)]
#[cfg_attr(
    not(all(feature = "shell", target_os = "linux")),
    path = "process_tool/free.rs"
)]
mod child;
mod output;
#[cfg(any(feature = "mcp", all(feature = "shell", target_os = "linux")))]
mod sandbox;
mod words;

use std::{collections::BTreeMap, ffi::OsString, path::PathBuf, sync::Arc, time::Duration};

use adjutant_llm::CallResult;
use adjutant_tool::{
    Approval, Bound, CallContext, ErasedTool, Replay, ToolError, ToolErrorKind, ToolHints, ToolSpec,
};
use async_trait::async_trait;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{Error, ErrorKind, Workspace, manifest::ProcessTool, processes::START_VARIABLE};
use binary::Binary;
pub(crate) use child::ProgramHolder;
use output::ProgramEnd;
#[cfg(feature = "mcp")]
pub(crate) use sandbox::widened;
use words::Words;

/// The default timeout of a call.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The default size of stored output, in bytes.
const MAX_OUTPUT: usize = 64 << 10;
/// The maximum size of stored output of any tool, in bytes.
const MOST_OUTPUT: u64 = 64 << 20;
/// The additional time of a call beyond its timeout, until everything is killed.
const KILLING: Duration = Duration::from_secs(5);
/// The maximum time to wait.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);
/// The variable that marks the processes of a call.
const CALL_VARIABLE: &str = "ADJUTANT_CALL";
/// The variable that marks the processes of an agent.
const AGENT_VARIABLE: &str = "ADJUTANT_AGENT";
/// The number of bytes for the text around the output: notes about omitted parts and the exit.
const AROUND: usize = 16 << 10;

/// The directories and the environment of programs.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    /// Their working directory.
    pub(crate) work: PathBuf,
    /// The value of `HOME`.
    pub(crate) home: PathBuf,
    /// The value of `TMPDIR`.
    pub(crate) tmp: PathBuf,
    /// The variables of the manifest.
    pub(crate) environment: BTreeMap<String, String>,
    /// The sandbox of the programs.
    holder: ProgramHolder,
}

impl Surroundings {
    /// Creates them for a workspace.
    pub(crate) fn from_workspace(
        workspace: &Workspace,
        environment: &BTreeMap<String, String>,
        holder: ProgramHolder,
    ) -> Self {
        Self {
            work: workspace.work(),
            home: workspace.file("home"),
            tmp: workspace.tmp(),
            environment: environment.clone(),
            holder,
        }
    }
}

/// A program as a tool.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    spec: ToolSpec,
    plan: Arc<ProgramPlan>,
    hold: Arc<child::Hold>,
}

/// The parts that all its calls share.
#[derive(Debug)]
struct ProgramPlan {
    binary: Binary,
    words: Words,
    environment: BTreeMap<String, String>,
    around: Surroundings,
    timeout: Duration,
    max_output: usize,
}

impl Program {
    /// Creates a tool of a manifest. Its program must exist, and match its recorded digest.
    ///
    /// Reads a pinned program, and blocks for that.
    ///
    /// # Errors
    /// `Config` if the program is missing, is not executable or was changed, or if the schema is invalid.
    pub(crate) fn new(tool: &ProcessTool, around: &Surroundings) -> Result<Self, Error> {
        let of_tool = |error: Error| {
            let message = format!("the tool {} cannot be used: {}", tool.name, error.message());
            Error::new(error.kind(), message)
        };
        let binary = Binary::find(&tool.binary, tool.sha256.as_deref()).map_err(of_tool)?;
        let nothing =
            || json!({ "type": "object", "properties": {}, "additionalProperties": false });
        let parameters = tool.parameters.clone().unwrap_or_else(nothing);
        let max_output = tool
            .max_output
            .map_or(MAX_OUTPUT, |size| size.0.min(MOST_OUTPUT) as usize);
        let timeout = tool.timeout.map_or(TIMEOUT, |time| time.0);
        let words = Words::new(&tool.args, &parameters);
        let spec = ToolSpec {
            timeout: Some(timeout.saturating_add(KILLING)),
            max_output: Some(max_output.saturating_add(AROUND)),
            ..ToolSpec::new(&*tool.name, Arc::clone(&tool.description), parameters)
        };
        let spec = if tool.approval {
            ToolSpec {
                approval: Approval::Always,
                ..spec
            }
        } else {
            spec
        };
        // Repeating is safe: the author of the manifest declares it, and the key is the same.
        let hints = ToolHints {
            idempotent: tool.repeatable.then_some(true),
            ..ToolHints::default()
        };
        let spec = ToolSpec {
            replay: if tool.repeatable {
                Replay::Idempotent
            } else {
                Replay::Once
            },
            hints,
            ..spec
        };
        let (environment, around) = (tool.environment.clone(), around.clone());
        let plan = ProgramPlan {
            binary,
            words,
            environment,
            around,
            timeout,
            max_output,
        };
        let hold = Arc::new(plan.around.holder.program_sandbox(plan.binary.path(), tool));
        let program = Self {
            spec,
            plan: Arc::new(plan),
            hold,
        };
        if let Err(error) = Bound::new(program.clone()).schema() {
            let message = format!("the parameters of the tool {} are no schema", tool.name);
            return Err(Error::new(ErrorKind::Config, message).with_source(error.clone()));
        }
        Ok(program)
    }
}

/// Finds a program by its path or by its bare name in `PATH`; it must be executable and match its recorded digest.
///
/// # Errors
/// `Config` if it does not.
#[cfg(feature = "mcp")]
pub(crate) fn find_program(
    program: &std::path::Path,
    sha256: Option<&str>,
) -> Result<PathBuf, Error> {
    Binary::find(program, sha256).map(|binary| binary.path().to_owned())
}

impl ProgramPlan {
    /// Returns the environment of a call, without other variables of this process.
    fn variables(&self, call: Uuid) -> Vec<(OsString, OsString)> {
        let around = &self.around;
        let handed = |name: &str| Some((name.into(), std::env::var_os(name)?));
        let places = [
            ("HOME", around.home.as_os_str()),
            ("TMPDIR", around.tmp.as_os_str()),
            ("LANG", "C.UTF-8".as_ref()),
        ];
        let places = places
            .into_iter()
            .map(|(name, value)| (name.into(), value.to_owned()));
        let own = around.environment.iter().chain(&self.environment);
        let own = own.map(|(name, value)| (name.into(), value.into()));
        let marks = [AGENT_VARIABLE, START_VARIABLE]
            .into_iter()
            .filter_map(handed);
        let marks = marks.chain([(CALL_VARIABLE.into(), call.to_string().into())]);
        handed("PATH")
            .into_iter()
            .chain(places)
            .chain(own)
            .chain(marks)
            .collect()
    }
}

#[async_trait]
impl ErasedTool for Program {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn rewrites(&self) -> bool {
        false
    }

    async fn call(&self, args: Value, cx: CallContext) -> Result<CallResult, ToolError> {
        let plan = &self.plan;
        let words = plan.words.with(&args)?;
        let binary = Arc::clone(plan);
        let checked = tokio::task::spawn_blocking(move || binary.binary.check()).await;
        checked.map_err(|error| {
            ToolError::failed("the program could not be looked at").with_source(error)
        })??;
        let mut line = args.to_string();
        line.push('\n');
        let done = child::run(plan, &self.hold, &words, line.into_bytes(), &cx.cancel).await?;
        match done.ended {
            ProgramEnd::Exit(status) if status.success() => Ok(CallResult::ok(done.output.text())),
            ProgramEnd::Exit(status) => Err(ToolError::failed(done.failure(&output::told(status)))),
            ProgramEnd::Lost => Err(ToolError::failed("it is not known how the program ended")),
            ProgramEnd::Late => {
                let how = format!(
                    "the program took longer than {} and was killed",
                    crate::manifest::Span(plan.timeout)
                );
                Err(ToolError::new(ToolErrorKind::TimedOut, done.failure(&how)))
            }
            ProgramEnd::Cancelled => Err(ToolError::new(
                ToolErrorKind::Cancelled,
                "the program was killed: it was cancelled",
            )),
        }
    }
}
