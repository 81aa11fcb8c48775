//! Runs that use skills: what the model is shown, what is loaded once, and what stays.

use std::sync::Arc;

use adjutant_agent::{Agent, LogId};
use adjutant_context::{Compact, Strategy};
use adjutant_llm::{CallResult, Entry, Gate, ModelInfo, Request, Script, ScriptedModel, Status};
use adjutant_tool::{CallContext, ErasedTool, ToolSpec, tool_fn};
use serde_json::{Value, json};

use crate::stage::{Den, run};

fn den() -> Den {
    Den::new()
        .plain("skills/heron", "Stand in water.")
        .file("skills/heron/legs.md", "Two legs.")
        .plain("skills/kestrel", "Hover.")
        .skill("skills/manners", "Be kind.")
}

#[tokio::test]
async fn prompt_has_inline_skills_and_the_list_when_they_are_installed() {
    let den = den();
    let (_, requests) = run(&den.load(), &[]).await;
    let expect = "\
<skills>
## manners

Be kind.
</skills>

<available_skills>
Each of these skills holds instructions for a kind of task. Before you begin a task that one of them fits, load it with \
load_skill, and follow what it says. Load none that does not fit.

- heron: About heron.
- kestrel: About kestrel.
</available_skills>";
    assert_eq!(&*requests[0].system, expect);
    let tools: Vec<&str> = requests[0]
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(tools, ["load_skill", "read_skill_file"]);
    assert_eq!(
        requests[0].tools[0].schema["properties"]["name"]["enum"],
        json!(["heron", "kestrel"])
    );
}

#[tokio::test]
async fn agent_stays_as_it_is_when_there_are_no_skills() {
    let (_, requests) = run(&Den::new().load(), &[]).await;
    assert_eq!((&*requests[0].system, requests[0].tools.len()), ("", 0));
    let den = Den::new().skill("skills/manners", "Be kind.");
    let (_, requests) = run(&den.load(), &[]).await;
    assert_eq!(
        (&*requests[0].system, requests[0].tools.len()),
        ("<skills>\n## manners\n\nBe kind.\n</skills>", 0)
    );
}

#[tokio::test]
async fn skill_is_loaded_once_when_it_is_asked_for_again() {
    let den = den();
    let load = |name: &str| ("load_skill", json!({"name": name}));
    let (results, _) = run(
        &den.load(),
        &[load("kestrel"), load("kestrel"), load("heron")],
    )
    .await;
    assert_eq!(
        results[0].text(),
        "<skill name=\"kestrel\">\nHover.\n</skill>"
    );
    assert_eq!(
        (results[0].pinned, &results[0].details),
        (true, &json!({"skill": "kestrel", "tokens": 2}))
    );
    let again = "The skill kestrel is loaded already: its instructions stand above. Follow them.";
    assert_eq!(
        (results[1].text().as_str(), results[1].pinned),
        (again, false)
    );
    assert!(results[2].text().contains("Stand in water.") && results[2].pinned);
}

#[tokio::test]
async fn skill_is_loaded_once_when_two_calls_of_one_turn_ask_for_it() {
    let args = json!({"name": "kestrel"});
    let both = Script::new()
        .call("load_skill", args.clone())
        .call("load_skill", args);
    let model = ScriptedModel::new([both, Script::new().text("Done.")]);
    let result = den()
        .load()
        .install(Agent::new(model))
        .run("Go.")
        .await
        .expect("it answers");
    assert_eq!(
        result
            .calls
            .iter()
            .filter(|call| call.result.pinned)
            .count(),
        1
    );
}

#[tokio::test]
async fn skill_is_loaded_anew_when_a_session_begins() {
    let model = Arc::new(ScriptedModel::new((0..4).flat_map(|_| {
        [
            Script::new().call("load_skill", json!({"name": "kestrel"})),
            Script::new().text("Done."),
        ]
    })));
    let agent = den().load().install(Agent::new(Arc::clone(&model)));
    let mut pinned = Vec::new();
    for agent in [&agent, &agent, &agent.new_session()] {
        pinned.push(
            agent.run("Go.").await.expect("it answers").calls[0]
                .result
                .pinned,
        );
    }
    assert_eq!(pinned, [true, false, true], "the second run still shows it");
}

#[tokio::test]
async fn load_is_refused_when_there_is_no_such_skill() {
    let den = den();
    let calls = ["manners", "eagle", "../heron"].map(|name| ("load_skill", json!({"name": name})));
    let (results, _) = run(&den.load(), &calls).await;
    assert!(
        results
            .iter()
            .all(|result| result.status == Status::InvalidArguments),
        "{results:?}"
    );
    let (results, _) = run(
        &den.load(),
        &[("read_skill_file", json!({"skill": "eagle", "path": "x"}))],
    )
    .await;
    assert_eq!(
        results[0].text(),
        "there is no skill `eagle`; there are heron, kestrel, manners"
    );
}

