//! What was said in a session, and which sessions there are.

use adjutant_llm::Script;
use adjutant_runtime::{
    ErrorKind,
    prompt::{MessagesRequest, SessionsRequest},
};
use serde_json::json;

use crate::stage::{self, Over, Stage, kind, stage};

stage::both!(
    messages_are_paged_from_the_newest_and_oldest_first,
    messages_tell_of_tools_and_leave_out_empty_texts,
    messages_of_a_session_that_is_not_there_are_missing,
    messages_refuse_limits_out_of_range,
    sessions_are_paged_from_the_newest,
    sessions_refuse_marks_that_no_page_gave,
);

async fn messages_are_paged_from_the_newest_and_oldest_first(over: Over) {
    let stage = stage(
        over,
        (0..4).map(|at| Script::new().text(format!("answer {at}"))),
    )
    .await;
    for at in 0..4 {
        stage
            .prompt("talk", &format!("question {at}"))
            .await
            .expect("an answer");
    }
    let (mut pages, mut before) = (Vec::new(), None);
    loop {
        let mut request = MessagesRequest::new().session("talk").limit(3);
        request.before = before;
        let page = stage.prompter.messages(request).await.expect("a page");
        pages.push(
            page.messages
                .iter()
                .map(|message| message.text.clone())
                .collect::<Vec<_>>(),
        );
        before = page.before;
        if before.is_none() {
            break;
        }
    }
    let expect = [
        vec!["answer 2", "question 3", "answer 3"],
        vec!["question 1", "answer 1", "question 2"],
        vec!["question 0", "answer 0"],
    ];
    assert_eq!(pages, expect);
    let none = stage
        .prompter
        .messages(MessagesRequest::new().session("talk").before(0))
        .await
        .expect("a page");
    assert_eq!((none.messages.len(), none.before), (0, None));
}

async fn messages_tell_of_tools_and_leave_out_empty_texts(over: Over) {
    let scripts = [
        Script::new().call("add", json!({"a": 2, "b": 3})),
        Script::new().text("Five."),
    ];
    let stage = stage(over, scripts).await;
    stage
        .prompt("talk", "Two and three?")
        .await
        .expect("an answer");
    let page = stage
        .prompter
        .messages(MessagesRequest::new().session("talk"))
        .await
        .expect("a page");
    let told: Vec<(&str, &str)> = page
        .messages
        .iter()
        .map(|it| (&*it.role, it.text.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("user", "Two and three?"),
            ("tool", "5"),
            ("assistant", "Five.")
        ]
    );
    assert!(
        page.messages
            .iter()
            .all(|message| message.at_ms > 1_600_000_000_000)
    );
}

async fn messages_of_a_session_that_is_not_there_are_missing(over: Over) {
    let stage = stage(over, []).await;
    for request in [
        MessagesRequest::new(),
        MessagesRequest::new().session("nobody"),
        MessagesRequest::new().session(".."),
    ] {
        assert_eq!(
            kind(stage.prompter.messages(request).await),
            ErrorKind::Missing
        );
    }
}

async fn messages_refuse_limits_out_of_range(over: Over) {
    let stage = stage(over, [Script::new().text("Hello.")]).await;
    stage.prompt("talk", "Hi.").await.expect("an answer");
    for limit in [0, 1001, u32::MAX] {
        let request = MessagesRequest::new().session("talk").limit(limit);
        assert_eq!(
            kind(stage.prompter.messages(request).await),
            ErrorKind::Invalid,
            "{limit}"
        );
    }
    let most = stage
        .prompter
        .messages(MessagesRequest::new().session("talk").limit(1000))
        .await
        .expect("a page");
    assert_eq!(most.messages.len(), 2);
}

async fn names(stage: &Stage, request: SessionsRequest) -> (Vec<String>, Option<String>) {
    let page = stage.prompter.sessions(request).await.expect("a page");
    (
        page.sessions
            .iter()
            .map(|session| session.name.to_string())
            .collect(),
        page.after,
    )
}

async fn sessions_are_paged_from_the_newest(over: Over) {
    let stage = stage(over, (0..3).map(|_| Script::new().text("Hello."))).await;
    for session in ["a:1", "b/2", "c 3"] {
        stage.prompt(session, "Hi.").await.expect("an answer");
    }
    let (mut all, mut after) = names(&stage, SessionsRequest::new().limit(2)).await;
    assert_eq!(all.len(), 2);
    while let Some(mark) = after {
        let (more, next) = names(&stage, SessionsRequest::new().limit(2).after(mark)).await;
        all.extend(more);
        after = next;
    }
    all.sort();
    assert_eq!(all, ["a:1", "b/2", "c 3"]);
}

async fn sessions_refuse_marks_that_no_page_gave(over: Over) {
    let stage = stage(over, []).await;
    for mark in ["", "x", "x:y", "5:", "-1:a", "5:a\nb"] {
        let page = stage
            .prompter
            .sessions(SessionsRequest::new().after(mark))
            .await;
        assert_eq!(kind(page), ErrorKind::Invalid, "{mark:?}");
    }
    assert_eq!(
        kind(
            stage
                .prompter
                .sessions(SessionsRequest::new().limit(0))
                .await
        ),
        ErrorKind::Invalid
    );
}
