//! What an agent is told to be: texts, sources, and the sections around them.

#[path = "instructions/sections.rs"]
mod sections;
#[cfg(feature = "template")]
#[path = "instructions/template.rs"]
mod template;

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use adjutant_agent::{
    RunNo,
    instructions::{InstructionContext, InstructionError, InstructionErrorKind, Instructions},
    sections::{SectionContext, Sections, resolve_system},
};
use adjutant_tool::Identity;
use serde_json::{Map, Value, json};

fn who() -> Arc<Identity> {
    Arc::new(Identity::root("main".into(), "id", "scout"))
}

fn cx() -> InstructionContext {
    InstructionContext {
        who: who(),
        run: RunNo(3),
        state: Arc::default(),
    }
}

fn map(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).expect("an object")
}

#[tokio::test]
async fn instructions_are_exactly_their_text_when_given_one() {
    let text: Arc<str> = "  Be <brief>.\n</instructions>\n\n".into();
    let resolved = Instructions::default()
        .text(Arc::clone(&text))
        .resolve(cx())
        .await
        .expect("a text resolves");
    assert!(Arc::ptr_eq(&resolved, &text), "nothing is copied");
}

#[tokio::test]
async fn instructions_are_empty_when_nothing_was_set() {
    assert_eq!(
        &*Instructions::default()
            .resolve(cx())
            .await
            .expect("nothing resolves"),
        ""
    );
}

#[tokio::test]
async fn source_wins_over_text_whatever_was_set_first() {
    let source = || {
        async |cx: InstructionContext| Ok(format!("{} {} {}", cx.who.name, cx.run, cx.state["a"]))
    };
    let cx = InstructionContext {
        state: Arc::new(map(json!({"a": 7, "b": 2}))),
        ..cx()
    };
    for instructions in [
        Instructions::from("text").source(source()),
        Instructions::default().source(source()).text("text"),
    ] {
        assert_eq!(
            &*instructions
                .resolve(cx.clone())
                .await
                .expect("the source answers"),
            "scout 3 7"
        );
    }
}

#[tokio::test]
async fn source_is_not_taken_for_a_template_when_it_looks_like_one() {
    let instructions = Instructions::default().source(async |_| Ok("{{ x }} {%"));
    assert_eq!(
        &*instructions
            .resolve(cx())
            .await
            .expect("the source answers"),
        "{{ x }} {%"
    );
}

#[tokio::test]
async fn source_is_asked_at_each_run() {
    let asked = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&asked);
    let instructions = Instructions::default().source(move |_| {
        let nth = seen.fetch_add(1, Ordering::Relaxed) + 1;
        async move { Ok(format!("run {nth}")) }
    });
    assert_eq!(
        &*instructions.resolve(cx()).await.expect("the first"),
        "run 1"
    );
    assert_eq!(
        &*instructions.resolve(cx()).await.expect("the second"),
        "run 2"
    );
}

#[tokio::test]
async fn source_error_keeps_its_causes() {
    let unread = async |_| {
        Err::<String, _>(
            InstructionError::failure("no file")
                .with_source(std::io::Error::other("the disk is gone"))
                .into(),
        )
    };
    let instructions = Instructions::default().source(unread);
    let error = instructions
        .resolve(cx())
        .await
        .expect_err("the source fails");
    assert_eq!(error.to_string(), "the source of instructions failed");
    assert_eq!(
        &*error.explain(),
        "the source of instructions failed: no file: the disk is gone"
    );
    assert_eq!(
        (error.kind, error.is_retryable(), error.line),
        (InstructionErrorKind::Failed, true, None)
    );
}

#[tokio::test]
async fn source_error_of_a_foreign_type_is_said_once_and_keeps_its_causes() {
    let unread = async |_| {
        let cause = InstructionError::failure("no file")
            .with_source(std::io::Error::other("the disk is gone"));
        Err::<String, _>(std::io::Error::other(cause).into())
    };
    let error = Instructions::default()
        .source(unread)
        .resolve(cx())
        .await
        .expect_err("the source fails");
    assert_eq!(
        &*error.explain(),
        "the source of instructions failed: no file: the disk is gone"
    );
}

#[test]
fn error_explains_itself_within_its_limit() {
    let error =
        InstructionError::failure("a").with_source(InstructionError::failure("é".repeat(4_000)));
    let explained = error.explain();
    assert_eq!(*explained, format!("a: {}…", "é".repeat(2_045)));
    assert_eq!(explained.len(), 4_096);
}

#[tokio::test]
async fn resolving_fails_when_a_source_fails() {
    let instructions = Instructions::from("text")
        .source(async |_| Err::<String, _>(InstructionError::failure("no answer").into()));
    let cx = SectionContext {
        who: who(),
        run: RunNo(1),
        state: Arc::default(),
        tools: Arc::default(),
    };
    let error = resolve_system(&instructions, &Sections::default(), &cx)
        .await
        .expect_err("the source fails");
    assert_eq!(
        &*error.explain(),
        "the source of instructions failed: no answer"
    );
    assert_eq!(
        error.source().map(ToString::to_string).as_deref(),
        Some("no answer")
    );
}

#[tokio::test]
async fn source_can_be_asked_again_after_it_panicked() {
    let instructions = Arc::new(
        Instructions::default().source(async |cx: InstructionContext| {
            assert_ne!(cx.run, RunNo(3), "a defect of the source");
            Ok("fine")
        }),
    );
    let shared = Arc::clone(&instructions);
    let caught = tokio::spawn(async move { shared.resolve(cx()).await }).await;
    assert!(caught.expect_err("the panic goes through").is_panic());
    let resolved = instructions
        .resolve(InstructionContext {
            who: who(),
            run: RunNo(4),
            state: Arc::default(),
        })
        .await;
    assert_eq!(&*resolved.expect("the source answers"), "fine");
}
