//! `sliding_window`: the newest as it is, before it short results, and a summary of the rest.

#[path = "../../adjutant-agent/tests/effects/stage.rs"]
mod stage;
#[path = "../../adjutant-agent/tests/effects/steps.rs"]
mod steps;

use std::sync::Arc;

use adjutant_agent::{
    EventKind, MemoryJournal, Phase,
    effects::{EffectRegistry, EffectSpec, ObservationMask, effect_fn},
};
use adjutant_context::{Compact, SlidingWindow, Strategy, register};
use adjutant_llm::{
    CallResult, Entry, Error, ErrorKind, ModelInfo, Script, ScriptedModel, Thinking, UserMessage,
};
use adjutant_tool::{ToolSpec, tool_fn};
use serde_json::json;
use stage::{agent, done, say, shown};
use steps::{breaks, most_forms};

fn turns(count: usize) -> impl Iterator<Item = Script> {
    (0..count).map(|n| say(json!({ "text": format!("line {n:02} "), "times": 50 })))
}

/// A model that writes these summaries.
fn writer(scripts: impl IntoIterator<Item = Script>) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::new(scripts).info(ModelInfo::new("scripted/writer")))
}

fn whole(n: usize) -> String {
    format!("say = {}", format!("line {n:02} ").repeat(50))
}

fn short(n: usize) -> String {
    format!(
        "say = {}\n[cut: 200 of 400 characters are shown]",
        format!("line {n:02} ").repeat(25)
    )
}

#[tokio::test]
async fn window_keeps_the_newest_when_it_is_sliding() {
    // 29 turns of about 120 tokens fill 0.7 of 5,000 once, at the last request.
    let (model, agent) = agent(5_000, turns(29).chain([done()]));
    let notes = writer([Script::new().text("What was.")]);
    let agent = agent.instructions("Be good.").effect(SlidingWindow {
        model: Some(notes.clone()),
        ..SlidingWindow::default()
    });
    agent.run("Go.").await.expect("the run finishes");
    notes.assert_done();
    assert_eq!(breaks(&model), [30]);
    let last = shown(&model).pop().expect("there are requests");
    let mut wanted = vec!["user: Go.".to_owned(), "summary: What was.".to_owned()];
    wanted.extend((9..19).map(short));
    wanted.extend((19..29).map(whole));
    assert_eq!(last, wanted);
    assert_eq!(&*model.requests()[29].system, "Be good.");
    let asked = shown(&notes)
        .pop()
        .and_then(|lines| lines.first().cloned())
        .expect("it was asked");
    assert!(
        asked.contains("line 08") && !asked.contains("line 09"),
        "{asked}"
    );
    let calls = agent
        .log()
        .transcript()
        .iter()
        .filter(|stored| matches!(stored.entry, Entry::Turn(_)))
        .count();
    assert_eq!(calls, 30, "the history keeps everything");
}

#[tokio::test]
async fn window_writes_on_its_summary_when_it_slides_again() {
    let (model, agent) = agent(5_000, turns(49).chain([done()]));
    let notes = writer(["First.", "Second.", "Third."].map(|text| Script::new().text(text)));
    agent
        .effect(SlidingWindow {
            model: Some(notes.clone()),
            ..SlidingWindow::default()
        })
        .run("Go.")
        .await
        .expect("the run finishes");
    let requests = notes.requests();
    assert!(requests.len() >= 2, "it slid {} times", requests.len());
    let asked = shown(&notes);
    assert!(
        asked[1][0].contains("First."),
        "the earlier summary is part of the next"
    );
    let summaries = |lines: &Vec<String>| {
        lines
            .iter()
            .filter(|line| line.starts_with("summary: "))
            .count()
    };
    assert!(
        shown(&model).iter().all(|lines| summaries(lines) <= 1),
        "no stale summaries"
    );
    assert_eq!(breaks(&model).len(), requests.len());
    assert_eq!(
        most_forms(&model),
        2,
        "a turn is shown whole, then short, then not at all"
    );
}

