//! Sessions beside their prompts: what is said to a run, who follows it, what becomes of the session.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use adjutant_agent::{
    CancelBy, Durability, Event, EventKind, Journal, JournalError, Log, LogId, LogInfo,
    MemoryJournal, Outcome, Owner, RecordStream, Seq,
};
use adjutant_llm::{Gate, Script};
use adjutant_runtime::{
    ErrorKind, Prompter,
    prompt::{Control, ForkRequest, MessagesRequest, PausesRequest, StoredPrompter},
};
use async_trait::async_trait;
use futures_util::{FutureExt, StreamExt, stream};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::stage::{self, Over, Stage, kind, kind_of, stage};

stage::both!(
    run_is_steered_and_goes_on_with_what_follows,
    run_is_stopped_and_so_is_one_that_waits,
    call_is_stopped_and_its_run_goes_on,
    control_is_refused_when_it_fits_nothing,
    run_is_followed_from_a_record_on_and_lives_on_when_nobody_does,
    session_is_forked_and_deleted,
);

/// A run at work behind a gate, which is reached when this returns.
async fn at_work(stage: &Stage, gate: &Gate) -> JoinHandle<Vec<Event>> {
    let running = tokio::spawn(stage::all(
        stage.stream("talk", "Tell me.").await.expect("it begins"),
    ));
    gate.wait_until_reached().await;
    running
}

fn text(text: &str) -> Arc<str> {
    text.into()
}

async fn run_is_steered_and_goes_on_with_what_follows(over: Over) {
    let gate = Gate::default();
    let calls = Script::new()
        .call("add", json!({"a": 1, "b": 2}))
        .wait_at(0, &gate);
    let stage = stage(
        over,
        [
            calls,
            Script::new().text("Three."),
            Script::new().text("And four."),
        ],
    )
    .await;
    let running = at_work(&stage, &gate).await;
    let say = async |control| {
        stage
            .prompter
            .control(Some("talk"), control)
            .await
            .expect("it is heard")
    };
    let mut heard = stage
        .prompter
        .attach(Some("talk"), None)
        .await
        .expect("it is followed");
    say(Control::FollowUp {
        text: text("And one more?"),
    })
    .await;
    say(Control::Steer {
        text: text("Be brief."),
    })
    .await;
    let mut queued = 0;
    while queued < 2 {
        let event = heard.next().await.expect("it goes on").expect("an event");
        queued += usize::from(matches!(event.kind, EventKind::MessageQueued { .. }));
    }
    gate.open();
    let events = running.await.expect("it ends");
    assert_eq!(stage::end_of(&events).text(), "And four.");
    let page = stage
        .prompter
        .messages(MessagesRequest::new().session("talk"))
        .await
        .expect("a page");
    let said: Vec<&str> = page.messages.iter().map(|it| it.text.as_str()).collect();
    assert_eq!(
        said,
        [
            "Tell me.",
            "3",
            "Be brief.",
            "Three.",
            "And one more?",
            "And four."
        ]
    );
}

async fn run_is_stopped_and_so_is_one_that_waits(over: Over) {
    let gate = Gate::default();
    let asks = Script::new().call("delete", json!({"what": "it"}));
    let stage = stage(
        over,
        [
            Script::new().text("Long.").wait_at(0, &gate),
            asks,
            Script::new().text("Yes."),
        ],
    )
    .await;
    let running = at_work(&stage, &gate).await;
    stage
        .prompter
        .control(Some("talk"), Control::Stop {})
        .await
        .expect("it is heard");
    let events = running.await.expect("it ends");
    assert_eq!(
        stage::end_of(&events).outcome,
        Outcome::Cancelled { by: CancelBy::User }
    );
    stage.prompt("talk", "Delete it.").await.expect("it waits");
    stage
        .prompter
        .control(Some("talk"), Control::Stop {})
        .await
        .expect("it is heard");
    assert_eq!(
        stage
            .prompter
            .pauses(PausesRequest::new())
            .await
            .expect("they are listed")
            .pauses,
        []
    );
    assert_eq!(
        stage
            .prompt("talk", "Still there?")
            .await
            .expect("the session is free")
            .text,
        "Yes."
    );
}

async fn call_is_stopped_and_its_run_goes_on(over: Over) {
    let stage = stage(
        over,
        [
            Script::new().call("linger", json!({})),
            Script::new().text("Done."),
        ],
    )
    .await;
    let mut events = stage.stream("talk", "Wait.").await.expect("it begins");
    let call = loop {
        let event = events.next().await.expect("it goes on").expect("an event");
        if let EventKind::ToolStarted { call, .. } = event.kind {
            break call;
        }
    };
    let other = Control::StopCall {
        call: "c9_0_0".parse().expect("a call"),
    };
    assert_eq!(
        kind(stage.prompter.control(Some("talk"), other).await),
        ErrorKind::Missing
    );
    stage
        .prompter
        .control(Some("talk"), Control::StopCall { call })
        .await
        .expect("it is heard");
    assert_eq!(stage::end_of(&stage::all(events).await).text(), "Done.");
}

