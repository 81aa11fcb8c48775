//! A look at the next request: it is exactly what the model then gets, and it leaves no trace.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use adjutant_agent::{
    Action, Agent, ErrorKind, Failure, Floor, HookContext, Journal, MemoryJournal, Outcome, Phase,
    Prompt, Seq, Verdict, effects::effect_fn, points::BeforeModel,
};
use adjutant_context::{Compact, Strategy};
use adjutant_llm::{
    CallResult, Custom, Edit, Effort, Entry, FixedWorld, Gate, Model, ModelInfo, Options, Script,
    ScriptedModel, UserMessage,
};
use adjutant_tool::{Bound, CallContext, ToolSpec, Toolset, tool_fn};
use futures_util::StreamExt;
use serde_json::{Value, json};

fn tool(name: &str) -> impl adjutant_tool::ErasedTool + 'static {
    let spec = ToolSpec::new(name, "A tool.", json!({"type": "object"}));
    tool_fn(spec, |_: Value, _: CallContext| async {
        Ok(CallResult::ok("done"))
    })
}

/// An agent with everything that shapes a request but hooks.
fn rich(scripts: impl IntoIterator<Item = Script>) -> (Arc<ScriptedModel>, Agent, MemoryJournal) {
    let model = Arc::new(ScriptedModel::new(scripts));
    let more = Toolset::new([Bound::new(tool("more"))]);
    let shape = effect_fn("shape", move |cx| {
        let seen: u64 = cx.memo().unwrap_or_default();
        let fresh = cx.fresh().count();
        Ok(vec![
            Action::Hide(vec!["hidden".into()]),
            Action::Offer(more.clone()),
            Action::Remind(format!("Look {seen}, {fresh} fresh, turn {}.", cx.turn.0).into()),
            Action::Remember(json!(seen + 1)),
        ])
    });
    let journal = MemoryJournal::default();
    let agent = Agent::new(Arc::clone(&model))
        .instructions("Be brief.")
        .options(Options {
            thinking: Some(Effort::Low),
            ..Options::default()
        })
        .tool(tool("step"))
        .tool(tool("hidden"))
        .effect(shape)
        .convert(|custom: &Custom| Some(UserMessage::text(custom.value.to_string())))
        .world(FixedWorld::at_ms(1_000))
        .journal(journal.clone());
    (model, agent, journal)
}

fn prompt() -> Prompt {
    let custom = Entry::Custom(Custom {
        kind: "note".into(),
        value: json!(7),
    });
    vec![custom, Entry::User("Go.".into())].into()
}

#[tokio::test]
async fn preview_shows_the_next_request_when_nothing_is_recorded() {
    let (model, agent, journal) = rich([
        Script::new().call("step", json!({})),
        Script::new().text("Yes."),
    ]);
    let first = agent
        .log()
        .preview(prompt())
        .await
        .expect("it can be looked at");
    assert_eq!(
        first,
        agent.log().preview(prompt()).await.expect("and again")
    );
    assert_eq!(
        (model.requests().len(), agent.log().transcript().len()),
        (0, 0)
    );
    assert_eq!(
        journal
            .read(agent.session_id(), Seq(0))
            .filter(|it| std::future::ready(it.is_ok()))
            .count()
            .await,
        0
    );
    agent.run(prompt()).await.expect("it answers");
    assert_eq!(model.requests()[0], first);

    model.push(Script::new().text("Still."));
    let records = journal.read(agent.session_id(), Seq(0)).count().await;
    let second = agent
        .log()
        .preview("On.")
        .await
        .expect("it can be looked at");
    assert_eq!(
        journal.read(agent.session_id(), Seq(0)).count().await,
        records
    );
    agent.run("On.").await.expect("it answers");
    assert_eq!(model.requests()[2], second);
}

