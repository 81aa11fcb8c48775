//! What children use counts once for everyone above.

use adjutant_agent::{Agent, Caps, Limits, MemoryJournal, Record, RunLine, Tally};
use adjutant_llm::{CallResult, Error, ErrorKind, NanoUsd, ScriptedModel};
use adjutant_tool::CallContext;
use serde_json::Value;

use super::desk::{helper, open, parent, records, results, said, says, usage, work};

#[tokio::test]
async fn usage_counts_once_for_every_ancestor_when_a_child_spends() {
    let journal = MemoryJournal::default();
    let agent = parent(work(|cx| async move {
        let middle = parent(work(|cx| async move {
            let void = says("Void.");
            let script =
                says("Leaf.").after_retracted(void, Error::new(ErrorKind::Protocol, "down"));
            let leaf = Agent::new(ScriptedModel::new([script]));
            Ok(said(&open(&cx, "leaf", leaf).await?.run("Speak.").await?))
        }));
        let middle = open(&cx, "middle", middle).await?.run("Go.").await?;
        let own = (middle.usage.total(), middle.total_usage.total());
        Ok(CallResult::ok(format!("{own:?}")))
    }))
    .journal(journal.clone());
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(results(&result), ["(220, 440)"]);
    assert_eq!(
        (result.usage, result.total_usage),
        (usage(200, 20), usage(600, 60))
    );
    let log = records(&journal, agent.session_id()).await;
    let told = log.iter().filter_map(|it| match &it.record {
        Record::ChildEnded {
            thread,
            usage,
            requests,
            tool_calls,
            ..
        } => Some((thread.to_string(), usage.total(), *requests, *tool_calls)),
        _ => None,
    });
    let leaf = ("main/c1_0_0/middle/c1_0_0/leaf".to_owned(), 220, 1, 0);
    assert_eq!(
        told.collect::<Vec<_>>(),
        [leaf, ("main/c1_0_0/middle".to_owned(), 440, 3, 1)]
    );
}

#[tokio::test]
async fn external_usage_counts_for_all_ancestors_when_a_tool_reports_it() {
    let agent = parent(work(|cx| async move {
        let child = parent(work(|cx: CallContext| async move {
            cx.backend.charge(usage(7, 0));
            Ok(CallResult::ok("charged"))
        }));
        let child = open(&cx, "a", child).await?.run("Go.").await?;
        Ok(CallResult::ok(format!(
            "{} {}",
            child.usage.total(),
            child.total_usage.total()
        )))
    }));
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(results(&result), ["220 227"]);
    assert_eq!(
        (result.usage.total(), result.total_usage.total()),
        (220, 447)
    );
}

#[tokio::test]
async fn every_child_is_heard_when_a_call_has_a_thousand() {
    let agent = parent(work(|cx| async move {
        let mut runs = Vec::new();
        for number in 0..1_000 {
            runs.push(
                open(&cx, &format!("k{number}"), helper(&["Yes."]))
                    .await?
                    .stream("Well?")?,
            );
        }
        let mut answers = 0;
        for run in runs {
            answers += usize::from(run.finish().await?.text() == "Yes.");
        }
        Ok(CallResult::ok(answers.to_string()))
    }));
    let events = super::desk::events(&agent).await;
    let result = super::desk::last(&events);
    assert_eq!(results(&result), ["1000"]);
    assert_eq!(result.total_usage.total(), 110 * 1_002);
    let deltas = events
        .iter()
        .filter(|it| super::desk::word(it) == "text_delta" && it.who.depth == 1)
        .count();
    assert_eq!(deltas, 1_000);
}

#[tokio::test]
async fn use_in_another_program_counts_in_every_budget_above_when_a_call_tells_it() {
    let used = Tally {
        usage: usage(60, 0),
        cost: Some(NanoUsd(5)),
        requests: 2,
        tool_calls: 3,
    };
    let agent = parent(work(move |cx| async move {
        let child = parent(work(move |cx: CallContext| async move {
            let line = RunLine::from_context(&cx)?;
            let before = line.remaining();
            line.spent(used);
            cx.note("test.spent", Value::Null).await?;
            Ok(CallResult::ok(format!("{before:?} {:?}", line.remaining())))
        }));
        let child = child.limits(Limits {
            caps: Caps {
                tokens: Some(10_000),
                ..Caps::default()
            },
            ..Limits::default()
        });
        let child = open(&cx, "a", child).await?.run("Go.").await?;
        Ok(CallResult::ok(format!(
            "{} {:?}",
            results(&child)[0],
            child.total_cost
        )))
    }));
    let caps = Caps {
        requests: Some(10),
        cost: Some(NanoUsd(9)),
        tool_calls: Some(9),
        depth: Some(3),
        ..Caps::default()
    };
    let journal = MemoryJournal::default();
    let agent = agent
        .limits(Limits {
            caps,
            ..Limits::default()
        })
        .journal(journal.clone());
    let result = agent.run("Go.").await.expect("the run finishes");
    let left = |tokens, cost, requests, tool_calls| {
        let (cost, depth) = (Some(NanoUsd(cost)), Some(2));
        let (tokens, requests, tool_calls) = (Some(tokens), Some(requests), Some(tool_calls));
        Caps {
            tokens,
            cost,
            requests,
            tool_calls,
            depth,
            ..Caps::default()
        }
    };
    let expect = format!(
        "{:?} {:?} Some(NanoUsd(5))",
        left(9_890, 9, 8, 7),
        left(9_830, 4, 6, 4)
    );
    assert_eq!(results(&result), [expect]);
    let log = records(&journal, agent.session_id()).await;
    let ended = log.iter().find_map(|it| match &it.record {
        Record::ChildEnded {
            cost,
            requests,
            tool_calls,
            ..
        } => Some((*cost, *requests, *tool_calls)),
        _ => None,
    });
    assert_eq!(ended, Some((Some(NanoUsd(5)), 4, 4)));
}
