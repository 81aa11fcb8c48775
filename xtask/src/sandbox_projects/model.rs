//! A model that requests one command and then ends: a server of this process that answers like the Messages API.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    thread,
};

use serde_json::{Value, json};

/// The seconds that a command may take.
const LIMIT: u64 = 600;

/// A scripted model. It answers until this process exits.
pub(super) struct ScriptedModel {
    address: String,
}

impl ScriptedModel {
    /// Starts a model that requests this command line.
    pub(super) fn start(command: &str) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = format!("http://{}", listener.local_addr()?);
        let input = json!({ "command": command, "timeout_secs": LIMIT }).to_string();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A client that is gone gets no answer.
                let _ = answer(&client, &input);
            }
        });
        Ok(Self { address })
    }

    /// The variables with which a program uses it.
    pub(super) fn environment(&self) -> [(&'static str, String); 3] {
        [
            ("ANTHROPIC_BASE_URL", self.address.clone()),
            ("ANTHROPIC_API_KEY", "key".to_owned()),
            ("ADJUTANT_MODEL", "anthropic/claude-sonnet-5".to_owned()),
        ]
    }
}

fn answer(mut client: &TcpStream, input: &str) -> io::Result<()> {
    let mut reader = BufReader::new(client);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
        let field = line.to_ascii_lowercase();
        if let Some(value) = field.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or_default();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let is_done = String::from_utf8_lossy(&body).contains("\"tool_result\"");
    let (block, delta, reason) = match is_done {
        true => (
            json!({ "type": "text", "text": "" }),
            json!({ "type": "text_delta", "text": "done" }),
            "end_turn",
        ),
        false => (
            json!({ "type": "tool_use", "id": "toolu_1", "name": "run_command", "input": {} }),
            json!({ "type": "input_json_delta", "partial_json": input }),
            "tool_use",
        ),
    };
    let events = [
        json!({ "type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5", "content": [],
            "usage": { "input_tokens": 1, "output_tokens": 1 },
        } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": { "output_tokens": 1 } }),
        json!({ "type": "message_stop" }),
    ];
    let event = |event: &Value| {
        let name = event["type"].as_str().unwrap_or_default();
        format!("event: {name}\ndata: {event}\n\n")
    };
    let events: String = events.iter().map(event).collect();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n";
    write!(
        client,
        "{head}Content-Length: {}\r\n\r\n{events}",
        events.len()
    )
}
