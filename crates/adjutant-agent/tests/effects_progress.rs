//! `progress` and `turn_notice`: a word every few turns, and one near the last.

#[path = "effects/stage.rs"]
mod stage;

use adjutant_agent::effects::{ProgressNotes, TurnNotice, from_spec};
use adjutant_llm::{CallResult, Script, ScriptedModel};
use adjutant_tool::{ErasedTool, ToolSpec, tool_fn};
use serde_json::json;
use stage::{agent, done, say, shown};

fn notes(name: &str) -> impl ErasedTool + 'static {
    let spec = ToolSpec::new(name, "Takes a note.", json!({ "type": "object" }));
    tool_fn(spec, |_, _| async { Ok(CallResult::ok("noted")) })
}

fn turns(count: usize) -> impl Iterator<Item = Script> {
    (0..count)
        .map(|n| say(json!({ "text": n.to_string() })))
        .chain([done()])
}

/// The requests that end in a reminder of a kind, counted from 1, and how it begins.
fn reminders(model: &ScriptedModel) -> Vec<(usize, String)> {
    let last = shown(model)
        .into_iter()
        .map(|lines| lines.last().cloned().unwrap_or_default());
    let begin = |line: String| {
        line.split_inclusive(&['.', ','][..])
            .next()
            .map(str::to_owned)
    };
    let found = (1..).zip(last).filter(|(_, line)| line.starts_with('['));
    found
        .filter_map(|(number, line)| Some((number, begin(line)?)))
        .collect()
}

#[tokio::test]
async fn progress_is_asked_for_when_it_is_due() {
    let (model, with) = agent(128_000, turns(11));
    with.tool(notes("write_note"))
        .effect(ProgressNotes::default())
        .run("Go.")
        .await
        .expect("the run finishes");
    let wanted = [5, 10].map(|n| (n + 1, format!("[progress] {n} steps lie behind you.")));
    assert_eq!(reminders(&model), wanted);
    let text = shown(&model)[5]
        .last()
        .cloned()
        .expect("the request shows something");
    assert!(text.contains("with write_note:"), "{text}");

    let (model, without) = agent(128_000, turns(11));
    without
        .effect(ProgressNotes::default())
        .run("Go.")
        .await
        .expect("the run finishes");
    assert_eq!(reminders(&model), [], "nobody takes notes");
}

#[tokio::test]
async fn progress_counts_the_turns_of_a_run_when_there_are_several_runs() {
    let (model, agent) = agent(128_000, turns(3).chain(turns(3)));
    let agent = agent.tool(notes("jot")).effect(ProgressNotes {
        every: 3,
        tool: "jot".into(),
    });
    agent.run("Go.").await.expect("the run finishes");
    agent.run("On.").await.expect("the run finishes");
    let wanted = [4, 8].map(|n| (n, "[progress] 3 steps lie behind you.".to_owned()));
    assert_eq!(reminders(&model), wanted);
}

#[tokio::test]
async fn turn_notice_speaks_once_a_run_when_the_turns_are_many() {
    let (model, agent) = agent(128_000, turns(5).chain(turns(5)));
    let agent = agent.effect(TurnNotice { warn_at: 3 });
    agent.run("Go.").await.expect("the run finishes");
    agent.run("On.").await.expect("the run finishes");
    let wanted = [4, 10].map(|n| (n, "[turn_notice] 3 steps lie behind you,".to_owned()));
    assert_eq!(reminders(&model), wanted);
}

#[tokio::test]
async fn turn_notice_is_silent_when_it_has_no_number() {
    let (model, agent) = agent(128_000, turns(5));
    agent
        .effect(TurnNotice::default())
        .run("Go.")
        .await
        .expect("the run finishes");
    assert_eq!(reminders(&model), []);
}

#[test]
fn progress_reads_its_parameters_when_it_is_configured() {
    let read =
        |params| serde_json::from_value::<ProgressNotes>(params).expect("the parameters are known");
    assert_eq!(read(json!({})), ProgressNotes::default());
    assert_eq!(
        read(json!({ "every": 2, "tool": "jot" })),
        ProgressNotes {
            every: 2,
            tool: "jot".into()
        }
    );
    let read =
        |params| serde_json::from_value::<TurnNotice>(params).expect("the parameters are known");
    assert_eq!(read(json!({})), TurnNotice { warn_at: 0 });
    assert_eq!(read(json!({ "warn_at": 40 })), TurnNotice { warn_at: 40 });
    for kind in ["progress", "turn_notice"] {
        assert_eq!(
            from_spec(kind, json!({}))
                .expect("the kind is known")
                .kind(),
            kind
        );
    }
}
