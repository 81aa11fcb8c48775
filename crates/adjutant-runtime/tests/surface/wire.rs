//! The client, against others that answer badly or not at all.

use std::net::SocketAddr;

use adjutant_runtime::{
    Error, ErrorKind, Prompter,
    http::{Client, status_of},
    prompt::{PromptRequest, ResumeRequest},
};
use futures_util::StreamExt;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinHandle,
};

use crate::stage::{TOKEN, kind};

/// Answers every connection with these bytes, and closes it.
async fn answering(bytes: impl Into<Vec<u8>>) -> (Client, JoinHandle<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0))
        .await
        .expect("it listens");
    let address = listener.local_addr().expect("an address");
    let bytes = bytes.into();
    let server = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut asked = [0; 4096];
            let _ = stream.read(&mut asked).await;
            let _ = stream.write_all(&bytes).await;
        }
    });
    (client(address), server)
}

fn client(address: SocketAddr) -> Client {
    Client::new(address, TOKEN).expect("a client")
}

/// What a stream of these frames ends with: whether there were items before, and the kind of its error.
async fn ended(frames: &str, length: usize) -> (usize, Option<ErrorKind>) {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n"
    );
    let (client, _server) = answering(format!("{head}{frames}")).await;
    let stream = client.watch().await.expect("it is answered");
    let items: Vec<Result<_, Error>> = stream.collect().await;
    let fine = items.iter().filter(|item| item.is_ok()).count();
    (
        fine,
        items
            .into_iter()
            .find_map(Result::err)
            .map(|error| error.kind()),
    )
}

#[tokio::test]
async fn nobody_who_listens_is_a_connection_error() {
    let listener = TcpListener::bind(("127.0.0.1", 0))
        .await
        .expect("it listens");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let client = client(address);
    assert_eq!(kind(client.ready().await), ErrorKind::Connection);
    assert_eq!(
        kind(client.prompt(PromptRequest::new("Hi.")).await),
        ErrorKind::Connection
    );
    let error = client
        .stream(PromptRequest::new("Hi."))
        .await
        .err()
        .expect("nobody listens");
    assert_eq!(
        (error.kind(), error.is_retryable()),
        (ErrorKind::Connection, true)
    );
    let error = client
        .resume(ResumeRequest::new(Vec::new()))
        .await
        .err()
        .expect("nobody listens");
    assert_eq!(error.kind(), ErrorKind::Connection);
}

#[tokio::test]
async fn connection_that_is_closed_without_an_answer_is_an_error() {
    let (client, _server) = answering("").await;
    assert_eq!(
        kind(client.prompt(PromptRequest::new("Hi.")).await),
        ErrorKind::Connection
    );
    let (client, _server) =
        answering("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"session\":").await;
    assert_eq!(
        kind(client.prompt(PromptRequest::new("Hi.")).await),
        ErrorKind::Connection
    );
}

#[tokio::test]
async fn answer_that_cannot_be_read_is_an_error() {
    for body in ["", "{}", "<html>", "null"] {
        let long = body.len();
        let (client, _server) = answering(format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {long}\r\n\r\n{body}"
        ))
        .await;
        assert_eq!(
            kind(client.prompt(PromptRequest::new("Hi.")).await),
            ErrorKind::Connection,
            "{body:?}"
        );
        let (client, _server) = answering(format!(
            "HTTP/1.1 500 No\r\ncontent-length: {long}\r\n\r\n{body}"
        ))
        .await;
        assert_eq!(
            kind(client.status().await),
            ErrorKind::Connection,
            "{body:?}"
        );
    }
}

/// Answers one request without an end, in chunks.
async fn endless(status: &str) -> Client {
    let listener = TcpListener::bind(("127.0.0.1", 0))
        .await
        .expect("it listens");
    let address = listener.local_addr().expect("an address");
    let head = format!("HTTP/1.1 {status}\r\ntransfer-encoding: chunked\r\n\r\n");
    let chunk = [b"400000\r\n", &vec![b' '; 4 << 20][..], b"\r\n"].concat();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("it is asked");
        let _ = stream.read(&mut [0; 4096]).await;
        let _ = stream.write_all(head.as_bytes()).await;
        // More than any limit here; who has read enough closes.
        for _ in 0..128 {
            if stream.write_all(&chunk).await.is_err() {
                return;
            }
        }
    });
    client(address)
}

