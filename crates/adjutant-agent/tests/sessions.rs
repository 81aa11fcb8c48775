//! Sessions looked after from outside: made, listed, named, forked, compared, checked, carried and shown.

#[path = "sessions/diffs.rs"]
mod diffs;
#[path = "sessions/files.rs"]
mod files;
#[path = "sessions/forks.rs"]
mod forks;
#[path = "sessions/shows.rs"]
mod shows;
#[path = "sessions/stage.rs"]
mod stage;
#[path = "sessions/verifies.rs"]
mod verifies;

use std::sync::Arc;

use adjutant_agent::{
    Agent, Journal, JournalErrorKind, LogId, LogQuery, MemoryJournal, Owner, Seq, SessionMeta,
    Sessions, Stamped,
};
use adjutant_llm::{FixedWorld, Script, ScriptedModel};
use stage::{Bare, all, id, kind, log, message, sessions};

fn about(title: &str, labels: &[&str]) -> SessionMeta {
    SessionMeta {
        title: Some(title.into()),
        labels: labels.iter().map(|label| Arc::from(*label)).collect(),
        ..SessionMeta::default()
    }
}

#[tokio::test]
async fn session_is_made_when_its_name_is_free() {
    let journal = MemoryJournal::default();
    let sessions = sessions(&journal);
    let made = sessions
        .create(&id("a/../ü \u{1f980}"), about("One", &["x"]))
        .await
        .expect("the name is free");
    assert_eq!(
        (made.log.clone(), made.head, made.is_owned),
        (id("a/../ü \u{1f980}"), Seq(0), false)
    );
    assert_eq!(made.about, about("One", &["x"]));
    assert_eq!(
        sessions
            .journal()
            .info(&made.log)
            .await
            .expect("it is there"),
        made
    );
    assert_eq!(
        kind(sessions.create(&made.log, SessionMeta::default()).await),
        JournalErrorKind::Exists
    );
    assert_eq!(all(&journal).await, [made.log]);
}

