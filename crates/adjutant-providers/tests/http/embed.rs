//! Embedders, against the loopback provider and against a raw server that answers what no provider should.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use adjutant_llm::{
    Embedder, EmbedderInfo, Embeddings, Error, ErrorKind, Purpose, ScriptedModel, Usage, embed_all,
};
use adjutant_providers::{GeminiEmbedder, Key, OpenAiEmbedder};
use adjutant_testing::{Fault, Loopback};
use serde_json::{Value, json};

use crate::server::{Answer, serve, status};

fn texts(count: usize) -> Vec<Arc<str>> {
    (0..count)
        .map(|number| Arc::from(format!("text {number}")))
        .collect()
}

fn info(name: &str) -> EmbedderInfo {
    EmbedderInfo::new(name, 64)
}

/// Both embedders at one address; the raw server and the loopback provider have the same paths.
fn both(base_url: &str, info: impl Fn(&str) -> EmbedderInfo) -> [Box<dyn Embedder>; 2] {
    let openai =
        OpenAiEmbedder::new(info("openai/e"), "sk-secret").base_url(format!("{base_url}/v1"));
    let gemini = GeminiEmbedder::new(info("gemini/e"), "sk-secret").base_url(base_url);
    [Box::new(openai), Box::new(gemini)]
}

#[tokio::test]
async fn vectors_are_in_order_when_texts_are_sent_in_batches() {
    let server = Loopback::start(ScriptedModel::new([]))
        .await
        .expect("a server");
    let all = texts(7);
    for embedder in both(&server.gemini_base_url(), |name| EmbedderInfo {
        max_inputs: 3,
        max_request_tokens: 4,
        ..info(name)
    }) {
        let before = server.request_count();
        let made = embed_all(&*embedder, &all, Purpose::Document)
            .await
            .expect("vectors");
        // A text has two tokens, so two fit a request.
        assert_eq!(server.request_count() - before, 4);
        assert_eq!(
            made.usage,
            Usage {
                input_uncached: 14,
                ..Usage::default()
            }
        );
        for (text, vector) in all.iter().zip(&made.vectors) {
            let alone = embedder
                .embed(&[Arc::clone(text)], Purpose::Document)
                .await
                .expect("a vector");
            assert_eq!((vector.len(), &alone.vectors[0]), (64, vector), "{text}");
        }
    }
    for request in server.requests() {
        assert_eq!(request.header("accept"), Some("application/json"));
        let said = [
            request.header("authorization"),
            request.header("x-goog-api-key"),
        ];
        assert!(said.contains(&Some("Bearer sk-secret")) || said.contains(&Some("sk-secret")));
    }
}

#[tokio::test]
async fn vectors_are_shorter_when_they_are_cut() {
    let server = Loopback::start(ScriptedModel::new([]))
        .await
        .expect("a server");
    let openai = OpenAiEmbedder::small("sk-secret")
        .base_url(server.openai_base_url())
        .cut(12);
    let gemini = GeminiEmbedder::v1("sk-secret")
        .base_url(server.gemini_base_url())
        .cut(12);
    for embedder in [&openai as &dyn Embedder, &gemini] {
        let made = embedder
            .embed(&texts(2), Purpose::Query)
            .await
            .expect("vectors");
        assert_eq!(
            (
                embedder.info().dimensions,
                made.vectors[0].len(),
                made.vectors[1].len()
            ),
            (12, 12, 12)
        );
    }
    let requests: Vec<Value> = server.requests().iter().map(|it| it.json()).collect();
    let asked = json!({
        "model": "text-embedding-3-small", "input": ["text 0", "text 1"], "encoding_format": "base64", "dimensions": 12
    });
    assert_eq!(requests[0], asked);
    let one = |text: &str| {
        json!({
            "model": "models/gemini-embedding-001", "content": {"parts": [{"text": text}]},
            "taskType": "RETRIEVAL_QUERY", "outputDimensionality": 12
        })
    };
    assert_eq!(
        requests[1],
        json!({"requests": [one("text 0"), one("text 1")]})
    );
}

