//! The log of an agent's process on standard error: one JSON object per line, without texts of prompts or answers.

use std::{
    io::{self, Write},
    panic,
    sync::Arc,
};

use adjutant_llm::{SystemWorld, World};
use serde_json::{Value, json};

use crate::{Error, http, prompt::Work};

/// The maximum number of characters of a panic message in the log.
const MAX_PANIC: usize = 500;

/// Writes lines without buffering.
#[derive(Debug, Clone)]
pub(super) struct Log {
    world: Arc<dyn World>,
}

impl Log {
    pub(super) fn new() -> Self {
        Self {
            world: Arc::new(SystemWorld),
        }
    }

    /// Writes one line.
    ///
    /// Format: `{"at_ms":1767225600000,"event":"prompt_ended","session":"main",…}`.
    pub(super) fn line(&self, event: &str, fields: Value) {
        let mut line = json!({ "at_ms": self.world.now_ms(), "event": event });
        if let (Some(line), Value::Object(fields)) = (line.as_object_mut(), fields) {
            line.extend(fields);
        }
        // If standard error is closed, there is no other place to report it.
        let _ = writeln!(io::stderr().lock(), "{line}");
    }

    /// Logs why the process cannot continue.
    pub(super) fn failed(&self, error: &Error) {
        self.line(
            "host_failed",
            json!({ "kind": http::name_of(error.kind()), "message": http::line(error) }),
        );
    }

    /// Logs the start or the end of a run.
    pub(super) fn work(&self, work: &Work<'_>) {
        match work {
            Work::Began {
                session: Some(session),
            } => self.line("prompt_began", json!({ "session": session })),
            Work::Began { session: None } => self.line("object_began", json!({})),
            Work::Ended {
                session: None,
                error,
                ..
            } => {
                self.line(
                    "object_ended",
                    json!({ "error": error.map(|error| http::name_of(error.kind())) }),
                );
            }
            Work::Ended {
                session: Some(session),
                result,
                error,
            } => {
                let mut fields = json!({ "session": session });
                if let (Some(fields), Some(result)) = (fields.as_object_mut(), result) {
                    fields.insert("outcome".into(), result.outcome.kind().into());
                    fields.insert("turns".into(), result.turns.into());
                    fields.insert("usage".into(), json!(result.total_usage));
                    fields.insert(
                        "duration_ms".into(),
                        json!(result.duration.as_millis() as u64),
                    );
                }
                if let (Some(fields), Some(error)) = (fields.as_object_mut(), error) {
                    fields.insert("error".into(), http::name_of(error.kind()).into());
                }
                self.line("prompt_ended", fields);
            }
        }
    }

    /// Logs every panic of this process.
    pub(super) fn note_panics(&self) {
        let log = self.clone();
        panic::set_hook(Box::new(move |info| {
            let payload = info.payload();
            let text = payload.downcast_ref::<&str>().copied();
            let text = text
                .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
                .unwrap_or("a panic");
            let text: String = text.chars().take(MAX_PANIC).collect();
            log.line(
                "panicked",
                json!({ "message": text, "at": info.location().map(ToString::to_string) }),
            );
        }));
    }
}
