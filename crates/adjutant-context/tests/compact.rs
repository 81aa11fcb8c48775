//! Compaction: when it acts, what it keeps, what it does when it cannot, and that it never breaks a conversation.

#[path = "compact/cut.rs"]
mod cut;
#[path = "compact/failures.rs"]
mod failures;
#[path = "compact/stage.rs"]
mod stage;

use std::sync::Arc;

use adjutant_agent::{
    Agent, Effect, EffectError, MemoryJournal,
    effects::{EffectRegistry, EffectSpec},
};
use adjutant_context::{Compact, Strategy, register};
use adjutant_llm::{
    CallResult, Content, Entry, FixedWorld, Image, Script, ScriptedModel, Source, Turn, Usage,
    UserMessage,
};
use adjutant_tool::{CallContext, ToolSpec, tool_fn};
use proptest::{prelude::*, test_runner::Config};
use serde_json::{Value, json};
use stage::{WINDOW, Worker, reports, shown, size, summaries, writer};

fn from_spec(kind: &str, params: Value) -> Result<Arc<dyn Effect>, EffectError> {
    register(EffectRegistry::default()).make(&EffectSpec {
        kind: kind.into(),
        params,
    })
}

fn summary(number: usize) -> Script {
    Script::new().text(format!("Notes {number}."))
}

#[tokio::test]
async fn compact_acts_within_one_run_when_it_has_two_hundred_calls() {
    let (worker, writer) = (Worker::new(200), writer(summary));
    let agent = worker.agent(1_200).effect(Compact {
        model: Some(writer.model.clone()),
        ..Compact::default()
    });
    let result = agent.run("Read all pages.").await.expect("it answers");
    assert_eq!(
        (result.text().as_str(), result.turns, result.calls.len()),
        ("Done.", 201, 200)
    );
    assert!(
        worker.largest() < WINDOW * 9 / 10,
        "{} tokens do not leave room for a reply",
        worker.largest()
    );
    let asked = writer.requests().len();
    assert!((8..=25).contains(&asked), "{asked} summaries of 200 turns");
    assert_eq!(
        agent.log().transcript().len(),
        202,
        "the history keeps everything"
    );
    let last = worker.requests().pop().expect("there were requests");
    assert_eq!(
        shown(&last)[..2],
        [
            "Read all pages.".to_owned(),
            format!("[Notes {}.]", asked - 1)
        ]
    );
}

#[tokio::test]
async fn compact_folds_the_beginning_when_the_window_fills() {
    let (worker, writer) = (Worker::new(24), writer(summary));
    let agent = worker.agent(1_200).effect(Compact {
        model: Some(writer.model.clone()),
        ..Compact::default()
    });
    agent.run("Read all pages.").await.expect("it answers");
    let sizes: Vec<u64> = worker
        .requests()
        .iter()
        .map(|request| request.entries.tokens())
        .collect();
    let folded = worker
        .requests()
        .iter()
        .position(|request| summaries(request) == 1)
        .expect("it was compacted");
    assert!(
        sizes[folded - 1] < WINDOW * 8 / 10 && sizes[folded - 1] > WINDOW * 7 / 10,
        "{sizes:?}"
    );
    assert!(sizes[folded] < WINDOW * 4 / 10, "{sizes:?}");
    let request = &writer.requests()[0];
    let text = request.entries[0].clone();
    let Entry::User(message) = text else {
        panic!("{text:?}")
    };
    let text = message.content[0].as_text().expect("it is text");
    for part in [
        "[user]\nRead all pages.",
        "[call read] {\"page\":0}",
        "[result] page 0:",
        "[failed] page 6 is torn",
    ] {
        assert!(text.contains(part), "{part:?} is missing in {text}");
    }
}

