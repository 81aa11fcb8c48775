//! Connections, canned bodies, latches, lists of models, and the edges of HTTP.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::Arc,
};

use adjutant_llm::{Gate, Script, ScriptedModel};
use adjutant_testing::{Fault, Latch, Loopback, Order};
use bytes::Bytes;
use serde_json::json;

use crate::client::{Client, VENDORS, Vendor, ask, hello, request, run};

fn bodies() -> [Bytes; 2] {
    [
        Bytes::from_static(b"data: a\n\ndata: b\n\n"),
        Bytes::from_static(b"data: c\n\n"),
    ]
}

#[test]
fn connection_is_used_again_when_an_answer_was_whole() {
    run(async {
        let model = ScriptedModel::new([Script::new().text("a"), Script::new().text("b")]);
        let server = Loopback::setup(model)
            .fault(1, Fault::server_error())
            .start()
            .await
            .expect("a port");
        let mut client = Client::open(&server).await;
        for (vendor, status) in [
            (Vendor::OpenAi, 200),
            (Vendor::Anthropic, 500),
            (Vendor::Anthropic, 200),
        ] {
            client.send(&request(vendor, &hello(vendor))).await;
            assert_eq!(client.answer().await.status, status);
        }
        assert_eq!((server.connections(), server.request_count()), (1, 3));
    });
}

