//! What is sent, and how connections are used.

use std::{sync::Arc, time::Duration};

use adjutant_llm::{Chunk, ErrorKind, Model, ModelInfo, Options, Request, complete};
use adjutant_providers::{Chat, Key};
use tokio::{io::AsyncWriteExt, net::TcpListener};

use crate::server::{Nobody, WIRES, events, fixture, model, next, read, serve};

/// Checks the first line of a request and the header that says who is asking.
async fn check(wire: &str, path: &str, auth: (&str, &str)) {
    let mut server = serve(vec![events(&fixture(wire, "text"))]).await;
    let model = model(wire, &server.base_url, "sk-secret", Nobody);
    let request = Request::new()
        .options(Options::default().header("x-own", "1"))
        .user("hi");
    let reply = complete(&model, request).await.expect("a reply");
    assert!(!reply.text().is_empty(), "{wire}");
    let seen = server.next().await;
    assert_eq!(
        seen.head.lines().next(),
        Some(&*format!("POST {path} HTTP/1.1"))
    );
    let length = seen.body.len().to_string();
    let host = server.base_url.trim_start_matches("http://");
    for (name, value) in [
        auth,
        ("host", host),
        ("content-type", "application/json"),
        ("accept", "text/event-stream"),
        (
            "user-agent",
            concat!("adjutant/", env!("CARGO_PKG_VERSION")),
        ),
        ("content-length", &length),
        ("x-own", "1"),
    ] {
        assert_eq!(seen.header(name), Some(value), "{wire}: {name}");
    }
    assert_eq!(seen.head.matches("sk-secret").count(), 1, "{wire}");
    // What is not asked for is not sent: an answer must come as it is, event by event.
    for name in ["accept-encoding", "transfer-encoding", "expect", "cookie"] {
        assert_eq!(seen.header(name), None, "{wire}");
    }
    assert!(
        serde_json::from_str::<serde_json::Value>(&seen.body).is_ok_and(|body| body.is_object()),
        "{wire}"
    );
}

#[tokio::test]
async fn request_carries_the_credentials_when_it_is_sent() {
    check("anthropic", "/v1/messages", ("x-api-key", "sk-secret")).await;
    check(
        "openai",
        "/v1/responses",
        ("authorization", "Bearer sk-secret"),
    )
    .await;
    let path = "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse";
    check("gemini", path, ("x-goog-api-key", "sk-secret")).await;
    check(
        "chat",
        "/v1/chat/completions",
        ("authorization", "Bearer sk-secret"),
    )
    .await;
    check("azure", "/v1/chat/completions", ("api-key", "sk-secret")).await;
}

