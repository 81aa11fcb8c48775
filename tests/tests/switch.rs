//! A conversation that goes from wire to wire and back: every request is one that its vendor takes, and nothing is lost.

use std::sync::Arc;

use adjutant::{
    Agent, EventKind, Outcome, agent,
    llm::{
        Call, CallResult, Chunk, Collector, Content, Effort, Entry, FinishReason, Gate, Options,
        Reply, Request, Script, ScriptedModel, Status, UserMessage, WarningKind, complete,
    },
    providers::Timeouts,
};
use adjutant_testing::Loopback;
use adjutant_tests::{PIXEL, WIRES, Wire, answered, listen, pair, pixel, signed, taken, tools};
use futures_util::StreamExt;
use serde_json::json;

/// Signatures, base64 of a few words each: one for every thought of a handoff run.
const SEALS: [[&str; 3]; 4] = [
    ["bGVnIDEgZmlyc3Q=", "bGVnIDEgc2Vjb25k", "bGVnIDEgdGhpcmQ="],
    ["bGVnIDIgZmlyc3Q=", "bGVnIDIgc2Vjb25k", "bGVnIDIgdGhpcmQ="],
    ["bGVnIDMgZmlyc3Q=", "bGVnIDMgc2Vjb25k", "bGVnIDMgdGhpcmQ="],
    ["bGVnIDQgZmlyc3Q=", "bGVnIDQgc2Vjb25k", "bGVnIDQgdGhpcmQ="],
];

/// A conversation, and the server that all wires lead to.
struct Stage {
    server: Loopback,
    scripted: Arc<ScriptedModel>,
    request: Request,
    legs: Vec<Leg>,
}

/// What one wire contributed: what it signed in whole replies, and in one that was interrupted.
struct Leg {
    wire: Wire,
    seals: Vec<String>,
    lost: Vec<String>,
}

impl Stage {
    async fn new() -> Self {
        let scripted = Arc::new(ScriptedModel::new([]));
        let setup = Loopback::setup(Arc::clone(&scripted)).strict_signatures();
        let server = setup.start().await.expect("the server starts");
        let options = Options {
            thinking: Some(Effort::High),
            max_output_tokens: Some(20_000),
            ..Options::default()
        };
        let request = Request::new()
            .system("You know cities.")
            .tools(tools())
            .options(options);
        Self {
            server,
            scripted,
            request,
            legs: Vec::new(),
        }
    }

    /// A picture and a question, thinking with two calls, an answer after more thinking, and a reply that is interrupted.
    async fn leg(&mut self, wire: Wire) {
        let number = self.legs.len();
        let before = self.server.signatures().len();
        self.legs.push(Leg {
            wire,
            seals: Vec::new(),
            lost: Vec::new(),
        });
        self.user(vec![
            Content::text(format!("What is this, {number}?")),
            pixel(),
        ]);
        let calls = Script::new()
            .thinking(signed("Two cities.", SEALS[number][0]))
            .text(format!("I shall look, {number}."))
            .call("look", json!({"city": "Köln"}))
            .call("find", json!({"city": "Bonn"}));
        let reply = self.ask(wire, calls).await;
        assert_eq!(
            (reply.stop, reply.calls().count()),
            (FinishReason::Calls, 2),
            "{wire}"
        );
        self.request = answered(self.request.clone(), &reply, |call| result(call, number));
        self.legs[number].seals = self.server.signatures().split_off(before);

        let answer = Script::new()
            .thinking(signed("So.", SEALS[number][1]))
            .text(format!("I have seen it, {number}."));
        let reply = self.ask(wire, answer).await;
        self.request = answered(self.request.clone(), &reply, |_| CallResult::ok(""));
        self.legs[number].seals = self.server.signatures().split_off(before);

        self.user(vec![Content::text(format!("Go on, {number}."))]);
        let before = self.server.signatures().len();
        let reply = self.interrupted(wire, number).await;
        self.request.entries.push(pair(&Arc::new(reply), |_| {
            CallResult::new(Status::Cancelled, "Cancelled.")
        }));
        self.legs[number].lost = self.server.signatures().split_off(before);
    }

