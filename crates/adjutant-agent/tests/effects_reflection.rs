//! `reflection`: the model is asked to think when everything fails.

#[path = "effects/stage.rs"]
mod stage;

use adjutant_agent::effects::{Reflection, from_spec};
use adjutant_llm::{Script, ScriptedModel};
use serde_json::json;
use stage::{agent, done, say, shown};

fn good() -> Script {
    say(json!({ "text": "fine" }))
}

fn bad() -> Script {
    say(json!({ "text": "broken", "fail": true }))
}

/// The requests that end in a reminder, counted from 1, and the number of failures that it names.
fn asked(model: &ScriptedModel) -> Vec<(usize, usize)> {
    let last = shown(model)
        .into_iter()
        .map(|lines| lines.last().cloned().unwrap_or_default());
    let count = |line: &str| {
        let rest = line.strip_prefix("[reflection] Everything failed in the last ")?;
        assert!(
            ["1. ", "2. ", "3. "]
                .iter()
                .all(|point| rest.contains(point)),
            "three points: {rest}"
        );
        rest.split(' ').next()?.parse().ok()
    };
    (1..)
        .zip(last)
        .filter_map(|(number, line)| Some((number, count(&line)?)))
        .collect()
}

async fn run(scripts: impl IntoIterator<Item = Script>) -> Vec<(usize, usize)> {
    let (model, agent) = agent(128_000, scripts);
    agent
        .effect(Reflection::default())
        .run("Go.")
        .await
        .expect("the run finishes");
    asked(&model)
}

#[tokio::test]
async fn reflection_is_asked_for_when_steps_fail_again_and_again() {
    assert_eq!(run([bad(), bad(), done()]).await, [(3, 2)]);
    assert_eq!(
        run([bad(), bad(), bad(), good(), bad(), done()]).await,
        [(3, 2), (4, 3)]
    );
    // A success arms it again, however long the row before was.
    assert_eq!(
        run([bad(), bad(), bad(), good(), bad(), bad(), done()]).await,
        [(3, 2), (4, 3), (7, 2)]
    );
    assert_eq!(run([bad(), good(), bad(), done()]).await, []);
    let mixed = || {
        Script::new()
            .call("say", json!({ "text": "a", "fail": true }))
            .call("say", json!({ "text": "a" }))
    };
    assert_eq!(
        run([mixed(), mixed(), done()]).await,
        [],
        "one success is enough"
    );
}

#[tokio::test]
async fn reflection_counts_anew_when_the_user_speaks() {
    let (model, agent) = agent(
        128_000,
        [bad(), bad(), done(), bad(), done(), bad(), bad(), done()],
    );
    let agent = agent.effect(Reflection::default());
    for prompt in ["One.", "Two.", "Three."] {
        agent.run(prompt).await.expect("the run finishes");
    }
    assert_eq!(asked(&model), [(3, 2), (8, 2)]);
}

#[test]
fn reflection_reads_its_parameters_when_it_is_configured() {
    let read =
        |params| serde_json::from_value::<Reflection>(params).expect("the parameters are known");
    assert_eq!(read(json!({})), Reflection::default());
    assert_eq!(read(json!({ "failures": 4 })), Reflection { failures: 4 });
    assert_eq!(
        from_spec("reflection", json!({}))
            .expect("the kind is known")
            .kind(),
        "reflection"
    );
}
