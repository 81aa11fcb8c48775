//! Forks and trees of them.

use std::sync::{Arc, Mutex, atomic::AtomicUsize};

use adjutant_agent::{
    Agent, Journal, JournalErrorKind, LogId, MemoryJournal, Owner, Record, Seq, SessionMeta,
    Sessions, sessions::SessionTree,
};
use adjutant_llm::{CallId, CallResult, Script, ScriptedModel};
use adjutant_tool::{Replay, ToolSpec};
use serde_json::json;

use super::stage::{
    Full, all, full, id, kind, log, message, records, sessions, spec, stamped, stored, tool, write,
};

#[tokio::test]
async fn fork_has_the_same_bytes_and_links_when_it_is_made_anywhere() {
    let journal = MemoryJournal::default();
    let records = log(&journal, "a").await;
    let whole = stored(&journal, &id("a")).await;
    for at in 1..=records.len() {
        let to = id(&format!("fork {at}"));
        let info = sessions(&journal)
            .fork(&id("a"), Some(Seq(at as u64)), &to)
            .await
            .expect("it forks");
        assert_eq!(
            (&info.log, info.head, info.is_owned),
            (&to, Seq(at as u64), false)
        );
        let about = SessionMeta {
            agent: Some("boss".into()),
            parent: Some((id("a"), Seq(at as u64))),
            ..SessionMeta::default()
        };
        assert_eq!(info.about, about);
        assert_eq!(stored(&journal, &to).await, whole[..at]);
    }
    let info = sessions(&journal)
        .fork(&id("a"), None, &id("whole"))
        .await
        .expect("it forks");
    assert_eq!(
        (info.head.0, all(&journal).await.len()),
        (records.len() as u64, records.len() + 2)
    );
}

#[tokio::test]
async fn fork_is_refused_when_there_is_nothing_to_copy_or_no_place() {
    let journal = MemoryJournal::default();
    write(
        &journal,
        "a",
        &stamped([Record::Seeded {
            entries: Vec::new(),
        }]),
    )
    .await;
    let sessions = sessions(&journal);
    sessions
        .create(&id("empty"), SessionMeta::default())
        .await
        .expect("the name is free");
    let error = sessions
        .fork(&id("a"), Some(Seq(2)), &id("b"))
        .await
        .expect_err("it is too short");
    assert_eq!(
        (error.kind, message(&error)),
        (
            JournalErrorKind::Invalid,
            "log \"a\" has 1 records; it cannot be forked at 2".to_owned()
        )
    );
    let error = sessions
        .fork(&id("a"), Some(Seq(0)), &id("b"))
        .await
        .expect_err("it would be empty");
    assert_eq!(
        (error.kind, message(&error)),
        (
            JournalErrorKind::Invalid,
            "a fork of log \"a\" would have no record; hint: create a session".to_owned()
        )
    );
    assert_eq!(
        kind(sessions.fork(&id("empty"), None, &id("b")).await),
        JournalErrorKind::Invalid
    );
    assert_eq!(
        kind(sessions.fork(&id("a"), None, &id("empty")).await),
        JournalErrorKind::Exists
    );
    assert_eq!(
        kind(sessions.fork(&id("gone"), None, &id("b")).await),
        JournalErrorKind::Missing
    );
    assert_eq!(
        kind(sessions.fork(&id("a"), None, &id("")).await),
        JournalErrorKind::Invalid
    );
    assert_eq!(all(&journal).await, [id("a"), id("empty")]);
}

#[tokio::test(start_paused = true)]
async fn fork_leaves_nothing_when_it_fails_in_the_middle() {
    let journal = MemoryJournal::default();
    write(
        &journal,
        "a",
        &stamped((0..1_000).map(|_| Record::Seeded {
            entries: Vec::new(),
        })),
    )
    .await;
    for left in 0..4 {
        let journal = Full {
            journal: journal.clone(),
            left: Arc::new(AtomicUsize::new(left)),
        };
        let error = Sessions::new(Arc::new(journal))
            .fork(&id("a"), None, &id("b"))
            .await
            .expect_err("the disk is full");
        assert_eq!(message(&error), message(&full()));
    }
    assert_eq!(all(&journal).await, [id("a")]);
    let enough = Full {
        journal: journal.clone(),
        left: Arc::new(AtomicUsize::new(4)),
    };
    Sessions::new(Arc::new(enough))
        .fork(&id("a"), None, &id("b"))
        .await
        .expect("there is room");
    assert_eq!(
        stored(&journal, &id("b")).await,
        stored(&journal, &id("a")).await
    );
}

#[tokio::test]
async fn fork_is_made_when_a_crash_left_another_one_half_made() {
    let journal = MemoryJournal::default();
    let whole = log(&journal, "a").await.len() as u64;
    let half = journal
        .own(&id("adjutant:half-made/x"), &Owner::default())
        .await
        .expect("memory does not fail");
    drop(half);
    let info = sessions(&journal)
        .fork(&id("a"), None, &id("b"))
        .await
        .expect("what was left is in nobody's way");
    assert_eq!(info.head, Seq(whole));
    let listed = sessions(&journal)
        .list(&Default::default())
        .await
        .expect("they are listed");
    assert_eq!(listed.logs.len(), 2);
    assert_eq!(
        sessions(&journal)
            .tree(&id("a"))
            .await
            .expect("it is there")
            .branches
            .len(),
        2
    );
}

