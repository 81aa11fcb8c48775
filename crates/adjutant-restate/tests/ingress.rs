//! The client against a server of the test's own: what it asks, how often, and what it makes of an answer.

use std::sync::{Arc, Mutex};

use adjutant_agent::{JournalErrorKind, Post, Waker};
use adjutant_restate::Ingress;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

/// The head of each request that was made.
type Heads = Arc<Mutex<Vec<String>>>;

/// Answers each request with the next of these: a status, and a body; no answer at all for 0.
async fn serve(answers: &'static [(u16, &'static str)]) -> (Ingress, Heads) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let ingress = Ingress::connect(&format!(
        "http://{}",
        listener.local_addr().expect("it is bound")
    ));
    let heads = Heads::default();
    let seen = Arc::clone(&heads);
    tokio::spawn(async move {
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let (mut read, mut bytes) = (Vec::new(), [0; 1_024]);
            while !read.windows(4).any(|at| at == b"\r\n\r\n") {
                let count = stream.read(&mut bytes).await.expect("a request");
                read.extend_from_slice(&bytes[..count]);
            }
            let text = String::from_utf8_lossy(&read).into_owned();
            seen.lock()
                .expect("no panic")
                .push(text.split("\r\n\r\n").next().unwrap_or_default().to_owned());
            if *status != 0 {
                let head = "x-restate-id: inv_1\r\nconnection: close\r\ncontent-length";
                let answer = format!(
                    "HTTP/1.1 {status} It\r\n{head}: {}\r\n\r\n{body}",
                    body.len()
                );
                stream
                    .write_all(answer.as_bytes())
                    .await
                    .expect("it is sent");
            }
        }
    });
    (ingress.expect("an address"), heads)
}

/// The value of a header.
fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .find_map(|line| {
            line.split_once(": ")
                .filter(|(known, _)| known.eq_ignore_ascii_case(name))
        })
        .map(|it| it.1)
}

#[tokio::test]
async fn call_is_made_again_under_its_key_when_nobody_answers() {
    let (ingress, heads) = serve(&[(0, ""), (503, "not yet"), (200, "")]).await;
    ingress
        .say(&"bills/may ü".into(), Post::Cancel)
        .await
        .expect("it is said");
    let heads = heads.lock().expect("no panic");
    let [first, second, third] = heads.as_slice() else {
        panic!("{heads:?}")
    };
    assert!(
        first.starts_with("POST /restate/call/Session/bills%2Fmay%20%C3%BC/post HTTP/1.1"),
        "{first}"
    );
    let keys = [first, second, third].map(|head| header(head, "idempotency-key").expect("a key"));
    assert!(
        keys[0] == keys[1] && keys[1] == keys[2] && !keys[0].is_empty(),
        "{keys:?}"
    );
}

#[tokio::test]
async fn waking_is_a_send_without_a_body_that_may_be_late() {
    const ACCEPTED: (u16, &str) = (202, r#"{"invocationId": "inv_1", "status": "Accepted"}"#);
    let (ingress, heads) = serve(&[ACCEPTED, ACCEPTED]).await;
    ingress.wake(&"bill".into(), 0).await.expect("it is woken");
    ingress
        .wake(&"bill".into(), 32_503_680_000_000)
        .await
        .expect("it is woken in the year 3000");
    let heads = heads.lock().expect("no panic");
    assert!(
        heads[0].starts_with("POST /restate/send/Session/bill/drive?delay=PT0S "),
        "{}",
        heads[0]
    );
    // A handler without input refuses one.
    assert_eq!(header(&heads[0], "content-type"), None);
    let seconds = heads[1]
        .split("delay=PT")
        .nth(1)
        .and_then(|rest| rest.split(['.', 'S']).next()?.parse::<u64>().ok());
    assert!(seconds > Some(900 * 365 * 86_400), "{}", heads[1]);
}

#[tokio::test]
async fn answers_of_the_service_are_errors_of_a_journal() {
    let answers: &[(u16, &str)] = &[
        (404, "no log is called \"bill\""),
        (400, "no"),
        (501, "no"),
        (500, "set aside"),
    ];
    let (ingress, _) = serve(answers).await;
    use JournalErrorKind::{Invalid, Io, Missing, Unsupported};
    for kind in [Missing, Invalid, Unsupported, Io] {
        let error = ingress
            .say(&"bill".into(), Post::Cancel)
            .await
            .expect_err("it is refused");
        assert_eq!(error.kind, kind, "{error}");
    }
    assert_eq!(
        ingress
            .say(&"".into(), Post::Cancel)
            .await
            .expect_err("no name")
            .kind,
        Invalid
    );
    for address in ["localhost", "http://a b", "/path"] {
        assert_eq!(Ingress::connect(address).expect_err(address).kind, Invalid);
    }
}
