//! What the tests of delegation share: agents that say what they are told to, and what was asked of them.

use std::sync::{Arc, Mutex};

use adjutant_agent::{Agent, RunResult};
use adjutant_llm::{Entry, FixedWorld, Model, ModelInfo, Request, Script, ScriptedModel, model_fn};
use adjutant_orchestration::{Delegation, Profile, Registry};
use serde_json::{Value, json};

/// A reply with a text.
pub(crate) fn says(text: &str) -> Script {
    Script::new().text(text)
}

/// A reply that calls one tool.
pub(crate) fn calls(name: &'static str, args: Value) -> Script {
    Script::new().call(name, args)
}

/// A reply that reports success.
pub(crate) fn reports(summary: &str) -> Script {
    calls(
        "task_complete",
        json!({ "status": "completed", "summary": summary }),
    )
}

/// A task for an agent.
pub(crate) fn task(agent: &str, task: &str) -> Value {
    json!({ "agent": agent, "task": task, "context": "Some context." })
}

/// A reply that delegates these tasks.
pub(crate) fn delegates(tasks: impl IntoIterator<Item = Value>) -> Script {
    let tasks: Vec<Value> = tasks.into_iter().collect();
    calls("delegate", json!({ "tasks": tasks }))
}

/// Every request that agents of an entry made, in order; each instance gets a script of its own.
#[derive(Clone, Default)]
pub(crate) struct Asked(Arc<Mutex<Vec<Arc<ScriptedModel>>>>);

impl Asked {
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.0
            .lock()
            .expect("nobody panics inside")
            .iter()
            .flat_map(|model| model.requests())
            .collect()
    }

    pub(crate) fn instances(&self) -> usize {
        self.0.lock().expect("nobody panics inside").len()
    }
}

/// Registers an entry whose instances say what this gives for their number, from 1.
pub(crate) fn register(
    registry: &Registry,
    profile: Profile,
    script: impl Fn(usize) -> Vec<Script> + Send + Sync + 'static,
) -> Asked {
    register_as(registry, profile, script, |agent| agent)
}

/// Like `register`, with something done to each instance.
pub(crate) fn register_as(
    registry: &Registry,
    profile: Profile,
    script: impl Fn(usize) -> Vec<Script> + Send + Sync + 'static,
    change: impl Fn(Agent) -> Agent + Send + Sync + 'static,
) -> Asked {
    let asked = Asked::default();
    let models = asked.clone();
    registry.register(profile, move || {
        let mut models = models.0.lock().expect("nobody panics inside");
        let model = Arc::new(ScriptedModel::new(script(models.len() + 1)));
        models.push(Arc::clone(&model));
        change(Agent::new(model))
    });
    asked
}

/// An agent called `boss` that says this, with a delegation of depth 1.
pub(crate) fn boss(
    registry: &Registry,
    script: impl IntoIterator<Item = Script>,
) -> (Arc<ScriptedModel>, Agent) {
    boss_with(Delegation::new(registry.clone()).max_depth(1), script)
}

/// An agent called `boss` that says this, with this delegation.
pub(crate) fn boss_with(
    delegation: Delegation,
    script: impl IntoIterator<Item = Script>,
) -> (Arc<ScriptedModel>, Agent) {
    let model = Arc::new(ScriptedModel::new(script));
    let agent = Agent::new(Arc::clone(&model))
        .name("boss")
        .world(FixedWorld::at_ms(1_000));
    (model, delegation.install(agent))
}

/// What came of the delegate calls of a run.
pub(crate) fn results(result: &RunResult) -> Vec<Value> {
    let calls = result
        .calls
        .iter()
        .filter(|call| call.name.as_str() == "delegate");
    calls
        .map(|call| {
            let text = call.result.text();
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        })
        .collect()
}

/// Runs a boss that delegates these tasks at once; what came of them.
pub(crate) async fn delegated(
    registry: &Registry,
    tasks: impl IntoIterator<Item = Value>,
) -> Value {
    let (_, boss) = boss(registry, [delegates(tasks), says("Done.")]);
    let result = boss.run("Go.").await.expect("the run finishes");
    results(&result).remove(0)
}

/// The texts of the user messages of a request.
pub(crate) fn told(request: &Request) -> Vec<String> {
    let users = request
        .entries
        .iter()
        .filter_map(|stored| match &stored.entry {
            Entry::User(message) => Some(message),
            _ => None,
        });
    users
        .map(|message| {
            message
                .content
                .iter()
                .filter_map(|it| it.as_text())
                .collect()
        })
        .collect()
}

/// The names of the tools of a request.
pub(crate) fn tools(request: &Request) -> Vec<String> {
    request
        .tools
        .iter()
        .map(|tool| tool.name.to_string())
        .collect()
}

/// An agent whose replies are decided by what it is shown.
pub(crate) fn deciding(
    decide: impl Fn(&Request) -> Script + Clone + Send + Sync + 'static,
) -> Agent {
    let model = model_fn(ModelInfo::new("scripted/model"), move |request: Request| {
        let script = decide(&request);
        ScriptedModel::new([script]).stream(request)
    });
    Agent::new(model)
}
