//! `loop_detect`: the same call made again and again is told, with each further time.

#[path = "effects/stage.rs"]
mod stage;

use adjutant_agent::{
    MemoryJournal,
    effects::{LoopDetect, from_spec},
};
use adjutant_llm::{Script, ScriptedModel};
use serde_json::json;
use stage::{agent, done, say, shown};

fn raw(args: &str) -> Script {
    Script::new().call_raw("say", args)
}

fn told(count: usize) -> String {
    format!(
        "[loop_detect] You have called say with the same arguments {count} times in a row. Nothing new comes of it: try \
         other arguments, another tool or another way, or say what is in your way."
    )
}

/// The number of each request, counted from 1, that ends in a reminder, and that reminder.
fn nudges(model: &ScriptedModel) -> Vec<(usize, String)> {
    let last = shown(model)
        .into_iter()
        .map(|lines| lines.last().cloned().unwrap_or_default());
    (1..)
        .zip(last)
        .filter(|(_, line)| line.starts_with('['))
        .collect()
}

async fn run(
    scripts: impl IntoIterator<Item = Script>,
    effect: LoopDetect,
) -> Vec<(usize, String)> {
    let (model, agent) = agent(128_000, scripts);
    agent
        .effect(effect)
        .run("Go.")
        .await
        .expect("the run finishes");
    nudges(&model)
}

#[tokio::test]
async fn loop_is_seen_when_arguments_differ_only_in_form() {
    let forms = [
        r#"{"text": "a", "more": {"x": 1, "y": [1, 2]}}"#,
        r#"{"more":{"y":[1,2],"x":1},"text":"a"}"#,
        "\n{ \"text\" : \"a\", \"more\": {\"y\": [1, 2], \"x\": 1} }",
    ];
    let found = run(
        forms.map(raw).into_iter().chain([done()]),
        LoopDetect::default(),
    )
    .await;
    assert_eq!(found, [(4, told(3))]);
    let order = [
        r#"{"text":"a","l":[1,2]}"#,
        r#"{"text":"a","l":[2,1]}"#,
        r#"{"text":"a","l":[1,2]}"#,
    ];
    assert_eq!(
        run(
            order.map(raw).into_iter().chain([done()]),
            LoopDetect::default()
        )
        .await,
        [],
        "the order of a list counts"
    );
}

#[tokio::test]
async fn loop_is_told_again_when_it_goes_on() {
    let same = || say(json!({ "text": "a" }));
    let other = || say(json!({ "text": "b" }));
    let scripts = [
        same(),
        same(),
        same(),
        same(),
        other(),
        same(),
        same(),
        same(),
        done(),
    ];
    let found = run(scripts, LoopDetect::default()).await;
    assert_eq!(found, [(4, told(3)), (5, told(4)), (9, told(3))]);
    let two = [same(), same(), other(), same(), same(), done()];
    assert_eq!(run(two, LoopDetect::default()).await, []);
}

#[tokio::test]
async fn loop_is_told_when_it_is_longer_than_the_window() {
    let scripts = (0..14).map(|_| say(json!({ "text": "a" }))).chain([done()]);
    let found = run(scripts, LoopDetect::default()).await;
    let wanted: Vec<(usize, String)> = (3..=14).map(|count| (count + 1, told(count))).collect();
    assert_eq!(found, wanted);
}

#[tokio::test]
async fn loop_is_counted_in_calls_when_a_turn_has_several() {
    let twice = || {
        Script::new()
            .call("say", json!({ "text": "a" }))
            .call("say", json!({ "text": "a" }))
    };
    let found = run([twice(), twice(), done()], LoopDetect::default()).await;
    assert_eq!(found, [(3, told(4))]);
}

#[tokio::test]
async fn loop_is_armed_again_when_the_next_run_begins() {
    let same = || say(json!({ "text": "a" }));
    let (model, agent) = agent(
        128_000,
        [same(), same(), same(), done(), same(), same(), done()],
    );
    let agent = agent.effect(LoopDetect::default());
    agent.run("Go.").await.expect("the run finishes");
    agent.run("On.").await.expect("the run finishes");
    assert_eq!(
        nudges(&model),
        [(4, told(3))],
        "calls of an earlier run do not count"
    );
}

#[tokio::test]
async fn loop_is_told_once_when_the_log_is_opened_again() {
    let journal = MemoryJournal::default();
    let same = || say(json!({ "text": "a" }));
    let (_, first) = agent(128_000, [same(), same(), same()]);
    let first = first
        .journal(journal.clone())
        .effect(LoopDetect::default())
        .max_turns(3);
    first.run("Go.").await.expect("the run ends at its limit");
    let (model, second) = agent(128_000, [same(), same(), same(), done()]);
    let second = second
        .journal(journal)
        .effect(LoopDetect::default())
        .session(first.session_id().clone())
        .take_over();
    second.run("On.").await.expect("the run finishes");
    assert_eq!(nudges(&model), [(4, told(3))]);
}

#[tokio::test]
async fn loop_is_not_looked_for_when_it_is_switched_off() {
    let scripts = (0..5).map(|_| say(json!({ "text": "a" }))).chain([done()]);
    assert_eq!(
        run(
            scripts,
            LoopDetect {
                threshold: 0,
                ..LoopDetect::default()
            }
        )
        .await,
        []
    );
}

#[test]
fn loops_read_their_parameters_when_they_are_configured() {
    let read =
        |params| serde_json::from_value::<LoopDetect>(params).expect("the parameters are known");
    assert_eq!(read(json!({})), LoopDetect::default());
    assert_eq!(
        read(json!({ "threshold": 4, "window": 5 })),
        LoopDetect {
            threshold: 4,
            window: 5
        }
    );
    assert_eq!(
        from_spec("loop_detect", json!({}))
            .expect("the kind is known")
            .kind(),
        "loop_detect"
    );
}