#[tokio::test]
async fn compact_gives_the_earlier_summary_when_it_writes_the_next() {
    let (worker, writer) = (Worker::new(60), writer(summary));
    worker
        .agent(1_200)
        .effect(Compact {
            model: Some(writer.model.clone()),
            ..Compact::default()
        })
        .run("Read all pages.")
        .await
        .expect("it answers");
    let second = &writer.requests()[1];
    let Entry::User(message) = &second.entries[0] else {
        panic!("{second:?}")
    };
    let text = message.content[0].as_text().expect("it is text");
    assert!(
        text.starts_with("<notes>\nNotes 0.\n</notes>\n\n<conversation>\n"),
        "{text}"
    );
    assert!(
        worker
            .requests()
            .iter()
            .all(|request| summaries(request) <= 1),
        "summaries do not pile up"
    );
}

#[tokio::test]
async fn compact_does_nothing_when_it_is_below_its_threshold() {
    let (worker, writer) = (Worker::new(10), writer(summary));
    let mut running = worker
        .agent(1_200)
        .effect(Compact {
            model: Some(writer.model.clone()),
            ..Compact::default()
        })
        .run("Read all pages.")
        .stream()
        .expect("the session is free");
    assert_eq!(reports(&mut running).await, Vec::<Value>::new());
    assert_eq!(writer.requests().len(), 0);
}

#[tokio::test]
async fn compact_does_not_oscillate_when_the_usage_falls_after_it() {
    let (worker, writer) = (Worker::new(40), writer(summary));
    worker
        .agent(1_200)
        .effect(Compact {
            model: Some(writer.model.clone()),
            ..Compact::default()
        })
        .run("Read all pages.")
        .await
        .expect("it answers");
    let folds: Vec<usize> = (1..worker.requests().len())
        .filter(|at| {
            worker.requests()[*at].entries.tokens() < worker.requests()[at - 1].entries.tokens()
        })
        .collect();
    assert_eq!(
        folds.len(),
        writer.requests().len(),
        "the view falls only where it is compacted"
    );
    assert!(
        folds.windows(2).all(|pair| pair[1] - pair[0] > 5),
        "{folds:?}"
    );
}

#[tokio::test]
async fn compact_is_charged_and_reported_when_it_asks_a_model() {
    let used = Usage {
        input_uncached: 3_000,
        output: 70,
        ..Usage::default()
    };
    let (worker, writer) = (
        Worker::new(24),
        writer(move |number| summary(number).usage(used)),
    );
    let agent = worker.agent(1_200).effect(Compact {
        model: Some(writer.model.clone()),
        ..Compact::default()
    });
    let mut running = agent
        .run("Read all pages.")
        .stream()
        .expect("the session is free");
    let reports = reports(&mut running).await;
    let result = running
        .result()
        .expect("it has ended")
        .expect("it answers")
        .clone();
    assert_eq!(reports.len(), 1);
    let (before, after) = (reports[0]["before"].as_u64(), reports[0]["after"].as_u64());
    assert!(
        before > Some(WINDOW * 8 / 10) && after < Some(WINDOW * 4 / 10),
        "{reports:?}"
    );
    assert_eq!(
        (&reports[0]["model"], &reports[0]["usage"]),
        (&json!("test/writer"), &json!(used))
    );
    assert_eq!(result.total_usage, result.usage + used);
}

#[tokio::test]
async fn compact_counts_pictures_when_it_measures() {
    let picture = || {
        let source = Source::Url {
            url: "https://example.com/a.png".into(),
        };
        Content::Image(Image {
            media_type: "image/png".into(),
            source,
        })
    };
    let worker = Worker::of([Script::new().text("One."), Script::new().text("Two.")]);
    let agent = worker.agent(10).effect(Compact {
        strategy: Strategy::Truncate,
        ..Compact::default()
    });
    agent
        .run(UserMessage::from(
            (0..6).map(|_| picture()).collect::<Vec<_>>(),
        ))
        .await
        .expect("it answers");
    agent.run("And now?").await.expect("it answers");
    assert_eq!(shown(&worker.requests()[1])[1..], ["<turn>", "And now?"]);
    assert_eq!(summaries(&worker.requests()[1]), 1);
}