#[tokio::test]
async fn fork_is_made_when_another_owner_writes() {
    let journal = MemoryJournal::default();
    let agent = super::stage::agent(&journal).session(id("a"));
    agent.run("Go.").await.expect("the run waits");
    assert!(
        sessions(&journal)
            .journal()
            .info(&id("a"))
            .await
            .expect("it is there")
            .is_owned
    );
    sessions(&journal)
        .fork(&id("a"), None, &id("b"))
        .await
        .expect("it forks");
    assert_eq!(
        records(&journal, &id("b")).await,
        records(&journal, &id("a")).await
    );
}

#[tokio::test]
async fn fork_keeps_the_keys_of_calls_when_they_were_launched_before() {
    let (journal, keys) = (
        MemoryJournal::default(),
        Arc::new(Mutex::new(Vec::<CallId>::new())),
    );
    let agent = |scripts: Vec<Script>| {
        let keys = Arc::clone(&keys);
        let work = tool(
            ToolSpec {
                replay: Replay::Idempotent,
                ..spec("work")
            },
            move |cx| {
                keys.lock()
                    .expect("nobody panics inside")
                    .extend(cx.who.call);
                async { Ok(CallResult::ok("done")) }
            },
        );
        Agent::new(ScriptedModel::new(scripts))
            .tool(work)
            .journal(journal.clone())
    };
    let first = agent(vec![
        Script::new().call("work", json!({})),
        Script::new().text("Done."),
    ])
    .session(id("a"));
    first.run("Go.").await.expect("the run finishes");
    let at = records(&journal, &id("a")).await;
    let at = at
        .iter()
        .find(|stamped| matches!(stamped.record, Record::Launched { .. }))
        .expect("it was launched")
        .seq;
    sessions(&journal)
        .fork(&id("a"), Some(at), &id("b"))
        .await
        .expect("it forks");
    let other = agent(vec![Script::new().text("Otherwise.")]).session(id("b"));
    assert_eq!(
        other
            .resume(Vec::new())
            .await
            .expect("the run goes on")
            .text(),
        "Otherwise."
    );
    let keys = keys.lock().expect("nobody panics inside");
    assert_eq!((keys.len(), keys[0]), (2, keys[1]));
}

/// The names in a tree: ancestors, then depth, name and fork point of each branch.
fn told(tree: &SessionTree) -> (Vec<&str>, Vec<(usize, &str, u64)>) {
    let ancestors = tree.ancestors.iter().map(|info| &*info.log.0).collect();
    let branch = |branch: &adjutant_agent::sessions::Branch| {
        let at = branch.info.about.parent.as_ref().map_or(0, |(_, at)| at.0);
        (branch.depth, branch.info.log.clone(), at)
    };
    let branches: Vec<(usize, LogId, u64)> = tree.branches.iter().map(branch).collect();
    let name = |log: &LogId| {
        tree.branches
            .iter()
            .find(|it| it.info.log == *log)
            .map_or("", |it| &*it.info.log.0)
    };
    (
        ancestors,
        branches
            .iter()
            .map(|(depth, log, at)| (*depth, name(log), *at))
            .collect(),
    )
}

#[tokio::test]
async fn tree_shows_ancestors_and_descendants_when_there_are_some() {
    let journal = MemoryJournal::default();
    write(
        &journal,
        "a",
        &stamped((0..5).map(|_| Record::Seeded {
            entries: Vec::new(),
        })),
    )
    .await;
    let sessions = sessions(&journal);
    for (from, at, to) in [
        ("a", 4, "b"),
        ("a", 2, "c"),
        ("b", 3, "d"),
        ("d", 1, "e"),
        ("b", 2, "f"),
    ] {
        sessions
            .fork(&id(from), Some(Seq(at)), &id(to))
            .await
            .expect("it forks");
    }
    sessions
        .label(&id("d"), &["best"], &[])
        .await
        .expect("it is there");
    let tree = sessions.tree(&id("b")).await.expect("it is there");
    assert_eq!(
        told(&tree),
        (
            vec!["a"],
            vec![(0, "b", 4), (1, "d", 3), (2, "e", 1), (1, "f", 2)]
        )
    );
    assert_eq!((&tree.missing, tree.is_cut), (&None, false));
    assert!(tree.branches[1].info.about.labels.contains("best"));
    let tree = sessions.tree(&id("e")).await.expect("it is there");
    assert_eq!(told(&tree), (vec!["a", "b", "d"], vec![(0, "e", 1)]));
    assert_eq!(
        kind(sessions.tree(&id("x")).await),
        JournalErrorKind::Missing
    );
}

#[tokio::test]
async fn tree_ends_when_a_parent_is_gone_or_logs_go_round() {
    let journal = MemoryJournal::default();
    write(
        &journal,
        "a",
        &stamped([Record::Seeded {
            entries: Vec::new(),
        }]),
    )
    .await;
    let sessions = sessions(&journal);
    for (from, to) in [("a", "b"), ("b", "c")] {
        sessions
            .fork(&id(from), None, &id(to))
            .await
            .expect("it forks");
    }
    let about = SessionMeta {
        parent: Some((id("c"), Seq(1))),
        ..SessionMeta::default()
    };
    journal
        .describe(&id("a"), about)
        .await
        .expect("memory does not fail");
    let tree = sessions.tree(&id("b")).await.expect("it is there");
    assert_eq!(told(&tree), (vec!["c", "a"], vec![(0, "b", 1)]));
    sessions.delete(&id("a")).await.expect("nobody has it");
    let tree = sessions.tree(&id("c")).await.expect("it is there");
    assert_eq!(
        (told(&tree), &tree.missing),
        ((vec!["b"], vec![(0, "c", 1)]), &Some(id("a")))
    );
}