#[tokio::test]
async fn answer_is_read_no_further_than_a_frame_of_a_stream() {
    // Announced, it is not read at all.
    let head = format!("content-length: {}\r\n\r\n", 300 << 20);
    let (announced, _server) = answering(format!("HTTP/1.1 200 OK\r\n{head}{{")).await;
    assert_eq!(
        kind(announced.prompt(PromptRequest::new("Hi.")).await),
        ErrorKind::Full
    );
    let error = endless("200 OK")
        .await
        .prompt(PromptRequest::new("Hi."))
        .await
        .expect_err("it never ends");
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::Full, "the answer has more than 268435456 bytes")
    );
    let error = endless("500 No")
        .await
        .prompt(PromptRequest::new("Hi."))
        .await
        .expect_err("it never ends");
    assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
}

#[tokio::test]
async fn stream_without_its_end_is_an_error_and_never_a_silent_end() {
    let one = "event: status\ndata: {\"status\":\"ready\",\"agent\":\"a\",\"runs\":0,\"session\":\"main\"}\n\n";
    let end = "event: end\ndata: {}\n\n";
    let whole = format!("{one}{end}");
    assert_eq!(ended(&whole, whole.len()).await, (1, None));
    assert_eq!(
        ended(one, one.len()).await,
        (1, Some(ErrorKind::Connection)),
        "closed well, but not ended"
    );
    assert_eq!(
        ended(one, one.len() + 10).await,
        (1, Some(ErrorKind::Connection)),
        "cut off between frames"
    );
    assert_eq!(
        ended(&one[..20], 500).await,
        (0, Some(ErrorKind::Connection)),
        "cut off in a frame"
    );
    assert_eq!(ended("", 0).await, (0, Some(ErrorKind::Connection)));
    let odd = "event: status\ndata: {}\n\n";
    assert_eq!(
        ended(odd, odd.len()).await,
        (0, Some(ErrorKind::Connection)),
        "what cannot be read"
    );
    let after = format!("{one}{end}{one}");
    assert_eq!(
        ended(&after, after.len()).await,
        (1, None),
        "nothing is heard behind the end"
    );
    let comments = format!(": a comment\n\n{one}:\n\n{end}");
    assert_eq!(ended(&comments, comments.len()).await, (1, None));
}

#[tokio::test]
async fn stream_that_tells_an_error_ends_with_it() {
    let error =
        r#"{"error":{"kind":"closed","message":"the agent was stopped","is_retryable":false}}"#;
    let frames = format!("event: error\ndata: {error}\n\n");
    assert_eq!(
        ended(&frames, frames.len()).await,
        (0, Some(ErrorKind::Closed))
    );
    assert_eq!(
        ended("event: error\ndata: x\n\n", 23).await,
        (0, Some(ErrorKind::Connection))
    );
}

#[tokio::test]
async fn errors_keep_their_kinds_and_messages_on_the_way() {
    let kinds = [
        (ErrorKind::Manifest, "manifest"),
        (ErrorKind::Invalid, "invalid"),
        (ErrorKind::Missing, "missing"),
        (ErrorKind::Exists, "exists"),
        (ErrorKind::Conflict, "conflict"),
        (ErrorKind::Busy, "busy"),
        (ErrorKind::Init, "init"),
        (ErrorKind::Pull, "pull"),
        (ErrorKind::Model, "model"),
        (ErrorKind::Config, "config"),
        (ErrorKind::Readiness, "readiness"),
        (ErrorKind::Crashed, "crashed"),
        (ErrorKind::Denied, "denied"),
        (ErrorKind::TimedOut, "timed_out"),
        (ErrorKind::Closed, "closed"),
        (ErrorKind::Full, "full"),
        (ErrorKind::Storage, "storage"),
        (ErrorKind::Connection, "connection"),
        (ErrorKind::Agent, "agent"),
    ];
    for (expect, name) in kinds {
        let body = format!(
            r#"{{"error":{{"kind":"{name}","message":"why {name}","is_retryable":false}}}}"#
        );
        let (status, long) = (status_of(expect), body.len());
        let (client, _server) = answering(format!(
            "HTTP/1.1 {status} X\r\ncontent-length: {long}\r\n\r\n{body}"
        ))
        .await;
        let error = client.status().await.expect_err("it is refused");
        assert_eq!(
            (error.kind(), error.message()),
            (expect, &*format!("why {name}"))
        );
    }
}
