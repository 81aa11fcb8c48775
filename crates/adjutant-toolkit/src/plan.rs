//! The tool `update_plan`: a list of steps that is displayed and stored in the log of the run.

use adjutant_llm::{CallResult, Content};
use adjutant_tool::{
    CallContext, Progress, Replay, Tool, ToolError, ToolErrorKind, ToolHints, ToolSpec, Tools,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::files::{show, work};

/// The maximum number of steps of a plan.
const MAX_STEPS: usize = 50;
/// The maximum number of characters of a step; all steps together stay below the limit of a note.
const MAX_STEP: usize = 300;
/// The kind of the note that contains a plan.
const KIND: &str = "plan";

/// A list of steps that an agent writes and works through, visible to observers.
///
/// Each call replaces the list. It is emitted as progress, with the steps as details, and recorded in the log as the
/// note `plan`; the latest note is the plan. There is no other state.
#[derive(Debug, Clone, Copy, Default)]
pub struct Plan {}

impl Plan {
    /// Creates an empty plan.
    pub fn new() -> Self {
        Self::default()
    }

    /// The toolbox `plan`: `update_plan`, which is idempotent.
    pub fn toolbox(&self) -> Tools {
        Tools::new("plan").tool(UpdatePlan)
    }
}

/// Sets the whole list of steps of the current work, which the user sees; each call replaces the list before.
///
/// For work of several steps: make the list first, and update it whenever a step begins or is done.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// All steps, in order; none clears the plan.
    #[schemars(length(max = MAX_STEPS))]
    steps: Vec<Step>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Step {
    /// What is to be done, on one line.
    #[schemars(length(min = 1, max = MAX_STEP))]
    text: String,
    /// How far it is.
    status: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum State {
    Pending,
    InProgress,
    Done,
}

#[derive(Debug)]
struct UpdatePlan;

impl Tool for UpdatePlan {
    type Args = Args;
    type Output = CallResult;

    fn spec(&self) -> ToolSpec {
        let spec = work::spec::<Args>("update_plan");
        // Calls run one after another, because the latest note is the plan.
        let hints = ToolHints {
            destructive: Some(false),
            idempotent: Some(true),
            ..work::CHANGES
        };
        ToolSpec {
            title: Some("Update the plan".into()),
            replay: Replay::Idempotent,
            sequential: true,
            hints,
            ..spec
        }
    }

    async fn call(&self, args: Args, cx: CallContext) -> Result<CallResult, ToolError> {
        args.check()?;
        let details = json!({ "steps": args.steps });
        cx.note(KIND, details.clone()).await?;
        cx.progress(Progress {
            content: vec![Content::text(args.shown())],
            details,
        });
        let done = args
            .steps
            .iter()
            .filter(|step| step.status == State::Done)
            .count();
        let steps = show::count(args.steps.len() as u64, "step", "steps");
        Ok(CallResult::ok(format!(
            "The plan is kept: {steps}, {done} done."
        )))
    }
}

impl Args {
    fn check(&self) -> Result<(), ToolError> {
        if self.steps.len() > MAX_STEPS {
            return Err(refused(format!(
                "a plan has {MAX_STEPS} steps at most, not {}",
                self.steps.len()
            )));
        }
        for (step, at) in self.steps.iter().zip(1..) {
            let text = &step.text;
            if text.trim().is_empty()
                || text.chars().count() > MAX_STEP
                || text.contains(char::is_control)
            {
                let hint = format!("hint: a step is one line of 1 to {MAX_STEP} characters");
                return Err(refused(format!(
                    "step {at} cannot be kept: {}; {hint}",
                    show::quoted(text)
                )));
            }
        }
        Ok(())
    }

    /// Formats a line for each step, for people.
    fn shown(&self) -> String {
        let line = |step: &Step| format!("{} {}", step.status.mark(), step.text);
        self.steps.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

impl State {
    fn mark(self) -> &'static str {
        match self {
            Self::Pending => "[ ]",
            Self::InProgress => "[>]",
            Self::Done => "[x]",
        }
    }
}

fn refused(message: String) -> ToolError {
    ToolError::new(ToolErrorKind::InvalidArguments, message)
}
