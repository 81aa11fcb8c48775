//! What the body of a request costs when one turn was appended, early and late in a conversation. No socket.
//!
//! Beside the new turn, only the messages that are not sealed in a segment yet are copied: what copying as many bytes
//! costs is measured in the same run.

use std::{
    collections::HashSet,
    hint::black_box,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use adjutant_benches::{Rows, median};
use adjutant_llm::{
    Block, Call, CallId, CallResult, Entry, FinishReason, Reply, Request, ToolDecl, Transcript,
    Turn, UserMessage,
};
use adjutant_providers::fuzzing::{self, Encoded, Wire};
use bytes::Bytes;
use serde_json::json;

const WIRES: [(&str, Wire); 4] = [
    ("messages", Wire::Messages),
    ("responses", Wire::Responses),
    ("chat", Wire::Chat),
    ("gemini", Wire::Gemini),
];
/// The turns whose requests are measured; the second one over the first one is the ratio.
const TURNS: [u64; 3] = [8, 800, 3_200];
/// How often each of them gets its turn for the ratios.
const ROUNDS: usize = 15;
/// How many requests are measured in a round.
const REQUESTS: u64 = 400;

/// Writes the body of a request.
type Encoder = Box<dyn Fn(&Request) -> Encoded>;

/// A conversation that grows turn by turn.
struct Conversation {
    request: Request,
    next: u64,
}

impl Conversation {
    /// A conversation of this many turns.
    fn new(turns: u64) -> Self {
        let schema =
            json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let fetch = ToolDecl {
            name: "fetch".into(),
            description: "Fetches a page.".into(),
            schema: Arc::new(schema),
        };
        let tools: Arc<[ToolDecl]> = Arc::from([fetch]);
        let entries = Transcript::from_iter([Entry::User(UserMessage::text("Go."))]);
        let request = Request {
            entries,
            ..Request::new().system("Be brief.").tools(tools)
        };
        let mut conversation = Self { request, next: 0 };
        (0..turns).for_each(|_| conversation.grow());
        conversation
    }

    /// The same conversation, of which nothing is encoded.
    fn fresh(&self) -> Self {
        let mut request = self.request.clone();
        request.entries = request.entries.fork();
        Self {
            request,
            next: self.next,
        }
    }

    /// Appends a turn: a call, and a result of one kibibyte.
    fn grow(&mut self) {
        let id = CallId {
            turn: self.next,
            attempt: 0,
            block: 1,
        };
        let mut reply = Reply::new("bench/model".into(), FinishReason::Calls);
        reply
            .blocks
            .push(Arc::new(Block::text("I look at the next page.")));
        reply.blocks.push(Arc::new(Block::Call(Call::new(
            id,
            "fetch",
            format!("{{\"n\":{}}}", self.next),
        ))));
        let mut turn = Turn::open(Arc::new(reply));
        turn.put(
            id,
            Arc::new(CallResult::ok(format!("{:x<1024}", self.next))),
        )
        .expect("the reply has this call");
        self.request
            .entries
            .push(Entry::Turn(turn.close().expect("the call has its result")));
        self.next += 1;
    }
}

/// Times this many requests, each after one more turn; the conversation starts over when it has grown by a quarter.
fn requests(encode: &Encoder, start: &Conversation, count: u64) -> Duration {
    let span = (start.next / 4).max(1);
    let mut sum = Duration::ZERO;
    let mut conversation = start.fresh();
    for n in 0..count {
        if n % span == 0 {
            conversation = start.fresh();
            encode(&conversation.request);
        }
        conversation.grow();
        let begun = Instant::now();
        black_box(encode(black_box(&conversation.request)).bytes());
        sum += begun.elapsed();
    }
    sum
}

/// How many bytes were made anew for each of the requests, on average: of pieces that were not in the body before.
fn copied(encode: &Encoder, start: &Conversation) -> usize {
    let span = (start.next / 4).max(1);
    let mut conversation = start.fresh();
    let mut before: Vec<Bytes> = encode(&conversation.request).pieces().collect();
    let mut sum = 0;
    for _ in 0..span {
        conversation.grow();
        let body = encode(&conversation.request);
        let pieces: Vec<Bytes> = body.pieces().collect();
        assert_eq!(
            pieces.iter().map(|it| it.len() as u64).sum::<u64>(),
            body.bytes()
        );
        let known: HashSet<_> = before.iter().map(|it| it.as_ptr_range().end).collect();
        sum += pieces
            .iter()
            .filter(|it| !known.contains(&it.as_ptr_range().end))
            .map(Bytes::len)
            .sum::<usize>();
        before = pieces;
    }
    sum / span as usize
}

/// What it costs to copy this many bytes into a buffer of its own.
fn copying(bytes: usize) -> Duration {
    let from = vec![b'x'; bytes];
    let begun = Instant::now();
    for _ in 0..REQUESTS {
        let mut copy = Vec::with_capacity(from.len() + 2);
        copy.extend_from_slice(black_box(&from));
        black_box(Bytes::from(copy));
    }
    begun.elapsed()
}

fn compare(name: &str, wire: Wire, starts: &[Conversation], rows: &mut Rows) {
    let encode = fuzzing::encoder(wire);
    let bytes: Vec<usize> = starts.iter().map(|start| copied(&encode, start)).collect();
    let us = |time: Duration| time.as_secs_f64() * 1e6 / REQUESTS as f64;
    // Each round: for each of the turns, what a request costs, and what of it is copying.
    let rounds: Vec<Vec<(f64, f64)>> = (0..ROUNDS)
        .map(|_| {
            let turns = starts.iter().zip(&bytes);
            turns
                .map(|(start, bytes)| (us(requests(&encode, start, REQUESTS)), us(copying(*bytes))))
                .collect()
        })
        .collect();
    for (at, start) in starts.iter().enumerate() {
        let cost = median(rounds.iter().map(|round| round[at].0));
        let copying = median(rounds.iter().map(|round| round[at].1));
        let ratio = median(rounds.iter().map(|round| round[at].0 / round[0].0));
        let less = median(
            rounds
                .iter()
                .map(|round| (round[at].0 - round[at].1) / (round[0].0 - round[0].1)),
        );
        let measured = format!(
            "{cost:.2} us, {} bytes copied ({copying:.2} us); over turn {}: {ratio:.2}, less copying {less:.2}",
            bytes[at], TURNS[0]
        );
        rows.figure(
            &format!("encode {name}, a request at turn {}, us", start.next),
            &measured,
            cost,
        );
    }
}

fn main() -> ExitCode {
    let (starts, mut rows) = (TURNS.map(Conversation::new), Rows::default());
    WIRES
        .into_iter()
        .for_each(|(name, wire)| compare(name, wire, &starts, &mut rows));
    rows.end()
}
