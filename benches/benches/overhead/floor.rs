//! The floor: the loop that a careful user would write by hand, without a framework.
//!
//! It keeps the encoded conversation and appends to it, reads frames with borrowed structs, and catches nothing.

use std::{fmt::Write as _, hint::black_box, io::BufRead};

use reqwest::{Client, header};
use serde::Deserialize;

use crate::measure::{Report, Watch, measured, rss_kb};

struct Chat {
    client: Client,
    url: String,
    messages: String,
    buffer: Vec<u8>,
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Delta<'a>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<&'a str>,
    #[serde(borrow, default)]
    tool_calls: Vec<ToolCall<'a>>,
}

#[derive(Deserialize)]
struct ToolCall<'a> {
    id: Option<&'a str>,
    #[serde(borrow)]
    function: Function<'a>,
}

#[derive(Deserialize)]
struct Function<'a> {
    name: Option<&'a str>,
    arguments: Option<std::borrow::Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Usage {
    prompt_tokens: u64,
    completion_tokens: u64,
}

#[derive(Deserialize)]
struct Args {
    n: u64,
}

#[derive(Default)]
struct Answer {
    text: String,
    call: Option<(String, String, String)>,
    tokens: u64,
}

pub(crate) fn run(kind: &str, port: u16, n: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder()
        .tcp_nodelay(true)
        .build()
        .expect("a client");
    let report = match kind {
        "short" => {
            runtime.block_on(async { Chat::new(&client, port).converse().await });
            measured(&runtime, async {
                for _ in 0..n {
                    Chat::new(&client, port).converse().await;
                }
            })
        }
        "waiting" => runtime.block_on(waiting(&client, port, n)),
        _ => measured(&runtime, async {
            Chat::new(&client, port).converse().await
        }),
    };
    report.print();
}

async fn waiting(client: &Client, port: u16, n: usize) -> Report {
    let before = rss_kb();
    let watch = Watch::start();
    let spawn = |_| {
        let mut chat = Chat::new(client, port);
        tokio::spawn(async move { chat.converse().await })
    };
    let tasks: Vec<_> = (0..n).map(spawn).collect();
    let line = tokio::task::spawn_blocking(|| std::io::stdin().lock().lines().next());
    line.await.expect("the parent speaks");
    let rss_kb = (rss_kb() - before) / n as f64;
    println!("measured");
    for task in tasks {
        task.await.expect("a conversation ends");
    }
    Report {
        rss_kb,
        ..watch.report()
    }
}

impl Chat {
    fn new(client: &Client, port: u16) -> Self {
        Self {
            client: client.clone(),
            url: format!("http://127.0.0.1:{port}/v1/chat/completions"),
            messages: String::from(r#"{"role":"user","content":"Go."}"#),
            buffer: Vec::new(),
        }
    }

    async fn converse(&mut self) {
        loop {
            let answer = self.turn().await;
            let Some((id, name, arguments)) = answer.call else {
                black_box((answer.text, answer.tokens));
                return;
            };
            let args: Args = serde_json::from_str(&arguments).expect("arguments");
            let result = fetch(args.n);
            let quote = |text: &str| serde_json::to_string(text).expect("text is JSON");
            write!(
                self.messages,
                r#",{{"role":"assistant","content":null,"tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"{name}","arguments":{}}}}}]}},{{"role":"tool","tool_call_id":"{id}","content":{}}}"#,
                quote(&arguments),
                quote(&result)
            )
            .expect("writing to a string");
        }
    }

    async fn turn(&mut self) -> Answer {
        let mut body = String::with_capacity(self.messages.len() + 512);
        body.push_str(r#"{"model":"bench","stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"fetch","description":"Fetches a page.","parameters":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}}],"messages":["#);
        body.push_str(&self.messages);
        body.push_str("]}");
        let request = self
            .client
            .post(&self.url)
            .bearer_auth("key")
            .header(header::CONTENT_TYPE, "application/json");
        let mut response = request.body(body).send().await.expect("an answer");
        assert!(response.status().is_success());
        let mut answer = Answer::default();
        self.buffer.clear();
        while let Some(chunk) = response.chunk().await.expect("a chunk") {
            self.buffer.extend_from_slice(&chunk);
            let mut from = 0;
            while let Some(end) = self.buffer[from..]
                .windows(2)
                .position(|pair| pair == b"\n\n")
            {
                answer.read(&self.buffer[from..from + end]);
                from += end + 2;
            }
            self.buffer.drain(..from);
        }
        answer
    }
}

impl Answer {
    fn read(&mut self, event: &[u8]) {
        let Some(data) = event.strip_prefix(b"data: ") else {
            return;
        };
        if data == b"[DONE]" {
            return;
        }
        let frame: Frame<'_> = serde_json::from_slice(data).expect("a frame");
        for choice in frame.choices {
            if let Some(text) = choice.delta.content {
                self.text.push_str(text);
            }
            for call in choice.delta.tool_calls {
                let (id, name, arguments) = self.call.get_or_insert_with(Default::default);
                id.push_str(call.id.unwrap_or_default());
                name.push_str(call.function.name.unwrap_or_default());
                arguments.push_str(&call.function.arguments.unwrap_or_default());
            }
        }
        if let Some(usage) = frame.usage {
            self.tokens = usage.prompt_tokens + usage.completion_tokens;
        }
    }
}

/// The tool of every measurement: a page of one kibibyte.
pub(crate) fn fetch(n: u64) -> String {
    let mut page = format!("page {n}: ");
    page.extend(std::iter::repeat_n('x', 1_024 - page.len()));
    page
}
