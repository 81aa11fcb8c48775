//! Prompts and their events.

use std::sync::Arc;

use adjutant_agent::{Durability, EventKind, LogId, MemoryJournal, Sessions};
use adjutant_llm::{Entry, Gate, Script};
use adjutant_runtime::{ErrorKind, prompt::PromptRequest};
use futures_util::StreamExt;
use serde_json::json;

use crate::stage::{self, Over, kind, name, stage};

stage::both!(
    event_is_given_when_the_log_holds_its_record,
    prompt_answers_and_goes_on_in_its_session,
    prompt_without_a_session_uses_the_default_one,
    stream_gives_every_event_in_order_and_the_end_last,
    stream_has_the_same_events_however_it_is_asked,
    second_prompt_of_a_session_is_refused_while_others_run,
    failed_run_is_an_error_and_its_stream_ends_with_it,
    run_that_takes_too_long_is_timed_out,
    events_survive_any_text,
);

async fn prompt_answers_and_goes_on_in_its_session(over: Over) {
    let stage = stage(
        over,
        [Script::new().text("One."), Script::new().text("Two.")],
    )
    .await;
    let first = stage
        .prompt("talk", "What comes first?")
        .await
        .expect("an answer");
    assert_eq!(
        (&*first.session, first.text.as_str(), first.result.turns),
        ("talk", "One.", 1)
    );
    assert_eq!(first.result.outcome.kind(), "finished");
    let second = stage.prompt("talk", "And then?").await.expect("an answer");
    assert_eq!(second.text, "Two.");
    let users = |at: usize| {
        let requests = stage.model.requests();
        let entries = requests.get(at).expect("it was asked").entries.iter();
        entries
            .filter(|stored| matches!(stored.entry, Entry::User(_)))
            .count()
    };
    assert_eq!((users(0), users(1)), (1, 2));
    stage.model.assert_done();
}

async fn prompt_without_a_session_uses_the_default_one(over: Over) {
    let stage = stage(over, [Script::new().text("Hello.")]).await;
    let reply = stage
        .prompter
        .prompt(PromptRequest::new("Hi."))
        .await
        .expect("an answer");
    assert_eq!(&*reply.session, "main");
}

async fn stream_gives_every_event_in_order_and_the_end_last(over: Over) {
    let scripts = [
        Script::new().call("add", json!({"a": 2, "b": 3})),
        Script::new().text("Five.").delta_chars(3),
    ];
    let stage = stage(over, scripts).await;
    let events = stage::all(
        stage
            .stream("talk", "Two and three?")
            .await
            .expect("it begins"),
    )
    .await;
    let names: Vec<String> = events.iter().map(name).collect();
    let expect = [
        "run_started",
        "entry_added",
        "turn_started",
        "reply_started",
        "block_started",
        "args_delta",
        "args_delta",
        "block_finished",
        "reply_finished",
        "tool_started",
        "tool_finished",
        "turn_finished",
        "turn_started",
        "reply_started",
        "block_started",
        "text_delta",
        "text_delta",
        "block_finished",
        "reply_finished",
        "turn_finished",
        "run_finished",
    ];
    assert_eq!(names, expect);
    assert!(events.is_sorted_by_key(|event| event.seq));
    let result = stage::end_of(&events);
    assert_eq!(result.text(), "Five.");
}

