//! What an observer sees of an exchange, and what it may change.

use std::sync::{Arc, Mutex};

use adjutant_llm::{Chunk, Error, ErrorKind, Options, Request, complete};
use adjutant_providers::{Exchange, Observe, Outgoing, Rewrite};

use crate::server::{Answer, WIRES, all, events, fixture, model, next, serve, status};

/// Writes down what it sees, and rewrites if it was told so.
#[derive(Debug, Default)]
struct Scribe {
    seen: Mutex<Vec<String>>,
    bodies: Mutex<Vec<String>>,
    rewrite: Option<&'static str>,
}

impl Scribe {
    fn note(&self, exchange: &Exchange, line: &str) {
        let line = format!("{}/{} {line}", exchange.turn, exchange.attempt);
        self.seen.lock().expect("no test broke it").push(line);
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().expect("no test broke it").clone()
    }

    fn bodies(&self) -> Vec<String> {
        self.bodies.lock().expect("no test broke it").clone()
    }

    /// The kinds of failure that exchanges ended in.
    fn ends(&self) -> Vec<String> {
        self.seen()
            .iter()
            .filter_map(|line| line.split_once(" ended ").map(|(_, end)| end.to_owned()))
            .collect()
    }
}

impl Observe for Scribe {
    fn request(&self, exchange: &Exchange, request: &Outgoing<'_>) -> Rewrite {
        let (_, path) = request
            .url
            .split_at(request.url.find("/v1").expect("a path"));
        let headers: Vec<String> = request
            .headers
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        self.note(exchange, &format!("request {path} {}", headers.join(" ")));
        let body = String::from_utf8(request.body.to_vec()).expect("text");
        self.bodies
            .lock()
            .expect("no test broke it")
            .push(body.clone());
        self.rewrite.map_or(Rewrite::Keep, |more| {
            Rewrite::Body(format!("{body}{more}").into())
        })
    }

    fn response(&self, exchange: &Exchange, status: u16, headers: &[(&str, &str)]) {
        let headers: Vec<String> = headers
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        self.note(
            exchange,
            &format!("response {status} {}", headers.join(" ")),
        );
    }

    fn frame(&self, exchange: &Exchange, event: &str, data: &str) {
        self.note(exchange, &format!("frame {event}|{data}"));
    }

    fn finish(&self, exchange: &Exchange, error: Option<&Error>) {
        self.note(exchange, &format!("ended {:?}", error.map(Error::kind)));
    }
}

/// The frames of a fixture, as they are noted.
fn frames(text: &str) -> impl Iterator<Item = String> {
    text.split("\n\n")
        .filter(|it| it.contains("data:"))
        .map(|event| {
            let field = |name: &str| {
                event
                    .lines()
                    .find_map(|it| it.strip_prefix(name))
                    .unwrap_or_default()
                    .trim_start()
            };
            format!("1/3 frame {}|{}", field("event:"), field("data:"))
        })
}

#[tokio::test]
async fn observer_sees_all_when_a_reply_comes() {
    for (wire, path) in [
        ("anthropic", "/v1/messages"),
        ("openai", "/v1/responses"),
        (
            "gemini",
            "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse",
        ),
        ("chat", "/v1/chat/completions"),
    ] {
        let text = fixture(wire, "text");
        let mut server = serve(vec![events(&text)]).await;
        let scribe = Arc::new(Scribe::default());
        let model = model(wire, &server.base_url, "sk-secret", Arc::clone(&scribe));
        let mut request = Request::new()
            .options(Options::default().header("x-own", "1"))
            .user("hi");
        request.attempt = 3;
        complete(&model, request).await.expect("a reply");
        let version = if wire == "anthropic" {
            " anthropic-version=2023-06-01"
        } else {
            ""
        };
        let agent = concat!("user-agent=adjutant/", env!("CARGO_PKG_VERSION"));
        let headers =
            format!("content-type=application/json accept=text/event-stream {agent}{version}");
        let mut expect = vec![
            format!("1/3 request {path} {headers}"),
            "1/3 response 200 content-type=text/event-stream request-id=req_7 x-ratelimit-remaining-requests=59 \
             transfer-encoding=chunked"
                .to_owned(),
        ];
        expect.extend(frames(&text));
        expect.push("1/3 ended None".to_owned());
        assert_eq!(scribe.seen(), expect, "{wire}");
        assert_eq!(scribe.bodies(), [server.next().await.body], "{wire}");
    }
}

#[tokio::test]
async fn observer_sees_the_last_event_when_its_blank_line_is_missing() {
    let text = fixture("chat", "text");
    let server = serve(vec![events(text.trim_end())]).await;
    let scribe = Arc::new(Scribe::default());
    let model = model("chat", &server.base_url, "sk-secret", Arc::clone(&scribe));
    complete(&model, Request::new().user("hi"))
        .await
        .expect("a reply");
    let seen = scribe.seen();
    assert_eq!(
        &seen[seen.len() - 2..],
        ["1/0 frame |[DONE]", "1/0 ended None"]
    );
}

#[tokio::test]
async fn body_is_another_one_when_the_observer_rewrites_it() {
    for wire in WIRES {
        let text = fixture(wire, "text");
        let mut server = serve(vec![events(&text), events(&text)]).await;
        let scribe = Arc::new(Scribe {
            rewrite: Some("  "),
            ..Scribe::default()
        });
        let model = model(wire, &server.base_url, "sk-secret", Arc::clone(&scribe));
        let mut request = Request::new().user("hi");
        complete(&model, request.clone()).await.expect("a reply");
        request.attempt = 1;
        complete(&model, request).await.expect("a reply");
        let bodies = scribe.bodies();
        assert_eq!(
            bodies[0], bodies[1],
            "the second attempt starts from the original"
        );
        for body in bodies {
            let seen = server.next().await;
            assert_eq!(seen.body, format!("{body}  "), "{wire}");
            assert_eq!(
                seen.header("content-length"),
                Some(&*(body.len() + 2).to_string())
            );
        }
    }
}