#[tokio::test]
async fn purpose_is_said_as_the_model_understands_it() {
    let body = r#"{"embeddings":[{"values":[3.0,4.0]}]}"#;
    for (name, purpose, task, text) in [
        (
            "gemini/gemini-embedding-001",
            Purpose::Document,
            Some("RETRIEVAL_DOCUMENT"),
            "text 0",
        ),
        (
            "gemini/gemini-embedding-001",
            Purpose::Query,
            Some("RETRIEVAL_QUERY"),
            "text 0",
        ),
        (
            "gemini/models/gemini-embedding-2",
            Purpose::Document,
            None,
            "title: none | text: text 0",
        ),
        (
            "gemini/gemini-embedding-2-preview",
            Purpose::Query,
            None,
            "task: search result | query: text 0",
        ),
    ] {
        let mut server = serve(vec![status("200 OK", "", body)]).await;
        let embedder = GeminiEmbedder::new(EmbedderInfo::new(name, 7), "sk-secret")
            .base_url(&server.base_url)
            .cut(2);
        let made = embedder.embed(&texts(1), purpose).await.expect("a vector");
        assert_eq!(
            made.vectors,
            [[0.6, 0.8]],
            "a vector that was cut has the length 1"
        );
        let seen = server.next().await;
        let model = name.rsplit('/').next().expect("a name");
        assert!(seen.head.starts_with(&format!(
            "POST /v1beta/models/{model}:batchEmbedContents HTTP/1.1\r\n"
        )));
        let asked: Value = serde_json::from_str(&seen.body).expect("JSON");
        assert_eq!(asked["requests"][0]["content"]["parts"][0]["text"], text);
        assert_eq!(
            asked["requests"][0].get("taskType").and_then(Value::as_str),
            task
        );
        assert_eq!(asked["requests"][0]["model"], format!("models/{model}"));
    }
}

/// What an embedder of two dimensions makes of this answer to two texts.
async fn openai(answer: Answer) -> Result<Embeddings, Error> {
    let server = serve(vec![answer]).await;
    let info = EmbedderInfo::new("openai/e", 2);
    OpenAiEmbedder::new(info, "sk-secret")
        .base_url(&server.base_url)
        .embed(&texts(2), Purpose::Query)
        .await
}

async fn gemini(answer: Answer) -> Result<Embeddings, Error> {
    let server = serve(vec![answer]).await;
    let info = EmbedderInfo::new("gemini/e", 2);
    GeminiEmbedder::new(info, "sk-secret")
        .base_url(&server.base_url)
        .embed(&texts(2), Purpose::Query)
        .await
}

