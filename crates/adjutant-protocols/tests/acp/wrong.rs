//! What an editor says wrongly: each has its answer, and what follows is heard.

use adjutant_llm::{Gate, Script};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use super::{Desk, Editor, done, short};

#[tokio::test]
async fn line_that_is_wrong_is_answered_and_what_follows_it_is_heard() {
    let desk = Desk::new([
        Script::new().text("On and on").wait_at(1, &Gate::default()),
        done(),
    ]);
    let mut editor = Editor::of(&desk);
    editor
        .ask("session/new", json!({"cwd": "/w", "mcpServers": []}))
        .await;
    assert_eq!(
        editor.answer(&[]).await,
        ["error -32600 `initialize` comes first"]
    );
    editor.leave().await;
    let (mut editor, _) = Editor::open(&desk, "session/new", json!({})).await;
    let prompt = |part: Value| json!({"method": "session/prompt", "params": {"sessionId": "s", "prompt": [part]}});
    let open = |method: &str, cwd: &str| json!({"method": method, "params": {"sessionId": "t", "cwd": cwd, "mcpServers": []}});
    let table = [
        (json!({"method": "session/fork", "params": {}}), "-32601"),
        (open("session/new", "w"), "-32602"),
        (open("session/new", "/nowhere"), "-32603"),
        (
            json!({"method": "session/list", "params": {"cwd": "w"}}),
            "-32602",
        ),
        (
            json!({"method": "session/list", "params": {"cwd": "/nowhere"}}),
            "-32603",
        ),
        (
            json!({"method": "session/list", "params": {"cursor": "unknown"}}),
            "-32602",
        ),
        (
            json!({"method": "session/list", "params": {"cursor": 7}}),
            "-32602",
        ),
        (
            json!({"method": "session/load", "params": {"cwd": "/w"}}),
            "-32602",
        ),
        (
            json!({"method": "session/load", "params": {"sessionId": "unknown", "cwd": "/w"}}),
            "-32002",
        ),
        (
            json!({"method": "session/resume", "params": {"sessionId": "unknown", "cwd": "/w"}}),
            "-32002",
        ),
        (
            json!({"method": "session/set_mode", "params": {"sessionId": "s", "modeId": "none"}}),
            "-32602",
        ),
        (
            json!({"method": "session/prompt", "params": {"sessionId": "t", "prompt": []}}),
            "-32002",
        ),
        (
            json!({"method": "session/prompt", "params": {"sessionId": "s"}}),
            "-32602",
        ),
        (prompt(json!({"type": "text", "text": " "})), "-32602"),
        (
            prompt(json!({"type": "audio", "data": "", "mimeType": "audio/wav"})),
            "-32602",
        ),
        (
            prompt(json!({"type": "image", "data": "no", "mimeType": "image/png"})),
            "-32602",
        ),
        (
            prompt(json!({"type": "image", "data": "AAAA", "mimeType": "text/plain"})),
            "-32602",
        ),
        (
            prompt(json!({"type": "resource", "resource": {"uri": "file:///a"}})),
            "-32602",
        ),
        (
            prompt(json!({"type": "resource", "resource": {"uri": "file:///a", "blob": "no"}})),
            "-32602",
        ),
        (json!({"params": {}}), "-32600"),
        (json!([]), "-32600"),
        (json!("text"), "-32600"),
    ];
    for (mut message, code) in table {
        if message["method"].is_string() {
            message["id"] = "x".into();
        }
        editor.say(&message.to_string()).await;
        let heard = editor.answer(&[]).await;
        assert!(
            heard.len() == 1 && heard[0].starts_with(&format!("error {code} ")),
            "{message}: {heard:?}"
        );
    }
    let deep = "[".repeat(1 << 20);
    for (line, code) in [
        ("{", "-32700"),
        ("\u{0}", "-32700"),
        (deep.as_str(), "-32700"),
    ] {
        editor.say(line).await;
        assert!(editor.answer(&[]).await[0].starts_with(&format!("error {code} ")));
    }
    let long = " ".repeat((16 << 20) + 1);
    let (said, heard) = {
        let Editor { lines, output, .. } = &mut editor;
        let line = format!("{long}\n");
        tokio::join!(
            async { output.write_all(line.as_bytes()).await },
            lines.next_line()
        )
    };
    assert!(
        said.is_ok()
            && heard
                .expect("a line")
                .is_some_and(|line| line.contains("16 MiB at most"))
    );
    // What asks for nothing is passed over.
    for line in [
        "",
        "{\"method\":\"$/other\"}",
        "{\"id\":99,\"result\":{}}",
        "{\"method\":\"session/cancel\"}",
    ] {
        editor.say(line).await;
    }
    editor
        .ask(
            "session/set_mode",
            json!({"sessionId": "s", "modeId": "all"}),
        )
        .await;
    assert_eq!(
        (editor.answer(&[]).await, desk.done()),
        (vec!["ok".to_owned()], vec!["all".to_owned()])
    );

    let pages = [
        (
            json!({"cwd": "/w"}),
            r#"{"sessions":[{"sessionId":"s","cwd":"/w"}],"nextCursor":"t"}"#,
        ),
        (
            json!({"cursor": "t"}),
            r#"{"sessions":[{"sessionId":"t","cwd":"/w"}],"nextCursor":null}"#,
        ),
    ];
    for (wish, page) in pages {
        editor.ask("session/list", wish).await;
        assert_eq!(editor.answer(&[]).await, [page]);
    }

    // One prompt at a time; a cancel ends it, and the next one runs.
    editor
        .ask(
            "session/prompt",
            json!({"sessionId": "s", "prompt": [{"type": "text", "text": "Go."}]}),
        )
        .await;
    editor
        .ask(
            "session/prompt",
            json!({"sessionId": "s", "prompt": [{"type": "text", "text": "Go."}]}),
        )
        .await;
    let mut heard = [
        editor.lines.next_line().await,
        editor.lines.next_line().await,
    ]
    .map(|line| {
        short(&serde_json::from_str(&line.expect("it writes").expect("a line")).expect("JSON"))
    });
    heard.sort();
    assert_eq!(
        heard,
        [
            "agent_message_chunk On and o",
            "error -32600 the session is at work; cancel that first"
        ]
    );
    editor
        .say("{\"method\":\"session/cancel\",\"params\":{\"sessionId\":\"s\"}}")
        .await;
    assert_eq!(editor.answer(&[]).await, ["cancelled"]);
    assert_eq!(
        editor.prompt("Go.", &[]).await,
        ["agent_message_chunk Done.", "end_turn"]
    );
    editor.leave().await;
}

#[tokio::test]
async fn server_of_the_editor_that_is_wrong_is_refused() {
    let desk = Desk::default();
    let (mut editor, _) = Editor::open(&desk, "session/new", json!({})).await;
    let with = |servers: Value| json!({"cwd": "/w", "mcpServers": servers});
    let server = json!({"name": "a", "command": "/bin/a", "args": [], "env": []});
    let changed = |field: &str, value: Value| {
        let mut server = server.clone();
        server[field] = value;
        with(json!([server]))
    };
    let table = [
        with(json!({"a": server})),
        with(json!([server, server])),
        changed("name", Value::Null),
        changed("command", "a".into()),
        changed("args", json!([1])),
        changed("env", json!([{"name": "A"}])),
        changed("type", "sse".into()),
        changed("type", "http".into()),
        with(json!([{"type": "http", "name": "a", "url": "file:///a"}])),
        with(json!([{"type": "http", "name": "a", "url": "http://a", "headers": ["a"]}])),
    ];
    for params in table {
        editor.ask("session/new", params.clone()).await;
        let heard = editor.answer(&[]).await;
        assert!(
            heard.len() == 1 && heard[0].starts_with("error -32602 "),
            "{params}: {heard:?}"
        );
    }
    editor.leave().await;
}
