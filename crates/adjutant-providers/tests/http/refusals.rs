//! How refusals are read: status, code, request id, how long to wait, and what else a server may answer.

use std::time::Duration;

use adjutant_llm::{
    Content, Error, ErrorKind, Image, Overflow, RefusedMedia, Request, Source, Transcript,
    UserMessage, complete,
};

use crate::server::{Answer, Nobody, WIRES, events, fixture, model, next, serve, status};

/// What a wire makes of one answer.
async fn refused(wire: &str, answer: Answer) -> Error {
    let server = serve(vec![answer]).await;
    let mut stream =
        model(wire, &server.base_url, "sk-secret", Nobody).stream(Request::new().user("hi"));
    let error = next(&mut stream)
        .await
        .expect("an item")
        .expect_err("it is refused");
    assert!(
        next(&mut stream).await.is_none(),
        "nothing follows an error"
    );
    error
}

#[tokio::test]
async fn refusal_keeps_what_was_said_when_the_status_is_no_success() {
    for (wire, id, body, code) in [
        (
            "anthropic",
            "request-id",
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down, sk-secret"}}"#,
            "rate_limit_error",
        ),
        (
            "openai",
            "x-request-id",
            r#"{"error":{"message":"slow down, sk-secret","type":"requests","code":"rate_limit_exceeded"}}"#,
            "rate_limit_exceeded",
        ),
        (
            "gemini",
            "x-request-id",
            r#"[{"error":{"code":429,"message":"slow down, sk-secret","status":"RESOURCE_EXHAUSTED"}}]"#,
            "RESOURCE_EXHAUSTED",
        ),
        (
            "chat",
            "x-request-id",
            r#"{"object":"error","message":"slow down, sk-secret","type":"rate_limited","code":"1300"}"#,
            "1300",
        ),
    ] {
        let headers =
            format!("content-type: application/json\r\n{id}: req_7\r\nretry-after: 1.5\r\n");
        let error = refused(wire, status("429 Too Many Requests", &headers, body)).await;
        let server = serve(Vec::new()).await;
        let name = model(wire, &server.base_url, "", Nobody).info().id.clone();
        let expect = Error::new(
            ErrorKind::RateLimited,
            format!("{name} answered 429 ({code}): slow down, [key]"),
        )
        .with(|it| {
            it.status = Some(429);
            it.code = Some(code.into());
            it.request_id = Some("req_7".into());
            it.retry_after = Some(Duration::from_millis(1_500));
            it.body = Some(body.replace("sk-secret", "[key]").into());
        });
        assert_eq!(error, expect, "{wire}");
    }
}

#[tokio::test]
async fn wait_is_read_when_it_is_said_in_any_form() {
    let date = "date: Tue, 29 Feb 2028 23:59:50 GMT\r\n";
    for (headers, expect) in [
        ("retry-after: 7\r\n", Some(7_000)),
        ("retry-after: 0.25\r\n", Some(250)),
        ("Retry-After-Ms: 1500\r\nRetry-After: 9\r\n", Some(1_500)),
        ("retry-after-ms: soon\r\nretry-after: 9\r\n", Some(9_000)),
        (
            &*format!("{date}retry-after: Wed, 01 Mar 2028 00:00:20 GMT\r\n"),
            Some(30_000),
        ),
        ("retry-after: Wed, 01 Mar 2028 00:00:20 GMT\r\n", None),
        ("retry-after: -1\r\n", None),
        ("", None),
    ] {
        for wire in WIRES {
            let error = refused(wire, status("503 Busy", headers, "{}")).await;
            assert_eq!(
                error.retry_after(),
                expect.map(Duration::from_millis),
                "{wire}: {headers}"
            );
            assert_eq!(
                (error.kind(), error.is_retryable()),
                (ErrorKind::Overloaded, true)
            );
        }
    }
    let info =
        r#"{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.074824224s"}"#;
    let body = format!(
        r#"{{"error":{{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":[{info}]}}}}"#
    );
    let error = refused("gemini", status("429 Slow", "", &body)).await;
    assert_eq!(
        error.retry_after(),
        Some(Duration::from_nanos(34_074_824_224))
    );
    let error = refused("gemini", status("429 Slow", "retry-after: 2\r\n", &body)).await;
    assert_eq!(
        error.retry_after(),
        Some(Duration::from_secs(2)),
        "the header is the later word"
    );
}