    fn user(&mut self, content: Vec<Content>) {
        self.request
            .entries
            .push(Entry::User(UserMessage::from(content)));
    }

    async fn ask(&self, wire: Wire, script: Script) -> Arc<Reply> {
        self.scripted.push(script);
        let reply = complete(&wire.model(&self.server), self.request.clone()).await;
        let reply = taken(reply, &self.path());
        assert_eq!(reply.model.as_str(), wire.id());
        self.check(wire);
        reply
    }

    /// A reply that was dropped in the middle of a call, after thinking and text.
    async fn interrupted(&self, wire: Wire, number: usize) -> Reply {
        let (half, never) = (format!("Half of {number}"), Gate::default());
        let script = Script::new()
            .delta_chars(1_000)
            .thinking(signed("Hm.", SEALS[number][2]))
            .text(half.as_str());
        self.scripted.push(
            script
                .call("look", json!({"city": "Trier"}))
                .wait_at(2, &never),
        );
        let model = wire.model(&self.server);
        let mut stream = model.stream(self.request.clone());
        let mut collector = Collector::default();
        loop {
            let chunk = stream
                .next()
                .await
                .expect("the stream goes on")
                .expect("the request is taken");
            collector
                .push(&chunk)
                .expect("the stream holds its grammar");
            if matches!(&chunk, Chunk::Delta { text, .. } if *text == half) {
                break;
            }
        }
        self.check(wire);
        let reply = collector
            .into_interrupted()
            .expect("an attempt is going on");
        assert_eq!(
            (reply.text(), reply.stop),
            (half, FinishReason::Interrupted),
            "{wire}"
        );
        reply
    }

    /// Holds the last request to what was said before it.
    #[track_caller]
    fn check(&self, wire: Wire) {
        let path = self.path();
        let body = self
            .server
            .requests()
            .last()
            .expect("there is a request")
            .body
            .clone();
        let sent = String::from_utf8(body.to_vec()).expect("JSON is UTF-8");
        for leg in &self.legs {
            for seal in &leg.seals {
                assert_eq!(
                    sent.contains(seal.as_str()),
                    leg.wire == wire,
                    "{path}: a signature of {}: {seal}",
                    leg.wire
                );
            }
            for seal in &leg.lost {
                assert!(
                    !sent.contains(seal.as_str()),
                    "{path}: a signature of an interrupted reply went back: {seal}"
                );
            }
        }
        let understood = self.scripted.requests().pop().expect("there is a request");
        let (expect, mut real) = (story(&self.request), story(&understood));
        // Chat shows the pictures of results in a message of their own, with a word of where they come from.
        real.retain(|it| wire != Wire::Chat || expect.contains(it));
        assert_eq!(real, expect, "{path}: what was said");
        let pictures = sent.matches(PIXEL).count();
        assert_eq!(
            pictures,
            expect.iter().filter(|it| *it == "picture").count(),
            "{path}: pictures in {sent}"
        );
    }

    fn path(&self) -> String {
        self.legs
            .iter()
            .map(|leg| leg.wire.to_string())
            .collect::<Vec<_>>()
            .join(" → ")
    }
}

fn result(call: &Call, number: usize) -> CallResult {
    if call.name.as_str() == "find" {
        return CallResult::new(Status::Failed, format!("No such city, {number}."));
    }
    let mut result = CallResult::ok(format!("Here it is, {number}."));
    result.content.push(pixel());
    result
}

/// What a conversation says, in order, but for thinking: what each wire may show in its own way is left out.
///
/// Pictures of results come after all results where a wire shows them so; so they are put to the end of their turn.
fn story(request: &Request) -> Vec<String> {
    let mut told = Vec::new();
    let content = |told: &mut Vec<String>, it: &Content| match it {
        Content::Text { text } => told.push(text.trim().to_owned()),
        _ => told.push("picture".to_owned()),
    };
    for stored in request.entries.iter() {
        match &stored.entry {
            Entry::User(message) => message.content.iter().for_each(|it| content(&mut told, it)),
            Entry::Turn(turn) => {
                told.push(turn.reply().text());
                let whole = turn.reply().stop != FinishReason::Interrupted;
                let results: Vec<_> = turn.pairs().filter(|_| whole).collect();
                told.extend(
                    results.iter().map(|(call, result)| {
                        format!("{}: {}", call.name, last_line(&result.text()))
                    }),
                );
                let pieces = results.iter().flat_map(|(_, result)| &result.content);
                pieces
                    .filter(|it| it.as_text().is_none())
                    .for_each(|it| content(&mut told, it));
            }
            _ => {}
        }
    }
    told.retain(|it| !it.is_empty());
    told
}

