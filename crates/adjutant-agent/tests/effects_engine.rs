//! The engine of effects: order, numbers, memos, failures, and what a hook before the request may change.

#[path = "effects_engine/hook.rs"]
mod hook;
#[path = "effects_engine/restart.rs"]
mod restart;
#[path = "effects_engine/stage.rs"]
mod stage;

use std::sync::{Arc, Mutex};

use adjutant_agent::{
    Action, Agent, ErrorKind, EventKind, Failure, Limit, Outcome, Phase, Record, RunResult,
    effects::{self, EffectRegistry, EffectSpec, effect_fn},
};
use adjutant_llm::{
    Custom, Edit, Entry, EntryId, Error, ErrorKind as ModelErrorKind, Overflow, Script,
    ScriptedModel, Summary, Usage, UserMessage,
};
use adjutant_tool::{CallContext, Tools, Toolset, tool_fn};
use serde_json::{Value, json};
use stage::{agent, records, shown, spec, step};

fn failure(error: &adjutant_agent::Error) -> Failure {
    match &error.result().expect("the run has a result").outcome {
        Outcome::Failed { failure } => failure.clone(),
        other => unreachable!("the run failed: {other:?}"),
    }
}

#[tokio::test]
async fn effects_see_fresh_numbers_when_several_are_set() {
    let (model, agent) = agent([Script::new().text("Yes.")]);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let look = |seen: &Arc<Mutex<Vec<(u64, u64)>>>| {
        let seen = Arc::clone(seen);
        effect_fn("look", move |cx| {
            seen.lock()
                .expect("nobody panics inside")
                .push((cx.tokens, cx.view.items().tokens()));
            Ok(Vec::new())
        })
    };
    let fold = effect_fn("fold", |_| {
        let into = Summary {
            text: "Short.".into(),
            covers: 1,
        };
        Ok(vec![Action::Edit(Edit::Fold {
            upto: EntryId(0),
            keep: Vec::new(),
            into,
        })])
    });
    let agent = agent.effect(look(&seen)).effect(fold).effect(look(&seen));
    agent.run("word ".repeat(400)).await.expect("it answers");
    let seen = seen.lock().expect("nobody panics inside").clone();
    assert_eq!(seen, [(504, 504), (6, 6)]);
    assert_eq!(shown(&model.requests()[0]), ["[Short.]"]);
    assert_eq!(
        agent.log().transcript().len(),
        2,
        "the history keeps the prompt"
    );
}

#[tokio::test]
async fn reminders_stand_last_when_an_effect_after_them_appends() {
    let (model, agent) = agent([
        Script::new().call("step", json!({})),
        Script::new().text("Yes."),
    ]);
    let remind = effect_fn("remind", |cx| {
        let after_results = matches!(
            cx.view.items().last().map(|it| &it.entry),
            Some(Entry::Turn(_))
        );
        Ok(if after_results {
            vec![Action::Remind("Mind.".into())]
        } else {
            Vec::new()
        })
    });
    let append = effect_fn("append", |cx| {
        assert_eq!(cx.history.next_id(), cx.view.items().next_id());
        let entry = Entry::User(UserMessage::text("Added."));
        Ok(if cx.turn.0 == 2 {
            vec![Action::Edit(Edit::Append { entry })]
        } else {
            Vec::new()
        })
    });
    let agent = agent.tool(step()).effect(remind).effect(append);
    let result = agent.run("Go.").await.expect("it answers");
    assert_eq!(
        shown(&model.requests()[1]),
        ["Go.", "<turn>", "Added.", "Mind."]
    );
    assert_eq!(result.entries.len(), 5, "appended entries are history");
    let ids: Vec<u64> = agent
        .log()
        .transcript()
        .iter()
        .map(|stored| stored.id.0)
        .collect();
    assert_eq!(ids, [0, 1, 2, 3, 4]);
}

