//! `stall_detect`: turns that come to the same are told, and end the run if that goes on.

#[path = "effects/stage.rs"]
mod stage;

use adjutant_agent::{
    Limit, Outcome, RunResult,
    effects::{StallDetect, from_spec},
};
use adjutant_llm::{Script, ScriptedModel};
use serde_json::json;
use stage::{agent, done, say, shown};

/// A turn for each letter: the same small letter succeeds in the same way, the same capital fails in the same way with
/// arguments that differ.
fn turns(letters: &str) -> Vec<Script> {
    let turn = |(n, letter): (usize, char)| match letter.is_uppercase() {
        true => say(json!({ "text": letter, "n": n, "fail": true })),
        false => say(json!({ "text": letter })),
    };
    letters
        .chars()
        .enumerate()
        .map(turn)
        .chain([done()])
        .collect()
}

async fn run(letters: &str, effect: StallDetect) -> (RunResult, Vec<usize>) {
    let (model, agent) = agent(128_000, turns(letters));
    let result = agent.effect(effect).run("Go.").await.expect("the run ends");
    (result, nudges(&model))
}

/// The requests that end in a reminder, counted from 1.
fn nudges(model: &ScriptedModel) -> Vec<usize> {
    let last = shown(model)
        .into_iter()
        .map(|lines| lines.last().cloned().unwrap_or_default());
    (1..)
        .zip(last)
        .filter(|(_, line)| line.starts_with("[stall_detect] The last 6 steps"))
        .map(|(n, _)| n)
        .collect()
}

fn is_stalled(result: &RunResult) -> bool {
    matches!(
        result.outcome,
        Outcome::Limit {
            limit: Limit::Stalled
        }
    )
}

#[tokio::test]
async fn stall_is_told_again_when_there_was_progress_between() {
    let (result, told) = run("aaaaaa", StallDetect::default()).await;
    assert_eq!(
        (is_stalled(&result), told),
        (false, vec![7]),
        "told once, and the answer is kept"
    );
    // Two new things in six turns are progress: the reminder is armed again, and the run goes on.
    let (result, told) = run("aaaaaabcaaaaaa", StallDetect::default()).await;
    assert_eq!((is_stalled(&result), told), (false, vec![7, 14]));
    let (result, told) = run(&"a".repeat(40), StallDetect::default()).await;
    assert_eq!(
        (is_stalled(&result), told, result.turns),
        (true, vec![7], 12),
        "a whole window after the reminder"
    );
    assert_eq!(result.calls.len(), 12, "every call has its result");
}

#[tokio::test]
async fn stall_is_seen_when_one_turn_of_six_differs() {
    let check = async |letters, stalled| {
        let (_, told) = run(letters, StallDetect::default()).await;
        assert_eq!(!told.is_empty(), stalled, "{letters}");
    };
    check("aaabaa", true).await;
    check("ababab", true).await;
    check("AAAAAA", true).await;
    check("aabbcc", false).await;
    check("aaaabc", false).await;
    check("abcdef", false).await;
    check("aaaaa", false).await;
}

#[tokio::test]
async fn stall_is_no_stall_when_other_arguments_succeed_alike() {
    let scripts = (0..10)
        .map(|n| say(json!({ "text": "written", "path": n })))
        .chain([done()]);
    let (model, agent) = agent(128_000, scripts);
    agent
        .effect(StallDetect::default())
        .run("Go.")
        .await
        .expect("the run finishes");
    assert_eq!(nudges(&model), Vec::<usize>::new());
}

#[tokio::test]
async fn stall_is_counted_in_turns_when_a_turn_has_many_calls() {
    let batch = || {
        (0..8).fold(Script::new(), |script, _| {
            script.call("say", json!({ "text": "a" }))
        })
    };
    let (model, agent) = agent(128_000, [batch(), batch(), done()]);
    agent
        .effect(StallDetect::default())
        .run("Go.")
        .await
        .expect("the run finishes");
    assert_eq!(nudges(&model), Vec::<usize>::new());
}

#[tokio::test]
async fn stall_is_armed_again_when_the_next_run_begins() {
    let scripts = turns("aaaaaa")
        .into_iter()
        .chain(turns("aaaaa"))
        .chain(turns("aaaaaa"));
    let (model, agent) = agent(128_000, scripts);
    let agent = agent.effect(StallDetect::default());
    for prompt in ["One.", "Two.", "Three."] {
        let result = agent.run(prompt).await.expect("the run ends");
        assert!(!is_stalled(&result));
    }
    // Requests 7 and 20: the sixth turn of the first and of the third run.
    assert_eq!(nudges(&model), [7, 20]);
}

#[test]
fn stall_reads_its_parameters_when_it_is_configured() {
    let read =
        |params| serde_json::from_value::<StallDetect>(params).expect("the parameters are known");
    assert_eq!(read(json!({})), StallDetect::default());
    assert_eq!(
        read(json!({ "window": 4, "similarity": 0.5 })),
        StallDetect {
            window: 4,
            similarity: 0.5
        }
    );
    assert_eq!(
        from_spec("stall_detect", json!({}))
            .expect("the kind is known")
            .kind(),
        "stall_detect"
    );
}
