//! What is seen of agents under agents: every event once, its own, the child's stream first.

#[expect(dead_code, reason = "several targets share it, each uses its part")]
#[path = "subagents/desk.rs"]
mod desk;

use std::sync::{Arc, Mutex};

use adjutant_agent::{Agent, Event, EventKind};
use adjutant_llm::CallResult;
use adjutant_tool::{CallContext, Progress};
use desk::{events, helper, last, open, parent, results, said, word, work};
use futures_util::StreamExt;

type Seen = Arc<Mutex<Vec<Event>>>;

/// Reads a child's own stream to its end.
async fn read(
    cx: &CallContext,
    key: &str,
    agent: Agent,
    seen: &Seen,
) -> Result<CallResult, adjutant_tool::ToolError> {
    let mut run = open(cx, key, agent).await?.stream("Go.")?;
    while let Some(event) = run.next().await {
        seen.lock().expect("no panic").push(event);
    }
    Ok(said(&run.finish().await?))
}

fn kinds(events: &[Event], depth: u16) -> Vec<EventKind> {
    events
        .iter()
        .filter(|it| it.who.depth == depth)
        .map(|it| it.kind.clone())
        .collect()
}

#[tokio::test]
async fn childs_events_are_mirrored_once_when_it_works() {
    let (middle, leaf) = (Seen::default(), Seen::default());
    let (into_middle, into_leaf) = (Arc::clone(&middle), Arc::clone(&leaf));
    let agent = parent(work(move |cx| {
        let (middle, leaf) = (Arc::clone(&into_middle), Arc::clone(&into_leaf));
        async move {
            let boss = parent(work(move |cx| {
                let leaf = Arc::clone(&leaf);
                async move { read(&cx, "leaf", helper(&["A text of some length."]), &leaf).await }
            }));
            read(&cx, "middle", boss, &middle).await
        }
    }));
    let root = events(&agent).await;
    let (middle, leaf) = (
        middle.lock().expect("no panic").clone(),
        leaf.lock().expect("no panic").clone(),
    );
    assert!(leaf.len() > 5 && leaf.iter().all(|it| it.who.depth == 2));
    assert_eq!(kinds(&middle, 2), kinds(&leaf, 2));
    assert_eq!(kinds(&root, 2), kinds(&leaf, 2));
    assert_eq!(kinds(&root, 1), kinds(&middle, 1));
    assert!(
        root.windows(2).all(|pair| pair[0].seq <= pair[1].seq),
        "places never go back"
    );
}

#[tokio::test]
async fn childs_start_is_told_once_when_it_is_prompted_twice() {
    let agent = parent(work(|cx| async move {
        let child = open(&cx, "a", helper(&["One.", "Two."])).await?;
        child.run("First.").await?;
        Ok(said(&child.run("Second.").await?))
    }));
    let events = events(&agent).await;
    let opened = |it: &&Event| matches!(it.kind, EventKind::ChildOpened { .. });
    assert_eq!(events.iter().filter(opened).count(), 1);
    let at = events
        .iter()
        .position(|it| opened(&it))
        .expect("it is told");
    assert!(
        events[..at].iter().all(|it| it.who.depth == 0),
        "before everything of the child"
    );
    let EventKind::ChildOpened { call, child } = &events[at].kind else {
        unreachable!("not it")
    };
    assert_eq!(
        (call.to_string(), child.call, &*child.prefix),
        ("c1_0_0".to_owned(), Some(*call), "helper")
    );
    assert_eq!(child.parent.as_ref().map(|it| it.as_str()), Some("main"));
}

#[tokio::test]
async fn nothing_is_told_when_a_child_is_never_prompted() {
    let agent = parent(work(|cx| async move {
        open(&cx, "a", helper(&[])).await?;
        Ok(CallResult::ok("Never mind."))
    }));
    let events = events(&agent).await;
    assert!(
        events
            .iter()
            .all(|it| it.who.depth == 0 && !matches!(it.kind, EventKind::ChildOpened { .. }))
    );
    assert_eq!(results(&last(&events)), ["Never mind."]);
}