async fn control_is_refused_when_it_fits_nothing(over: Over) {
    let stage = stage(over, [Script::new().text("Hello.")]).await;
    let control = async |session, control| kind(stage.prompter.control(session, control).await);
    let stop = || Control::Stop {};
    assert_eq!(control(None, stop()).await, ErrorKind::Missing);
    stage.prompt("talk", "Hi.").await.expect("an answer");
    let call = "c1_0_0".parse().expect("a call");
    for (session, said, expect) in [
        ("nobody", stop(), ErrorKind::Missing),
        ("a\nb", stop(), ErrorKind::Invalid),
        ("talk", stop(), ErrorKind::Conflict),
        ("talk", Control::StopCall { call }, ErrorKind::Conflict),
        (
            "talk",
            Control::Steer { text: text(" ") },
            ErrorKind::Invalid,
        ),
        (
            "talk",
            Control::FollowUp { text: text("") },
            ErrorKind::Invalid,
        ),
    ] {
        let told = format!("{session} {said:?}");
        assert_eq!(control(Some(session), said).await, expect, "{told}");
    }
}

async fn run_is_followed_from_a_record_on_and_lives_on_when_nobody_does(over: Over) {
    let gate = Gate::default();
    let stage = stage(
        over,
        [
            Script::new().text("One."),
            Script::new().text("Two.").wait_at(0, &gate),
        ],
    )
    .await;
    let all = stage::all(stage.stream("talk", "First?").await.expect("it begins")).await;
    let attach = async |after| stage.prompter.attach(Some("talk"), after).await;
    let replayed = stage::all(attach(Some(0)).await.expect("it is there")).await;
    assert_eq!(stage::end_of(&replayed).text(), "One.");
    let middle = all[all.len() / 2].seq;
    let rest = stage::all(attach(Some(middle.0)).await.expect("it is there")).await;
    assert!(
        !rest.is_empty() && rest.iter().all(|event| event.seq > middle),
        "{rest:?}"
    );
    assert!(
        stage::all(attach(None).await.expect("it is there"))
            .await
            .is_empty()
    );
    assert_eq!(kind_of(attach(Some(1_000)).await), Some(ErrorKind::Invalid));
    assert_eq!(
        kind_of(stage.prompter.attach(None, None).await),
        Some(ErrorKind::Missing)
    );
    let running = at_work(&stage, &gate).await;
    drop(attach(None).await.expect("it is followed"));
    let (one, two) = (
        attach(None).await.expect("it is followed"),
        attach(Some(middle.0)).await.expect("it is followed"),
    );
    let followed = tokio::spawn(async move { (stage::all(one).await, stage::all(two).await) });
    gate.open();
    let (one, two) = followed.await.expect("both end");
    assert_eq!(
        [&one, &two].map(|events| stage::end_of(events).text()),
        ["Two.", "Two."]
    );
    assert_eq!(
        stage::end_of(&running.await.expect("it ends")).text(),
        "Two."
    );
}

async fn session_is_forked_and_deleted(over: Over) {
    let gate = Gate::default();
    let stage = stage(
        over,
        [
            Script::new().text("One."),
            Script::new().text("Two.").wait_at(0, &gate),
        ],
    )
    .await;
    stage.prompt("talk", "First?").await.expect("an answer");
    let fork = async |to: &str, at| {
        let mut request = ForkRequest::new(to);
        request.at = at;
        stage.prompter.fork(Some("talk"), request).await
    };
    assert_eq!(&*fork("copy", None).await.expect("it is made").name, "copy");
    let said = async |name: &str| {
        let page = stage
            .prompter
            .messages(MessagesRequest::new().session(name))
            .await;
        page.map(|page| {
            page.messages
                .into_iter()
                .map(|it| it.text)
                .collect::<Vec<_>>()
        })
    };
    assert_eq!(said("copy").await.expect("a page"), ["First?", "One."]);
    assert_eq!(kind(fork("copy", None).await), ErrorKind::Exists);
    assert_eq!(kind(fork("later", Some(1_000)).await), ErrorKind::Invalid);
    assert_eq!(kind(fork("a\nb", None).await), ErrorKind::Invalid);
    stage.prompter.delete("copy").await.expect("it goes");
    assert_eq!(kind(said("copy").await), ErrorKind::Missing);
    assert_eq!(
        kind(stage.prompter.delete("copy").await),
        ErrorKind::Missing
    );
    let running = at_work(&stage, &gate).await;
    assert_eq!(
        kind(stage.prompter.delete("talk").await),
        ErrorKind::Conflict
    );
    gate.open();
    running.await.expect("it ends");
    stage
        .prompter
        .delete("talk")
        .await
        .expect("it goes, with the agent that had it");
    assert_eq!(kind(said("talk").await), ErrorKind::Missing);
}