#[test]
fn requests_are_kept_with_secrets_hidden_from_debug() {
    run(async {
        let server = Loopback::start(ScriptedModel::new([]))
            .await
            .expect("a port");
        ask(&server, Vendor::Anthropic, &hello(Vendor::Anthropic)).await;
        let received = &server.requests()[0];
        assert_eq!(
            (received.method.as_str(), received.path.as_str()),
            ("POST", "/v1/messages")
        );
        assert_eq!(
            (received.header("x-api-key"), received.json()),
            (Some("k"), hello(Vendor::Anthropic))
        );
        assert!(
            format!("{received:?}").contains(r#"("x-api-key", "<redacted>")"#),
            "{received:?}"
        );
    });
}

#[test]
fn deltas_arrive_when_the_model_waits() {
    run(async {
        let gate = Gate::default();
        let script = Script::new().text("ab").delta_chars(1).wait_at(1, &gate);
        let server = Loopback::start(ScriptedModel::new([script]))
            .await
            .expect("a port");
        let mut client = Client::open(&server).await;
        client
            .send(&request(Vendor::OpenAi, &hello(Vendor::OpenAi)))
            .await;
        let mut answer = client.answer_up_to(1).await;
        assert!(
            answer.text().contains(r#"{"content":"a"}"#),
            "{}",
            answer.text()
        );
        assert!(
            !answer.text().contains(r#"{"content":"b"}"#),
            "{}",
            answer.text()
        );
        gate.open();
        while client.chunk(&mut answer).await {}
        assert!(
            answer.text().contains(r#"{"content":"b"}"#),
            "{}",
            answer.text()
        );
        // What was ready at the same time came in one chunk: up to the gate, and from there to the end.
        assert_eq!(answer.chunks.len(), 2);
    });
}

#[test]
fn model_is_dropped_when_the_client_goes_away() {
    /// Says so when it is dropped; says nothing else.
    struct Silent(Option<tokio::sync::oneshot::Sender<()>>);

    impl futures_core::Stream for Silent {
        type Item = Result<adjutant_llm::Chunk, adjutant_llm::Error>;

        fn poll_next(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Self::Item>> {
            std::task::Poll::Pending
        }
    }

    impl Drop for Silent {
        fn drop(&mut self) {
            if let Some(sender) = self.0.take() {
                let _ = sender.send(());
            }
        }
    }

    run(async {
        let (sender, dropped) = tokio::sync::oneshot::channel();
        let (asked, was_asked) = tokio::sync::oneshot::channel();
        let hooks = std::sync::Mutex::new(Some((sender, asked)));
        let model = adjutant_llm::model_fn(adjutant_llm::ModelInfo::new("x/y"), move |_| {
            let (sender, asked) = hooks
                .lock()
                .expect("one thread")
                .take()
                .expect("one request");
            let _ = asked.send(());
            Box::pin(Silent(Some(sender)))
        });
        let server = Loopback::start(model).await.expect("a port");
        let mut client = Client::open(&server).await;
        client
            .send(&request(Vendor::OpenAi, &hello(Vendor::OpenAi)))
            .await;
        was_asked.await.expect("the model is asked");
        drop(client);
        dropped.await.expect("the stream is dropped");
    });
}

#[test]
fn canned_bodies_go_round_by_request() {
    run(async {
        let server = Loopback::from_bodies(bodies())
            .forget_requests()
            .start()
            .await
            .expect("a port");
        let mut client = Client::open(&server).await;
        for expect in [0, 1, 0] {
            // Nobody looks at what is asked.
            client
                .send("POST /any HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc")
                .await;
            let answer = client.answer().await;
            assert_eq!(
                (Bytes::from(answer.body()), answer.whole),
                (bodies()[expect].clone(), true)
            );
        }
        assert_eq!((server.requests().len(), server.request_count()), (0, 3));
    });
}

#[test]
fn canned_bodies_go_round_by_connection() {
    run(async {
        let server = Loopback::from_bodies(bodies())
            .order(Order::ByConnection)
            .start()
            .await
            .expect("a port");
        for _ in 0..2 {
            assert_eq!(
                ask(&server, Vendor::OpenAi, &json!({})).await.body(),
                bodies()[0]
            );
        }
    });
}

#[test]
fn canned_bodies_break_when_a_fault_says_so() {
    run(async {
        let server = Loopback::from_bodies(bodies())
            .fault_all(Fault::CutAt(10))
            .start()
            .await
            .expect("a port");
        let answer = ask(&server, Vendor::OpenAi, &json!({})).await;
        assert_eq!(
            (answer.body().as_slice(), answer.whole),
            (&bodies()[0][..10], false)
        );
    });
}

#[test]
fn latch_holds_answers_until_it_is_opened() {
    run(async {
        let latch = Latch::new();
        let server = Loopback::from_bodies(bodies())
            .latch(&latch)
            .start()
            .await
            .expect("a port");
        let mut clients = [Client::open(&server).await, Client::open(&server).await];
        for client in &mut clients {
            client.send(&request(Vendor::OpenAi, &json!({}))).await;
        }
        latch.wait_for(2).await;
        for client in &mut clients {
            assert!(client.is_silent().await);
        }
        latch.open();
        for client in &mut clients {
            assert!(client.answer().await.whole);
        }
    });
}

#[test]
fn models_are_listed_in_the_form_of_the_key() {
    run(async {
        let server = Loopback::start(ScriptedModel::new([]))
            .await
            .expect("a port");
        let mut client = Client::open(&server).await;
        client
            .send(
                "GET /v1/models HTTP/1.1\r\nx-api-key: k\r\nanthropic-version: 2023-06-01\r\n\r\n",
            )
            .await;
        let body = client.answer().await.json();
        assert_eq!(
            (&body["data"][0]["type"], &body["data"][0]["id"]),
            (&json!("model"), &json!("model"))
        );
        client
            .send("GET /v1/models HTTP/1.1\r\nauthorization: Bearer k\r\n\r\n")
            .await;
        let body = client.answer().await.json();
        assert_eq!(
            (&body["object"], &body["data"][0]["id"]),
            (&json!("list"), &json!("model"))
        );
        client
            .send("GET /v1beta/models HTTP/1.1\r\nx-goog-api-key: k\r\n\r\n")
            .await;
        assert_eq!(
            client.answer().await.json()["models"][0]["name"],
            "models/model"
        );
        client.send("GET /v1beta/models HTTP/1.1\r\n\r\n").await;
        assert_eq!(
            client.answer().await.json()["error"]["status"],
            "PERMISSION_DENIED"
        );
        client.send("GET /v1/models HTTP/1.1\r\n\r\n").await;
        assert_eq!(client.answer().await.status, 401);
    });
}

#[test]
fn http_is_refused_when_it_is_not_what_is_spoken_here() {
    #[track_caller]
    fn check(raw: &str, status: u16) {
        run(async {
            let server = Loopback::start(ScriptedModel::new([]))
                .await
                .expect("a port");
            let mut client = Client::open(&server).await;
            client.send(raw).await;
            assert_eq!(client.answer().await.status, status, "{raw:.60}");
        });
    }
    check(
        "POST /v1/messages HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        411,
    );
    check("POST /v1/messages HTTP/1.1\r\n\r\n", 411);
    check(
        "POST /v1/messages HTTP/1.1\r\ncontent-length: x\r\n\r\n",
        400,
    );
    check(
        "POST /v1/messages HTTP/1.1\r\ncontent-length: 999999999999\r\n\r\n",
        413,
    );
    check("nonsense\r\n\r\n", 400);
    check(&format!("GET / HTTP/1.1\r\na: {}", "b".repeat(70_000)), 431);
    check("GET /v1/messages HTTP/1.1\r\nx-api-key: k\r\n\r\n", 405);
    check("GET /v2 HTTP/1.1\r\n\r\n", 404);
}

#[test]
fn start_blocking_serves_and_ends_when_dropped() {
    let model = Arc::new(ScriptedModel::new([Script::new().text("a")]));
    let server = Loopback::start_blocking(Arc::clone(&model)).expect("a port");
    let addr = server.addr();
    let mut socket = TcpStream::connect(addr).expect("the server listens");
    socket
        .write_all(request(Vendor::OpenAi, &hello(Vendor::OpenAi)).as_bytes())
        .expect("the server reads");
    let mut start = [0; 15];
    socket.read_exact(&mut start).expect("an answer");
    assert_eq!(&start, b"HTTP/1.1 200 OK");
    drop(server);
    model.assert_done();
    assert_eq!(
        Arc::strong_count(&model),
        1,
        "the server has let go of the model"
    );
    assert!(TcpStream::connect(addr).is_err());
}

#[test]
fn reply_runs_to_its_end_when_it_is_long() {
    run(async {
        for vendor in VENDORS {
            let script = Script::new().text("x".repeat(20_000)).delta_chars(1);
            let server = Loopback::start(ScriptedModel::new([script]))
                .await
                .expect("a port");
            let answer = ask(&server, vendor, &hello(vendor)).await;
            assert!(answer.whole);
            assert_eq!(answer.text().matches("\"x\"").count(), 20_000);
            assert!(
                answer.chunks.len() < 200,
                "{} chunks for {} bytes",
                answer.chunks.len(),
                answer.body().len()
            );
        }
    });
}
