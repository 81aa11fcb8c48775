//! Where two sessions part.

use std::sync::Arc;

use adjutant_agent::{
    Agent, JournalErrorKind, MemoryJournal, Record, Seq, Stamped, sessions::Diff,
};
use adjutant_llm::{Entry, FixedWorld, Script, ScriptedModel, ThreadId, UserMessage};

use super::stage::{id, kind, log, records, sessions, stamped, write};

fn said(texts: &[&str]) -> Vec<Arc<Stamped>> {
    let entry = |text: &&str| Record::Appended {
        entries: vec![Entry::User(UserMessage::text(*text))],
    };
    stamped(texts.iter().map(entry))
}

async fn diff(one: &[Arc<Stamped>], other: &[Arc<Stamped>]) -> Diff {
    let journal = MemoryJournal::default();
    write(&journal, "a", one).await;
    write(&journal, "b", other).await;
    sessions(&journal)
        .diff(&id("a"), &id("b"))
        .await
        .expect("both are there")
}

/// The fields of a difference.
fn fields(diff: &Diff) -> Vec<(&str, Option<&str>, Option<&str>)> {
    diff.fields
        .iter()
        .map(|it| {
            (
                it.at.as_str(),
                it.sides[0].as_deref(),
                it.sides[1].as_deref(),
            )
        })
        .collect()
}

/// The lines of a difference.
fn lines(diff: &Diff) -> Vec<(u64, Option<&str>, Option<&str>)> {
    diff.lines
        .iter()
        .map(|it| (it.at.0, it.sides[0].as_deref(), it.sides[1].as_deref()))
        .collect()
}

#[tokio::test]
async fn diff_is_nothing_when_only_times_differ() {
    let one = said(&["x", "y"]);
    let other: Vec<_> = one
        .iter()
        .map(|it| {
            Arc::new(Stamped::new(
                it.seq,
                9,
                it.thread.clone(),
                it.record.clone(),
            ))
        })
        .collect();
    let diff = diff(&one, &other).await;
    assert!(diff.beyond == [0, 0]);
    assert_eq!(
        (diff.shared, diff.beyond, &diff.first),
        (2, [0, 0], &[None, None])
    );
    assert_eq!((fields(&diff), lines(&diff)), (vec![], vec![]));
}

#[tokio::test]
async fn diff_tells_the_first_record_when_contents_differ() {
    let (one, other) = (said(&["x", "left", "only"]), said(&["x", "right"]));
    let diff = diff(&one, &other).await;
    assert_eq!((diff.shared, diff.beyond), (1, [2, 1]));
    assert_eq!(
        diff.first,
        [Some(Arc::clone(&one[1])), Some(Arc::clone(&other[1]))]
    );
    assert_eq!(
        fields(&diff),
        [(
            "/record/appended/entries/0/content/0/text",
            Some("\"left\""),
            Some("\"right\"")
        )]
    );
    let expect = [
        (2, Some("appended \"left\""), Some("appended \"right\"")),
        (3, Some("appended \"only\""), None),
    ];
    assert_eq!(lines(&diff), expect);
}

#[tokio::test]
async fn diff_tells_what_is_beyond_when_one_is_the_beginning_of_the_other() {
    let (one, other) = (said(&["x"]), said(&["x", "y", "z"]));
    let diff = diff(&one, &other).await;
    assert_eq!((diff.shared, diff.beyond), (1, [0, 2]));
    assert_eq!(diff.first, [None, Some(Arc::clone(&other[1]))]);
    assert_eq!(fields(&diff), []);
    assert_eq!(
        lines(&diff),
        [
            (2, None, Some("appended \"y\"")),
            (3, None, Some("appended \"z\""))
        ]
    );
}

#[tokio::test]
async fn diff_tells_threads_and_missing_fields_when_records_differ_in_kind() {
    let one = said(&["x"]);
    let record = Record::Withdrawn { item: 7 };
    let other = [Arc::new(Stamped::new(
        Seq(1),
        1_001,
        ThreadId::from("main/c1_0_0/a"),
        record,
    ))];
    let diff = diff(&one, &other).await;
    let appended = "{\"entries\":[{\"entry\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}],\
                    \"origin\":{\"kind\":\"person\"}}]}";
    let expect = [
        ("/record/appended", Some(appended), None),
        ("/record/withdrawn", None, Some("{\"item\":7}")),
        ("/thread", Some("\"main\""), Some("\"main/c1_0_0/a\"")),
    ];
    assert_eq!(fields(&diff), expect);
    assert_eq!(
        lines(&diff),
        [(
            1,
            Some("appended \"x\""),
            Some("main/c1_0_0/a: message 7 withdrawn")
        )]
    );
}