#[tokio::test]
async fn retry_is_as_the_server_wishes_when_it_says_so() {
    for (line, should, retryable) in [
        ("x-should-retry: true\r\n", Some(true), [true, true]),
        ("x-should-retry: false\r\n", Some(false), [false, false]),
        ("x-should-retry: perhaps\r\n", None, [true, false]),
        ("", None, [true, false]),
    ] {
        for (answer, retryable) in ["500 Oops", "400 Bad"].into_iter().zip(retryable) {
            let error = refused("anthropic", status(answer, line, r#"{"error":"no"}"#)).await;
            assert_eq!(
                (error.details().should_retry, error.is_retryable()),
                (should, retryable),
                "{answer} {line}"
            );
        }
    }
}

#[tokio::test]
async fn refusal_is_bounded_when_its_body_is_endless() {
    let body = "x".repeat(200_000);
    for wire in WIRES {
        let error = refused(wire, status("500 Oops", "", &body)).await;
        assert_eq!(
            (error.kind(), error.details().status),
            (ErrorKind::Overloaded, Some(500))
        );
        assert_eq!(error.details().body.as_deref().map(str::len), Some(2_048));
        assert!(error.message().len() < 600, "{error}");
    }
}

#[tokio::test]
async fn refusal_is_kept_when_its_body_breaks_off() {
    let whole = status(
        "529 Overloaded",
        "request-id: req_9\r\n",
        r#"{"error":{"type":"overloaded_error"}}"#,
    );
    let head = "HTTP/1.1 529 Overloaded\r\nrequest-id: req_9\r\ncontent-length: 37\r\n\r\n".len();
    let error = refused("anthropic", whole.cut(head + 10)).await;
    let got = (
        error.kind(),
        error.details().status,
        error.details().request_id.as_deref(),
        error.details().body.as_deref(),
    );
    assert_eq!(
        got,
        (
            ErrorKind::Overloaded,
            Some(529),
            Some("req_9"),
            Some(r#"{"error":{"#)
        )
    );
}

#[tokio::test]
async fn redirect_is_not_followed_when_a_server_sends_one() {
    let target = serve(vec![events(&fixture("chat", "text"))]).await;
    for code in ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"] {
        for wire in WIRES {
            let headers = format!("location: {}/\r\n", target.base_url);
            let error = refused(wire, status(code, &headers, "")).await;
            assert_eq!(
                (error.kind(), error.is_retryable()),
                (ErrorKind::Config, false),
                "{wire}: {error}"
            );
            assert_eq!(
                error.details().status.map(|it| it.to_string()).as_deref(),
                code.split(' ').next()
            );
        }
    }
    let mut target = target;
    assert!(
        target.seen.try_recv().is_err(),
        "nobody came, and no key with them"
    );
}

#[tokio::test]
async fn connection_is_used_again_when_a_refusal_was_read_to_its_end() {
    for wire in WIRES {
        let mut server = serve(vec![
            status("429 Slow", "", "{}"),
            events(&fixture(wire, "text")),
        ])
        .await;
        let model = model(wire, &server.base_url, "sk-secret", Nobody);
        complete(&model, Request::new().user("hi"))
            .await
            .expect_err("it is refused");
        complete(&model, Request::new().user("hi"))
            .await
            .expect("a reply");
        assert_eq!(
            (
                server.next().await.connection,
                server.next().await.connection
            ),
            (1, 1),
            "{wire}"
        );
    }
}

#[tokio::test]
async fn success_is_an_error_when_it_says_one() {
    let body = r#"{"error":{"type":"overloaded_error","message":"busy"}}"#;
    for headers in [
        "content-type: application/json\r\n",
        "content-type: text/event-stream\r\n",
        "",
    ] {
        for wire in WIRES {
            let error = refused(
                wire,
                status("200 OK", &format!("{headers}x-request-id: req_3\r\n"), body),
            )
            .await;
            assert_eq!(
                (error.kind(), error.details().request_id.as_deref()),
                (ErrorKind::Overloaded, Some("req_3")),
                "{wire}"
            );
            assert!(
                error
                    .message()
                    .ends_with("answered with an error (overloaded_error): busy"),
                "{error}"
            );
        }
    }
}

/// Returns a request with an image.
fn request_with_image() -> Request {
    let image = Image {
        media_type: "image/png".into(),
        source: Source::Base64 {
            data: "AAAA".into(),
        },
    };
    let message = UserMessage::from(vec![Content::text("look"), Content::Image(image)]);
    Request::from_entries(Transcript::from_iter([message.into()]))
}

#[tokio::test]
async fn media_are_refused_when_the_stream_or_a_gateway_says_so() {
    let event = |data: &str| events(&format!("data: {data}\n\n"));
    let named = |event: &str, data: &str| events(&format!("event: {event}\ndata: {data}\n\n"));
    let page = || {
        status(
            "413 Too Large",
            "content-type: text/html\r\n",
            "<html>413</html>",
        )
    };
    let start = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\
                 \"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n";
    let error = r#"{"type":"error","error":{"type":"invalid_request_error","message":"Could not process image"}}"#;
    let table = [
        (
            "anthropic",
            events(&format!("{start}event: error\ndata: {error}\n\n")),
        ),
        (
            "openai",
            named(
                "response.failed",
                r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"image_parse_error","message":"not a valid image"}}}"#,
            ),
        ),
        (
            "openai",
            named(
                "error",
                r#"{"type":"error","code":"invalid_image","message":"Invalid image in input"}"#,
            ),
        ),
        (
            "gemini",
            event(
                r#"{"error":{"code":400,"message":"Unable to process input image.","status":"INVALID_ARGUMENT"}}"#,
            ),
        ),
        (
            "chat",
            event(r#"{"error":{"message":"Invalid image data","type":"invalid_request_error"}}"#),
        ),
        ("anthropic", page()),
        ("openai", page()),
        ("gemini", page()),
        ("chat", page()),
    ];
    for (wire, answer) in table {
        let server = serve(vec![answer]).await;
        let base = model(wire, &server.base_url, "k", Nobody);
        let error = complete(&*base, request_with_image())
            .await
            .expect_err("it is refused");
        let refused = error.details().refused.clone();
        assert_eq!(refused, Some(RefusedMedia::default()), "{wire}: {error}");
        assert!(!error.is_retryable(), "{wire}: {error}");
    }
}