#[tokio::test]
async fn vectors_are_read_when_they_come_in_any_form_and_order() {
    // 1.0 and -2.0, little end first.
    for data in [
        r#"[{"index":0,"embedding":[0.5,2]},{"index":1,"embedding":"AACAPwAAAMA="}]"#,
        r#"[{"index":1,"embedding":[1.0,-2.0]},{"index":0,"embedding":[0.5,2.0]}]"#,
        r#"[{"embedding":[0.5,2.0]},{"embedding":"AACAPwAAAMA=\n"}]"#,
    ] {
        for (usage, tokens) in [
            (r#""usage":{"prompt_tokens":9,"total_tokens":9},"#, 9),
            ("", 4),
            (r#""usage":{},"#, 4),
        ] {
            let made = openai(status("200 OK", "", &format!("{{{usage}\"data\":{data}}}"))).await;
            let usage = Usage {
                input_uncached: tokens,
                ..Usage::default()
            };
            assert_eq!(
                made,
                Ok(Embeddings {
                    vectors: vec![vec![0.5, 2.0], vec![1.0, -2.0]],
                    usage
                }),
                "{data}"
            );
        }
    }
}

#[tokio::test]
async fn answer_is_an_error_when_it_is_not_what_was_asked_for() {
    let one = r#"{"index":0,"embedding":[1,2]}"#;
    for (data, expect) in [
        (
            format!("[{one}]"),
            "openai/e answered with 1 vectors for 2 texts",
        ),
        (
            format!("[{one},{one},{one}]"),
            "openai/e answered with vectors whose numbers are not those of the texts",
        ),
        (
            format!("[{one},{one}]"),
            "openai/e answered with vectors whose numbers are not those of the texts",
        ),
        (
            format!(r#"[{one},{{"index":1,"embedding":[1]}}]"#),
            "openai/e answered with a vector of 1 numbers instead of 2",
        ),
        (
            format!(r#"[{one},{{"index":1,"embedding":[1,1e39]}}]"#),
            "openai/e answered with a vector with something else than numbers",
        ),
        (
            format!(r#"[{one},{{"index":1,"embedding":"AADAfwAAgD8="}}]"#),
            "openai/e answered with a vector with something else than numbers",
        ),
        (
            format!(r#"[{one},{{"index":1,"embedding":"AADAfwAA"}}]"#),
            "openai/e answered with a vector that is no base64 of numbers",
        ),
        (
            format!(r#"[{one},{{"index":1,"embedding":"?"}}]"#),
            "openai/e answered with a vector that is no base64 of numbers",
        ),
        (
            format!(r#"[{one},{{"index":1,"embedding":null}}]"#),
            "openai/e answered with something else than was asked for",
        ),
        (
            "7".to_owned(),
            "openai/e answered with something else than was asked for",
        ),
    ] {
        let error = openai(status("200 OK", "", &format!("{{\"data\":{data}}}")))
            .await
            .expect_err("it is wrong");
        assert_eq!(
            (error.kind(), error.message()),
            (ErrorKind::Protocol, expect),
            "{data}"
        );
    }
    for (body, expect) in [
        (
            r#"{"embeddings":[{"values":[1,2]}]}"#,
            "gemini/e answered with 1 vectors for 2 texts",
        ),
        (
            r#"{"embeddings":[{"values":[1,2]},{}]}"#,
            "gemini/e answered with a vector of 0 numbers instead of 2",
        ),
        (
            "{}",
            "gemini/e answered with something else than was asked for",
        ),
        (
            "<html>",
            "gemini/e answered with something else than was asked for",
        ),
    ] {
        let error = gemini(status("200 OK", "", body))
            .await
            .expect_err("it is wrong");
        assert_eq!(
            (error.kind(), error.message()),
            (ErrorKind::Protocol, expect),
            "{body}"
        );
    }
}

#[tokio::test]
async fn refusal_is_classified_when_embeddings_are_asked_for() {
    let body = r#"{"error":{"message":"no sk-secret","type":"rate_limit_error"}}"#;
    let headers = "retry-after: 3\r\nx-request-id: req_5\r\nx-should-retry: false\r\n";
    for (name, made) in [
        ("openai/e", openai(status("429 Slow", headers, body)).await),
        ("gemini/e", gemini(status("429 Slow", headers, body)).await),
    ] {
        let text = format!("{name} answered 429 (rate_limit_error): no [key]");
        let expect = Error::new(ErrorKind::RateLimited, text).with(|it| {
            it.status = Some(429);
            it.code = Some("rate_limit_error".into());
        });
        let expect = expect.with(|it| {
            it.retry_after = Some(Duration::from_secs(3));
            it.request_id = Some("req_5".into());
            it.should_retry = Some(false);
        });
        assert_eq!(
            made,
            Err(expect.with(|it| it.body = Some(body.replace("sk-secret", "[key]").into())))
        );
    }
    let told = openai(status("200 OK", "x-request-id: req_5\r\n", body))
        .await
        .expect_err("it says an error");
    assert_eq!(
        (told.kind(), told.details().request_id.as_deref()),
        (ErrorKind::RateLimited, Some("req_5"))
    );
    let cut = openai(status("200 OK", "", body).cut(60))
        .await
        .expect_err("it broke off");
    assert_eq!(cut.kind(), ErrorKind::Network);
    let long = openai(status("500 Oops", "", &"x".repeat(200_000)))
        .await
        .expect_err("it is refused");
    assert_eq!(
        (long.kind(), long.details().body.as_deref().map(str::len)),
        (ErrorKind::Overloaded, Some(2_048))
    );

    let server = Loopback::setup(ScriptedModel::new([]))
        .fault_all(Fault::auth_error())
        .start()
        .await
        .expect("a server");
    for embedder in both(&server.gemini_base_url(), info) {
        let error = embedder
            .embed(&texts(1), Purpose::Query)
            .await
            .expect_err("it is refused");
        assert_eq!(
            (error.kind(), error.details().status),
            (ErrorKind::Auth, Some(401))
        );
    }
}

#[tokio::test]
async fn nothing_is_asked_when_there_are_no_texts_or_too_many() {
    for embedder in both("http://127.0.0.1:9", |name| EmbedderInfo {
        max_inputs: 2,
        ..info(name)
    }) {
        assert_eq!(
            embedder.embed(&[], Purpose::Query).await,
            Ok(Embeddings::default())
        );
        let error = embedder
            .embed(&texts(3), Purpose::Query)
            .await
            .expect_err("too many");
        let text = format!("{} takes 2 texts in a request, not 3", embedder.info().id);
        assert_eq!(error, Error::new(ErrorKind::Invalid, text));
    }
}

#[tokio::test(start_paused = true)]
async fn embedding_times_out_when_the_answer_or_the_key_never_comes() {
    let late = openai(status("200 OK", "", "{}").hang(1))
        .await
        .expect_err("it hangs");
    assert_eq!(late.kind(), ErrorKind::Timeout);
    let key = Key::none().resolve(std::future::pending);
    let embedder = OpenAiEmbedder::small(key).base_url("http://127.0.0.1:9");
    let error = embedder.embed(&texts(1), Purpose::Query).await;
    assert_eq!(
        error,
        Err(Error::new(
            ErrorKind::Timeout,
            "no key for 127.0.0.1:9 was there within 120s"
        ))
    );
}

#[tokio::test]
async fn headers_and_resolved_key_are_sent_when_they_are_set() {
    let mut server = serve(vec![status(
        "401 No",
        "",
        r#"{"error":"no token-secret, no own-secret"}"#,
    )])
    .await;
    let key = Key::new("sk-configured")
        .resolve(|| std::future::ready(Ok(Some("token-secret".to_owned()))));
    let headers = BTreeMap::from([("api-key".to_owned(), "own-secret".to_owned())]);
    let embedder = OpenAiEmbedder::large(key)
        .base_url(&server.base_url)
        .headers(headers);
    let error = embedder
        .embed(&texts(1), Purpose::Query)
        .await
        .expect_err("it is refused");
    assert_eq!(
        error.message(),
        "openai/text-embedding-3-large answered 401: no [key], no [key]"
    );
    let seen = server.next().await;
    assert_eq!(
        (seen.header("authorization"), seen.header("api-key")),
        (Some("Bearer token-secret"), Some("own-secret"))
    );
    let printed = format!("{embedder:?}");
    assert!(
        !printed.contains("own-secret") && !printed.contains("sk-configured"),
        "{printed}"
    );
}

#[test]
fn known_embedders_say_what_they_take_and_cost() {
    let million = Usage {
        input_uncached: 1_000_000,
        ..Usage::default()
    };
    let say = |info: &EmbedderInfo| {
        let cost = info.price.map(|price| price.cost(&million).0);
        (
            info.id.to_string(),
            info.dimensions,
            info.max_inputs,
            info.max_input_tokens,
            info.max_request_tokens,
            cost,
        )
    };
    let (small, large) = (OpenAiEmbedder::small(""), OpenAiEmbedder::large(""));
    let (v1, v2) = (GeminiEmbedder::v1(""), GeminiEmbedder::v2(""));
    let name = |it: &str| it.to_owned();
    let expect = (
        name("openai/text-embedding-3-small"),
        1_536,
        2_048,
        8_192,
        200_000,
        Some(20_000_000),
    );
    assert_eq!(say(small.info()), expect);
    let expect = (
        name("openai/text-embedding-3-large"),
        3_072,
        2_048,
        8_192,
        200_000,
        Some(130_000_000),
    );
    assert_eq!(say(large.info()), expect);
    assert_eq!(
        say(v1.info()),
        (
            name("gemini/gemini-embedding-001"),
            3_072,
            100,
            2_048,
            100_000,
            Some(150_000_000)
        )
    );
    assert_eq!(
        say(v2.info()),
        (
            name("gemini/gemini-embedding-2"),
            3_072,
            100,
            8_192,
            100_000,
            None
        )
    );
}
