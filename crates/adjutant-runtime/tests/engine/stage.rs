//! What the tests of the engine stand on: a folder, two scripted models, and manifests as JSON.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use adjutant_agent::{Agent, RunResult};
use adjutant_llm::{Request, Script, ScriptedModel};
use adjutant_runtime::{Engine, EngineBuilder, Error, Lead, Resolved, Workspace};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The model of the agent that is spoken to.
pub(crate) const MODEL: &str = "test/model";
/// The model of others.
pub(crate) const OTHER: &str = "test/other";

/// A folder and two models.
pub(crate) struct Stage {
    pub(crate) folder: TempDir,
    pub(crate) model: Arc<ScriptedModel>,
    pub(crate) other: Arc<ScriptedModel>,
}

impl Stage {
    pub(crate) fn new(scripts: impl IntoIterator<Item = Script>) -> Self {
        Self::with(scripts, [])
    }

    pub(crate) fn with(
        scripts: impl IntoIterator<Item = Script>,
        others: impl IntoIterator<Item = Script>,
    ) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self {
            folder,
            model: Arc::new(ScriptedModel::new(scripts)),
            other: Arc::new(ScriptedModel::new(others)),
        }
    }

    pub(crate) fn workspace(&self) -> Workspace {
        Workspace::at(self.folder.path().join("agent"))
    }

    pub(crate) fn builder(&self, manifest: Value) -> EngineBuilder {
        let builder = Engine::builder(resolved(manifest)).workspace(self.workspace());
        builder
            .model(MODEL, Arc::clone(&self.model))
            .model(OTHER, Arc::clone(&self.other))
    }

    pub(crate) async fn engine(&self, manifest: Value) -> Engine {
        self.builder(manifest)
            .build()
            .await
            .expect("the manifest is right")
    }

    pub(crate) async fn wrong(&self, manifest: Value) -> Error {
        self.builder(manifest)
            .build()
            .await
            .expect_err("the manifest is wrong")
    }

    /// Writes a file into the folder of the manifest.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().expect("it is in the folder")).expect("a folder");
        fs::write(&path, text).expect("a file");
        path
    }

    /// Writes a program for the shell.
    pub(crate) fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.file(name, &format!("#!/bin/sh\n{text}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
        path
    }

    /// A file in the working folder.
    pub(crate) fn work(&self, name: &str) -> PathBuf {
        self.workspace().work().join(name)
    }
}

pub(crate) fn resolved(manifest: Value) -> Resolved {
    serde_json::from_value(json!({ "manifest": manifest, "sources": [] }))
        .expect("the manifest has this form")
}

/// A manifest of one agent with these fields.
pub(crate) fn one(fields: Value) -> Value {
    agents([with(json!({ "name": "solo", "model": MODEL }), fields)])
}

/// A manifest of these agents, of which the first one is spoken to.
pub(crate) fn agents<const N: usize>(agents: [Value; N]) -> Value {
    let entry = agents[0]["name"].clone();
    json!({ "name": "crew", "entry_agent": entry, "agents": agents.as_slice() })
}

/// The manifest with a store that has no thread: a clock that stands still would run on while one works.
pub(crate) fn still(manifest: Value) -> Value {
    with(
        manifest,
        json!({ "sessions": { "store": { "kind": "memory" } } }),
    )
}

/// An object with more fields.
pub(crate) fn with(mut object: Value, fields: Value) -> Value {
    if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), fields) {
        object.extend(fields);
    }
    object
}

/// The one agent of the session `main`.
pub(crate) fn lead(engine: &Engine) -> Agent {
    alone(engine, "main")
}

/// The one agent of a session.
pub(crate) fn alone(engine: &Engine, session: &str) -> Agent {
    match engine.lead(session).expect("a name") {
        Lead::Agent(agent) => Some(agent),
        Lead::HandoffChain(_) => None,
    }
    .expect("it hands nothing over")
}

/// What the agent would ask its model.
pub(crate) async fn preview(engine: &Engine) -> Request {
    lead(engine)
        .log()
        .preview("Hello.")
        .await
        .expect("it can be previewed")
}

pub(crate) async fn run(engine: &Engine) -> RunResult {
    lead(engine).run("Hello.").await.expect("the run finishes")
}

/// The names of the tools that a model is shown.
pub(crate) fn tools(request: &Request) -> Vec<&str> {
    request
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect()
}

/// The text of the result of a call.
pub(crate) fn result(result: &RunResult, call: usize) -> String {
    result.calls.get(call).expect("it was called").result.text()
}

/// A script that calls a tool, and one that answers.
pub(crate) fn calls(tool: &str, args: Value) -> [Script; 2] {
    [Script::new().call(tool, args), Script::new().text("Done.")]
}

/// What is in a file.
pub(crate) fn text(path: &Path) -> String {
    fs::read_to_string(path).expect("the file is there")
}

/// The conversation that a model was shown last.
pub(crate) fn seen(model: &ScriptedModel) -> String {
    format!(
        "{:?}",
        model.requests().pop().expect("it was asked").entries
    )
}
