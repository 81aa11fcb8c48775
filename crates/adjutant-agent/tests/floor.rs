//! The floor: whatever a conversation holds, no request passes the model's window less its output.

#[path = "floor/stage.rs"]
mod stage;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use adjutant_agent::{
    Agent, EffectError, EventKind, Floor, Flush, Journal, MemoryJournal, Outcome, Owner, Phase,
    Record, Running, Seq, Stamped, effects::effect_fn,
};
use adjutant_llm::{
    Error, ErrorKind, Model, ModelInfo, Overflow, Script, ScriptedModel, Structured, Usage,
};
use futures_util::StreamExt;
use serde_json::json;
use stage::{check, done, model, say, seeded, talking};

const WINDOW: u64 = 20_000;
const HUGE: usize = 400_000;

type Scripts<'a> = &'a dyn Fn() -> Vec<Script>;

/// So many turns that call `say` for each of these sizes, and an answer.
fn work(turns: usize, kilobytes: &[u64]) -> Vec<Script> {
    (0..turns).map(|_| say(kilobytes)).chain([done()]).collect()
}

fn writing() -> Vec<Script> {
    let write = || Script::new().call("say", json!({ "text": "x\"\n".repeat(HUGE / 3) }));
    vec![write(), write(), say(&[2]), done()]
}