#[tokio::test]
async fn window_keeps_all_when_the_summary_fails() {
    let failed = || Script::new().fail(Error::new(ErrorKind::Config, "no"));
    for script in [failed as fn() -> Script, || Script::new().text("  ")] {
        let (model, agent) = agent(5_000, turns(40).chain([done()]));
        let notes = writer((0..10).map(|_| script()));
        let agent = agent.effect(SlidingWindow {
            model: Some(notes.clone()),
            ..SlidingWindow::default()
        });
        agent.run("Go.").await.expect("the run finishes");
        assert_eq!(notes.requests().len(), 3, "it is not asked for ever");
        let last = shown(&model).pop().expect("there are requests");
        assert_eq!(last.len(), 41, "every entry stays");
        assert_eq!(last[40], whole(39));
    }
}

#[tokio::test]
async fn window_keeps_what_is_pinned_and_the_newest_prompt_when_it_folds() {
    let keep = tool_fn(
        ToolSpec::new("keep", "Keeps.", json!({ "type": "object" })),
        |_, _| async {
            Ok(CallResult {
                pinned: true,
                ..CallResult::ok("pinned result")
            })
        },
    );
    let first = [
        Script::new().text("Hello."),
        Script::new().call("keep", json!({})),
    ];
    let (model, agent) = agent(5_000, first.into_iter().chain(turns(30)).chain([done()]));
    let notes = writer([Script::new().text("What was.")]);
    let agent = agent.tool(keep).effect(SlidingWindow {
        model: Some(notes.clone()),
        ..SlidingWindow::default()
    });
    agent
        .run(UserMessage {
            pinned: true,
            ..UserMessage::text("Old.")
        })
        .await
        .expect("the run finishes");
    agent.run("New.").await.expect("the run finishes");
    let last = shown(&model).pop().expect("there are requests");
    assert_eq!(
        last[..4],
        [
            "user: Old.",
            "user: New.",
            "keep = pinned result",
            "summary: What was."
        ]
    );
}

#[tokio::test]
async fn window_counts_and_tells_its_summary_when_a_model_wrote_it() {
    let (_, agent) = agent(5_000, turns(30).chain([done()]));
    let usage = adjutant_llm::Usage {
        input_uncached: 700,
        output: 7,
        ..Default::default()
    };
    let notes = writer([Script::new().text("What was.").usage(usage)]);
    let agent = agent.effect(SlidingWindow {
        model: Some(Arc::new(notes)),
        ..SlidingWindow::default()
    });
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let (mut told, mut result) = (Vec::new(), None);
    while let Some(event) = running.next().await {
        match event.kind {
            EventKind::Report { by, data } if &*by == "sliding_window" => told.push(*data),
            EventKind::RunFinished { result: finished } => result = Some(finished),
            _ => {}
        }
    }
    let result = result.expect("the run finishes");
    assert_eq!(result.total_usage.total() - result.usage.total(), 707);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["folded"], json!(true));
}

#[tokio::test]
async fn window_stays_when_the_log_is_opened_again() {
    let journal = MemoryJournal::default();
    let (first, agent_1) = agent(5_000, turns(30).chain([done()]));
    let agent_1 = agent_1.journal(journal.clone());
    let agent_1 = agent_1.effect(SlidingWindow {
        model: Some(Arc::new(writer([Script::new().text("What was.")]))),
        ..SlidingWindow::default()
    });
    agent_1.run("Go.").await.expect("the run finishes");
    let (second, agent_2) = agent(5_000, [done()]);
    let agent_2 = agent_2
        .journal(journal)
        .effect(SlidingWindow::default())
        .session(agent_1.session_id().clone())
        .take_over();
    agent_2.run("On.").await.expect("the run finishes");
    let before = shown(&first).pop().expect("there are requests");
    assert!(shown(&second)[0].starts_with(&before));
}

fn truncating() -> Compact {
    Compact {
        strategy: Strategy::Truncate,
        ..Compact::default()
    }
}

#[tokio::test]
async fn truncate_drops_the_oldest_when_the_view_is_too_large() {
    for keep in [0, 200, 1_000, u64::MAX] {
        let (model, agent) = agent(5_000, turns(45).chain([done()]));
        let agent = agent.effect(Compact {
            keep_recent_tokens: keep,
            ..truncating()
        });
        agent.run("Go.").await.expect("the run finishes");
        assert_eq!(
            model.requests().len(),
            46,
            "no model is asked for a summary, with {keep}"
        );
        let last = shown(&model).pop().expect("there are requests");
        assert_eq!(
            last[0], "user: Go.",
            "the newest message of the user stays, with {keep}"
        );
        assert!(last[1].starts_with("summary: [Left out"), "{}", last[1]);
        assert_eq!(
            last[last.len() - 1],
            whole(44),
            "the newest turn stays, with {keep}"
        );
        assert!(last.len() < 40, "the oldest go, with {keep}");
    }
}