#[tokio::test]
async fn memos_are_recorded_only_when_they_change_and_by_key() {
    let (_, agent, journal) = stage::logged([
        Script::new().call("step", json!({})),
        Script::new().call("step", json!({})),
        Script::new().text("Yes."),
    ]);
    let count = |to: u64| {
        effect_fn("count", move |cx| {
            let seen: u64 = cx.memo().unwrap_or_default();
            Ok(vec![Action::Remember(json!((seen + 1).min(to)))])
        })
    };
    agent
        .clone()
        .tool(step())
        .effect(count(1))
        .effect(count(9))
        .run("Go.")
        .await
        .expect("it answers");
    let memos = records(&journal, &agent)
        .await
        .into_iter()
        .filter_map(|record| match record {
            Record::Prepared { memos, .. } => Some(
                memos
                    .into_iter()
                    .map(|memo| (memo.key.to_string(), memo.value))
                    .collect::<Vec<_>>(),
            ),
            _ => None,
        });
    let expect: [Vec<(String, Value)>; 3] = [
        vec![("count".into(), json!(1)), ("count#2".into(), json!(1))],
        vec![("count#2".into(), json!(2))],
        vec![("count#2".into(), json!(3))],
    ];
    assert_eq!(memos.collect::<Vec<_>>(), expect);
}

#[tokio::test]
async fn run_fails_when_an_effect_fails_panics_or_edits_what_is_not_shown() {
    let failing = effect_fn("broken", |_| {
        Err(adjutant_agent::EffectError::new("no disk").with_source(std::fmt::Error))
    });
    let panicking = effect_fn("broken", |_| panic!("ouch"));
    let misfit = effect_fn("broken", |_| {
        let with = Entry::User(UserMessage::text("?"));
        Ok(vec![Action::Edit(Edit::Replace {
            at: EntryId(7),
            with,
        })])
    });
    let source = std::fmt::Error.to_string();
    let table: [(Arc<dyn adjutant_agent::Effect>, String); 3] = [
        (
            Arc::new(failing),
            format!("effect broken failed: no disk: {source}"),
        ),
        (Arc::new(panicking), "effect broken panicked: ouch".into()),
        (
            Arc::new(misfit),
            "effect broken failed: the edit does not fit the view at entry 7".into(),
        ),
    ];
    for (effect, expect) in table {
        let (model, agent) = agent([Script::new().text("Fine.")]);
        let broken = agent.clone().effect(effect);
        let error = broken.run("Go.").await.expect_err("the effect fails");
        match failure(&error) {
            Failure::Activity { message, .. } => assert_eq!(*message, *expect),
            other => panic!("{other:?}"),
        }
        assert_eq!(
            (model.requests().len(), error.kind()),
            (0, ErrorKind::Failed)
        );
        assert_eq!(
            agent
                .run("Again.")
                .await
                .expect("the session is in order")
                .text(),
            "Fine."
        );
    }
}

