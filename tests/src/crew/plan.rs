//! What is on the board, and what the model of the workers says.

use adjutant::{
    Model,
    llm::{ChunkStream, Entry, ModelInfo, Request, Script, ScriptedModel, Usage},
    orchestration::board::NewTask,
};
use serde_json::json;

/// How many tasks a whole drill has.
pub const TASKS: usize = 200;
/// What the agent says of a task that cannot be done.
pub(super) const HOPELESS: &str = "It cannot be done.";
/// What each reply uses, by the provider's count.
pub(super) const USED: Usage = Usage {
    input_uncached: 90,
    cache_read: 0,
    cache_write: 0,
    cache_write_1h: 0,
    output: 10,
    reasoning: 0,
};

/// Whether a task fails.
pub(super) fn is_hopeless(number: usize) -> bool {
    number % 25 == 7
}

/// The task of this number, whose title says it; of every ten, one waits for the one before it.
pub(super) fn task(number: usize) -> NewTask {
    NewTask::new(format!("task {number}"))
        .priority(i32::try_from(number % 3).unwrap_or(0))
        .key(format!("k{number}"))
}

/// Whether a task waits for the one before it.
pub(super) fn waits(number: usize) -> bool {
    number % 10 == 5
}

/// A model that pays for a task once, and then answers.
#[derive(Debug)]
pub(super) struct Payer(ModelInfo);

impl Default for Payer {
    fn default() -> Self {
        Self(ModelInfo::new("loopback/payer"))
    }
}

impl Model for Payer {
    fn info(&self) -> &ModelInfo {
        &self.0
    }

    fn stream(&self, request: Request) -> ChunkStream {
        let paid = request
            .entries
            .iter()
            .any(|stored| matches!(stored.entry, Entry::Turn(_)));
        let number = request
            .entries
            .iter()
            .find_map(|stored| number(&stored.entry))
            .unwrap_or_default();
        let said = match (paid, is_hopeless(number)) {
            (false, _) => Script::new().call("pay", json!({"task": number})),
            (true, true) => Script::new().text(HOPELESS),
            (true, false) => Script::new().text(format!("Task {number} is done.")),
        };
        ScriptedModel::new([said.usage(USED)]).stream(request)
    }
}

/// The number that a prompt names.
fn number(entry: &Entry) -> Option<usize> {
    let Entry::User(message) = entry else {
        return None;
    };
    let text = message
        .content
        .iter()
        .find_map(|content| content.as_text())?;
    text.rsplit(' ').next()?.parse().ok()
}