/// How many tokens the models of these tests take.
const WINDOW: u64 = 8_000;

fn fill() -> impl ErasedTool + 'static {
    let spec = ToolSpec::new("fill", "Fills the window.", json!({"type": "object"}));
    tool_fn(spec, |_: Value, _: CallContext| async {
        Ok(CallResult::ok("many words ".repeat(200)))
    })
}

fn shows(request: &Request, part: &str) -> bool {
    format!("{:?}", request.entries.iter().collect::<Vec<_>>()).contains(part)
}

fn is_compacted(request: &Request) -> bool {
    request
        .entries
        .iter()
        .any(|stored| matches!(stored.entry, Entry::Summary(_)))
}

/// A run that loads a skill, reads a file of it, fills its window, and loads it again.
async fn filled(den: &Den, compact: Compact) -> (Vec<CallResult>, Vec<Request>) {
    let load = || Script::new().call("load_skill", json!({"name": "heron"}));
    let read = Script::new().call(
        "read_skill_file",
        json!({"skill": "heron", "path": "legs.md"}),
    );
    let fills = (0..30).map(|_| Script::new().call("fill", json!({})));
    let scripts = [load(), read].into_iter().chain(fills).chain([
        load(),
        load(),
        Script::new().text("Done."),
    ]);
    let info = ModelInfo {
        context_window: WINDOW,
        max_output_tokens: 1_000,
        ..ModelInfo::new("test/worker")
    };
    let model = Arc::new(ScriptedModel::new(scripts).info(info));
    let agent = den
        .load()
        .install(Agent::new(Arc::clone(&model)).tool(fill()));
    let result = agent
        .effect(Compact {
            strategy: Strategy::Truncate,
            ..compact
        })
        .run("Go.")
        .await
        .expect("it answers");
    (
        result
            .calls
            .iter()
            .map(|call| CallResult::clone(&call.result))
            .collect(),
        model.requests(),
    )
}

#[tokio::test]
async fn skill_stays_when_the_conversation_is_compacted() {
    let (results, requests) = filled(&den(), Compact::default()).await;
    let last = &requests[requests.len() - 1];
    assert!(is_compacted(last) && shows(last, "Stand in water."));
    assert!(
        results[1].text().starts_with("Two legs.") && !shows(last, "Two legs."),
        "a file gives way"
    );
    let again = "The skill heron is loaded already: its instructions stand above. Follow them.";
    assert_eq!([results[32].text(), results[33].text()], [again, again]);
}

#[tokio::test]
async fn skill_is_loaded_again_when_the_view_has_lost_it() {
    let (results, requests) = filled(
        &den(),
        Compact {
            pinned_share: 0.0,
            ..Compact::default()
        },
    )
    .await;
    assert!(
        !shows(&requests[requests.len() - 3], "Stand in water."),
        "nothing pinned had room"
    );
    assert!(results[32].pinned && results[32].text().contains("Stand in water."));
    assert!(!results[33].pinned, "and then once again");
    assert!(shows(&requests[requests.len() - 1], "Stand in water."));
}

#[tokio::test]
async fn skill_is_known_to_be_loaded_when_another_process_goes_on() {
    let journal = adjutant_agent::MemoryJournal::default();
    let one = || {
        let load = Script::new().call("load_skill", json!({"name": "heron"}));
        let model = ScriptedModel::new([load, Script::new().text("Done.")]);
        den()
            .load()
            .install(Agent::new(model))
            .world(adjutant_llm::FixedWorld::at_ms(1_000))
            .journal(journal.clone())
    };
    let first = one();
    assert!(
        first.run("Go.").await.expect("it answers").calls[0]
            .result
            .pinned
    );
    let later = one().session(first.session_id().clone()).take_over();
    assert!(
        !later.run("Again.").await.expect("it answers").calls[0]
            .result
            .pinned
    );
}

#[tokio::test]
async fn skill_is_loaded_in_each_session_when_two_of_one_agent_run_at_once() {
    let den = den();
    let (gate, loads) = (Gate::default(), || {
        Script::new().call("load_skill", json!({"name": "kestrel"}))
    });
    let model = Arc::new(ScriptedModel::new([
        loads().wait_at(0, &gate),
        loads(),
        Script::new().text("One."),
        Script::new().text("Two."),
    ]));
    let agent = den.load().install(Agent::new(model));
    let sessions = ["one", "two"].map(|log| agent.session(LogId(log.into())));
    let two = tokio::spawn({
        let two = sessions[1].clone();
        async move { two.run("Go.").await }
    });
    gate.wait_until_reached().await;
    let one = sessions[0].run("Go.").await.expect("it answers");
    gate.open();
    let two = two.await.expect("no panic").expect("it answers");
    let texts = [one, two].map(|result| result.calls[0].result.text());
    assert_eq!(texts, ["<skill name=\"kestrel\">\nHover.\n</skill>"; 2]);
}
