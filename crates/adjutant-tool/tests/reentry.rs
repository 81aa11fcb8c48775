//! Re-entry: bodies that are dropped anywhere and entered again, and bodies that are not the same twice.

use std::{
    future::{pending, ready},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use adjutant_tool::{
    Answer, Ask, Bound, CallContext, Cancel, Cut, Detached, Entered, Identity, Reentry, Replay,
    ToolError, ToolErrorKind, tool,
};
use serde_json::json;

type Done = Arc<Mutex<Vec<&'static str>>>;

/// Reserves, asks, pays, and tells what it did.
async fn buy(cx: CallContext, done: Done) -> Result<String, ToolError> {
    let note = |what| {
        done.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(what);
        ready(Ok::<_, ToolError>(what.len()))
    };
    let reserved = cx.once("reserve", || note("reserve")).await?;
    cx.confirm("sure", "pay?").await?;
    let paid = cx.once("pay", || note("pay")).await?;
    Ok(format!("{reserved} {paid}"))
}

fn failed<T>(kind: ToolErrorKind, message: &str) -> Entered<T> {
    Entered::Failed(ToolError::new(kind, message))
}

fn diverged<T>(message: &str) -> Entered<T> {
    failed(ToolErrorKind::Diverged, message)
}

/// Drops the body at the cut, then lets it run, and says how it ended and what was done.
async fn drop_at(cut: Cut) -> (Entered<String>, Entered<String>, Vec<&'static str>) {
    let (call, done) = (Reentry::default(), Done::default());
    let enter = |cx| buy(cx, Arc::clone(&done));
    // Answered first, so that every step can be reached.
    if !matches!(cut, Cut::Before(1 | 2) | Cut::Within(1) | Cut::After(1)) {
        assert!(matches!(call.enter(enter).await, Entered::Waiting(_)));
        call.answer("sure", Answer::approve()).expect("it waits");
    }
    let dropped = call.enter_until(cut, enter).await;
    let mut ended = call.enter(enter).await;
    if let Entered::Waiting(_) = ended {
        call.answer("sure", Answer::approve()).expect("it waits");
        ended = call.enter(enter).await;
    }
    let done = done.lock().expect("nobody panicked").clone();
    (dropped, ended, done)
}

#[tokio::test]
async fn body_does_each_step_at_most_once_when_it_is_dropped_anywhere() {
    let ended = || Entered::Ended("7 3".to_owned());
    let unknown = |key: &str| {
        let message =
            format!("step {key:?} was begun before a crash; whether it took effect is not known");
        failed::<String>(ToolErrorKind::OutcomeUnknown, &message)
    };
    let both = vec!["reserve", "pay"];
    let table = [
        (Cut::Before(1), ended(), both.clone()),
        (Cut::Within(1), unknown("reserve"), vec!["reserve"]),
        (Cut::After(1), ended(), both.clone()),
        (Cut::Before(2), ended(), both.clone()),
        (Cut::After(2), ended(), both.clone()),
        (Cut::Before(3), ended(), both.clone()),
        (Cut::Within(3), unknown("pay"), both.clone()),
        (Cut::After(3), ended(), both.clone()),
    ];
    for (cut, expect, did) in table {
        assert_eq!(
            drop_at(cut).await,
            (Entered::Dropped, expect, did),
            "{cut:?}"
        );
    }
}

#[tokio::test]
async fn entry_ends_when_the_cut_is_never_reached() {
    let call = Reentry::default();
    let body = |cx: CallContext| async move { cx.once("only", || ready(Ok(1))).await };
    assert_eq!(
        call.enter_until(Cut::Before(2), body).await,
        Entered::Ended(1)
    );
}

#[tokio::test]
async fn pauses_come_together_when_they_are_asked_for_together() {
    let call = Reentry::default();
    let body = |cx: CallContext| async move {
        let (a, b) = tokio::join!(cx.ask("a", "first?"), cx.ask("b", "second?"));
        Ok((a?, b?))
    };
    let asks = [
        ("a".into(), Ask::question("first?")),
        ("b".into(), Ask::question("second?")),
    ];
    assert_eq!(call.enter(body).await, Entered::Waiting(asks.to_vec()));
    call.answer("b", Answer::give(2)).expect("it waits");
    assert_eq!(call.enter(body).await, Entered::Waiting(asks[..1].to_vec()));
    call.answer("a", Answer::give(1)).expect("it waits");
    assert_eq!(call.enter(body).await, Entered::Ended((json!(1), json!(2))));
    assert_eq!(
        (call.keys(), call.request_count("a"), call.ran("a")),
        (vec!["a".into(), "b".into()], 3, 0)
    );
}

#[tokio::test]
async fn answer_is_refused_when_it_is_not_waited_for() {
    let call = Reentry::default();
    let body = |cx: CallContext| async move {
        cx.pause(
            "n",
            Ask {
                schema: json!({"type": "integer"}),
                ..Ask::question("?")
            },
        )
        .await
    };
    let refused = |key: &str, answer| {
        call.answer(key, answer)
            .expect_err("it does not fit")
            .message
            .to_string()
    };
    assert_eq!(
        refused("n", Answer::give(1)),
        "nothing waits for an answer to \"n\""
    );
    assert!(matches!(call.enter(body).await, Entered::Waiting(_)));
    assert_eq!(
        refused("m", Answer::give(1)),
        "nothing waits for an answer to \"m\""
    );
    assert_eq!(
        refused("n", Answer::approve()),
        "an approval does not answer a question"
    );
    assert_eq!(
        refused("n", Answer::give("x")),
        "the value does not fit:\n  - (root): want integer, but got string\n"
    );
    call.answer("n", Answer::give(1)).expect("this one fits");
    assert_eq!(
        refused("n", Answer::give(1)),
        "nothing waits for an answer to \"n\""
    );
    assert_eq!(call.enter(body).await, Entered::Ended(Answer::give(1)));
}

/// Enters a body that takes these keys as steps, or as pauses if they begin with a question mark.
async fn take(call: &Reentry, keys: &[&str]) -> Entered<()> {
    call.enter(async |cx: CallContext| {
        for key in keys {
            // A body that does not care must not hide that it diverged.
            let _ = match key.strip_prefix('?') {
                Some(pause) => cx.confirm(pause, *key).await,
                None => cx.once(key, || ready(Ok(()))).await,
            };
        }
        Ok(())
    })
    .await
}

async fn diverges(first: &[&str], second: &[&str], message: &str) {
    let call = Reentry::default();
    let _ = take(&call, first).await;
    assert_eq!(
        take(&call, second).await,
        diverged(message),
        "{first:?} {second:?}"
    );
}

#[tokio::test]
async fn body_diverges_when_it_is_not_the_same_twice() {
    diverges(
        &["a", "b"],
        &["b", "a"],
        "the body asks for \"b\", but \"a\" is noted next",
    )
    .await;
    diverges(
        &["a", "b"],
        &["a", "c"],
        "the body asks for \"c\", but \"b\" is noted next",
    )
    .await;
    diverges(
        &["a", "b"],
        &["a"],
        "the body ended without asking for \"b\", which is noted",
    )
    .await;
    diverges(&["a"], &["?a"], "\"a\" was noted as something else").await;
    diverges(&["?a"], &["a"], "\"a\" was noted as something else").await;
    let call = Reentry::default();
    assert_eq!(take(&call, &["a"]).await, Entered::Ended(()));
    assert_eq!(
        take(&call, &["a", "b", "a"]).await,
        Entered::Ended(()),
        "more is no other"
    );
    assert_eq!(
        (call.ran("a"), call.request_count("a"), call.ran("b")),
        (1, 3, 1)
    );
}

#[tokio::test]
async fn body_diverges_when_it_asks_something_else() {
    let call = Reentry::default();
    let entry = AtomicUsize::new(0);
    let body = |cx: CallContext| {
        let prompt = format!("delete {}?", entry.fetch_add(1, Ordering::Relaxed));
        async move { cx.confirm("sure", prompt).await }
    };
    assert!(matches!(call.enter(body).await, Entered::Waiting(_)));
    call.answer("sure", Answer::approve()).expect("it waits");
    assert_eq!(
        call.enter(body).await,
        diverged("\"sure\" was noted as something else")
    );
}

#[tokio::test]
async fn step_stays_begun_when_its_work_fails() {
    let call = Reentry::default();
    let body = |cx: CallContext| async move {
        cx.once("try", || ready(Err::<(), _>(ToolError::failed("no luck"))))
            .await
    };
    assert_eq!(
        call.enter(body).await,
        failed(ToolErrorKind::Failed, "no luck")
    );
    let message = "step \"try\" was begun before a crash; whether it took effect is not known";
    assert_eq!(
        call.enter(body).await,
        failed(ToolErrorKind::OutcomeUnknown, message)
    );
    assert_eq!(call.ran("try"), 1);
}

#[tokio::test]
async fn door_is_shut_when_the_entry_is_over() {
    let call = Reentry::default();
    let mut kept = None;
    let body = |cx: CallContext| {
        kept = Some(cx.clone());
        ready(Ok(()))
    };
    assert_eq!(call.enter(body).await, Entered::Ended(()));
    let late = kept.expect("the context was kept");
    let error = late
        .once("late", || ready(Ok(())))
        .await
        .expect_err("the entry is over");
    assert_eq!(
        (error.kind, &*error.message, call.keys().len()),
        (ToolErrorKind::Cancelled, "the call has ended", 0)
    );
}

#[tokio::test]
async fn log_learns_nothing_when_the_entry_was_cut() {
    let call = Reentry::default();
    let body = |cx: CallContext| async move {
        let step = async |key: &str| cx.once(key, || ready(Ok(()))).await;
        let (a, b, ()) = tokio::join!(step("a"), step("b"), pending());
        a.and(b)
    };
    assert_eq!(
        call.enter_until(Cut::Within(1), body).await,
        Entered::Dropped
    );
    assert_eq!(call.keys(), ["a".into()]);
}

#[tokio::test]
async fn pause_drops_the_body_when_it_is_asked_for_in_a_task() {
    let call = Reentry::default();
    let body = |cx: CallContext| async move {
        tokio::spawn(async move { cx.confirm("sure", "go?").await })
            .await
            .expect("the task ends")
    };
    let asked = vec![("sure".into(), Ask::approval("go?"))];
    assert_eq!(call.enter(body).await, Entered::Waiting(asked));
    call.answer("sure", Answer::deny("no")).expect("it waits");
    assert_eq!(call.enter(body).await, failed(ToolErrorKind::Denied, "no"));
}

/// Greets whom it is told to.
#[tool(replay = "resumable")]
async fn greet(cx: CallContext) -> Result<String, ToolError> {
    let whom = cx.ask("whom", "whom?").await?;
    let greeting = cx
        .get::<String>()
        .ok_or_else(|| ToolError::failed("no greeting"))?;
    Ok(format!("{greeting} {whom}, says {}", cx.who.name))
}

#[tokio::test]
async fn tool_has_its_handles_when_a_context_is_given() {
    let bound = Bound::new(greet);
    assert_eq!(bound.spec().replay, Replay::Resumable);
    let who = Arc::new(Identity::root("t".into(), "id", "agent"));
    let cx =
        CallContext::new(who, Cancel::new(), Arc::new(Detached)).put(Arc::new("hello".to_owned()));
    let call = Reentry::within(cx);
    assert!(matches!(
        call.enter(|cx| bound.call(json!({}), cx)).await,
        Entered::Waiting(_)
    ));
    call.answer("whom", Answer::give("world"))
        .expect("it waits");
    let Entered::Ended(result) = call.enter(|cx| bound.call(json!({}), cx)).await else {
        panic!("it goes on")
    };
    assert_eq!(result.text(), "hello \"world\", says agent");
}
