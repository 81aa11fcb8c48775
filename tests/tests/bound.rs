//! Thinking that is bound to everything before it: the requests of a session only grow, whatever changes in between.

use std::sync::Arc;

use adjutant::{
    Agent, Model, Tools,
    agent::{
        LogId, MemoryJournal,
        sections::{SectionKind, section_text},
    },
    context::{Compact, Strategy},
    llm::{CallResult, Effort, ModelInfo, Options, Script, ScriptedModel},
    providers::Timeouts,
    tools::{ToolSpec, tool_fn},
};
use adjutant_testing::Loopback;
use adjutant_tests::{Wire, signed};
use serde_json::{Value, json};

/// How many requests a run has; the last one is its answer.
const RUN: usize = 5;
/// How many runs the session has.
const RUNS: usize = 40;

/// What an agent is made of; each run is made by an agent of its own, as after a restart.
#[derive(Clone)]
struct Parts {
    wire: Wire,
    notes: &'static str,
    skills: Option<&'static str>,
    tools: Vec<(&'static str, &'static str)>,
    search: bool,
    schema: bool,
    window: u64,
}

impl Parts {
    fn new() -> Self {
        Self {
            wire: Wire::Messages,
            notes: "Be brief.",
            skills: None,
            tools: vec![("look", "Looks at a city.")],
            search: false,
            schema: false,
            window: 1_000_000,
        }
    }
}

struct Session {
    server: Loopback,
    scripted: Arc<ScriptedModel>,
    journal: MemoryJournal,
    turns: usize,
}

impl Session {
    async fn new() -> Self {
        let scripted = Arc::new(ScriptedModel::new([]));
        let setup = Loopback::setup(Arc::clone(&scripted))
            .strict_signatures()
            .bind_thinking();
        Self {
            server: setup.start().await.expect("the server starts"),
            scripted,
            journal: MemoryJournal::default(),
            turns: 0,
        }
    }

    fn model(&self, parts: &Parts) -> Arc<dyn Model> {
        let info = ModelInfo {
            thinking_binding: parts.wire == Wire::Messages,
            context_window: parts.window,
            max_output_tokens: 1_000,
            ..parts.wire.info()
        };
        let url = parts.wire.base_url(&self.server);
        parts.wire.model_of(info, &url, Timeouts::new())
    }

    fn agent(&self, parts: &Parts) -> Agent {
        let mut agent = Agent::new(self.model(parts))
            .journal(Arc::new(self.journal.clone()))
            .session(LogId("bound".into()))
            .instructions("You know cities.")
            .section(section_text(SectionKind::ProjectContext, parts.notes));
        if let Some(skills) = parts.skills {
            agent = agent.section(section_text(SectionKind::AvailableSkills, skills));
        }
        let tools = parts.tools.iter().fold(Tools::new("tools"), |tools, tool| {
            let spec = ToolSpec::new(tool.0, tool.1, json!({"type": "object"}));
            tools.tool(tool_fn(spec, |_, _| async { Ok(CallResult::ok("seen")) }))
        });
        agent = agent.toolbox(tools);
        if parts.window < 1_000_000 {
            agent = agent.effect(Compact {
                strategy: Strategy::Truncate,
                keep_recent_tokens: 200,
                ..Compact::default()
            });
        }
        let mut options = Options {
            thinking: Some(Effort::High),
            ..Options::default()
        };
        if parts.search {
            options.server_tools =
                vec![json!({"type": "web_search_20250305", "name": "web_search"})];
        }
        agent.options(options)
    }

