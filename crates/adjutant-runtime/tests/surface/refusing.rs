//! Requests that are refused: names, sizes, empty prompts.

use adjutant_llm::Script;
use adjutant_runtime::{
    ErrorKind,
    prompt::{MAX_PROMPT_BYTES, MessagesRequest, ObjectRequest},
};
use serde_json::json;

use crate::stage::{self, Over, kind, kind_of, stage};

stage::both!(
    session_names_that_cannot_be_are_refused_everywhere,
    session_names_that_look_bad_are_only_names,
    prompt_that_is_too_long_is_refused,
    prompt_that_is_empty_is_refused,
);

async fn session_names_that_cannot_be_are_refused_everywhere(over: Over) {
    let stage = stage(over, []).await;
    let long = "a".repeat(129);
    for name in [
        "",
        "a\0b",
        "a\nb",
        "\u{1b}]0;x\u{7}",
        "\u{85}",
        "adjutant:half-made/1",
        &long,
    ] {
        assert_eq!(
            kind(stage.prompt(name, "Hi.").await),
            ErrorKind::Invalid,
            "{name:?}"
        );
        assert_eq!(
            kind_of(stage.stream(name, "Hi.").await),
            Some(ErrorKind::Invalid),
            "{name:?}"
        );
        let messages = MessagesRequest::new().session(name);
        assert_eq!(
            kind(stage.prompter.messages(messages).await),
            ErrorKind::Invalid,
            "{name:?}"
        );
    }
    assert_eq!(stage.model.requests().len(), 0);
}

async fn session_names_that_look_bad_are_only_names(over: Over) {
    let names = [
        ".",
        "..",
        "../../etc/passwd",
        "/",
        "a?b#c&d=e%2F",
        "a b+c",
        "日本語",
        "' OR 1=1 --",
        "\"\\",
        "%00",
    ];
    let stage = stage(
        over,
        names.map(|name| Script::new().text(format!("I am {name}"))),
    )
    .await;
    for name in names {
        let reply = stage.prompt(name, "Who are you?").await.expect("an answer");
        assert_eq!(
            (&*reply.session, reply.text),
            (name, format!("I am {name}"))
        );
        let page = stage
            .prompter
            .messages(MessagesRequest::new().session(name).limit(1))
            .await
            .expect("a page");
        assert_eq!(
            page.messages.first().map(|message| message.text.clone()),
            Some(format!("I am {name}"))
        );
    }
}

async fn prompt_that_is_too_long_is_refused(over: Over) {
    let stage = stage(over, []).await;
    let long = "x".repeat(MAX_PROMPT_BYTES + 1);
    assert_eq!(kind(stage.prompt("talk", &long).await), ErrorKind::Full);
    assert_eq!(
        kind_of(stage.stream("talk", &long).await),
        Some(ErrorKind::Full)
    );
    let object = ObjectRequest::new(long, json!({"type": "object"}));
    assert_eq!(kind(stage.prompter.object(object).await), ErrorKind::Full);
}

async fn prompt_that_is_empty_is_refused(over: Over) {
    let stage = stage(over, [Script::new().text("Hello.")]).await;
    assert_eq!(kind(stage.prompt("talk", "").await), ErrorKind::Invalid);
    assert_eq!(
        kind_of(stage.stream("talk", " ").await),
        Some(ErrorKind::Invalid)
    );
    assert_eq!(
        stage
            .prompt("talk", "Hi.")
            .await
            .expect("nothing was left")
            .text,
        "Hello."
    );
}
