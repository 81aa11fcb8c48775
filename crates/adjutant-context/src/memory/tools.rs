//! Tools with which a model keeps memories by hand: store, recall, replace, delete.

use std::{fmt::Write, sync::Arc};

use adjutant_agent::{
    LogId,
    memory::{FactId, MemoryError, MemoryErrorKind, Metadata},
};
use adjutant_llm::CallResult;
use adjutant_tool::{
    CallContext, ErasedTool, Replay, ToolError, ToolErrorKind, ToolSpec, Toolbox, Tools, tool_fn,
};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{fuse::Remembered, ids, memories::Memories, meter::Meter, words};

/// The largest number of bytes of one fact in a result.
const MAX_SHOWN_BYTES: usize = 2_000;
/// The largest number of bytes of a reason that are kept in the text of the call.
const MAX_REASON_BYTES: usize = 200;

/// The arguments of any of the tools.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Args {
    fact: Arc<str>,
    category: Option<Arc<str>>,
    query: Arc<str>,
    memory_id: Arc<str>,
    reason: Option<Arc<str>>,
}

/// One call, with the meter that it is charged by.
struct MemoryCall {
    memories: Memories,
    args: Args,
    cx: CallContext,
    meter: Arc<Meter>,
}

impl Memories {
    /// The toolbox `memory`: `store_memory`, `recall_memories`, `replace_memory` and `delete_memory`.
    ///
    /// Embeddings of a call are charged to the run. After a crash each of the tools can run again: the id of a fact
    /// is derived from the call that stores it.
    pub fn toolbox(&self) -> impl Toolbox + 'static + use<> {
        Tools::new("memory")
            .tool(tool(self, store_spec(), |task| async move {
                task.store().await
            }))
            .tool(tool(self, recall_spec(), |task| async move {
                task.recall().await
            }))
            .tool(tool(self, replace_spec(), |task| async move {
                task.replace().await
            }))
            .tool(tool(self, delete_spec(), |task| async move {
                task.delete().await
            }))
    }
}