#[tokio::test]
async fn hidden_and_offered_tools_are_what_the_model_is_shown() {
    let more = Toolset::new([adjutant_tool::Bound::new(tool_fn(
        spec("more"),
        |_: Value, _: CallContext| async { Ok(adjutant_llm::CallResult::ok("more")) },
    ))]);
    let (model, agent) = agent([
        Script::new().call("more", json!({})),
        Script::new().call("more", json!({})),
        Script::new().text("Yes."),
    ]);
    let effect = effect_fn("scope", move |_| {
        Ok(vec![
            Action::Offer(more.clone()),
            Action::Hide(vec!["step".into()]),
        ])
    });
    let agent = agent
        .tool(step())
        .toolbox(Tools::new("other").tool(stage::named("other")))
        .effect(effect);
    let result = agent.run("Go.").await.expect("it answers");
    let requests = model.requests();
    let names = |at: usize| {
        requests[at]
            .tools
            .iter()
            .map(|decl| decl.name.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (names(0), names(2)),
        (
            vec!["other".into(), "more".into()],
            vec!["other".into(), "more".into()]
        )
    );
    assert!(
        Arc::ptr_eq(&requests[0].tools, &requests[1].tools),
        "the same tools are the same allocation"
    );
    assert_eq!(result.calls[0].result.text(), "more");
}

#[tokio::test]
async fn run_ends_before_the_request_when_an_effect_stops_it() {
    let (model, agent) = agent([]);
    let stop = effect_fn("stop", |_| {
        Ok(vec![Action::Stop(Limit::Named("patience".into()))])
    });
    let after = effect_fn("after", |_| panic!("no request follows"));
    let result = agent
        .effect(stop)
        .effect(after)
        .run("Go.")
        .await
        .expect("a limit is no failure");
    assert_eq!(
        result.outcome,
        Outcome::Limit {
            limit: Limit::Named("patience".into())
        }
    );
    assert_eq!((model.requests().len(), result.turns), (0, 0));
}

#[tokio::test]
async fn charges_and_reports_reach_the_result_and_the_events() {
    let (_, agent) = agent([Script::new().text("Yes.").usage(usage(5))]);
    let effect = effect_fn("helper", |_| {
        Ok(vec![
            Action::Charge(usage(100)),
            Action::Report(json!({"did": "something"})),
        ])
    });
    let mut running = agent
        .effect(effect)
        .run("Go.")
        .stream()
        .expect("the session is free");
    let mut reports = Vec::new();
    while let Some(event) = running.next().await {
        if let EventKind::Report { by, data } = event.kind {
            reports.push((by.to_string(), *data));
        }
    }
    let result: RunResult = running
        .result()
        .expect("it has ended")
        .expect("it answers")
        .clone();
    assert_eq!(
        reports,
        [("helper".to_owned(), json!({"did": "something"}))]
    );
    assert_eq!((result.usage, result.total_usage), (usage(5), usage(105)));
}

fn usage(input: u64) -> Usage {
    Usage {
        input_uncached: input,
        ..Usage::default()
    }
}

fn too_long() -> Error {
    let overflow = Overflow {
        used: Some(9_000),
        limit: Some(8_000),
    };
    Error::new(ModelErrorKind::Overflow, "too long").with(|it| it.overflow = Some(overflow))
}

/// A request that the provider refuses, unbilled.
fn never() -> Script {
    Script::new().usage(Usage::default()).fail(too_long())
}

fn shrinking() -> impl adjutant_agent::Effect + 'static {
    effect_fn("shrink", |cx| match cx.phase {
        Phase::Overflow(overflow) => {
            assert_eq!(
                (overflow.limit, cx.tokens),
                (Some(8_000), 9_000),
                "what the provider counted is known"
            );
            let at = cx.view.items().get(0).expect("the prompt is shown").id;
            let with = Entry::User(UserMessage::text("Short."));
            Ok(vec![Action::Edit(Edit::Replace { at, with })])
        }
        _ => Ok(Vec::new()),
    })
}

#[tokio::test]
async fn turn_is_tried_again_once_when_the_request_does_not_fit() {
    let (model, agent) = agent([never(), Script::new().text("Yes.")]);
    let mut running = agent
        .effect(shrinking())
        .run("A long prompt.")
        .stream()
        .expect("the session is free");
    let mut overflowed = 0;
    while let Some(event) = running.next().await {
        overflowed += u32::from(event.kind == EventKind::Overflowed);
    }
    let result = running
        .result()
        .expect("it has ended")
        .expect("it answers")
        .clone();
    assert_eq!(
        (overflowed, result.turns, result.text().as_str()),
        (1, 1, "Yes.")
    );
    assert_eq!(shown(&model.requests()[1]), ["Short."]);
}