async fn stream_has_the_same_events_however_it_is_asked(over: Over) {
    let stage = stage(over, [Script::new().text("Hello.").delta_chars(1)]).await;
    let events = stage::all(stage.stream("talk", "Hi.").await.expect("it begins")).await;
    let texts: Vec<&str> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::TextDelta { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(texts.concat(), "Hello.");
    let result = stage::end_of(&events);
    let reply = result.reply.as_ref().expect("a reply");
    let finished = events.iter().find_map(|event| match &event.kind {
        EventKind::ReplyFinished { reply, .. } => Some(reply),
        _ => None,
    });
    assert_eq!(Some(reply), finished);
}

async fn second_prompt_of_a_session_is_refused_while_others_run(over: Over) {
    let gate = Gate::default();
    let scripts = [
        Script::new().text("Slow.").wait_at(0, &gate),
        Script::new().text("Quick."),
        Script::new().text("Now."),
    ];
    let stage = stage(over, scripts).await;
    let mut slow = stage
        .stream("one", "Take your time.")
        .await
        .expect("it begins");
    let reading = tokio::spawn(async move {
        let mut last = None;
        while let Some(event) = slow.next().await {
            last = Some(event.expect("it goes on"));
        }
        last.map(|event| name(&event))
    });
    gate.wait_until_reached().await;
    let refused = stage
        .prompt("one", "Hurry!")
        .await
        .expect_err("it is at work");
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert!(
        refused
            .message()
            .contains(r#"a run of the session "one" is at work"#),
        "{refused}"
    );
    assert_eq!(
        stage::kind_of(stage.stream("one", "Hurry!").await),
        Some(ErrorKind::Conflict)
    );
    let other = stage
        .prompt("two", "Hello?")
        .await
        .expect("another session is free");
    assert_eq!(other.text, "Quick.");
    gate.open();
    assert_eq!(
        reading.await.expect("it is read"),
        Some("run_finished".to_owned())
    );
    stage.idle().await;
    assert_eq!(
        stage
            .prompt("one", "Again.")
            .await
            .expect("it is free")
            .text,
        "Now."
    );
}

async fn failed_run_is_an_error_and_its_stream_ends_with_it(over: Over) {
    let failure = || {
        adjutant_llm::Error::new(
            adjutant_llm::ErrorKind::Invalid,
            "no such parameter: frobnicate",
        )
    };
    let stage = stage(
        over,
        [Script::new().fail(failure()), Script::new().fail(failure())],
    )
    .await;
    let error = stage
        .prompt("talk", "Hi.")
        .await
        .expect_err("the model fails");
    assert_eq!(error.kind(), ErrorKind::Agent);
    let events = stage::all(stage.stream("talk", "Hi.").await.expect("it begins")).await;
    let result = stage::end_of(&events);
    assert_eq!(result.outcome.kind(), "failed");
}

async fn run_that_takes_too_long_is_timed_out(over: Over) {
    let gate = Gate::default();
    let stage = stage(
        over,
        [
            Script::new().text("Never.").wait_at(0, &gate),
            Script::new().text("Here."),
        ],
    )
    .await;
    let request = PromptRequest::new("Hi.").timeout(std::time::Duration::from_millis(1));
    assert_eq!(
        kind(stage.prompter.prompt(request).await),
        ErrorKind::TimedOut
    );
    stage.idle().await;
    assert_eq!(
        stage
            .prompter
            .prompt(PromptRequest::new("Again."))
            .await
            .expect("it is free")
            .text,
        "Here."
    );
}

#[tokio::test(start_paused = true)]
async fn reader_that_is_slow_holds_the_run_back() {
    let gate = Gate::default();
    let text = "x".repeat(1 << 20);
    let script = Script::new()
        .text(text)
        .delta_chars(256)
        .wait_at(4000, &gate);
    let stage = stage(Over::Local, [script]).await;
    let mut events = stage.stream("talk", "Much.").await.expect("it begins");
    events.next().await.expect("an event").expect("an event");
    // Time passes only when nothing else can move: what would run ahead has done so.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let ahead = futures_util::FutureExt::now_or_never(gate.wait_until_reached());
    assert_eq!(ahead, None, "it was made, and nobody has read it");
    gate.open();
    let mut last = None;
    while let Some(event) = events.next().await {
        last = Some(name(&event.expect("it goes on")));
    }
    assert_eq!(last, Some("run_finished".to_owned()));
}

async fn events_survive_any_text(over: Over) {
    let text = "a\r\nb\rc\n\ndata: x\nevent: end\n\n\u{2028}\u{0}\u{feff}日本\u{1f600}:";
    let stage = stage(over, [Script::new().text(text).delta_chars(1)]).await;
    let events = stage::all(
        stage
            .stream(text.get(..1).expect("a"), text)
            .await
            .expect("it begins"),
    )
    .await;
    let result = stage::end_of(&events);
    assert_eq!(result.text(), text);
}

async fn event_is_given_when_the_log_holds_its_record(over: Over) {
    // Nothing else saves anything before the end, and the model waits for what is looked at here.
    let (gate, journal) = (Gate::default(), MemoryJournal::default());
    let script = Script::new()
        .text("Half an answer.")
        .delta_chars(1)
        .wait_at(4, &gate);
    let stage = stage::kept(over, [script], journal.clone(), Durability::OnExit).await;
    let mut events = stage.stream("talk", "Go.").await.expect("it begins");
    for _ in 0..5 {
        let event = events
            .next()
            .await
            .expect("the run goes on")
            .expect("the stream goes on");
        let held = Sessions::new(Arc::new(journal.clone()))
            .journal()
            .info(&LogId::from("talk"))
            .await
            .expect("a log")
            .head;
        assert!(event.seq <= held, "{event:?}: the log holds {held:?}");
    }
    gate.open();
    stage::all(events).await;
}