#[tokio::test]
async fn summarise_keeps_the_recent_when_the_view_is_too_large() {
    let first = Script::new()
        .thinking(Thinking::new("Secret reasoning."))
        .call("say", json!({ "text": "a" }));
    let (model, agent) = agent(8_000, [first].into_iter().chain(turns(45)).chain([done()]));
    let notes = writer([Script::new().text("What was.")]);
    let agent = agent.effect(Compact {
        threshold: 0.6,
        model: Some(notes.clone()),
        ..Compact::default()
    });
    agent.run("Go.").await.expect("the run finishes");
    assert_eq!(notes.requests().len(), 1, "not again while it fits");
    let asked = shown(&notes)[0][0].clone();
    assert!(
        asked.contains("line 00") && !asked.contains("Secret"),
        "{asked}"
    );
    let last = shown(&model).pop().expect("there are requests");
    assert_eq!(last[1], "summary: What was.");
    assert_eq!(
        last[last.len() - 5..],
        [40, 41, 42, 43, 44].map(whole),
        "the newest stay as they are"
    );
}

#[tokio::test]
async fn strategy_is_asked_before_every_request_when_it_is_set() {
    let (model, agent) = agent(9_000, turns(45).chain([done()]));
    let phases = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&phases);
    let look = effect_fn("look", move |cx| {
        seen.lock()
            .expect("nobody panics")
            .push((cx.phase, cx.tokens));
        Ok(Vec::new())
    });
    let agent = agent
        .effect(Compact {
            threshold: 1.0,
            reserve_tokens: Some(4_096),
            keep_recent_tokens: 1_000,
            ..truncating()
        })
        .effect(look);
    agent.run("Go.").await.expect("the run finishes");
    let phases = phases.lock().expect("nobody panics").clone();
    assert_eq!(phases.len(), 46, "before every request of one run");
    assert!(
        phases
            .iter()
            .all(|(phase, tokens)| *phase == Phase::Request && *tokens < 9_000 - 4_096)
    );
    assert_eq!(breaks(&model).len(), 1);
}

#[tokio::test]
async fn strategies_act_on_fresh_numbers_when_several_are_set() {
    let turns = || {
        (0..40)
            .map(|n| say(json!({ "text": format!("line {n:02} "), "times": 150 })))
            .chain([done()])
    };
    let mask = || ObservationMask {
        threshold: 0.5,
        min_gain: 0.0,
        ..ObservationMask::default()
    };
    let (alone, first) = agent(12_000, turns());
    first
        .effect(mask())
        .run("Go.")
        .await
        .expect("the run finishes");
    let (both, second) = agent(12_000, turns());
    let compact = Compact {
        threshold: 0.5,
        reserve_tokens: Some(0),
        ..truncating()
    };
    let second = second.effect(mask()).effect(compact).effect(mask());
    second.run("Go.").await.expect("the run finishes");
    assert!(!breaks(&alone).is_empty());
    assert_eq!(
        shown(&both),
        shown(&alone),
        "what the first one made room for, the others leave alone"
    );
}

#[test]
fn window_reads_its_parameters_when_it_is_configured() {
    let read = |params| {
        serde_json::from_value::<SlidingWindow>(params).map(|window| format!("{window:?}"))
    };
    assert_eq!(
        read(json!({})).expect("all have defaults"),
        format!("{:?}", SlidingWindow::default())
    );
    let params = json!({ "threshold": 0.4, "recent": 1, "medium": 0, "min_gain": 0.2 });
    let set = SlidingWindow {
        threshold: 0.4,
        recent: 1,
        medium: 0,
        min_gain: 0.2,
        ..SlidingWindow::default()
    };
    assert_eq!(read(params).expect("these are known"), format!("{set:?}"));
    let made = register(EffectRegistry::default()).make(&EffectSpec {
        kind: "sliding_window".into(),
        params: json!({}),
    });
    assert_eq!(made.expect("the kind is known").kind(), "sliding_window");
}