#[tokio::test]
async fn events_name_their_agent_when_several_speak() {
    let agent = parent(work(|cx| async move {
        let one = open(&cx, "a", helper(&["One."])).await?;
        let two = open(&cx, "b", helper(&["Two."])).await?;
        one.run("Well?").await?;
        Ok(said(&two.run("Well?").await?))
    }));
    let events = events(&agent).await;
    let mut speakers: Vec<_> = events
        .iter()
        .map(|it| {
            (
                it.who.depth,
                it.who.thread.to_string(),
                it.who.path.to_string(),
                it.who.agent_id.to_string(),
            )
        })
        .collect();
    speakers.sort();
    speakers.dedup();
    let ids: std::collections::BTreeSet<_> = speakers.iter().map(|it| it.3.clone()).collect();
    let places: Vec<_> = speakers.iter().map(|it| (it.0, &*it.1, &*it.2)).collect();
    let (one, two) = (
        (1, "main/c1_0_0/a", "boss/helper"),
        (1, "main/c1_0_0/b", "boss/helper"),
    );
    assert_eq!(
        (places, ids.len()),
        (vec![(0, "main", "boss"), one, two], 3)
    );
}

#[tokio::test]
async fn childs_end_is_not_the_end_when_it_is_mirrored() {
    let agent = parent(work(|cx| async move {
        Ok(said(
            &open(&cx, "a", helper(&["Yes."]))
                .await?
                .run("Well?")
                .await?,
        ))
    }));
    let events = events(&agent).await;
    let ends: Vec<_> = events
        .iter()
        .filter(|it| word(it) == "run_finished")
        .map(|it| it.who.depth)
        .collect();
    assert_eq!(ends, [1, 0]);
    assert_eq!(
        events.last().map(|it| (word(it), it.who.depth)),
        Some(("run_finished".to_owned(), 0))
    );
}

#[tokio::test]
async fn last_text_is_the_roots_when_children_answered_too() {
    let agent = parent(work(|cx| async move {
        Ok(said(
            &open(&cx, "a", helper(&["Yes."]))
                .await?
                .run("Well?")
                .await?,
        ))
    }));
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(result.text(), "Done.");
}

#[tokio::test]
async fn tool_output_is_shown_when_a_call_is_at_work() {
    let agent = parent(work(|cx| async move {
        let child = parent(work(|cx: CallContext| async move {
            cx.progress(Progress::text("half"));
            Ok(CallResult::ok("whole"))
        }));
        Ok(said(&open(&cx, "a", child).await?.run("Go.").await?))
    }));
    let events = events(&agent).await;
    let progress: Vec<_> = events
        .iter()
        .filter(|it| word(it) == "tool_progress")
        .map(|it| it.who.depth)
        .collect();
    assert_eq!(progress, [1]);
}

#[tokio::test]
async fn events_of_a_tool_with_a_child_are_in_order_when_it_ends() {
    let agent = parent(work(|cx| async move {
        Ok(said(
            &open(&cx, "a", helper(&["Yes."]))
                .await?
                .run("Well?")
                .await?,
        ))
    }));
    let shown: Vec<_> = events(&agent)
        .await
        .iter()
        .filter(|it| {
            !word(it).contains("block")
                && !word(it).contains("delta")
                && !word(it).contains("reply")
        })
        .map(|it| format!("{} {}", it.who.depth, word(it)))
        .collect();
    let expected = [
        "0 run_started",
        "0 entry_added",
        "0 turn_started",
        "0 tool_started",
        "0 child_opened",
        "1 run_started",
        "1 entry_added",
        "1 turn_started",
        "1 turn_finished",
        "1 run_finished",
        "0 child_ended",
        "0 tool_finished",
        "0 turn_finished",
        "0 turn_started",
        "0 turn_finished",
        "0 run_finished",
    ];
    assert_eq!(shown, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_when_many_children_speak_at_once() {
    let text: &'static str = Box::leak("many words ".repeat(100).into_boxed_str());
    let agent = parent(work(move |cx| async move {
        let mut runs = Vec::new();
        for number in 0..16 {
            let seen = Seen::default();
            let (cx, into) = (cx.clone(), Arc::clone(&seen));
            let read = tokio::spawn(async move {
                read(&cx, &format!("k{number}"), helper(&[text]), &into).await
            });
            runs.push((read, seen));
        }
        let mut counts = Vec::new();
        for (read, seen) in runs {
            read.await.expect("no panic")?;
            counts.push(seen.lock().expect("no panic").len());
        }
        assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
        Ok(CallResult::ok((counts[0] * 16).to_string()))
    }));
    let events = events(&agent).await;
    let mirrored = events.iter().filter(|it| it.who.depth == 1).count();
    assert_eq!(results(&last(&events)), [mirrored.to_string()]);
    assert!(
        events.windows(2).all(|pair| pair[0].seq <= pair[1].seq),
        "places never go back"
    );
}