#[tokio::test]
async fn preview_reads_the_log_when_the_session_was_not_opened_yet() {
    let (model, agent, _) = rich([Script::new().text("Yes."), Script::new().text("Still.")]);
    agent.run(prompt()).await.expect("it answers");
    let later = agent.session(agent.session_id().clone()).take_over();
    let seen = later
        .log()
        .preview("On.")
        .await
        .expect("it can be looked at");
    later.run("On.").await.expect("it answers");
    assert_eq!(model.requests()[1], seen);
}

#[tokio::test]
async fn preview_leaves_the_run_alone_when_the_model_is_speaking() {
    let gate = Gate::default();
    let model = Arc::new(ScriptedModel::new([Script::new()
        .text("A long answer.")
        .wait_at(1, &gate)]));
    let looks = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&looks);
    let agent = Agent::new(Arc::clone(&model)).effect(effect_fn("look", move |cx| {
        counted.fetch_add(usize::from(cx.phase != Phase::Preview), Ordering::Relaxed);
        Ok(vec![Action::Remind("Mind.".into())])
    }));
    let running = agent
        .run("Go.")
        .stream()
        .expect("the session is free")
        .detach();
    gate.wait_until_reached().await;
    let seen = agent
        .log()
        .preview("And then?")
        .await
        .expect("it works while a run goes on");
    let texts: Vec<&str> = seen
        .entries
        .iter()
        .filter_map(|stored| match &stored.entry {
            Entry::User(message) => message.content[0].as_text(),
            _ => None,
        })
        .collect();
    assert_eq!(texts, ["Go.", "Mind.", "And then?", "Mind."]);
    gate.open();
    let result = running.await.expect("nobody panics").expect("it answers");
    assert_eq!(
        (result.text().as_str(), result.entries.len()),
        ("A long answer.", 3)
    );
    assert_eq!(
        (looks.load(Ordering::Relaxed), model.requests().len()),
        (1, 1),
        "a reply in flight is not prepared again"
    );
}

#[tokio::test]
async fn preview_asks_neither_hooks_nor_models_when_the_window_is_full() {
    let info = ModelInfo {
        context_window: 1_000,
        max_output_tokens: 100,
        ..ModelInfo::new("test/small")
    };
    let model = Arc::new(ScriptedModel::new([]).info(info));
    let big: Vec<Entry> = (0..9)
        .map(|at| Entry::User(format!("{at} {}", "word ".repeat(90)).as_str().into()))
        .collect();
    let agent = Agent::new(Arc::clone(&model)).on(|_: HookContext, _: BeforeModel| async {
        Verdict::<BeforeModel>::Deny("hooks are not run".into())
    });
    let floorless = Floor::off().install(agent.clone());
    let whole = floorless
        .effect(Compact::default())
        .log()
        .preview(big.clone())
        .await
        .expect("no model is asked");
    let cut = agent
        .clone()
        .effect(Compact {
            strategy: Strategy::Truncate,
            ..Compact::default()
        })
        .log()
        .preview(big)
        .await
        .expect("it needs none");
    assert_eq!(
        (
            whole.entries.len(),
            cut.entries.len() < 9,
            model.requests().len()
        ),
        (9, true, 0)
    );
    assert_eq!(model.info().context_window, 1_000);
}

#[tokio::test]
async fn preview_fails_when_the_prompt_is_empty_or_an_effect_fails() {
    let agent = Agent::new(ScriptedModel::new([]));
    assert_eq!(
        agent.log().preview(" ").await.map_err(|error| error.kind()),
        Err(ErrorKind::Prompt)
    );
    let misfit = effect_fn("misfit", |_| {
        let with = Entry::User("?".into());
        Ok(vec![Action::Edit(Edit::Replace {
            at: adjutant_llm::EntryId(9),
            with,
        })])
    });
    let error = agent
        .effect(misfit)
        .log()
        .preview("Go.")
        .await
        .expect_err("the edit does not fit");
    match error.result().map(|result| &result.outcome) {
        Some(Outcome::Failed {
            failure: Failure::Activity { message, .. },
        }) => {
            assert_eq!(
                &**message,
                "effect misfit failed: the edit does not fit the view at entry 9"
            );
        }
        other => panic!("{other:?}"),
    }
}