#[tokio::test]
async fn compact_lasts_when_the_next_run_begins() {
    let (worker, journal) = (Worker::new(24), MemoryJournal::default());
    let writer = writer(summary);
    let agent = worker.agent(1_200).effect(Compact {
        model: Some(writer.model.clone()),
        ..Compact::default()
    });
    let agent = agent
        .world(FixedWorld::at_ms(1_000))
        .journal(journal.clone());
    agent.run("Read all pages.").await.expect("it answers");
    let later = Worker::of([Script::new().text("Hello.")]);
    let reopened = later
        .agent(10)
        .journal(journal)
        .session(agent.session_id().clone())
        .take_over();
    reopened.run("Are you there?").await.expect("it answers");
    let view = shown(&later.requests()[0]);
    assert_eq!(
        view[..2],
        ["Read all pages.".to_owned(), "[Notes 0.]".to_owned()]
    );
    assert!(view.len() < 16, "{view:?}");
}

#[tokio::test]
async fn compact_keeps_pinned_entries_within_their_share() {
    let (worker, writer) = (Worker::new(40), writer(summary));
    let pinned = |number: usize| {
        let text = format!("Skill {number}: {}", "rule ".repeat(480));
        Entry::User(UserMessage {
            pinned: true,
            origin: adjutant_llm::Origin::Reminder { by: "skill".into() },
            ..UserMessage::text(text)
        })
    };
    let prompts: Vec<Entry> = (0..4)
        .map(pinned)
        .chain([Entry::User("Read all pages.".into())])
        .collect();
    worker
        .agent(1_200)
        .effect(Compact {
            model: Some(writer.model.clone()),
            ..Compact::default()
        })
        .run(prompts)
        .await
        .expect("it answers");
    let last = shown(&worker.requests().pop().expect("there were requests"));
    let skills: Vec<&str> = last
        .iter()
        .filter(|text| text.starts_with("Skill"))
        .map(|text| &text[..7])
        .collect();
    assert_eq!(
        skills,
        ["Skill 2", "Skill 3"],
        "the newest that fit into a fifth of the window"
    );
    assert!(last.contains(&"Read all pages.".to_owned()));
}

#[tokio::test]
async fn compact_reserves_room_when_it_asks_for_the_summary() {
    let (worker, writer) = (Worker::of([Script::new().text("Yes.")]), writer(summary));
    let huge: Vec<Entry> = (0..300)
        .map(|at| {
            Entry::User(UserMessage::text(format!(
                "Line {at}. {}",
                "many words ".repeat(200)
            )))
        })
        .chain([Entry::User("What now?".into())])
        .collect();
    worker
        .agent(10)
        .effect(Compact {
            model: Some(writer.model.clone()),
            ..Compact::default()
        })
        .run(huge)
        .await
        .expect("it answers");
    let request = &writer.requests()[0];
    let output = request.options.max_output_tokens.expect("it is bounded");
    assert!(
        size(request) + output <= WINDOW && size(request) > WINDOW / 2,
        "{} tokens",
        size(request)
    );
    assert!(worker.largest() < WINDOW, "{} tokens", worker.largest());
}

#[tokio::test]
async fn compact_is_made_of_its_parameters_when_they_are_right() {
    let made = from_spec("compact", json!({"threshold": 0.5, "strategy": "truncate"}))
        .expect("it is known");
    assert_eq!(made.kind(), "compact");
    let worker = Worker::new(24);
    worker
        .agent(1_200)
        .effect(made)
        .run("Read all pages.")
        .await
        .expect("it answers");
    assert!(
        worker.largest() < WINDOW * 6 / 10,
        "{} tokens",
        worker.largest()
    );
    let wrong = from_spec("compact", json!({"treshold": 0.5}))
        .err()
        .expect("it is misspelt");
    assert_eq!(
        wrong.to_string(),
        "the parameters of effect \"compact\" are wrong"
    );
}