/// Some wires say in words before it that a result is an error.
fn last_line(text: &str) -> String {
    text.lines()
        .last()
        .unwrap_or_default()
        .trim_start_matches("Error: ")
        .to_owned()
}

#[tokio::test]
async fn conversation_is_taken_when_it_goes_over_three_wires_and_back() {
    for a in WIRES {
        for b in WIRES {
            for c in WIRES.into_iter().filter(|c| a != b && *c != a && *c != b) {
                let mut stage = Stage::new().await;
                for wire in [a, b, c, a] {
                    stage.leg(wire).await;
                }
                assert_eq!(stage.server.request_count(), 12);
            }
        }
    }
}

#[tokio::test]
async fn pictures_become_notes_when_the_next_model_takes_none() {
    for (first, second) in pairs() {
        let mut stage = Stage::new().await;
        stage.leg(first).await;
        stage.scripted.push(Script::new().text("A note."));
        let blind = adjutant::llm::ModelInfo {
            inputs: Default::default(),
            ..second.info()
        };
        let model = second.model_of(blind, &second.base_url(&stage.server), Timeouts::new());
        let heard = listen(&*model, stage.request.clone().user("And now?")).await;
        assert_eq!(heard.reply().text(), "A note.");
        let sent = String::from_utf8_lossy(&stage.server.requests()[3].body).into_owned();
        assert_eq!(
            (
                sent.matches(PIXEL).count(),
                sent.matches("[image omitted").count()
            ),
            (0, 2),
            "{first} → {second}"
        );
        assert!(
            heard
                .warnings
                .iter()
                .any(|it| it.kind == WarningKind::ContentChanged),
            "{first} → {second}"
        );
    }
}

#[tokio::test]
async fn session_goes_on_when_a_run_was_cancelled_on_another_wire() {
    for (first, second) in pairs() {
        let never = Gate::default();
        let cut = Script::new()
            .delta_chars(1_000)
            .text("Half an answer")
            .call("look", json!({}))
            .wait_at(1, &never);
        let scripted = Arc::new(ScriptedModel::new([
            cut,
            Script::new().text("The other half."),
        ]));
        let setup = Loopback::setup(Arc::clone(&scripted)).strict_signatures();
        let server = setup.start().await.expect("the server starts");
        let agent = Agent::new(first.model(&server));
        let mut running = agent.run("Speak!").stream().expect("the session is free");
        let mut ended = None;
        while let Some(event) = running.next().await {
            match event.kind {
                EventKind::TextDelta { .. } => running.cancel(),
                EventKind::RunFinished { result } => ended = Some(result),
                _ => {}
            }
        }
        let ended = ended.expect("the end is told");
        assert!(
            matches!(
                &ended.outcome,
                Outcome::Cancelled {
                    by: agent::CancelBy::User
                }
            ),
            "{:?}",
            ended.outcome
        );
        let running = agent
            .run("Go on.")
            .model(second.model(&server))
            .stream()
            .expect("the session is free");
        let result = running.finish().await.expect("the run finishes");
        assert_eq!(
            result.text(),
            "The other half.",
            "{first} → {second}: {:?}",
            result.outcome
        );
        let understood = scripted.requests().pop().expect("there is a request");
        assert_eq!(
            story(&understood),
            ["Speak!", "Half an answer", "Go on."],
            "{first} → {second}"
        );
    }
}

/// All ordered pairs of different wires.
fn pairs() -> impl Iterator<Item = (Wire, Wire)> {
    WIRES.into_iter().flat_map(|a| {
        WIRES
            .into_iter()
            .filter(move |b| *b != a)
            .map(move |b| (a, b))
    })
}
