//! Tapes: what the files hold, and that they can be played again.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use adjutant_llm::{Chunk, Request, complete};
use adjutant_providers::Tape;

use crate::server::{Nobody, WIRES, all, events, fixture, model, next, serve, status};

/// An empty folder for the tapes of one test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tape-{name}"));
    // It may be there from an earlier run.
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn files(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).expect("a folder");
    let mut files: Vec<String> = files
        .map(|file| {
            file.expect("a file")
                .file_name()
                .into_string()
                .expect("a name")
        })
        .collect();
    files.sort();
    files
}

fn content(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).expect("a file")
}

#[tokio::test]
async fn tape_holds_what_was_asked_and_what_came_when_an_exchange_ends() {
    let folder = folder("files");
    fs::create_dir_all(&folder).expect("a folder");
    for name in ["7.sse", "notes.txt", "3.request.json"] {
        fs::write(folder.join(name), "old").expect("a file");
    }
    let tape = Arc::new(Tape::new(&folder).expect("a tape"));
    let text = fixture("anthropic", "text");
    let body = "{\"error\":{\"type\":\"rate_limit_error\",\"message\":\"no sk-secret\"}}\r\ndata: not an event\n";
    let headers = "content-type: application/json\r\nretry-after: 2\r\nx-account: me\r\n";
    let mut server = serve(vec![events(&text), status("429 Slow", headers, body)]).await;
    let model = model(
        "anthropic",
        &server.base_url,
        "sk-secret",
        Arc::clone(&tape),
    );
    complete(&model, Request::new().user("hi"))
        .await
        .expect("a reply");
    complete(&model, Request::new().user("my sk-secret"))
        .await
        .expect_err("it is refused");

    let mut expect = [
        "3.request.json",
        "7.sse",
        "8.request.json",
        "8.sse",
        "9.request.json",
        "9.sse",
        "notes.txt",
    ];
    expect.sort_unstable();
    assert_eq!(
        (files(&folder), tape.write_failures()),
        (expect.map(str::to_owned).to_vec(), 0)
    );
    #[cfg(unix)]
    for name in ["8.request.json", "8.sse"] {
        let mode = fs::metadata(folder.join(name))
            .expect("it is there")
            .permissions();
        assert_eq!(
            std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777,
            0o600,
            "{name}"
        );
    }
    assert_eq!(content(&folder, "8.request.json"), server.next().await.body);
    assert_eq!(
        content(&folder, "9.request.json"),
        server.next().await.body.replace("sk-secret", "[key]")
    );
    let head =
        ": status 200\n: content-type: text/event-stream\n: x-ratelimit-remaining-requests: 59\n\n";
    assert_eq!(content(&folder, "8.sse"), format!("{head}{text}"));
    assert_eq!(
        content(&folder, "9.sse"),
        ": status 429\n: content-type: application/json\n: retry-after: 2\n\n\
         : ended in RateLimited: anthropic/claude-sonnet-5 answered 429: {\"error\":{\"type\":\"rate_limit_error\",\
         \"message\":\"no [key]\"}}  data: not an event\n\n\
         : {\"error\":{\"type\":\"rate_limit_error\",\"message\":\"no [key]\"}}\n: \n: data: not an event\n: \n\n"
    );
}

#[tokio::test]
async fn tape_fails_when_its_folder_is_a_file() {
    let folder = folder("file");
    fs::write(&folder, "").expect("a file");
    assert!(Tape::new(&folder).is_err());
    fs::remove_file(&folder).expect("it is removed");
}

#[tokio::test]
async fn tapes_keep_apart_when_exchanges_run_at_once() {
    let folder = folder("at-once");
    let tapes = [0, 1].map(|_| Arc::new(Tape::new(&folder).expect("a tape")));
    let said = |number: usize| {
        fixture("chat", "text").replace("chatcmpl-1", &format!("chatcmpl-number-{number}"))
    };
    let mut server = serve((0..6).map(|number| events(&said(number))).collect()).await;
    let asked = (0..6).map(|number| {
        let model = model(
            "chat",
            &server.base_url,
            "sk-secret",
            Arc::clone(&tapes[number % 2]),
        );
        tokio::spawn(async move {
            complete(&model, Request::new().user(format!("question {number}"))).await
        })
    });
    for asked in asked.collect::<Vec<_>>() {
        asked.await.expect("it ends").expect("a reply");
    }
    assert_eq!(files(&folder).len(), 12);
    let pairs: Vec<(String, String)> = (0..6)
        .map(|number| {
            (
                content(&folder, &format!("{number}.request.json")),
                content(&folder, &format!("{number}.sse")),
            )
        })
        .collect();
    for number in 0..6 {
        let seen = server.next().await;
        let (_, answer) = pairs
            .iter()
            .find(|(request, _)| *request == seen.body)
            .expect("each request is there");
        assert!(
            answer.contains(&format!("chatcmpl-number-{number}\"")),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn tape_holds_what_had_come_when_the_stream_is_dropped() {
    let folder = folder("dropped");
    let text = fixture("chat", "text");
    let (first, rest) = text.split_once("\n\n").expect("an event");
    let server = serve(vec![events(&text).hang(rest.len() + 7)]).await;
    let model = model(
        "chat",
        &server.base_url,
        "sk-secret",
        Tape::new(&folder).expect("a tape"),
    );
    let mut stream = model.stream(Request::new().user("hi"));
    assert!(matches!(
        next(&mut stream).await,
        Some(Ok(Chunk::Start { .. }))
    ));
    assert_eq!(files(&folder), ["0.request.json"]);
    drop(stream);
    let head =
        ": status 200\n: content-type: text/event-stream\n: x-ratelimit-remaining-requests: 59\n\n";
    let end = ": ended in Cancelled: the answer of openai/gpt-5.4 was dropped before it ended\n\n";
    assert_eq!(content(&folder, "0.sse"), format!("{head}{first}\n\n{end}"));
}

#[tokio::test]
async fn tape_gives_the_same_chunks_when_it_is_played_again() {
    for wire in WIRES {
        let folder = folder(&format!("again-{wire}"));
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures")
            .join(wire);
        let names = files(&fixtures);
        let names: Vec<&str> = names
            .iter()
            .filter_map(|name| name.strip_suffix(".sse"))
            .collect();
        assert!(names.len() > 20);
        for (number, name) in names.into_iter().enumerate() {
            let server = serve(vec![events(&fixture(wire, name))]).await;
            let tape = Tape::new(&folder).expect("a tape");
            let taped =
                all(model(wire, &server.base_url, "sk-secret", tape)
                    .stream(Request::new().user("hi")))
                .await;
            let server = serve(vec![events(&content(&folder, &format!("{number}.sse")))]).await;
            let again = all(model(wire, &server.base_url, "sk-secret", Nobody)
                .stream(Request::new().user("hi")))
            .await;
            assert_eq!(again, taped, "{wire}: {name}");
        }
    }
}
