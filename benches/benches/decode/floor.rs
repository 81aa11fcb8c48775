//! The floor: what a careful user would write by hand for one wire, over three ways to split events.
//!
//! It reads borrowed structs, appends the text, notes the end and the tokens, and catches nothing.

use std::{borrow::Cow, convert::Infallible};

use bytes::Bytes;
use eventsource_stream::Eventsource;
use futures_util::{FutureExt, Stream, StreamExt, stream};
use serde::Deserialize;
use sse_stream::SseStream;

/// How many bytes come at once.
const PIECE: usize = 16 * 1024;

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) tokens: u64,
    pub(crate) finished: bool,
}

/// The events of one wire.
pub(crate) trait Events {
    fn read(data: &str, answer: &mut Answer);
}

/// Splits at line ends, by hand.
pub(crate) fn by_hand<E: Events>(stream: &Bytes) -> Answer {
    let (mut buffer, mut answer) = (Vec::new(), Answer::default());
    let mut scanned = 0;
    for piece in stream.chunks(PIECE) {
        buffer.extend_from_slice(piece);
        let mut from = 0;
        while let Some(at) = memchr::memchr(b'\n', &buffer[scanned..]) {
            let end = scanned + at;
            if let Some(data) = buffer[from..end].strip_prefix(b"data: ") {
                E::read(std::str::from_utf8(data).expect("text"), &mut answer);
            }
            (from, scanned) = (end + 1, end + 1);
        }
        buffer.drain(..from);
        scanned = buffer.len();
    }
    answer
}

/// Splits with sse-stream.
pub(crate) fn by_sse_stream<E: Events>(stream: &Bytes) -> Answer {
    let mut events = SseStream::from_bytes_stream(pieces(stream));
    let mut answer = Answer::default();
    let reading = async {
        while let Some(event) = events.next().await {
            if let Some(data) = event.expect("an event").data {
                E::read(&data, &mut answer);
            }
        }
    };
    reading.now_or_never().expect("all is there");
    answer
}

/// Splits with eventsource-stream.
pub(crate) fn by_eventsource_stream<E: Events>(stream: &Bytes) -> Answer {
    let mut events = pieces(stream).eventsource();
    let mut answer = Answer::default();
    let reading = async {
        while let Some(event) = events.next().await {
            E::read(&event.expect("an event").data, &mut answer);
        }
    };
    reading.now_or_never().expect("all is there");
    answer
}

fn pieces(stream: &Bytes) -> impl Stream<Item = Result<Bytes, Infallible>> + Unpin {
    let whole = stream.clone();
    stream::iter(
        (0..whole.len())
            .step_by(PIECE)
            .map(move |from| Ok(whole.slice(from..whole.len().min(from + PIECE)))),
    )
}

/// A text that is borrowed unless it holds escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Anthropic Messages.
pub(crate) struct Messages;

#[derive(Deserialize)]
struct MessagesEvent<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    delta: Option<MessagesDelta<'a>>,
    usage: Option<MessagesUsage>,
}

#[derive(Deserialize)]
struct MessagesDelta<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    stop_reason: Option<&'a str>,
}

#[derive(Deserialize)]
struct MessagesUsage {
    output_tokens: u64,
}

impl Events for Messages {
    fn read(data: &str, answer: &mut Answer) {
        let event: MessagesEvent<'_> = serde_json::from_str(data).expect("an event");
        match event.kind {
            "content_block_delta" => {
                if let Some(Text(text)) = event.delta.and_then(|delta| delta.text) {
                    answer.text.push_str(&text);
                }
            }
            "message_delta" => {
                answer.finished |= event.delta.is_some_and(|delta| delta.stop_reason.is_some());
                answer.tokens = event
                    .usage
                    .map_or(answer.tokens, |usage| usage.output_tokens);
            }
            _ => {}
        }
    }
}

/// OpenAI Responses.
pub(crate) struct Responses;

#[derive(Deserialize)]
struct ResponsesEvent<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    delta: Option<Text<'a>>,
    response: Option<Response>,
}

#[derive(Deserialize)]
struct Response {
    usage: Option<MessagesUsage>,
}

impl Events for Responses {
    fn read(data: &str, answer: &mut Answer) {
        let event: ResponsesEvent<'_> = serde_json::from_str(data).expect("an event");
        match event.kind {
            "response.output_text.delta" => {
                if let Some(Text(text)) = event.delta {
                    answer.text.push_str(&text);
                }
            }
            "response.completed" => {
                answer.finished = true;
                answer.tokens = event
                    .response
                    .and_then(|it| it.usage)
                    .map_or(0, |usage| usage.output_tokens);
            }
            _ => {}
        }
    }
}

/// OpenAI Chat Completions.
pub(crate) struct Chat;

#[derive(Deserialize)]
struct ChatChunk<'a> {
    #[serde(borrow)]
    choices: Vec<ChatChoice<'a>>,
    usage: Option<ChatUsage>,
}

#[derive(Deserialize)]
struct ChatChoice<'a> {
    #[serde(borrow)]
    delta: ChatDelta<'a>,
    finish_reason: Option<&'a str>,
}

#[derive(Deserialize)]
struct ChatDelta<'a> {
    #[serde(borrow)]
    content: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct ChatUsage {
    completion_tokens: u64,
}

impl Events for Chat {
    fn read(data: &str, answer: &mut Answer) {
        if data == "[DONE]" {
            return;
        }
        let chunk: ChatChunk<'_> = serde_json::from_str(data).expect("a chunk");
        for choice in chunk.choices {
            if let Some(Text(text)) = choice.delta.content {
                answer.text.push_str(&text);
            }
            answer.finished |= choice.finish_reason.is_some();
        }
        answer.tokens = chunk
            .usage
            .map_or(answer.tokens, |usage| usage.completion_tokens);
    }
}

/// Google Gemini.
pub(crate) struct Gemini;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiResponse<'a> {
    #[serde(borrow)]
    candidates: Vec<GeminiCandidate<'a>>,
    usage_metadata: Option<GeminiUsage>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiCandidate<'a> {
    #[serde(borrow)]
    content: GeminiContent<'a>,
    finish_reason: Option<&'a str>,
}

#[derive(Deserialize)]
struct GeminiContent<'a> {
    #[serde(borrow)]
    parts: Vec<GeminiPart<'a>>,
}

#[derive(Deserialize)]
struct GeminiPart<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiUsage {
    candidates_token_count: u64,
}

impl Events for Gemini {
    fn read(data: &str, answer: &mut Answer) {
        let response: GeminiResponse<'_> = serde_json::from_str(data).expect("a response");
        for candidate in response.candidates {
            for part in candidate.content.parts {
                if let Some(Text(text)) = part.text {
                    answer.text.push_str(&text);
                }
            }
            answer.finished |= candidate.finish_reason.is_some();
        }
        answer.tokens = response
            .usage_metadata
            .map_or(answer.tokens, |usage| usage.candidates_token_count);
    }
}