#[tokio::test]
async fn run_fails_when_the_request_does_not_fit_twice_or_nothing_shrinks() {
    let (model, twice) = agent([never(), never()]);
    let error = twice
        .effect(shrinking())
        .run("A long prompt.")
        .await
        .expect_err("it never fits");
    assert_eq!(
        (failure(&error), model.requests().len()),
        (Failure::Model { error: too_long() }, 2)
    );

    let (model, idle) = agent([never()]);
    let idle = idle.effect(effect_fn("idle", |_| Ok(vec![Action::Charge(usage(7))])));
    let error = idle
        .run("A long prompt.")
        .await
        .expect_err("nothing shrinks");
    let found = error
        .model_error()
        .expect("it is the model's error")
        .clone();
    assert_eq!(
        (
            found.kind() == ModelErrorKind::Overflow,
            found.details().overflow,
            model.requests().len()
        ),
        (true, too_long().details().overflow, 1)
    );
    assert_eq!(
        error.result().map(|result| result.total_usage),
        Some(usage(14)),
        "both looks are billed"
    );

    let (_, plain) = agent([never()]);
    let error = plain
        .run("A long prompt.")
        .await
        .expect_err("there are no effects");
    assert_eq!(failure(&error), Failure::Model { error: too_long() });
}

#[tokio::test]
async fn custom_entries_reach_the_model_when_the_projection_shows_them() {
    let note = |kind: &str| {
        Entry::Custom(Custom {
            kind: kind.into(),
            value: json!("Noted."),
        })
    };
    let (model, agent) = agent([Script::new().text("Yes."), Script::new().text("Still.")]);
    let agent = agent.convert(|custom| match &*custom.kind {
        "note" => Some(UserMessage::text(custom.value.as_str().unwrap_or_default())),
        _ => None,
    });
    agent
        .run(vec![note("note"), note("other"), Entry::User("Go.".into())])
        .await
        .expect("it answers");
    agent.run("On.").await.expect("it answers");
    assert_eq!(shown(&model.requests()[0]), ["Noted.", "<other>", "Go."]);
    assert_eq!(
        shown(&model.requests()[1]),
        ["Noted.", "<other>", "Go.", "<turn>", "On."]
    );
    assert_eq!(
        agent.log().transcript().get(0).map(|it| &it.entry),
        Some(&note("note")),
        "the history keeps it"
    );
}

#[test]
fn effects_are_made_of_kind_and_parameters_when_the_kind_is_known() {
    let registry = EffectRegistry::default().register("own", |params| {
        Ok(Arc::new(effect_fn(
            params["name"].as_str().unwrap_or("own").to_owned(),
            |_| Ok(Vec::new()),
        )) as _)
    });
    let spec: EffectSpec =
        serde_json::from_value(json!({"kind": "own", "params": {"name": "mine"}})).expect("a spec");
    assert_eq!(registry.make(&spec).expect("it is known").kind(), "mine");
    let unknown = effects::from_spec("own", Value::Null)
        .err()
        .expect("only registries know it")
        .to_string();
    assert!(
        unknown.starts_with("no effect is of kind \"own\"; the kinds are: "),
        "{unknown}"
    );
}

#[tokio::test]
async fn log_is_the_same_when_the_run_is_repeated() {
    let run = || async {
        let (_, agent, journal) = stage::logged([
            Script::new().call("step", json!({})),
            Script::new().text("Yes."),
        ]);
        let effect = effect_fn("remind", |cx| {
            Ok(vec![Action::Remind(format!("Turn {}.", cx.turn.0).into())])
        });
        agent
            .clone()
            .tool(step())
            .effect(effect)
            .run("Go.")
            .await
            .expect("it answers");
        records(&journal, &agent).await
    };
    assert_eq!(run().await, run().await);
    let silent: Agent = Agent::new(ScriptedModel::new([Script::new().text("Yes.")]));
    assert_eq!(silent.run("Go.").await.expect("it answers").text(), "Yes.");
}