#[tokio::test]
async fn request_is_sent_exactly_when_it_is_small() {
    let mut server = serve(vec![events(&fixture("anthropic", "text"))]).await;
    let model = model("anthropic", &server.base_url, "sk-secret", Nobody);
    complete(&model, Request::new().user("hi"))
        .await
        .expect("a reply");
    let seen = server.next().await;
    assert_eq!(seen.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(
        seen.body,
        r#"{"model":"claude-sonnet-5","max_tokens":8192,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}"#
    );
}

#[tokio::test]
async fn request_says_nothing_of_the_caller_when_there_is_no_key() {
    for wire in WIRES {
        let mut server = serve(vec![events(&fixture(wire, "text"))]).await;
        let model = model(wire, &server.base_url, Key::none(), Nobody);
        complete(&model, Request::new().user("hi"))
            .await
            .expect("a reply");
        let seen = server.next().await;
        for name in ["authorization", "x-api-key", "x-goog-api-key", "api-key"] {
            assert_eq!(seen.header(name), None, "{wire}");
        }
    }
}

#[tokio::test]
async fn connection_is_used_again_when_the_reply_was_read_to_its_end() {
    for wire in WIRES {
        let text = fixture(wire, "text");
        let mut server = serve(vec![events(&text), events(&text), events(&text)]).await;
        let model = model(wire, &server.base_url, "sk-secret", Nobody);
        let mut request = Request::new().user("x".repeat(100_000));
        for turn in 0..3 {
            complete(&model, request.clone()).await.expect("a reply");
            let seen = server.next().await;
            assert_eq!(seen.connection, 1, "{wire}: turn {turn}");
            assert!(seen.body.ends_with('}') && seen.body.len() > 100_000);
            request = request.user("more");
        }
    }
}

#[tokio::test]
async fn start_says_the_limits_when_the_answer_carries_them() {
    for wire in WIRES {
        let server = serve(vec![events(&fixture(wire, "text"))]).await;
        let model = model(wire, &server.base_url, "sk-secret", Nobody);
        let mut request = Request::new().user("hi");
        request.attempt = 2;
        let mut stream = model.stream(request);
        let Some(Ok(Chunk::Start {
            attempt,
            model: id,
            limits,
            warnings,
        })) = next(&mut stream).await
        else {
            unreachable!("a stream begins with a start")
        };
        assert_eq!(
            (attempt, &id, limits.requests_left, warnings.len()),
            (2, &model.info().id, Some(59), 0)
        );
    }
}

#[tokio::test]
async fn error_names_the_host_when_nothing_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    for wire in WIRES {
        let model = model(wire, &format!("http://{address}"), "sk-secret", Nobody);
        let error = complete(&model, Request::new().user("hi"))
            .await
            .expect_err("nothing listens");
        assert_eq!(error.kind(), ErrorKind::Network);
        assert_eq!(
            error.message(),
            format!("could not connect to {address}: nothing listens there")
        );
        let all = format!("{error:?}");
        assert!(!all.contains("sk-secret") && !all.contains("/v1"), "{all}");
    }
}

#[tokio::test]
async fn connection_closes_when_the_stream_is_dropped() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base_url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    let model = Chat::new(ModelInfo::new("openai/x"), Key::none()).base_url(base_url);
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("a caller");
        read(&mut socket).await.expect("a request");
        let text = fixture("chat", "text");
        let (half, _) = text.split_at(text.len() / 2);
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 99999\r\n\r\n";
        socket
            .write_all(format!("{head}{half}").as_bytes())
            .await
            .expect("it is sent");
        read(&mut socket).await.is_none()
    });
    let mut stream = model.stream(Request::new().user("hi"));
    assert!(matches!(
        next(&mut stream).await,
        Some(Ok(Chunk::Start { .. }))
    ));
    drop(stream);
    assert!(
        server.await.expect("the server ends"),
        "the connection was closed"
    );
}

/// Asks once on a runtime of its own, which then stands still until it is released: not polled, or held by a body that
/// blocks; then asks here.
async fn check_beside_a_runtime_that_stands_still(is_held: bool) {
    let text = fixture("chat", "text");
    let mut server = serve(vec![events(&text), events(&text)]).await;
    let model = model("chat", &server.base_url, "sk", Nobody);
    let (first, (asked, has_asked), (release, released)) = (
        Arc::clone(&model),
        tokio::sync::oneshot::channel(),
        std::sync::mpsc::channel::<()>(),
    );
    let stands = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let reply = complete(&first, Request::new().user("hi")).await;
            asked.send(reply.is_ok()).expect("the test waits");
            if is_held {
                released.recv().expect("it is released");
            }
        });
        if !is_held {
            released.recv().expect("it is released");
        }
    });
    assert!(has_asked.await.expect("it asks"));
    let reply = tokio::time::timeout(
        Duration::from_secs(20),
        complete(&model, Request::new().user("hi")),
    )
    .await;
    assert!(reply.expect("it waits for no other runtime").is_ok());
    assert_eq!(
        (
            server.next().await.connection,
            server.next().await.connection
        ),
        (1, 2)
    );
    release.send(()).expect("it waits");
    stands.join().expect("it ends");
}

#[tokio::test]
async fn requests_go_on_when_another_runtime_stands_still() {
    check_beside_a_runtime_that_stands_still(false).await;
    check_beside_a_runtime_that_stands_still(true).await;
}
