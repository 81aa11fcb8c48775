//! The parts of a history that a model may see: its own, those of others, and those that were cut short.

use adjutant_llm::{
    CallId, CallResult, Content, Custom, Document, Extra, Image, Inputs, Reply, Source, Status,
    Summary, Text, UserMessage,
};
use proptest::prelude::*;
use serde_json::json;

use super::*;

const OWN: &str = "vendor/one";
/// Another model of the same provider.
const SISTER: &str = "vendor/two";
const FOREIGN: &str = "other/one";

fn info() -> ModelInfo {
    ModelInfo::new(OWN)
}

fn turn(model: &str, stop: FinishReason, blocks: Vec<Block>) -> Entry {
    let mut reply = Reply::new(model.into(), stop);
    reply.blocks = blocks.into_iter().map(Arc::new).collect();
    let mut open = Turn::open(Arc::new(reply.clone()));
    for call in reply.calls() {
        open.put(
            call.id,
            Arc::new(CallResult::ok(format!("did {}", call.id))),
        )
        .expect("the call is open");
    }
    Entry::Turn(open.close().expect("every call has its result"))
}

fn text(text: &str, extra: Value) -> Block {
    Block::Text(Text {
        text: text.into(),
        extra: Extra::from(extra),
    })
}

fn thinking() -> Block {
    Block::Thinking(Thinking {
        signature: Some("s".into()),
        ..Thinking::new("hm")
    })
}

fn call(block: u32, extra: Value) -> Block {
    let id = CallId {
        turn: 1,
        attempt: 0,
        block,
    };
    Block::Call(Call {
        extra: Extra::from(extra),
        ..Call::new(id, "read", "{}")
    })
}

fn opaque(issuer: &str, value: Value) -> Block {
    Block::Opaque {
        issuer: issuer.into(),
        value,
    }
}

fn render(piece: &Piece<'_>) -> String {
    match piece {
        Piece::Text(text) => format!("text {text:?}"),
        Piece::Image(image) => format!("image {}", image.media_type),
        Piece::Document(document) => format!("document {}", document.media_type),
        Piece::Audio(audio) => format!("audio {}", audio.media_type),
    }
}

/// Returns the shown content, a line for each part and result.
fn lines(entry: &Entry, info: &ModelInfo) -> (Vec<String>, Vec<String>) {
    let mut warnings = Vec::new();
    let lines = match project_entry(entry, info, &mut warnings) {
        ProjectedEntry::Nothing => Vec::new(),
        ProjectedEntry::User(pieces) => pieces
            .iter()
            .map(|it| format!("user {}", render(it)))
            .collect(),
        ProjectedEntry::Turn(said) => {
            let part = |part: &ReplyPart<'_>| match part {
                ReplyPart::Text { text, extra } => format!("text {text:?} {extra}"),
                ReplyPart::Thinking(thinking) => format!("thinking {:?}", thinking.text),
                ReplyPart::Call { call, extra, .. } => format!("call {} {extra}", call.id),
                ReplyPart::Opaque(value) => format!("opaque {value}"),
            };
            let result = |it: &ProjectedResult<'_>| {
                let pieces: Vec<_> = it.pieces.iter().map(render).collect();
                format!(
                    "result {} {} {}",
                    it.call.id,
                    it.is_error,
                    pieces.join(", ")
                )
            };
            let own = said.own.then(|| "own".to_owned());
            own.into_iter()
                .chain(said.parts.iter().map(part))
                .chain(said.results.iter().map(result))
                .collect()
        }
    };
    (lines, warnings.iter().map(ToString::to_string).collect())
}

#[track_caller]
fn check(entry: &Entry, expect: &[&str]) {
    assert_eq!(
        lines(entry, &info()),
        (expect.iter().map(|it| (*it).to_owned()).collect(), vec![])
    );
}