fn tool<F, Fut>(memories: &Memories, spec: ToolSpec, run: F) -> impl ErasedTool + 'static
where
    F: Fn(Arc<MemoryCall>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, MemoryError>> + Send + 'static,
{
    let memories = memories.clone();
    tool_fn(spec, move |args, cx| {
        let parsed = serde_json::from_value::<Args>(args);
        let meter = Meter::under(&memories.meter);
        let task = parsed.map(|args| {
            Arc::new(MemoryCall {
                memories: memories.clone(),
                args,
                cx,
                meter,
            })
        });
        let work = task.map(|task| (run(Arc::clone(&task)), task));
        async move {
            let (work, task) = work.map_err(|error| {
                ToolError::new(ToolErrorKind::InvalidArguments, error.to_string())
            })?;
            let done = work.await;
            let spent = task.meter.spent().usage;
            if spent.total() > 0 {
                task.cx.backend.charge(spent);
            }
            done.map(CallResult::ok)
                .map_err(|error| to_tool_error(&error))
        }
    })
}

impl MemoryCall {
    async fn store(&self) -> Result<String, MemoryError> {
        let (text, memories) = (Arc::clone(&self.args.fact), &self.memories);
        let session = self.cx.get::<LogId>();
        let session = session
            .as_ref()
            .map(|log| &*log.0)
            .filter(|log| !log.is_empty());
        let mut metadata = ids::metadata("tool", session, memories.world.now_ms());
        metadata.extend(self.category());
        let id = self
            .key()
            .unwrap_or_else(|| FactId(Uuid::from_u128(memories.world.id()).to_string().into()));
        match memories
            .add_as(id.clone(), Arc::clone(&text), metadata, &self.meter)
            .await
        {
            // The call was run before; it is done.
            Err(error) if error.kind == MemoryErrorKind::Exists => {}
            other => drop(other?),
        }
        Ok(format!("Stored: {}", line(&id, &text)))
    }

    async fn recall(&self) -> Result<String, MemoryError> {
        let found = self
            .memories
            .search_on(&self.args.query, &self.meter)
            .await?;
        if found.is_empty() {
            return Ok("No relevant memories found".to_owned());
        }
        let lines: Vec<String> = found
            .iter()
            .map(|Remembered { fact, .. }| line(&fact.id, &fact.text))
            .collect();
        Ok(lines.join("\n"))
    }

    async fn replace(&self) -> Result<String, MemoryError> {
        let (id, text) = (self.id(), Arc::clone(&self.args.fact));
        let metadata = self.category().into_iter().collect::<Metadata>();
        let fact = self
            .memories
            .update_on(&id, text, metadata, &self.meter)
            .await?;
        Ok(format!("Replaced: {}", line(&fact.id, &fact.text)))
    }

    async fn delete(&self) -> Result<String, MemoryError> {
        let id = self.id();
        self.memories.delete(&id).await?;
        let mut said = format!("Deleted: [id:{id}]");
        if let Some(reason) = &self.args.reason {
            let _ = write!(said, " ({})", words::line(reason, MAX_REASON_BYTES));
        }
        Ok(said)
    }

    fn id(&self) -> FactId {
        let id = self.args.memory_id.trim();
        FactId(
            id.strip_prefix("[id:")
                .and_then(|id| id.strip_suffix(']'))
                .unwrap_or(id)
                .into(),
        )
    }

    fn category(&self) -> Option<(Arc<str>, Value)> {
        self.args
            .category
            .as_ref()
            .map(|category| ("category".into(), json!(category)))
    }

    /// The id that comes of the call; none outside a run.
    fn key(&self) -> Option<FactId> {
        let (who, call) = (&self.cx.who, self.cx.who.call?);
        let log = self.cx.get::<LogId>().filter(|log| !log.0.is_empty());
        // Without a log no call can be repeated; the agent's id separates several agents.
        let log = log.map_or_else(|| Arc::clone(&who.agent_id), |log| Arc::clone(&log.0));
        Some(ids::derive_id(&[
            &self.memories.owner.0,
            &log,
            who.thread.as_str(),
            &call.to_string(),
        ]))
    }
}

fn line(id: &FactId, text: &str) -> String {
    format!("- [id:{id}] {}", words::line(text, MAX_SHOWN_BYTES))
}

/// Returns the error for the model. It does not distinguish an unknown id from an id of another owner.
fn to_tool_error(error: &MemoryError) -> ToolError {
    match error.kind {
        MemoryErrorKind::Missing => {
            ToolError::failed("there is no memory of that id; hint: recall_memories shows the ids")
        }
        MemoryErrorKind::Invalid => {
            ToolError::new(ToolErrorKind::InvalidArguments, error.to_string())
        }
        _ => ToolError::failed(adjutant_agent::chain(error)),
    }
}

fn store_spec() -> ToolSpec {
    let about = "Keeps a fact for later conversations. One sentence that is understood without this conversation.";
    let fields = json!({ "fact": text("What to remember."), "category": category() });
    ToolSpec {
        replay: Replay::Idempotent,
        ..spec("store_memory", about, fields, &["fact"])
    }
}

fn recall_spec() -> ToolSpec {
    let about = "Looks up what is remembered. Each line shows the id of a memory and its text.";
    ToolSpec {
        replay: Replay::Pure,
        ..spec(
            "recall_memories",
            about,
            json!({ "query": text("What to look for.") }),
            &["query"],
        )
    }
}

fn replace_spec() -> ToolSpec {
    let about = "Replaces the text of a memory that is no longer right.";
    let fields = json!({ "memory_id": memory_id(), "fact": text("The whole new text."), "category": category() });
    ToolSpec {
        replay: Replay::Idempotent,
        ..spec("replace_memory", about, fields, &["memory_id", "fact"])
    }
}

fn delete_spec() -> ToolSpec {
    let about = "Deletes a memory, because it is wrong or the user wants it to be forgotten.";
    let fields = json!({ "memory_id": memory_id(), "reason": text("Why, in a few words.") });
    ToolSpec {
        replay: Replay::Idempotent,
        ..spec("delete_memory", about, fields, &["memory_id"])
    }
}

fn spec(name: &str, about: &str, fields: Value, required: &[&str]) -> ToolSpec {
    let schema = json!({
        "type": "object", "properties": fields, "required": required, "additionalProperties": false,
    });
    ToolSpec::new(name, about, schema)
}

fn text(about: &str) -> Value {
    json!({ "type": "string", "description": about })
}

fn memory_id() -> Value {
    text("The id of the memory, as recall_memories shows it.")
}

fn category() -> Value {
    json!({
        "type": "string",
        "enum": ["preference", "personal", "health", "professional", "other"],
        "description": "What kind of fact it is.",
    })
}