async fn check(answer: Answer, expect: ErrorKind) {
    for wire in WIRES {
        let server = serve(vec![answer.clone()]).await;
        let scribe = Arc::new(Scribe::default());
        let model = model(wire, &server.base_url, "sk-secret", Arc::clone(&scribe));
        let items = all(model.stream(Request::new().user("hi"))).await;
        let kind = items
            .last()
            .expect("an item")
            .as_ref()
            .expect_err("it fails")
            .kind();
        assert_eq!(
            (kind, scribe.ends()),
            (expect, vec![format!("Some({expect:?})")]),
            "{wire}: {:?}",
            scribe.seen()
        );
        drop(model);
        assert_eq!(scribe.ends().len(), 1, "{wire}");
    }
}

#[tokio::test]
async fn observer_sees_the_end_once_when_an_exchange_fails() {
    check(
        status("429 Slow", "", r#"{"error":{"message":"slow down"}}"#),
        ErrorKind::RateLimited,
    )
    .await;
    check(
        status("302 Found", "location: http://127.0.0.1:9/\r\n", ""),
        ErrorKind::Config,
    )
    .await;
    check(
        status("200 OK", "content-type: text/html\r\n", "<html>"),
        ErrorKind::Protocol,
    )
    .await;
    check(events("data: {garbage\n\n"), ErrorKind::Protocol).await;
    check(events(""), ErrorKind::Protocol).await;
    check(
        events(": nothing but a remark\n\n").cut(150),
        ErrorKind::Network,
    )
    .await;
    check(events("").cut(0), ErrorKind::Network).await;
    let error = "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    check(
        events(&format!("event: error\n{error}")),
        ErrorKind::Overloaded,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn observer_sees_the_end_once_when_nothing_comes_in_time() {
    check(events("").hang(5), ErrorKind::Timeout).await;
}

#[tokio::test]
async fn observer_sees_the_end_once_when_the_stream_is_dropped() {
    for wire in WIRES {
        let text = fixture(wire, "text");
        let server = serve(vec![events(&text).hang(text.len() / 2)]).await;
        let scribe = Arc::new(Scribe::default());
        let model = model(wire, &server.base_url, "sk-secret", Arc::clone(&scribe));
        let mut stream = model.stream(Request::new().user("hi"));
        assert!(matches!(
            next(&mut stream).await,
            Some(Ok(Chunk::Start { .. }))
        ));
        assert_eq!(scribe.ends(), [""; 0]);
        drop(stream);
        assert_eq!(scribe.ends(), ["Some(Cancelled)"], "{wire}");
    }
}

#[tokio::test]
async fn observer_sees_nothing_when_no_request_is_made() {
    for request in [
        Request::new()
            .options(Options::default().header("x-own", "two\nlines"))
            .user("hi"),
        Request::new()
            .options(Options::default().header("no name", "1"))
            .user("hi"),
    ] {
        let scribe = Arc::new(Scribe::default());
        let model = model(
            "chat",
            "http://127.0.0.1:9",
            "sk-secret",
            Arc::clone(&scribe),
        );
        let error = complete(&model, request)
            .await
            .expect_err("it cannot be sent");
        assert!(
            matches!(error.kind(), ErrorKind::Config | ErrorKind::Invalid),
            "{error}"
        );
        assert_eq!(scribe.seen(), [""; 0]);
    }
}

#[tokio::test]
async fn observer_sees_no_key_when_it_stands_everywhere() {
    let refused = status(
        "403 No",
        "x-echo: sk-secret\r\nset-cookie: a=b\r\n",
        r#"{"error":"no sk-secret"}"#,
    );
    let said = "data: {\"choices\":[{\"delta\":{\"content\":\"sk-secret token-secret\"}}]}\n\n";
    let mut server = serve(vec![refused, events(said)]).await;
    let scribe = Arc::new(Scribe::default());
    let model = model("chat", &server.base_url, "sk-secret", Arc::clone(&scribe));
    let options = Options::default().header("x-session-token", "token-secret");
    let request = Request::new().options(options).user("my key is sk-secret");
    for _ in 0..2 {
        complete(&model, request.clone())
            .await
            .expect_err("it fails");
        assert!(
            server.next().await.body.contains("my key is sk-secret"),
            "what is sent is not touched"
        );
    }
    let (seen, bodies) = (scribe.seen().join("\n"), scribe.bodies().join("\n"));
    assert!(
        !seen.contains("sk-secret") && !seen.contains("token-secret") && !seen.contains("cookie"),
        "{seen}"
    );
    assert!(
        seen.contains("x-echo=[key]") && seen.contains(r#""content":"[key] [key]""#),
        "{seen}"
    );
    assert!(
        bodies.contains("my key is [key]") && !bodies.contains("sk-secret"),
        "{bodies}"
    );
}

#[tokio::test]
async fn frames_are_as_they_came_when_the_key_is_but_a_word() {
    let text = fixture("chat", "text");
    let server = serve(vec![events(&text)]).await;
    let scribe = Arc::new(Scribe::default());
    complete(
        &model("chat", &server.base_url, "chat", Arc::clone(&scribe)),
        Request::new().user("hi"),
    )
    .await
    .expect("a reply");
    assert!(
        scribe
            .seen()
            .iter()
            .any(|line| line.contains("chat.completion.chunk"))
    );
}