#[test]
fn shown_keeps_what_a_model_signed_when_it_is_its_own() {
    let blocks = || {
        vec![
            thinking(),
            text("a", json!({"x": 1})),
            text(" ", json!({"signature": "s"})),
            text(" ", Value::Null),
            call(1, json!({"y": 2})),
        ]
    };
    check(
        &turn(OWN, FinishReason::Calls, blocks()),
        &[
            "own",
            "thinking \"hm\"",
            "text \"a\" {\"x\":1}",
            "text \" \" {\"signature\":\"s\"}",
            "call c1_0_1 {\"y\":2}",
            "result c1_0_1 false text \"did c1_0_1\"",
        ],
    );
    let foreign = [
        "text \"a\" null",
        "call c1_0_1 null",
        "result c1_0_1 false text \"did c1_0_1\"",
    ];
    check(&turn(SISTER, FinishReason::Calls, blocks()), &foreign);
    check(&turn(FOREIGN, FinishReason::Calls, blocks()), &foreign);
}

#[test]
fn shown_gives_opaque_blocks_to_their_provider_and_text_to_others() {
    let search = json!({"type": "web_search_call", "id": "ws_1", "action": {"query": "rust"}});
    let results = json!({"type": "results", "results": [{"title": "T", "url": "https://a.example", "encrypted": "zzz"}]});
    let sealed = json!({"type": "compaction", "encrypted_content": "zzz"});
    let reply = |model| {
        let blocks = [&search, &results, &sealed].map(|it| opaque("vendor", it.clone()));
        turn(model, FinishReason::End, blocks.into())
    };
    let whole = [&search, &results, &sealed].map(|it| format!("opaque {it}"));
    check(&reply(SISTER), &[&whole[0], &whole[1], &whole[2]]);
    let foreign = ModelInfo::new(FOREIGN);
    let texts = [
        "text \"[web_search_call: rust]\" null",
        "text \"[results: T\\nhttps://a.example]\" null",
    ];
    assert_eq!(
        lines(&reply(SISTER), &foreign),
        (texts.map(str::to_owned).into(), vec![])
    );
    let long = turn(
        SISTER,
        FinishReason::End,
        vec![opaque(
            "vendor",
            json!({"type": "x", "text": "é".repeat(100_000)}),
        )],
    );
    let (lines, _) = lines(&long, &foreign);
    assert_eq!(lines[0].chars().filter(|it| *it == 'é').count(), 4_000);
}

#[test]
fn shown_is_text_alone_when_a_reply_was_cut_short() {
    for stop in [
        FinishReason::Interrupted,
        FinishReason::Refused,
        FinishReason::Filtered,
    ] {
        let blocks = vec![
            thinking(),
            text("half", json!({"x": 1})),
            call(1, json!({"y": 2})),
            opaque("vendor", json!({})),
        ];
        check(&turn(OWN, stop, blocks), &["text \"half\" null"]);
        check(
            &turn(OWN, stop, vec![thinking(), call(1, Value::Null)]),
            &[],
        );
    }
}

#[test]
fn shown_is_nothing_when_nothing_is_left() {
    check(&turn(OWN, FinishReason::Length, vec![thinking()]), &[]);
    check(
        &turn(
            SISTER,
            FinishReason::End,
            vec![thinking(), text(" ", json!({"x": 1}))],
        ),
        &[],
    );
    check(&turn(OWN, FinishReason::End, vec![]), &[]);
    check(&Entry::User(UserMessage::text(" \n")), &[]);
    check(
        &Entry::Summary(Summary {
            text: " ".into(),
            covers: 1,
        }),
        &[],
    );
    check(
        &Entry::Custom(Custom {
            kind: "x".into(),
            value: json!("y"),
        }),
        &[],
    );
    check(
        &Entry::Summary(Summary {
            text: "so far".into(),
            covers: 1,
        }),
        &["user text \"so far\""],
    );
}