#[tokio::test]
async fn diff_shows_where_texts_part_when_they_are_long() {
    let same = "é".repeat(5_000);
    let (one, other) = (
        said(&[&format!("{same}left{same}")]),
        said(&[&format!("{same}right{same}")]),
    );
    let diff = diff(&one, &other).await;
    let [(at, Some(one), Some(other))] = fields(&diff)[..] else {
        unreachable!("{:?}", diff.fields)
    };
    assert_eq!(at, "/record/appended/entries/0/content/0/text");
    assert!(
        one.contains("éleft") && one.starts_with('…') && one.ends_with('…'),
        "{one}"
    );
    assert!(
        other.contains("éright") && other.chars().count() == 122,
        "{other}"
    );
}

#[tokio::test]
async fn diff_is_bounded_when_everything_differs() {
    let (one, other) = (said(&["x"; 500]), said(&["y"; 400]));
    let diff = diff(&one, &other).await;
    assert_eq!(
        (diff.shared, diff.beyond, diff.lines.len()),
        (0, [500, 400], 40)
    );
}

#[tokio::test]
async fn diff_points_at_the_reply_when_a_fork_is_asked_with_another_model() {
    let journal = MemoryJournal::default();
    let agent = |texts: &[&str]| {
        let model = ScriptedModel::new(texts.iter().map(|text| Script::new().text(*text)));
        Agent::new(model)
            .world(FixedWorld::at_ms(1_000))
            .journal(journal.clone())
    };
    let first = agent(&["Ready.", "Heads."]).session(id("a"));
    first.run("Take a coin.").await.expect("the run finishes");
    let sessions = sessions(&journal);
    sessions
        .fork(&id("a"), None, &id("b"))
        .await
        .expect("it forks");
    first.run("Toss it.").await.expect("the run finishes");
    agent(&["Tails."])
        .session(id("b"))
        .run("Toss it.")
        .await
        .expect("the run finishes");
    let diff = sessions
        .diff(&id("a"), &id("b"))
        .await
        .expect("both are there");
    let all = records(&journal, &id("a")).await;
    let replied = all
        .iter()
        .rfind(|it| matches!(it.record, Record::Replied { .. }))
        .expect("it replied")
        .seq;
    assert_eq!(diff.shared, replied.0 - 1);
    let expect = (
        "/record/replied/reply/blocks/0/text",
        Some("\"Heads.\""),
        Some("\"Tails.\""),
    );
    assert_eq!(fields(&diff), [expect]);
    assert_eq!(
        lines(&diff)[0],
        (
            replied.0,
            Some("replied \"Heads.\""),
            Some("replied \"Tails.\"")
        )
    );

    // What is resumed in the middle of a run says so first.
    sessions
        .fork(&id("a"), Some(Seq(replied.0 - 1)), &id("c"))
        .await
        .expect("it forks");
    agent(&["Tails."])
        .session(id("c"))
        .resume(Vec::new())
        .await
        .expect("the run goes on");
    let diff = sessions
        .diff(&id("a"), &id("c"))
        .await
        .expect("both are there");
    assert_eq!(
        lines(&diff)[0],
        (
            replied.0,
            Some("replied \"Heads.\""),
            Some("resumed with no answers")
        )
    );
    assert_eq!(lines(&diff)[1].2, Some("replied \"Tails.\""));
}

#[tokio::test]
async fn lines_say_every_record_when_a_log_is_held_against_nothing() {
    let journal = MemoryJournal::default();
    log(&journal, "a").await;
    write(&journal, "b", &[]).await;
    let diff = sessions(&journal)
        .diff(&id("a"), &id("b"))
        .await
        .expect("both are there");
    let said: Vec<&str> = diff
        .lines
        .iter()
        .filter_map(|line| line.sides[0].as_deref())
        .collect();
    let expect = include_str!("words.txt");
    assert_eq!(said.join("\n") + "\n", expect);
    assert_eq!(
        kind(sessions(&journal).diff(&id("a"), &id("c")).await),
        JournalErrorKind::Missing
    );
}