#[tokio::test]
async fn log_is_the_same_when_a_compacted_run_is_repeated() {
    let run = || async {
        let (worker, writer, journal) =
            (Worker::new(40), writer(summary), MemoryJournal::default());
        let agent = worker.agent(1_200).effect(Compact {
            model: Some(writer.model.clone()),
            ..Compact::default()
        });
        let agent = agent
            .world(FixedWorld::at_ms(1_000))
            .journal(journal.clone());
        agent.run("Read all pages.").await.expect("it answers");
        worker.requests()
    };
    assert_eq!(run().await, run().await);
}

/// A turn of a random history: calls, and how much they give.
fn script(calls: usize) -> Script {
    (0..calls).fold(Script::new().text("Next."), |script, at| {
        script.call("read", json!({"page": at}))
    })
}

async fn never_splits(turns: &[usize], chars: usize, threshold: f64) {
    let scripts: Vec<Script> = turns
        .iter()
        .map(|calls| script(*calls + 1))
        .chain([Script::new().text("End.")])
        .collect();
    let model = std::sync::Arc::new(ScriptedModel::new(scripts).info(stage::info("test/worker")));
    let agent = Agent::new(std::sync::Arc::clone(&model))
        .tool(stage::read(chars))
        .max_turns(1_000);
    let strategy = if chars.is_multiple_of(2) {
        Strategy::Truncate
    } else {
        Strategy::Summarise
    };
    let compact = Compact {
        threshold,
        strategy,
        model: Some(Arc::new(writer(summary).model)),
        ..Compact::default()
    };
    agent
        .effect(compact)
        .run("Go on.")
        .await
        .expect("it answers");
    for request in model.requests() {
        let users = request
            .entries
            .iter()
            .filter(|it| matches!(&it.entry, Entry::User(it) if *it == "Go on.".into()));
        assert_eq!(users.count(), 1, "the newest message of the user stays");
        let mut ids: Vec<u64> = request.entries.iter().map(|stored| stored.id.0).collect();
        assert!(ids.is_sorted() && !ids.is_empty());
        ids.dedup();
        assert_eq!(ids.len(), request.entries.len(), "an id is shown twice");
        let paired = |turn: &Turn| turn.reply().calls().count() == turn.results().len();
        assert!(
            request
                .entries
                .iter()
                .all(|it| !matches!(&it.entry, Entry::Turn(turn) if !paired(turn)))
        );
    }
}

proptest! {
    #![proptest_config(Config { cases: 24, failure_persistence: None, ..Config::default() })]

    #[test]
    fn compact_keeps_pairs_together_when_it_cuts_anywhere(
        turns in prop::collection::vec(0_usize..4, 5..40),
        chars in 100_usize..3_000,
        threshold in 0.2_f64..0.9,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(never_splits(&turns, chars, threshold));
    }
}

#[tokio::test]
async fn compact_keeps_a_pinned_result_with_its_call() {
    let skill = tool_fn(
        ToolSpec::new("skill", "A skill.", json!({"type": "object"})),
        |_: Value, _: CallContext| async {
            Ok(CallResult {
                pinned: true,
                ..CallResult::ok("The rules.")
            })
        },
    );
    let scripts = (0..30).map(|at| Script::new().call("read", json!({"page": at})));
    let worker = Worker::of(
        [Script::new().call("skill", json!({}))]
            .into_iter()
            .chain(scripts)
            .chain([Script::new().text("Done.")]),
    );
    let agent = worker.agent(1_200).tool(skill).effect(Compact {
        model: Some(Arc::new(writer(summary).model)),
        ..Compact::default()
    });
    agent.run("Read all pages.").await.expect("it answers");
    let last = worker.requests().pop().expect("there were requests");
    let Entry::Turn(turn) = &last.entries[1] else {
        panic!("{:?}", shown(&last))
    };
    assert_eq!(
        (turn.results()[0].text().as_str(), summaries(&last)),
        ("The rules.", 1)
    );
}
