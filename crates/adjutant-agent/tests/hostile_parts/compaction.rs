//! Summaries: what their model is shown, and what becomes of them when they are no use.

use std::sync::Arc;

use adjutant_agent::EventKind;
use adjutant_context::{Compact, SlidingWindow, Strategy};
use adjutant_llm::{Error, ErrorKind, ModelInfo, Overflow, Script, ScriptedModel, UserMessage};
use serde_json::{Value, json};

use super::stage::{agent, done, say, shown};

fn turns(count: usize) -> impl Iterator<Item = Script> {
    (0..count).map(|n| say(json!({ "text": format!("line {n:02} "), "times": 50 })))
}

fn writer(window: u64, scripts: impl IntoIterator<Item = Script>) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::new(scripts).info(ModelInfo {
        context_window: window,
        ..ModelInfo::new("scripted/writer")
    }))
}

fn too_long() -> Script {
    let overflow = Overflow {
        used: Some(4_001),
        limit: Some(4_000),
    };
    Script::new()
        .fail(Error::new(ErrorKind::Overflow, "too long").with(|it| it.overflow = Some(overflow)))
}

#[tokio::test]
async fn summary_is_written_of_the_conversation_when_its_model_has_no_known_window() {
    let (_, first) = agent(5_000, turns(45).chain([done()]));
    let notes = writer(0, [Script::new().text("What was.")]);
    first
        .effect(SlidingWindow {
            model: Some(notes.clone()),
            ..SlidingWindow::default()
        })
        .run("Go.")
        .await
        .expect("the run finishes");
    let asked = shown(&notes)[0][0].clone();
    assert!(
        asked.contains("line 00") && asked.contains("line 05"),
        "{asked}"
    );

    let (_, second) = agent(5_000, turns(45).chain([done()]));
    let notes = writer(0, [Script::new().text("What was.")]);
    second
        .effect(Compact {
            model: Some(notes.clone()),
            ..Compact::default()
        })
        .run("Go.")
        .await
        .expect("the run finishes");
    let asked = shown(&notes)[0][0].clone();
    assert!(
        asked.contains("line 00") && asked.contains("line 05"),
        "{asked}"
    );
}

#[tokio::test]
async fn window_stops_asking_when_its_summaries_gain_too_little() {
    let (model, agent) = agent(5_000, turns(40).chain([done()]));
    // Little less than what they stand for.
    let notes = writer(
        8_000,
        (0..30).map(|_| Script::new().text("words and ".repeat(400))),
    );
    let agent = agent.effect(SlidingWindow {
        recent: 20,
        medium: 0,
        model: Some(notes.clone()),
        ..SlidingWindow::default()
    });
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let mut told: Vec<Value> = Vec::new();
    while let Some(event) = running.next().await {
        if let EventKind::Report { data, .. } = event.kind {
            told.push(*data);
        }
    }
    let folded = shown(&model)
        .last()
        .expect("there are requests")
        .iter()
        .any(|line| line.starts_with("summary: "));
    let said = told.iter().any(|data| data["folded"] == json!(true));
    assert_eq!(said, folded, "it tells what it did: {told:?}");
    assert!(
        notes.requests().len() <= 4,
        "asked {} times",
        notes.requests().len()
    );
}

#[tokio::test]
async fn window_leaves_out_the_oldest_when_something_must_go_and_the_summary_is_too_long() {
    let (model, agent) = agent(0, turns(30).chain([too_long(), done()]));
    let notes = writer(
        100_000,
        [Script::new().text("too many words ".repeat(5_000))],
    );
    let agent = agent.effect(SlidingWindow {
        model: Some(notes.clone()),
        ..SlidingWindow::default()
    });
    agent.run("Go.").await.expect("it answers");
    let last = shown(&model).pop().expect("there are requests");
    assert!(last[1].starts_with("summary: [Left out"), "{}", last[1]);
}

#[tokio::test]
async fn run_goes_on_when_the_window_is_smaller_than_the_system_prompt() {
    for strategy in [Strategy::Truncate, Strategy::Summarise] {
        let (model, agent) = agent(50, turns(6).chain([done()]));
        let notes = writer(60, (0..20).map(|_| Script::new().text("Notes.")));
        let compact = Compact {
            strategy,
            threshold: f64::NAN,
            min_gain: -1.0,
            model: Some(notes.clone()),
            ..Compact::default()
        };
        let agent = agent.instructions("Be good. ".repeat(100)).effect(compact);
        let result = agent
            .effect(SlidingWindow {
                min_gain: f64::NAN,
                model: Some(notes.clone()),
                ..SlidingWindow::default()
            })
            .run("Go.")
            .await;
        assert!(result.expect("it answers").is_finished());
        let last = shown(&model).pop().expect("there are requests");
        assert_eq!(last[0], "user: Go.");
        assert!(notes.requests().len() <= 6);
    }
}

#[tokio::test]
async fn pinned_entry_is_folded_when_it_is_larger_than_the_window() {
    let (model, agent) = agent(2_000, [done()].into_iter().chain(turns(6)).chain([done()]));
    let agent = agent.effect(Compact {
        strategy: Strategy::Truncate,
        ..Compact::default()
    });
    agent
        .run(UserMessage {
            pinned: true,
            ..UserMessage::text("huge ".repeat(3_000))
        })
        .await
        .expect("it answers");
    agent.run("Go.").await.expect("it answers");
    let last = shown(&model).pop().expect("there are requests");
    assert!(last.iter().all(|line| !line.contains("huge")), "{last:?}");
    assert!(last.iter().any(|line| line == "user: Go."));
}

#[tokio::test]
async fn each_compaction_remembers_for_itself_when_several_are_set() {
    let (model, agent) = agent(5_000, turns(45).chain([done()]));
    let truncate = || Compact {
        strategy: Strategy::Truncate,
        ..Compact::default()
    };
    let agent = agent
        .effect(Compact {
            threshold: 0.5,
            ..truncate()
        })
        .effect(Compact {
            threshold: 0.6,
            ..truncate()
        })
        .effect(truncate());
    agent.run("Go.").await.expect("it answers");
    let last = shown(&model).pop().expect("there are requests");
    assert_eq!(
        last.iter()
            .filter(|line| line.starts_with("summary: "))
            .count(),
        1
    );
    assert_eq!(last.iter().filter(|line| *line == "user: Go.").count(), 1);
}
