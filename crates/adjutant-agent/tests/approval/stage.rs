//! The stage of runs that wait: a scripted model, and short views of what is waited for.

use std::sync::Arc;

use adjutant_agent::{Agent, Answered, Outcome, Pause, PauseId, RunResult};
use adjutant_llm::{Script, ScriptedModel, Status};
use adjutant_tool::{Answer, ToolSpec};
use serde_json::{Value, json};

/// A model that says these replies, and an agent with it.
pub(crate) fn agent(scripts: impl IntoIterator<Item = Script>) -> (Arc<ScriptedModel>, Agent) {
    let model = Arc::new(ScriptedModel::new(scripts));
    (Arc::clone(&model), Agent::new(model))
}

/// What a tool says about itself that takes a whole number `n`.
pub(crate) fn spec(name: &str) -> ToolSpec {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    ToolSpec::new(name, "A tool.", schema)
}

/// One reply with calls, then an answer.
pub(crate) fn script(calls: &[(&str, Value)]) -> [Script; 2] {
    let batch = calls.iter().fold(Script::new(), |script, (name, args)| {
        script.call(*name, args.clone())
    });
    [batch, Script::new().text("Done.")]
}

/// What a run that waits is waiting for.
#[track_caller]
pub(crate) fn pauses(result: &RunResult) -> Vec<Arc<Pause>> {
    let Outcome::Paused { pauses } = &result.outcome else {
        unreachable!("the run waits: {:?}", result.outcome)
    };
    pauses.clone()
}

/// The names of what a run waits for.
#[track_caller]
pub(crate) fn names(result: &RunResult) -> Vec<String> {
    pauses(result)
        .iter()
        .map(|pause| pause.id.to_string())
        .collect()
}

pub(crate) fn answered(pause: impl AsRef<str>, answer: Answer) -> Answered {
    Answered {
        pause: PauseId(pause.as_ref().into()),
        answer,
        shown: None,
    }
}

/// The calls of a run: the tool, how it ended, and what came of it.
pub(crate) fn calls(result: &RunResult) -> Vec<(String, Status, String)> {
    let calls = result.calls.iter();
    calls
        .map(|report| {
            (
                report.name.to_string(),
                report.result.status,
                report.result.text(),
            )
        })
        .collect()
}
