//! Where the page's routes are asked: one journal that nobody works on, and an agent that runs here over another.

use std::{future, path::Path, sync::Arc};

use adjutant::{
    Agent,
    agent::MemoryJournal,
    llm::{Model, Script, ScriptedModel},
    runtime::{
        Error, ErrorKind, Prompter,
        control::ControlClient,
        prompt::{LocalPrompter, StoredPrompter},
    },
    tool,
    toolkit::{Files, Undo},
};
use adjutant_server::View;
use reqwest::{Client, Method, Response, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

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

/// A page, and whoever asks its routes.
pub(crate) struct Stage {
    pub(crate) base: String,
    pub(crate) token: String,
    pub(crate) http: Client,
    /// The sessions of `store`, and an agent that works in them when a test says so.
    pub(crate) stored: MemoryJournal,
    pub(crate) worker: Agent,
    /// The folder of the session `edit`, and what keeps its files.
    pub(crate) place: TempDir,
}

pub(crate) fn agent(model: &Arc<ScriptedModel>) -> Agent {
    Agent::new(Arc::clone(model))
        .name("tester")
        .tool(add)
        .tool(delete)
}

/// What is done in the session `talk` of both: a call of a tool, and an answer.
pub(crate) fn talk() -> [Script; 2] {
    [
        Script::new().call("add", json!({"a": 1, "b": 2})),
        Script::new().text("Three."),
    ]
}

/// What keeps the files of a folder, and the files.
pub(crate) fn kept(place: &Path) -> (Undo, Files) {
    let root = place.join("root");
    std::fs::create_dir_all(&root).expect("a folder");
    (
        Undo::new(place.join("kept")),
        Files::new(root).expect("it is one"),
    )
}

/// A page over `live` and `store`; the models of both answer with `talk`, then with these.
pub(crate) async fn stage(
    live: impl IntoIterator<Item = Script>,
    stored: impl IntoIterator<Item = Script>,
) -> Stage {
    let model = Arc::new(ScriptedModel::new(talk().into_iter().chain(live)));
    let asked: Arc<dyn Model> = Arc::clone(&model) as _;
    let local = LocalPrompter::new(agent(&model), asked, Arc::new(MemoryJournal::default()));
    let journal = MemoryJournal::default();
    let model = Arc::new(ScriptedModel::new(talk().into_iter().chain(stored)));
    let worker = agent(&model).journal(journal.clone());
    worker
        .session("talk".into())
        .run("Add them.")
        .await
        .expect("it ends");
    let place = tempfile::tempdir().expect("a folder");
    let root = place.path().to_owned();
    let store =
        StoredPrompter::with_queue(Arc::new(journal.clone())).undo(move |info| {
            match &*info.log.0 {
                "edit" => Ok(kept(&root)),
                _ => Err(Error::new(
                    ErrorKind::Invalid,
                    "the session has no directory",
                )),
            }
        });
    let shown: [(Arc<str>, Arc<dyn Prompter>); 2] = [
        ("live".into(), Arc::new(local)),
        ("store".into(), Arc::new(store)),
    ];
    let view = View::bind(shown, 0).await.expect("it listens");
    // A client of ours brings the provider of cryptography that reqwest wants, though nothing is encrypted here.
    ControlClient::new(view.address(), view.token()).expect("a client");
    let stage = Stage {
        base: format!("http://{}", view.address()),
        token: view.token().to_owned(),
        http: Client::builder()
            .no_proxy()
            .tls_certs_only([])
            .build()
            .expect("a client"),
        stored: journal,
        worker,
        place,
    };
    tokio::spawn(view.serve(future::pending()));
    stage.prompt("talk", "Add them.").await;
    stage.ended("live", "talk", 0).await;
    stage
}

impl Stage {
    pub(crate) async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Response {
        let asked = self
            .http
            .request(method, format!("{}{path}", self.base))
            .bearer_auth(&self.token);
        let asked = body
            .into_iter()
            .fold(asked, |asked, body| asked.json(&body));
        asked.send().await.expect("it answers")
    }

    pub(crate) async fn get(&self, of: &str, path: &str) -> Value {
        let answer = self
            .ask(Method::GET, &format!("/v1/agents/{of}{path}"), None)
            .await;
        let status = answer.status();
        let told = answer.json().await.expect("it is JSON");
        assert_eq!(status, StatusCode::OK, "{of}{path}: {told}");
        told
    }

    /// Says something; returns the status and what is answered.
    pub(crate) async fn post(&self, of: &str, path: &str, body: Value) -> (u16, Value) {
        let answer = self
            .ask(Method::POST, &format!("/v1/agents/{of}{path}"), Some(body))
            .await;
        (
            answer.status().as_u16(),
            answer.json().await.expect("it is JSON"),
        )
    }

    /// Prompts the agent that runs here. Its session may not be free yet when the end of a run was told.
    pub(crate) async fn prompt(&self, session: &str, text: &str) {
        let said = json!({"control": "prompt", "text": text});
        loop {
            match self
                .post("live", &format!("/control?session={session}"), said.clone())
                .await
            {
                (409, _) => tokio::task::yield_now().await,
                (status, told) => return assert_eq!(status, 202, "{told}"),
            }
        }
    }

    /// The events of a session behind a record, up to its end: their names and contents.
    pub(crate) async fn ended(&self, of: &str, session: &str, after: u64) -> Vec<Value> {
        let path = format!("/v1/agents/{of}/events?session={session}&after={after}");
        let text = self
            .ask(Method::GET, &path, None)
            .await
            .text()
            .await
            .expect("it is text");
        frames(&text)
    }
}

/// The contents of the frames in a text.
pub(crate) fn frames(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).expect("a frame holds JSON"))
        .collect()
}