#[test]
fn shown_says_what_was_left_out_when_the_model_takes_no_media() {
    let source = Source::Base64 {
        data: "aGk=".into(),
    };
    let image = Content::Image(Image {
        media_type: "image/png".into(),
        source: source.clone(),
    });
    let document = Content::Document(Document {
        media_type: "application/pdf".into(),
        name: None,
        source,
    });
    let content = vec![Content::text("see"), image.clone(), image.clone(), document];
    let user = Entry::User(UserMessage::from(content.clone()));
    let mut reply = Reply::new(OWN.into(), FinishReason::Calls);
    reply.blocks = vec![Arc::new(call(1, Value::Null))];
    let mut open = Turn::open(Arc::new(reply.clone()));
    let mut failed = CallResult::new(Status::Failed, "");
    failed.content = vec![image];
    open.put(reply.calls().next().expect("a call").id, Arc::new(failed))
        .expect("the call is open");
    let turn = Entry::Turn(open.close().expect("every call has its result"));
    let (no_image, no_document) = (
        "[image omitted: this model takes no images]",
        "[document omitted: this model takes no documents]",
    );
    let expect = vec![
        "user text \"see\"".to_owned(),
        format!("user text {no_image:?}"),
        format!("user text {no_document:?}"),
    ];
    assert_eq!(
        lines(&user, &info()),
        (expect, vec![no_image.to_owned(), no_document.to_owned()])
    );
    let result = format!("result c1_0_1 true text {no_image:?}");
    let expect = vec!["own".to_owned(), "call c1_0_1 null".to_owned(), result];
    assert_eq!(lines(&turn, &info()), (expect, vec![no_image.to_owned()]));
    let mut inputs = Inputs::default();
    (inputs.images, inputs.documents) = (true, true);
    let expect = [
        "user text \"see\"",
        "user image image/png",
        "user image image/png",
        "user document application/pdf",
    ];
    assert_eq!(
        lines(&user, &ModelInfo { inputs, ..info() }),
        (expect.map(str::to_owned).into(), vec![])
    );
}

fn blocks() -> impl Strategy<Value = Vec<Block>> {
    let extra = || prop_oneof![Just(Value::Null), Just(json!({"x": 1}))];
    let kinds = prop_oneof![
        ("[a ]{0,2}", extra()).prop_map(|(it, extra)| text(&it, extra)),
        Just(thinking()),
        extra().prop_map(|extra| call(0, extra)),
        prop::sample::select(vec!["vendor", "other"])
            .prop_map(|issuer| opaque(issuer, json!({"query": "q"}))),
    ];
    let numbered = |blocks: Vec<Block>| {
        let number = |(at, block)| match block {
            Block::Call(call) => Block::Call(Call {
                id: CallId {
                    turn: 1,
                    attempt: 0,
                    block: at as u32,
                },
                ..call
            }),
            other => other,
        };
        blocks.into_iter().enumerate().map(number).collect()
    };
    prop::collection::vec(kinds, 0..8).prop_map(numbered)
}

proptest! {
    #[test]
    fn shown_pairs_calls_and_results_when_anything_was_said(
        blocks in blocks(),
        model in prop::sample::select(vec![OWN, SISTER, FOREIGN]),
        stop in prop::sample::select(vec![
            FinishReason::End, FinishReason::Sequence, FinishReason::Calls, FinishReason::Length, FinishReason::Paused, FinishReason::Refused, FinishReason::Filtered,
            FinishReason::Interrupted,
        ]),
    ) {
        let entry = turn(model, stop, blocks);
        if let ProjectedEntry::Turn(said) = project_entry(&entry, &info(), &mut Vec::new()) {
            let calls: Vec<_> = said.parts.iter().filter_map(|part| match part {
                ReplyPart::Call { call, .. } => Some(call.id),
                _ => None,
            }).collect();
            let results: Vec<_> = said.results.iter().map(|it| it.call.id).collect();
            prop_assert_eq!(calls, results);
            prop_assert!(said.parts.iter().any(|part| !matches!(part, ReplyPart::Thinking(_))));
            prop_assert!(said.own || !said.parts.iter().any(|part| matches!(part, ReplyPart::Thinking(_))));
            prop_assert_eq!(said.own, model == OWN && !matches!(stop, FinishReason::Refused | FinishReason::Filtered | FinishReason::Interrupted));
        }
    }
}