#[tokio::test]
async fn session_is_not_made_when_its_name_or_what_is_said_is_wrong() {
    let journal = MemoryJournal::default();
    let sessions = sessions(&journal);
    let many: Vec<String> = (0..65).map(|label| label.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let table = [
        (id(""), SessionMeta::default(), "a log needs a name"),
        (
            id(&"x".repeat(513)),
            SessionMeta::default(),
            "the name of a log has 513 bytes; it may have 512",
        ),
        (
            id("adjutant:half-made/x"),
            SessionMeta::default(),
            "names that begin with \"adjutant:half-made/\" are kept for logs that are being made",
        ),
        (
            id("a"),
            about(&"x".repeat(4097), &[]),
            "the title has 4097 bytes; it may have 4096",
        ),
        (
            id("a"),
            about("x", &[""]),
            "a label has 0 bytes; it may have from 1 to 256",
        ),
        (
            id("a"),
            about("x", &many),
            "there are 65 labels; there may be 64",
        ),
    ];
    for (name, about, why) in table {
        let error = sessions.create(&name, about).await.expect_err(why);
        assert_eq!(
            (error.kind, message(&error)),
            (JournalErrorKind::Invalid, why.to_owned())
        );
    }
    assert_eq!(all(&journal).await, []);
}

#[tokio::test]
async fn session_is_called_and_found_otherwise_when_it_is_described() {
    let journal = MemoryJournal::default();
    let sessions = sessions(&journal);
    for name in ["a", "b"] {
        sessions
            .create(&id(name), SessionMeta::default())
            .await
            .expect("the name is free");
    }
    sessions
        .title(&id("a"), "A title")
        .await
        .expect("it is there");
    sessions
        .label(&id("a"), &["x", "y"], &[])
        .await
        .expect("it is there");
    sessions
        .label(&id("a"), &["z"], &["x"])
        .await
        .expect("it is there");
    assert_eq!(
        sessions
            .journal()
            .info(&id("a"))
            .await
            .expect("it is there")
            .about,
        about("A title", &["y", "z"])
    );
    let query = |label: &str| LogQuery {
        label: Some(label.into()),
        ..LogQuery::default()
    };
    let found = |page: adjutant_agent::LogPage| {
        page.logs
            .into_iter()
            .map(|info| info.log)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        found(sessions.list(&query("z")).await.expect("they are listed")),
        [id("a")]
    );
    assert_eq!(
        found(sessions.list(&query("x")).await.expect("they are listed")),
        []
    );
    sessions.title(&id("a"), "").await.expect("it is there");
    assert_eq!(
        sessions
            .journal()
            .info(&id("a"))
            .await
            .expect("it is there")
            .about
            .title,
        None
    );
    assert_eq!(
        kind(sessions.title(&id("c"), "x").await),
        JournalErrorKind::Missing
    );
    assert_eq!(
        kind(sessions.label(&id("a"), &[""], &[]).await),
        JournalErrorKind::Invalid
    );

    assert_eq!(
        kind(sessions.rename(&id("a"), &id("b")).await),
        JournalErrorKind::Exists
    );
    assert_eq!(
        kind(sessions.rename(&id("a"), &id("adjutant:half-made/")).await),
        JournalErrorKind::Invalid
    );
    sessions
        .rename(&id("a"), &id("c"))
        .await
        .expect("the name is free");
    sessions.delete(&id("b")).await.expect("it is there");
    assert_eq!(
        kind(sessions.delete(&id("b")).await),
        JournalErrorKind::Missing
    );
    assert_eq!(all(&journal).await, [id("c")]);
}

#[tokio::test]
async fn log_tells_its_agent_when_it_is_new() {
    let journal = MemoryJournal::default();
    let agent = Agent::new(ScriptedModel::new([
        Script::new().text("Hello."),
        Script::new().text("Hello."),
    ]));
    let agent = agent
        .name("greeter")
        .journal(journal.clone())
        .session(id("a"));
    agent.run("Hi.").await.expect("the run finishes");
    let said = SessionMeta {
        agent: Some("greeter".into()),
        ..SessionMeta::default()
    };
    assert_eq!(
        sessions(&journal)
            .journal()
            .info(&id("a"))
            .await
            .expect("it is there")
            .about,
        said
    );

    sessions(&journal)
        .create(&id("b"), about("Kept", &["x"]))
        .await
        .expect("the name is free");
    agent
        .session(id("b"))
        .run("Hi.")
        .await
        .expect("the run finishes");
    let said = sessions(&journal)
        .journal()
        .info(&id("b"))
        .await
        .expect("it is there")
        .about;
    assert_eq!(
        (
            said.title.as_deref(),
            said.agent.as_deref(),
            said.labels.len()
        ),
        (Some("Kept"), Some("greeter"), 1)
    );
}

#[tokio::test]
async fn run_goes_on_when_its_journal_keeps_no_descriptions() {
    let agent = Agent::new(ScriptedModel::new([Script::new().text("Hello.")]));
    let agent = agent.journal(Bare(MemoryJournal::default()));
    assert_eq!(
        agent.run("Hi.").await.expect("the run finishes").text(),
        "Hello."
    );
    let sessions = Sessions::new(Arc::new(Bare(MemoryJournal::default())));
    assert_eq!(
        kind(sessions.create(&id("a"), SessionMeta::default()).await),
        JournalErrorKind::Unsupported
    );
    assert_eq!(
        sessions.sweep().await.expect("there is nothing to do"),
        adjutant_agent::GcReport::default()
    );
}

#[tokio::test]
async fn transcript_is_that_of_a_place_when_one_is_given() {
    let journal = MemoryJournal::default();
    let records = log(&journal, "a").await;
    let sessions = sessions(&journal);
    for upto in 0..=records.len() {
        let main = records[..upto]
            .iter()
            .filter(|stamped| stamped.thread.as_str() == "main");
        let run = main.fold(
            adjutant_agent::Run::default(),
            |mut run, stamped: &Arc<Stamped>| {
                run.apply(stamped).expect("the log folds");
                run
            },
        );
        assert_eq!(
            sessions
                .transcript(&id("a"), Seq(upto as u64))
                .await
                .expect("the log folds"),
            run
        );
    }
    let whole = sessions
        .transcript(&id("a"), Seq(u64::MAX))
        .await
        .expect("the log folds");
    assert_eq!((whole.is_open(), whole.history().len()), (false, 6));
    assert_eq!(
        kind(sessions.transcript(&id("b"), Seq(1)).await),
        JournalErrorKind::Missing
    );
}

#[tokio::test]
async fn leftovers_are_hidden_and_swept_when_they_are_old() {
    let journal = MemoryJournal::default().world(FixedWorld::at_ms(1_000));
    let later = sessions(&journal).world(FixedWorld::at_ms(3_601_001));
    let sessions = sessions(&journal).world(FixedWorld::at_ms(3_601_000));
    let left = journal
        .own(&id("adjutant:half-made/1"), &Owner::default())
        .await
        .expect("memory does not fail");
    journal
        .own(&id("adjutant:half-made/2"), &Owner::default())
        .await
        .expect("memory does not fail");
    sessions
        .create(&id("a"), SessionMeta::default())
        .await
        .expect("the name is free");
    let page = sessions
        .list(&LogQuery::default())
        .await
        .expect("they are listed");
    assert_eq!(
        page.logs
            .iter()
            .map(|info| info.log.clone())
            .collect::<Vec<LogId>>(),
        [id("a")]
    );
    sessions.sweep().await.expect("memory does not fail");
    assert_eq!(all(&journal).await.len(), 3, "they may be in work");
    later.sweep().await.expect("memory does not fail");
    assert_eq!(
        all(&journal).await,
        [id("a"), id("adjutant:half-made/1")],
        "one is in work"
    );
    drop(left);
    later.sweep().await.expect("memory does not fail");
    assert_eq!(all(&journal).await, [id("a")]);
}