/// A journal that counts the records that are read; what it gives is not asked again after its end.
#[derive(Debug, Clone)]
struct Counting(MemoryJournal, Arc<AtomicUsize>);

#[async_trait]
impl Journal for Counting {
    async fn own(&self, log: &LogId, owner: &Owner) -> Result<Box<dyn Log>, JournalError> {
        self.0.own(log, owner).await
    }

    fn read(&self, log: &LogId, after: Seq) -> RecordStream {
        let count = Arc::clone(&self.1);
        Box::pin(stream::unfold(
            (self.0.read(log, after), count),
            |(mut records, count)| async move {
                let record = records.next().await?;
                count.fetch_add(1, Ordering::Relaxed);
                Some((record, (records, count)))
            },
        ))
    }

    async fn info(&self, log: &LogId) -> Result<LogInfo, JournalError> {
        self.0.info(log).await
    }
}

#[tokio::test(start_paused = true)]
async fn stored_log_is_told_on_without_being_read_again() {
    let count = Arc::new(AtomicUsize::new(0));
    let journal = Counting(MemoryJournal::default(), Arc::clone(&count));
    let scripts = (0..101).map(|at| Script::new().text(format!("answer {at}")));
    let stage = stage::kept(Over::Local, scripts, journal.clone(), Durability::default()).await;
    for at in 0..100 {
        stage
            .prompt("talk", &format!("question {at}"))
            .await
            .expect("an answer");
    }
    let stored = StoredPrompter::new(Arc::new(journal));
    let told = stage::all(
        stored
            .attach(Some("talk"), Some(0))
            .await
            .expect("it is there"),
    )
    .await;
    let last = told.last().expect("there are some").seq;
    let same = stage::all(
        stage
            .prompter
            .attach(Some("talk"), Some(0))
            .await
            .expect("it is there"),
    )
    .await;
    let kinds = |events: &[Event]| {
        events
            .iter()
            .map(|event| (event.seq, stage::name(event)))
            .collect::<Vec<_>>()
    };
    assert_eq!(kinds(&told), kinds(&same));
    let read = count.swap(0, Ordering::Relaxed);
    assert!(
        stage::all(
            stored
                .attach(Some("talk"), Some(last.0))
                .await
                .expect("it is there")
        )
        .await
        .is_empty()
    );
    stage.prompt("talk", "and now?").await.expect("an answer");
    let more = stage::all(
        stored
            .attach(Some("talk"), Some(last.0))
            .await
            .expect("it is there"),
    )
    .await;
    assert_eq!(stage::end_of(&more).text(), "answer 100");
    let again = count.load(Ordering::Relaxed);
    assert!(
        read > 600 && again < 30,
        "{read} records were read, then {again}"
    );
}

#[tokio::test]
async fn run_is_followed_to_its_end_while_its_log_is_behind() {
    let (journal, gate) = (
        Counting(MemoryJournal::default(), Arc::default()),
        Gate::default(),
    );
    let script = Script::new()
        .text("A long story.")
        .delta_chars(2)
        .wait_at(2, &gate);
    let stage = stage::kept(Over::Local, [script], journal, Durability::default()).await;
    let running = at_work(&stage, &gate).await;
    let mut heard = stage
        .prompter
        .attach(Some("talk"), Some(0))
        .await
        .expect("it is followed");
    // Once more while it waits for the log.
    for _ in 0..2 {
        if let Some(event) = heard.next().now_or_never() {
            event.expect("it goes on").expect("an event");
        }
    }
    gate.open();
    assert_eq!(
        stage::end_of(&stage::all(heard).await).text(),
        "A long story."
    );
    running.await.expect("it ends");
}

#[tokio::test]
async fn page_of_messages_is_read_from_the_end_of_a_long_log() {
    let count = Arc::new(AtomicUsize::new(0));
    let journal = Counting(MemoryJournal::default(), Arc::clone(&count));
    let scripts = (0..300).map(|at| Script::new().text(format!("answer {at}")));
    let stage = stage::kept(Over::Local, scripts, journal, Durability::default()).await;
    for at in 0..300 {
        stage
            .prompt("talk", &format!("question {at}"))
            .await
            .expect("an answer");
    }
    let (mut all, mut before, mut first) = (Vec::new(), None, None);
    loop {
        count.store(0, Ordering::Relaxed);
        let mut request = MessagesRequest::new().session("talk").limit(7);
        request.before = before;
        let page = stage.prompter.messages(request).await.expect("a page");
        first.get_or_insert(count.load(Ordering::Relaxed));
        all.splice(0..0, page.messages.into_iter().map(|it| it.text));
        before = page.before;
        if before.is_none() {
            break;
        }
    }
    let expect: Vec<String> = (0..300)
        .flat_map(|at| [format!("question {at}"), format!("answer {at}")])
        .collect();
    assert_eq!(all, expect);
    assert!(
        first < Some(300),
        "{first:?} records of some 2,000 were read for one page"
    );
}