#[tokio::test]
async fn events_are_read_when_their_type_is_that_of_a_page() {
    for wire in WIRES {
        let body = fixture(wire, "text");
        let server = serve(vec![status("200 OK", "content-type: text/html\r\n", &body)]).await;
        let model = model(wire, &server.base_url, "k", Nobody);
        let reply = complete(&*model, Request::new().user("hi")).await;
        assert!(reply.is_ok(), "{wire}: {reply:?}");
    }
}

#[tokio::test]
async fn reply_is_an_overflow_when_a_full_window_left_no_room_for_a_word() {
    let said = |input: u64, output: u64| {
        let choice = r#"{"index":0,"delta":{"content":""},"finish_reason":"length"}"#;
        let usage = format!(
            r#"{{"prompt_tokens":{input},"completion_tokens":{output},"total_tokens":{input}}}"#
        );
        events(&format!(
            "data: {{\"choices\":[{choice}],\"usage\":{usage}}}\n\ndata: [DONE]\n\n"
        ))
    };
    let server = serve(vec![said(990, 0), said(989, 0), said(990, 1)]).await;
    let model = model("chat", &server.base_url, "sk-secret", Nobody);
    let error = complete(&model, Request::new().user("hi"))
        .await
        .expect_err("it did not fit");
    let overflow = Overflow {
        used: Some(990),
        limit: Some(1_000),
    };
    let text =
        "openai/gpt-5.4 was sent 990 tokens, which do not fit its window of 1000 and were cut off";
    let expect = Error::new(ErrorKind::Overflow, text).with(|it| {
        it.overflow = Some(overflow);
        it.request_id = Some("req_7".into());
    });
    assert_eq!(error, expect);
    for _ in 0..2 {
        let reply = complete(&model, Request::new().user("hi"))
            .await
            .expect("a reply");
        assert_eq!(reply.stop, adjutant_llm::FinishReason::Length);
    }
}