#[tokio::test]
async fn window_is_never_overrun_when_the_conversation_is_twenty_times_as_large() {
    let (words, script) = ("a word ".repeat(HUGE / 7), "日本語🦀".repeat(HUGE / 13));
    let cases: &[(&str, usize, &str, Scripts<'_>)] = &[
        ("a seeded history", 100, "Go.", &|| work(0, &[])),
        ("a seeded history before work", 100, "Go.", &|| {
            work(5, &[4])
        }),
        ("one huge prompt", 0, &words, &|| work(0, &[])),
        ("one huge prompt before work", 0, &words, &|| work(40, &[1])),
        ("a huge prompt in another script", 0, &script, &|| {
            work(2, &[4])
        }),
        ("many results", 0, "Go.", &|| work(40, &[10])),
        ("huge results", 0, "Go.", &|| work(4, &[100])),
        ("huge results of one turn", 0, "Go.", &|| {
            work(2, &[100, 100, 90, 90])
        }),
        ("huge arguments", 0, "Go.", &writing),
        ("a huge prompt and huge results", 20, &words, &|| {
            work(4, &[100])
        }),
    ];
    for (what, seed, prompt, scripts) in cases {
        let journal = MemoryJournal::default();
        let model_1 = model(WINDOW, scripts());
        let agent = talking(Agent::new(model_1.clone()))
            .journal(journal.clone())
            .start_from(seeded(*seed));
        let result = agent.run(*prompt).await.expect(what);
        assert!(
            matches!(result.outcome, Outcome::Finished { .. }),
            "{what}: {:?}",
            result.outcome
        );
        check(what, &model_1, &agent);
        // Another program goes on from the log.
        let model_2 = model(WINDOW, work(3, &[10]));
        let again = talking(Agent::new(model_2.clone()))
            .journal(journal)
            .session(agent.session_id().clone())
            .take_over();
        again.run("On.").await.expect(what);
        check(what, &model_2, &again);
    }
}

#[tokio::test]
async fn window_is_never_overrun_when_the_agent_has_no_tools() {
    let model = model(
        WINDOW,
        (0..100).map(|n| Script::new().text(format!("answer {n} ").repeat(200))),
    );
    let agent = Agent::new(model.clone()).instructions("Be brief. ".repeat(200));
    for n in 0..100 {
        agent
            .run(format!("question {n} ").repeat(200))
            .await
            .expect("it runs");
    }
    check("a talk", &model, &agent);
}

#[tokio::test]
async fn floor_says_what_it_did_and_brings_results_back() {
    let recall = Script::new().call("recall", json!({ "id": "c1_0_0", "limit": 16 }));
    let model = model(WINDOW, (0..3).map(|_| say(&[16])).chain([recall, done()]));
    let agent = talking(Agent::new(model.clone()));
    let mut running = agent.run("Go.").stream().expect("it runs");
    let mut reports = Vec::new();
    while let Some(event) = running.next().await {
        if let EventKind::Report { by, data } = event.kind {
            reports.push((by.to_string(), data));
        }
    }
    let kinds: Vec<&str> = reports.iter().map(|(by, _)| by.as_str()).collect();
    assert_eq!(kinds, ["offload", "floor"]);
    let told = &reports[1].1;
    assert_eq!(
        (
            &told["room"],
            &told["window"],
            told["after"].as_u64() < Some(11_744)
        ),
        (&json!(11_744), &json!(20_000), true)
    );
    let tools: Vec<usize> = model
        .requests()
        .iter()
        .map(|request| request.tools.len())
        .collect();
    assert_eq!(
        tools,
        [1, 1, 1, 2, 2],
        "the tool that brings results back comes with the first that is taken out"
    );
    let result = running
        .result()
        .expect("it has ended")
        .expect("it finishes");
    assert!(
        result.calls[3]
            .result
            .text()
            .starts_with("line 0123456789\n"),
        "{}",
        result.calls[3].result.text()
    );
    check("with recall", &model, &agent);
}

#[tokio::test]
async fn floor_is_replaced_or_off_when_it_is_named() {
    let seen = Arc::new(AtomicUsize::new(0));
    let looks = Arc::clone(&seen);
    let fails = effect_fn("fails", move |cx| {
        assert!(
            matches!(cx.phase, Phase::Overflow(_)),
            "only when there is need"
        );
        looks.fetch_add(1, Ordering::Relaxed);
        Err(EffectError::new("it cannot"))
    });
    let model_1 = model(WINDOW, [done()]);
    let agent = Floor::default()
        .with_step(fails)
        .install(Agent::new(model_1.clone()));
    agent
        .start_from(seeded(100))
        .run("Go.")
        .await
        .expect("the next step makes room");
    check("a step that fails", &model_1, &agent);
    assert_eq!(
        (model_1.requests().len(), seen.load(Ordering::Relaxed)),
        (1, 1)
    );

    let model_2 = model(WINDOW, [done()]);
    Floor::off()
        .install(Agent::new(model_2.clone()))
        .start_from(seeded(100))
        .run("Go.")
        .await
        .expect("it finishes");
    assert!(
        model_2.requests()[0].entries.tokens() > 90_000,
        "nothing is in the way"
    );
}

#[tokio::test]
async fn nothing_is_left_out_when_the_window_is_unknown() {
    let model = model(0, [done()]);
    Agent::new(model.clone())
        .start_from(seeded(200))
        .run("Go.")
        .await
        .expect("it finishes");
    let tokens = model.requests()[0].entries.tokens();
    assert!(tokens > 180_000, "{tokens}");
}

#[tokio::test]
async fn window_is_learned_when_the_server_cuts_or_refuses() {
    let counted = |tokens| {
        Script::new().text("Yes.").usage(Usage {
            input_uncached: tokens,
            output: 2,
            ..Usage::default()
        })
    };
    let limit = |limit| {
        Error::new(ErrorKind::Overflow, "too long")
            .with(|it| it.overflow = Some(Overflow { used: None, limit }))
    };
    // (what, the first replies, the most tokens of the newest request, warnings)
    let cases: &[(&str, Scripts<'_>, u64, usize)] = &[
        ("a server that cuts", &|| vec![counted(4_096)], 4_096, 1),
        (
            "a count of what no cache served",
            &|| vec![counted(100)],
            120_000,
            0,
        ),
        ("a plausible count", &|| vec![counted(40_000)], 120_000, 0),
        (
            "a refusal that says how much fits",
            &|| vec![Script::new().fail(limit(Some(16_000))), counted(7_000)],
            8_000,
            0,
        ),
        (
            "a refusal that says nothing",
            &|| vec![Script::new().fail(limit(None)), counted(30_000)],
            45_000,
            0,
        ),
    ];
    for (what, first, most, warnings) in cases {
        let journal = MemoryJournal::default();
        let model_1 = cutting(128_000, first());
        let agent = Agent::new(model_1.clone())
            .journal(journal.clone())
            .start_from(seeded(50));
        let mut warned = cuts(agent.run("Go.").stream().expect(what)).await;
        // What was learned is in the log: another program knows it.
        for _ in 0..2 {
            let model_2 = cutting(128_000, [done()]);
            let again = Agent::new(model_2.clone())
                .journal(journal.clone())
                .session(agent.session_id().clone())
                .take_over();
            warned += cuts(again.run("On.").stream().expect(what)).await;
            let tokens = model_2.requests()[0].entries.tokens();
            assert!(tokens <= *most && tokens > most / 8, "{what}: {tokens}");
        }
        assert_eq!(warned, *warnings, "{what}");
    }
}

/// A model whose server silently cuts off what does not fit.
fn cutting(window: u64, scripts: impl IntoIterator<Item = Script>) -> Arc<ScriptedModel> {
    let info = ModelInfo {
        cuts_silently: true,
        ..Model::info(&*model(window, [])).clone()
    };
    Arc::new(ScriptedModel::new(scripts).info(info))
}

/// Returns the number of warnings that a request was cut off.
async fn cuts(mut running: Running) -> usize {
    let mut warned = 0;
    while let Some(event) = running.next().await {
        warned += usize::from(
            matches!(&event.kind, EventKind::Warning { warning } if warning.message.contains("cuts off")),
        );
    }
    warned
}

#[tokio::test]
async fn cut_is_reported_only_when_the_count_is_too_small_for_the_request() {
    // (what, the counts of a request with 8,000 tokens and of one with 2,000 more, warnings)
    let cases: [(&str, bool, [u64; 2], usize); 6] = [
        ("all is counted", true, [8_000, 10_000], 0),
        ("the second request is cut", true, [8_000, 4_100], 1),
        ("the first request is cut", true, [2_050, 2_050], 1),
        (
            "only what no cache served is counted",
            true,
            [8_000, 2_000],
            0,
        ),
        ("the count is of something else", true, [8_000, 300], 0),
        ("the server never cuts", false, [2_050, 2_050], 0),
    ];
    for (what, silent, counts, expect) in cases {
        let scripts = counts.map(|tokens| {
            Script::new().text("Yes.").usage(Usage {
                input_uncached: tokens,
                output: 2,
                ..Usage::default()
            })
        });
        let model = if silent {
            cutting(128_000, scripts)
        } else {
            model(128_000, scripts)
        };
        let agent = Agent::new(model).journal(MemoryJournal::default());
        let mut warned = 0;
        for prompt in ["word ".repeat(6_400), "word ".repeat(1_600)] {
            warned += cuts(agent.run(prompt).stream().expect(what)).await;
        }
        assert_eq!(warned, expect, "{what}");
    }
}

#[tokio::test]
async fn run_fails_before_the_model_when_nothing_can_be_left_out() {
    let model = model(WINDOW, [done()]);
    let agent = Agent::new(model.clone()).instructions("You are thorough. ".repeat(5_000));
    let error = agent
        .run("Go.")
        .await
        .expect_err("the system prompt alone is too large");
    let error = error
        .model_error()
        .expect("it is told as the provider would");
    assert_eq!(
        (
            error.kind(),
            error.details().overflow.and_then(|it| it.limit)
        ),
        (ErrorKind::Overflow, Some(WINDOW))
    );
    assert!(
        error
            .to_string()
            .contains("22500 of them system prompt and tools"),
        "{error}"
    );
    assert_eq!(model.requests().len(), 0);
}

#[tokio::test]
async fn window_is_never_overrun_when_a_large_answer_is_wanted() {
    let field = |n: usize| {
        (
            format!("field_{n}"),
            json!({ "type": "string", "description": "what it says ".repeat(20) }),
        )
    };
    let schema = json!({ "type": "object", "properties": (0..60).map(field).collect::<serde_json::Map<_, _>>() });
    for structured in [Structured::Native, Structured::Tool, Structured::Prompt] {
        let answer = Script::new().text("{}").call("answer", json!({}));
        let info = ModelInfo {
            structured,
            ..Model::info(&*model(WINDOW, [])).clone()
        };
        let model = Arc::new(ScriptedModel::new([say(&[1]), answer]).info(info));
        let agent = talking(Agent::new(model.clone())).start_from(seeded(100));
        let _ = agent.run("Go.").output_schema(schema.clone()).await;
        check(&format!("{structured:?}"), &model, &agent);
        let formats = model
            .requests()
            .iter()
            .filter_map(|request| request.options.format.clone())
            .count();
        assert_eq!(
            formats > 0,
            structured == Structured::Native,
            "{structured:?}"
        );
    }
}

#[tokio::test]
async fn window_is_never_overrun_when_a_prepared_turn_goes_on_with_another_model() {
    // In a larger window it fits as it was prepared, although the floor has acted.
    for (before, after) in [(128_000, WINDOW), (WINDOW, 128_000)] {
        let (whole, left) = (MemoryJournal::default(), MemoryJournal::default());
        let first = Agent::new(model(before, [done()]))
            .journal(whole.clone())
            .start_from(seeded(50));
        first.run("Go.").await.expect("it finishes");
        let read = whole
            .read(first.session_id(), Seq(0))
            .map(|it| it.expect("memory does not fail"));
        let mut records: Vec<Arc<Stamped>> = read.collect().await;
        let prepared = records
            .iter()
            .position(|it| matches!(it.record, Record::Prepared { .. }));
        records.truncate(prepared.expect("it was prepared") + 1);
        let mut log = left
            .own(first.session_id(), &Owner::default())
            .await
            .expect("it is free");
        log.append(&records, Flush::Now)
            .await
            .expect("memory does not fail");
        drop(log);
        let chosen = model(after, [done()]);
        let again = Agent::new(model(before, []))
            .journal(left)
            .session(first.session_id().clone());
        again
            .resume(Vec::new())
            .model(chosen.clone())
            .await
            .expect("it finishes");
        check(&format!("from {before} to {after}"), &chosen, &again);
        assert_eq!(chosen.requests().len(), 1);
    }
}
