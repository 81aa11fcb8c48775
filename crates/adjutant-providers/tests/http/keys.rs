//! Keys that are asked for before every request, and what becomes of keys that a server repeats.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use adjutant_llm::{Error, ErrorKind, Options, Request, complete};
use adjutant_providers::Key;

use crate::server::{Nobody, WIRES, events, fixture, model, serve, status};

/// A key that is another one for each request.
fn counting() -> Key {
    let count = Arc::new(AtomicUsize::new(1));
    Key::new("sk-configured").resolve(move || {
        let number = count.fetch_add(1, Ordering::Relaxed);
        // A real one is fetched, so it is not there at once.
        async move {
            tokio::task::yield_now().await;
            Ok(Some(format!(" token-number-{number}\n")))
        }
    })
}

#[tokio::test]
async fn every_request_has_a_token_of_its_own_when_the_key_is_asked_for() {
    for (wire, name, scheme) in [
        ("anthropic", "x-api-key", ""),
        ("openai", "authorization", "Bearer "),
        ("gemini", "x-goog-api-key", ""),
        ("chat", "authorization", "Bearer "),
        ("azure", "api-key", ""),
    ] {
        let text = fixture(wire, "text");
        let mut server = serve(vec![events(&text), events(&text)]).await;
        let model = model(wire, &server.base_url, counting(), Nobody);
        for number in 1..=2 {
            complete(&model, Request::new().user("hi"))
                .await
                .expect("a reply");
            let seen = server.next().await;
            assert_eq!(
                seen.header(name),
                Some(&*format!("{scheme}token-number-{number}")),
                "{wire}"
            );
            assert!(!seen.head.contains("sk-configured"), "{wire}");
        }
        let printed = format!("{model:?}");
        assert!(
            !printed.contains("sk-configured") && !printed.contains("token-number"),
            "{printed}"
        );
    }
}

#[tokio::test]
async fn configured_key_is_kept_when_the_answer_is_empty() {
    for answer in [None, Some(String::new()), Some(" \n".to_owned())] {
        let mut server = serve(vec![events(&fixture("chat", "text"))]).await;
        let key = Key::new("sk-configured").resolve(move || std::future::ready(Ok(answer.clone())));
        let model = model("chat", &server.base_url, key, Nobody);
        complete(&model, Request::new().user("hi"))
            .await
            .expect("a reply");
        assert_eq!(
            server.next().await.header("authorization"),
            Some("Bearer sk-configured")
        );
    }
}

#[tokio::test]
async fn request_is_not_sent_when_its_key_cannot_be_had() {
    for wire in WIRES {
        let mut server = serve(vec![events(&fixture(wire, "text"))]).await;
        let refused = || {
            std::future::ready(Err(Error::new(
                ErrorKind::Auth,
                "the vault said no to sk-configured",
            )))
        };
        let model = model(
            wire,
            &server.base_url,
            Key::new("sk-configured").resolve(refused),
            Nobody,
        );
        let error = complete(&model, Request::new().user("hi"))
            .await
            .expect_err("there is no key");
        assert_eq!(
            error,
            Error::new(ErrorKind::Auth, "the vault said no to [key]")
        );
        assert!(server.seen.try_recv().is_err(), "nothing was sent");
    }
}

#[tokio::test]
async fn request_is_not_sent_when_its_key_fits_no_header() {
    let server = serve(Vec::new()).await;
    let key = Key::none().resolve(|| std::future::ready(Ok(Some("two\nlines".to_owned()))));
    let error = complete(
        &model("chat", &server.base_url, key, Nobody),
        Request::new().user("hi"),
    )
    .await;
    let expect = Error::new(
        ErrorKind::Config,
        "the key holds characters that no header can carry",
    );
    assert_eq!(error.expect_err("it cannot be sent"), expect);
}

#[tokio::test(start_paused = true)]
async fn request_times_out_when_its_key_never_comes() {
    for wire in WIRES {
        let key = Key::new("sk-configured").resolve(std::future::pending);
        let begun = tokio::time::Instant::now();
        let model = model(wire, "http://127.0.0.1:9", key, Nobody);
        let error = complete(&model, Request::new().user("hi"))
            .await
            .expect_err("there is no key");
        let expect = Error::new(
            ErrorKind::Timeout,
            "no key for 127.0.0.1:9 was there within 120s",
        );
        assert_eq!((error, begun.elapsed()), (expect, Duration::from_secs(120)));
    }
}

#[tokio::test]
async fn error_holds_no_key_when_a_server_repeats_it() {
    for wire in WIRES {
        let body = r#"{"error":{"type":"authentication_error","message":"no: token-number-1, sk-configured, own-secret"}}"#;
        let server = serve(vec![status(
            "401 Unauthorized",
            "request-id: token-number-1\r\n",
            body,
        )])
        .await;
        let model = model(wire, &server.base_url, counting(), Nobody);
        let options = Options::default().header("x-backup-key", "own-secret");
        let error = complete(&model, Request::new().options(options).user("hi"))
            .await
            .expect_err("it is refused");
        assert!(
            error
                .message()
                .ends_with("(authentication_error): no: [key], [key], [key]"),
            "{error}"
        );
        assert_eq!(
            (error.kind(), error.details().request_id.as_deref()),
            (ErrorKind::Auth, Some("[key]"))
        );
        let all = format!("{error:?}");
        let found = ["token-number-1", "sk-configured", "own-secret"]
            .iter()
            .any(|it| all.contains(it));
        assert!(!found, "{all}");
    }
}

#[tokio::test]
async fn error_holds_no_half_of_a_key_when_its_body_is_cut_there() {
    let secret = "sk-a-key-of-many-characters";
    for before in 2_048 - secret.len()..2_048 {
        let body = format!("{}{secret}", "x".repeat(before));
        let server = serve(vec![status("500 Oops", "", &body)]).await;
        let error = complete(
            &model("chat", &server.base_url, secret, Nobody),
            Request::new().user("hi"),
        )
        .await;
        let error = error.expect_err("it is refused");
        let body = error.details().body.as_deref().expect("a body");
        assert!(
            body.trim_start_matches('x').starts_with("[key]")
                || "[key]".starts_with(body.trim_start_matches('x'))
        );
    }
}

#[tokio::test]
async fn error_in_the_stream_holds_no_key_when_a_server_repeats_it() {
    let event = "data: {\"error\":{\"message\":\"token-number-1 is worn out\",\"code\":401}}\n\n";
    let server = serve(vec![events(event)]).await;
    let model = model("chat", &server.base_url, counting(), Nobody);
    let error = complete(&model, Request::new().user("hi"))
        .await
        .expect_err("it broke off");
    assert_eq!(
        error.message(),
        "openai/gpt-5.4 broke off with an error: [key] is worn out"
    );
    assert!(
        error
            .details()
            .body
            .as_deref()
            .is_some_and(|body| body.contains("[key] is") && !body.contains("token-number"))
    );
}
