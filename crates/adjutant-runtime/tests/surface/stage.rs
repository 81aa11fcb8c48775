//! Where a surface is played: one scripted agent, asked in this process or through its routes.

use std::{future, sync::Arc, time::Duration};

use adjutant_agent::{Agent, Durability, Event, EventKind, Journal, MemoryJournal, RunResult};
use adjutant_llm::{Model, Script, ScriptedModel};
use adjutant_runtime::{
    Error, ErrorKind, Prompter,
    http::{Client, Server, ServerOptions},
    prompt::{EventStream, LocalPrompter, PromptReply, PromptRequest},
};
use adjutant_tool::tool;
use futures_util::StreamExt;
use serde_json::Value;
use tokio::task::JoinHandle;

/// What a caller of the routes shows here.
pub(crate) const TOKEN: &str = "a-token-of-tests";

/// How the agent is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    Local,
    Http,
}

/// A scripted agent and who asks it.
pub(crate) struct Stage {
    pub(crate) prompter: Arc<dyn Prompter>,
    pub(crate) local: LocalPrompter,
    pub(crate) model: Arc<ScriptedModel>,
    pub(crate) client: Client,
    pub(crate) server: JoinHandle<()>,
}

/// Adds two whole numbers.
#[tool]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Deletes something.
#[tool(approval)]
fn delete(what: String) -> String {
    format!("{what} is deleted")
}

/// Goes on until it is stopped.
#[tool]
async fn linger() -> String {
    future::pending().await
}

/// Makes a test of each check for each way of asking.
macro_rules! both {
    ($($check:ident),* $(,)?) => {
        mod local {
            $(#[tokio::test]
            async fn $check() {
                super::$check(crate::stage::Over::Local).await;
            })*
        }
        mod http {
            $(#[tokio::test]
            async fn $check() {
                super::$check(crate::stage::Over::Http).await;
            })*
        }
    };
}
pub(crate) use both;

/// An agent whose model answers with these, one after the other.
pub(crate) async fn stage(over: Over, scripts: impl IntoIterator<Item = Script>) -> Stage {
    kept(
        over,
        scripts,
        MemoryJournal::default(),
        Durability::default(),
    )
    .await
}

/// The same, with a journal that others have too.
pub(crate) async fn kept(
    over: Over,
    scripts: impl IntoIterator<Item = Script>,
    journal: impl Journal + 'static,
    durability: Durability,
) -> Stage {
    let model = Arc::new(ScriptedModel::new(scripts));
    let agent = Agent::new(Arc::clone(&model))
        .name("tester")
        .tool(add)
        .tool(delete)
        .tool(linger)
        .durability(durability);
    let asked: Arc<dyn Model> = Arc::clone(&model) as Arc<dyn Model>;
    let local = LocalPrompter::new(agent, asked, Arc::new(journal));
    let options = ServerOptions::new("tester")
        .token(TOKEN)
        .grace(Duration::from_secs(5));
    let server = Server::bind(local.clone(), options)
        .await
        .expect("it listens");
    let client = Client::new(server.address(), TOKEN).expect("a client");
    let server = tokio::spawn(server.serve(future::pending()));
    let prompter: Arc<dyn Prompter> = match over {
        Over::Local => Arc::new(local.clone()),
        Over::Http => Arc::new(client.clone()),
    };
    Stage {
        prompter,
        local,
        model,
        client,
        server,
    }
}

impl Stage {
    pub(crate) async fn prompt(&self, session: &str, text: &str) -> Result<PromptReply, Error> {
        self.prompter
            .prompt(PromptRequest::new(text).session(session))
            .await
    }

    pub(crate) async fn stream(&self, session: &str, text: &str) -> Result<EventStream, Error> {
        self.prompter
            .stream(PromptRequest::new(text).session(session))
            .await
    }

    /// Waits until no run is at work: a caller that goes away is noticed by its connection.
    pub(crate) async fn idle(&self) {
        let mut news = self.client.watch().await.expect("the status is told");
        while let Some(report) = news.next().await {
            if report.expect("the status is told").runs == 0 {
                return;
            }
        }
        unreachable!("the agent stopped");
    }
}

/// The names of events, without deltas.
pub(crate) fn name(event: &Event) -> String {
    let value = serde_json::to_value(event).expect("an event is written");
    value
        .get("event")
        .and_then(Value::as_str)
        .expect("an event has a name")
        .to_owned()
}

/// All events of a stream.
pub(crate) async fn all(stream: EventStream) -> Vec<Event> {
    stream
        .map(|event| event.expect("the stream goes on"))
        .collect()
        .await
}

/// What the last event says that the run came to.
#[track_caller]
pub(crate) fn end_of(events: &[Event]) -> &RunResult {
    let end = events.last().and_then(|event| match &event.kind {
        EventKind::RunFinished { result } => Some(&**result),
        _ => None,
    });
    end.expect("the last event tells how the run ended")
}

/// The kind of an error.
#[track_caller]
pub(crate) fn kind<T: std::fmt::Debug>(result: Result<T, Error>) -> ErrorKind {
    result.expect_err("it is refused").kind()
}

/// The kind of the error of a stream that could not begin.
pub(crate) fn kind_of(result: Result<EventStream, Error>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}