    /// A run of some calls and an answer.
    async fn run(&mut self, parts: &Parts) {
        for turn in 0..RUN {
            let number = self.turns + turn;
            let seal = format!("{number:08}");
            let script = Script::new().thinking(signed(&format!("Thought {number}."), &seal));
            let script = match turn {
                _ if turn + 1 < RUN => script.call("look", json!({})),
                _ if parts.schema => script.text(r#"{"city":"Rome"}"#),
                _ => script.text("Done."),
            };
            self.scripted.push(script);
        }
        let agent = self.agent(parts);
        let run = agent.run(format!("Where to, {}?", self.turns));
        if parts.schema {
            let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
            let result = run.output_schema(schema).await.expect("the run finishes");
            assert_eq!(result.value, json!({"city": "Rome"}));
        } else {
            run.await.expect("the run finishes");
        }
        self.turns += RUN;
    }

    fn bodies(&self) -> Vec<Value> {
        let bodies = self.server.requests();
        bodies
            .iter()
            .map(|request| serde_json::from_slice(&request.body).expect("JSON"))
            .collect()
    }
}

/// The number of thinking blocks in a request.
fn thinking(body: &Value) -> usize {
    let messages = body["messages"].as_array().into_iter().flatten();
    let blocks = messages.flat_map(|it| it["content"].as_array().into_iter().flatten());
    blocks.filter(|it| it["type"] == "thinking").count()
}

fn text(value: &Value) -> String {
    value.to_string()
}

#[tokio::test]
async fn thinking_stays_valid_when_everything_around_the_session_changes() {
    let (mut session, mut parts) = (Session::new().await, Parts::new());
    for run in 0..RUNS {
        match run {
            5 => parts.notes = "Be very brief.",
            8 => parts.skills = Some("- `walk`: plans a walk"),
            11 => parts.tools.push(("walk", "Plans a walk.")),
            14 => parts.tools[1].1 = "Plans a long walk.",
            16 => parts.tools.truncate(1),
            18 => parts.search = true,
            20 => parts.search = false,
            22 => parts.notes = "Be brief.",
            24 => parts.schema = true,
            25 => parts.schema = false,
            27 => parts.wire = Wire::Responses,
            28 => parts.wire = Wire::Messages,
            30 => parts.tools.insert(0, ("first", "Comes first.")),
            _ => {}
        }
        session.run(&parts).await;
    }
    let bodies = session.bodies();
    assert_eq!(bodies.len(), RUNS * RUN);
    let first = &bodies[0];
    let mut signed = 0;
    for (at, body) in bodies.iter().enumerate() {
        if body.get("input").is_some() {
            continue;
        }
        assert_eq!(
            text(&body["system"]),
            text(&first["system"]),
            "request {at}"
        );
        assert_eq!(text(&body["tools"]), text(&first["tools"]), "request {at}");
        assert_eq!(thinking(body), signed, "request {at}");
        signed += 1;
    }
    assert_eq!(session.server.thinking_returned().1, 0);
    let last = text(&bodies[RUNS * RUN - 1]["messages"]);
    for part in [
        "Be very brief.",
        "plans a walk",
        "Plans a walk.",
        "Plans a long walk.",
        "answer with one JSON object",
        "Comes first.",
    ] {
        assert_eq!(last.matches(part).count(), 1, "{part}: {last}");
    }
}

#[tokio::test]
async fn requests_stay_valid_when_a_session_is_compacted_within_a_run() {
    let (mut session, mut parts) = (Session::new().await, Parts::new());
    session.run(&parts).await;
    parts.notes = "Be very brief.";
    parts.tools.push(("walk", "Plans a walk."));
    parts.window = 4_000;
    for _ in 0..40 {
        session.run(&parts).await;
    }
    let bodies = session.bodies();
    assert!(
        session.server.thinking_returned().1 > 0,
        "nothing was compacted"
    );
    let first = &bodies[0];
    for (at, body) in bodies.iter().enumerate() {
        assert_eq!(
            text(&body["system"]),
            text(&first["system"]),
            "request {at}"
        );
        assert_eq!(text(&body["tools"]), text(&first["tools"]), "request {at}");
    }
    // What a compaction took is announced again.
    let last = text(&bodies[bodies.len() - 1]["messages"]);
    for part in ["Be very brief.", "Plans a walk."] {
        assert_eq!(last.matches(part).count(), 1, "{part}: {last}");
    }
}
