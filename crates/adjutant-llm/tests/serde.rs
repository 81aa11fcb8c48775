//! What is stored reads back as it was, whatever a later version adds; what cannot be right does not load.

use std::{fmt::Debug, sync::Arc, time::Duration};

use adjutant_llm::{
    Audio, Block, BlockKind, Cache, Call, CallId, CallResult, Content, Custom, Document, Edit,
    Effort, Entry, EntryId, Error, ErrorKind, FinishReason, Format, Image, Inputs, LongPrice,
    ModelInfo, NanoUsd, OpenTurn, Options, Origin, Price, RateLimits, Reply, Request,
    RequestOption, Source, Status, Stored, Summary, Terminate, Thinking, ToolChoice, ToolDecl,
    Transcript, Turn, Usage, UserMessage, View, Warning, WarningKind,
};
use proptest::prelude::*;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// The value is stored in this shape, reads back from it, and from it with a field that a later version added.
#[track_caller]
fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: T, shape: Value) {
    assert_eq!(
        serde_json::to_value(&value).expect("it can be stored"),
        shape
    );
    let text = serde_json::to_string(&value).expect("it can be stored");
    assert_eq!(
        serde_json::from_str::<T>(&text).expect("it reads back"),
        value
    );
    if let Value::Object(mut map) = shape {
        map.insert("field_of_a_later_version".into(), json!({"a": 1}));
        assert_eq!(
            serde_json::from_value::<T>(Value::Object(map)).expect("a new field is tolerated"),
            value
        );
    }
}

/// The words of a unit enum, in order; any other word is an error that names it.
#[track_caller]
fn check_words<T: Serialize + DeserializeOwned + PartialEq + Debug>(values: &[T], words: &[&str]) {
    assert_eq!(
        serde_json::to_value(values).expect("it can be stored"),
        json!(words)
    );
    assert_eq!(
        serde_json::from_value::<Vec<T>>(json!(words)).expect("it reads back"),
        values
    );
    refuse::<T>(json!("later"), "unknown variant `later`, expected one of `");
}

#[track_caller]
fn refuse<T: DeserializeOwned + Debug>(shape: Value, begins: &str) {
    let error = serde_json::from_value::<T>(shape).expect_err("it does not load");
    assert!(error.to_string().starts_with(begins), "{error}");
}

fn id(block: u32) -> CallId {
    CallId {
        turn: 1,
        attempt: 0,
        block,
    }
}

fn call(block: u32) -> Call {
    Call {
        id: id(block),
        wire_id: None,
        name: "look".into(),
        args: "{".into(),
        extra: Default::default(),
    }
}

fn reply(calls: u32) -> Reply {
    let mut reply = Reply::new("vendor/model".into(), FinishReason::Calls);
    reply.blocks = (0..calls)
        .map(|block| Arc::new(Block::Call(call(block))))
        .collect();
    reply
}

fn turn(calls: u32) -> Turn {
    let mut open = Turn::open(Arc::new(reply(calls)));
    for block in 0..calls {
        open.put(id(block), Arc::new(CallResult::ok(block.to_string())))
            .expect("the call waits for its result");
    }
    open.close().expect("every call has its result")
}

fn user(text: &str) -> Entry {
    Entry::User(UserMessage::text(text))
}

#[test]
fn content_reads_back_when_it_is_stored() {
    check(Content::text("é\n"), json!({"type": "text", "text": "é\n"}));
    let data = Source::Base64 {
        data: "AA==".into(),
    };
    let image = Image {
        media_type: "image/png".into(),
        source: data.clone(),
    };
    let image_shape =
        json!({"media_type": "image/png", "source": {"kind": "base64", "data": "AA=="}});
    check(image.clone(), image_shape);
    check(
        Content::Image(image),
        json!({"type": "image", "media_type": "image/png", "source": {"kind": "base64", "data": "AA=="}}),
    );
    check(
        Content::Audio(Audio {
            media_type: "audio/wav".into(),
            source: data.clone(),
        }),
        json!({"type": "audio", "media_type": "audio/wav", "source": {"kind": "base64", "data": "AA=="}}),
    );
    let url = Source::Url {
        url: "https://example.com/a".into(),
    };
    check(
        url.clone(),
        json!({"kind": "url", "url": "https://example.com/a"}),
    );
    let document = |name: Option<&str>, source| Document {
        media_type: "application/pdf".into(),
        name: name.map(Into::into),
        source,
    };
    check(
        Content::Document(document(Some("a.pdf"), url.clone())),
        json!({
            "type": "document", "media_type": "application/pdf", "name": "a.pdf",
            "source": {"kind": "url", "url": "https://example.com/a"}
        }),
    );
    check(
        document(None, url),
        json!({"media_type": "application/pdf", "source": {"kind": "url", "url": "https://example.com/a"}}),
    );
    refuse::<Content>(
        json!({"type": "smell"}),
        "unknown variant `smell`, expected one of `text`, `image`, `document`",
    );
    refuse::<Source>(json!({"kind": "tape"}), "unknown variant `tape`");
    refuse::<Content>(json!({"text": "a"}), "missing field `type`");
}

#[test]
fn user_message_reads_back_when_it_is_stored() {
    let shape =
        |origin: Value| json!({"content": [{"type": "text", "text": "hi"}], "origin": origin});
    let cases = [
        (Origin::Person, json!({"kind": "person"})),
        (Origin::Steering, json!({"kind": "steering"})),
        (Origin::FollowUp, json!({"kind": "follow_up"})),
        (
            Origin::Reminder { by: "notes".into() },
            json!({"kind": "reminder", "by": "notes"}),
        ),
        (
            Origin::Task { from: "t".into() },
            json!({"kind": "task", "from": "t"}),
        ),
        (
            Origin::Peer { from: "t".into() },
            json!({"kind": "peer", "from": "t"}),
        ),
    ];
    for (origin, stored) in cases {
        check(
            UserMessage {
                origin,
                ..UserMessage::text("hi")
            },
            shape(stored),
        );
    }
    let mut pinned = shape(json!({"kind": "person"}));
    pinned["pinned"] = json!(true);
    check(
        UserMessage {
            pinned: true,
            ..UserMessage::text("hi")
        },
        pinned,
    );
    let without = json!({"content": [{"type": "text", "text": "hi"}]});
    assert_eq!(
        serde_json::from_value::<UserMessage>(without).expect("a person"),
        UserMessage::text("hi")
    );
    refuse::<Origin>(json!({"kind": "ghost"}), "unknown variant `ghost`");
}

#[test]
fn reply_reads_back_when_it_has_every_block() {
    let mut reply = Reply::new("vendor/model".into(), FinishReason::End);
    check(
        reply.clone(),
        json!({"model": "vendor/model", "blocks": [], "stop": "end", "usage": usage_shape(0)}),
    );
    let bare = json!({"model": "vendor/model", "blocks": [], "stop": "end"});
    assert_eq!(
        serde_json::from_value::<Reply>(bare).expect("the rest has defaults"),
        reply
    );
    let signed = Thinking {
        text: "".into(),
        signature: Some("s".into()),
        redacted: true,
        extra: Default::default(),
    };
    let open = Thinking {
        text: "so".into(),
        signature: None,
        redacted: false,
        extra: Default::default(),
    };
    let named = Call {
        wire_id: Some("toolu_1".into()),
        ..call(3)
    };
    let opaque = Block::Opaque {
        issuer: "vendor".into(),
        value: json!({"z": 1, "a": [null]}),
    };
    let blocks = [
        Block::text("a"),
        Block::Thinking(signed),
        Block::Thinking(open),
        Block::Call(named),
        opaque,
    ];
    reply.blocks = blocks.into_iter().map(Arc::new).collect();
    reply.raw_stop = Some("end_turn".into());
    reply.usage = usage(1);
    reply.raw_usage = json!({"input_tokens": 9_007_199_254_740_993_u64}).into();
    reply.wire_id = Some("msg_1".into());
    let shape = json!({
        "model": "vendor/model", "stop": "end", "raw_stop": "end_turn", "wire_id": "msg_1", "usage": usage_shape(1),
        "raw_usage": {"input_tokens": 9_007_199_254_740_993_u64},
        "blocks": [
            {"type": "text", "text": "a"},
            {"type": "thinking", "text": "", "signature": "s", "redacted": true},
            {"type": "thinking", "text": "so"},
            {"type": "call", "id": "c1_0_3", "wire_id": "toolu_1", "name": "look", "args": "{"},
            {"type": "opaque", "issuer": "vendor", "value": {"z": 1, "a": [null]}}
        ]
    });
    check(reply, shape);
    refuse::<Block>(json!({"type": "song"}), "unknown variant `song`");
}

#[test]
fn words_read_back_when_they_are_stored() {
    check_words(
        &[
            FinishReason::End,
            FinishReason::Sequence,
            FinishReason::Calls,
            FinishReason::Length,
            FinishReason::Paused,
            FinishReason::Refused,
            FinishReason::Filtered,
            FinishReason::Interrupted,
        ],
        &[
            "end",
            "sequence",
            "calls",
            "length",
            "paused",
            "refused",
            "filtered",
            "interrupted",
        ],
    );
    check_words(
        &[
            Status::Ok,
            Status::Failed,
            Status::UnknownTool,
            Status::InvalidArguments,
            Status::Denied,
            Status::Panicked,
            Status::TimedOut,
            Status::Cancelled,
            Status::OverLimit,
            Status::OutcomeUnknown,
            Status::Truncated,
        ],
        &[
            "ok",
            "failed",
            "unknown_tool",
            "invalid_arguments",
            "denied",
            "panicked",
            "timed_out",
            "cancelled",
            "over_limit",
            "outcome_unknown",
            "truncated",
        ],
    );
    check_words(
        &[Terminate::No, Terminate::IfAll, Terminate::Now],
        &["no", "if_all", "now"],
    );
    check_words(
        &[
            RequestOption::MaxOutputTokens,
            RequestOption::Temperature,
            RequestOption::Stop,
        ],
        &["max_output_tokens", "temperature", "stop"],
    );
    check_words(
        &[
            WarningKind::OptionDropped,
            WarningKind::ContentChanged,
            WarningKind::ToolShadowed,
            WarningKind::Degraded,
        ],
        &[
            "option_dropped",
            "content_changed",
            "tool_shadowed",
            "degraded",
        ],
    );
    check_words(
        &[
            ErrorKind::Config,
            ErrorKind::Auth,
            ErrorKind::Invalid,
            ErrorKind::Overflow,
            ErrorKind::RateLimited,
            ErrorKind::Overloaded,
            ErrorKind::Network,
            ErrorKind::Timeout,
            ErrorKind::Refused,
            ErrorKind::Protocol,
            ErrorKind::Cancelled,
        ],
        &[
            "config",
            "auth",
            "invalid",
            "overflow",
            "rate_limited",
            "overloaded",
            "network",
            "timeout",
            "refused",
            "protocol",
            "cancelled",
        ],
    );
}

#[test]
fn call_result_reads_back_when_it_is_stored() {
    check(
        CallResult::ok("a"),
        json!({"status": "ok", "content": [{"type": "text", "text": "a"}]}),
    );
    check(
        CallResult {
            pinned: true,
            ..CallResult::ok("a")
        },
        json!({"status": "ok", "content": [{"type": "text", "text": "a"}], "pinned": true}),
    );
    let mut result = CallResult {
        details: json!({"n": [1]}),
        terminate: Terminate::Now,
        ..CallResult::new(Status::Failed, "a")
    };
    result.args = Some("{\"a\":1}".into());
    let shape = json!({
        "status": "failed", "content": [{"type": "text", "text": "a"}], "details": {"n": [1]}, "terminate": "now",
        "args": "{\"a\":1}"
    });
    check(result, shape);
}

fn usage(unit: u64) -> Usage {
    Usage {
        input_uncached: unit,
        cache_read: 2 * unit,
        cache_write: 3 * unit,
        cache_write_1h: unit,
        output: 5 * unit,
        reasoning: 4 * unit,
    }
}

fn usage_shape(unit: u64) -> Value {
    json!({
        "input_uncached": unit, "cache_read": 2 * unit, "cache_write": 3 * unit, "cache_write_1h": unit, "output": 5 * unit, "reasoning": 4 * unit
    })
}

#[test]
fn numbers_read_back_when_they_are_stored() {
    check(usage(7), usage_shape(7));
    assert_eq!(
        serde_json::from_value::<Usage>(json!({})).expect("all have defaults"),
        Usage::default()
    );
    check(NanoUsd(u64::MAX), json!(u64::MAX));
    let mut price = Price {
        input: NanoUsd(1),
        output: NanoUsd(2),
        cache_read: NanoUsd(3),
        ..Price::default()
    };
    (price.cache_write, price.cache_write_1h) = (NanoUsd(4), NanoUsd(5));
    let mut shape =
        json!({"input": 1, "output": 2, "cache_read": 3, "cache_write": 4, "cache_write_1h": 5});
    check(price, shape.clone());
    shape["long"] = json!({"above": 9, "input_percent": 200, "output_percent": 150});
    let long = Some(LongPrice {
        above: 9,
        input_percent: 200,
        output_percent: 150,
    });
    check(Price { long, ..price }, shape);
    check(EntryId(u64::MAX), json!(u64::MAX));
    check(
        CallId {
            turn: u64::MAX,
            attempt: u32::MAX,
            block: 0,
        },
        json!("c18446744073709551615_4294967295_0"),
    );
    for wrong in [
        "",
        "c1_2",
        "c1_2_3_4",
        "d1_2_3",
        "c1_2_-3",
        "c1_2_4294967296",
    ] {
        refuse::<CallId>(
            json!(wrong),
            "not a call id of the form c<turn>_<attempt>_<block>: ",
        );
    }
}

#[test]
fn model_info_reads_back_when_it_is_stored() {
    let inputs = json!({"images": false, "documents": false});
    check(
        ModelInfo::new("vendor/model"),
        json!({
            "id": "vendor/model", "context_window": 128_000, "max_output_tokens": 8_192, "inputs": inputs, "refuses": [],
            "efforts": [], "thinking": "level", "structured": "tool", "prompt_cache": "key"
        }),
    );
    let info = ModelInfo {
        inputs: Inputs {
            images: true,
            documents: true,
            audio: true,
        },
        refuses: vec![RequestOption::Temperature],
        price: Some(Price::dollars(1.0, 2.0, 0.1, 1.25)),
        ..ModelInfo::new("vendor/model")
    };
    let stored = serde_json::to_value(&info).expect("it can be stored");
    check(info, stored);
    check(Inputs::default(), inputs);
}

#[test]
fn request_reads_back_when_it_is_stored() {
    let decl = ToolDecl {
        name: "look".into(),
        description: "Looks.".into(),
        schema: Arc::new(json!({"type": "object"})),
    };
    check(
        decl.clone(),
        json!({"name": "look", "description": "Looks.", "schema": {"type": "object"}}),
    );
    let options = Options {
        max_output_tokens: Some(10),
        temperature: Some(0.5),
        stop: vec!["END".into()],
        ..Options::default()
    }
    .extra("seed", 7);
    let shape =
        json!({"max_output_tokens": 10, "temperature": 0.5, "stop": ["END"], "extra": {"seed": 7}});
    check(options.clone(), shape.clone());
    check(Options::default(), json!({}));
    let all = Options {
        top_p: Some(0.9),
        seed: Some(7),
        thinking: Some(Effort::Max),
        tool_choice: ToolChoice::Named("look".into()),
        sequential_calls: true,
        format: Some(Format::new("f", json!({}))),
        cache: Cache::Long,
        cache_key: Some("k".into()),
        server_tools: vec![json!({"type": "web"})],
        ..Options::default()
    };
    let named = json!({
        "top_p": 0.9, "seed": 7, "thinking": "max", "tool_choice": {"named": "look"}, "sequential_calls": true, "cache": "long",
        "format": {"name": "f", "schema": {}}, "cache_key": "k", "server_tools": [{"type": "web"}]
    });
    check(all, named);
    let mut request = Request::new()
        .system("Be brief.")
        .tools(vec![decl])
        .user("hi")
        .options(options);
    request.turn = Some(3);
    request.attempt = 2;
    let stored = serde_json::to_value(&request).expect("it can be stored");
    assert_eq!(
        (&stored["options"], &stored["entries"]["next"]),
        (&shape, &json!(1))
    );
    check(request, stored);
    assert_eq!(
        serde_json::from_value::<Request>(json!({})).expect("all have defaults"),
        Request::new()
    );
}

#[test]
fn options_leave_headers_out_when_they_are_stored_or_printed() {
    let options = Options::default().header("x-key", "secret");
    let stored = serde_json::to_string(&options).expect("it can be stored");
    assert_eq!(stored, "{}");
    assert!(!format!("{options:?}").contains("secret"));
}

#[test]
fn error_reads_back_when_it_is_stored() {
    check(
        Error::new(ErrorKind::Auth, "no key"),
        json!({"kind": "auth", "message": "no key"}),
    );
    let error = Error::new(ErrorKind::RateLimited, "too many requests")
        .with(|it| {
            it.status = Some(429);
            it.code = Some("rate_limit_error".into());
            it.body = Some("{}".into());
            it.request_id = Some("req_1".into());
            it.retry_after = Some(Duration::from_millis(1_500));
        })
        .with_source(std::io::Error::other("not stored"));
    let shape = json!({
        "kind": "rate_limited", "message": "too many requests", "status": 429, "code": "rate_limit_error", "body": "{}",
        "request_id": "req_1", "retry_after": {"secs": 1, "nanos": 500_000_000}
    });
    check(error, shape);
}

#[test]
fn pieces_of_a_stream_read_back_when_they_are_stored() {
    check(BlockKind::Text, json!({"type": "text"}));
    check(BlockKind::Thinking, json!({"type": "thinking"}));
    check(BlockKind::Opaque, json!({"type": "opaque"}));
    check(
        BlockKind::Call {
            id: id(2),
            name: "look".into(),
        },
        json!({"type": "call", "id": "c1_0_2", "name": "look"}),
    );
    refuse::<BlockKind>(json!({"type": "song"}), "unknown variant `song`");
    let mut limits = RateLimits::default();
    check(
        limits,
        json!({"requests_left": null, "tokens_left": null, "reset_after": null}),
    );
    assert_eq!(
        serde_json::from_value::<RateLimits>(json!({})).expect("all have defaults"),
        limits
    );
    limits.requests_left = Some(1);
    limits.tokens_left = Some(2);
    limits.reset_after = Some(Duration::from_secs(3));
    check(
        limits,
        json!({"requests_left": 1, "tokens_left": 2, "reset_after": {"secs": 3, "nanos": 0}}),
    );
    let warning = Warning {
        kind: WarningKind::Degraded,
        message: "the model is offline".into(),
    };
    check(
        warning,
        json!({"kind": "degraded", "message": "the model is offline"}),
    );
}

#[test]
fn turn_reads_back_when_it_is_paired() {
    let shape = json!({
        "reply": {
            "model": "vendor/model", "stop": "calls", "usage": usage_shape(0),
            "blocks": [
                {"type": "call", "id": "c1_0_0", "name": "look", "args": "{"},
                {"type": "call", "id": "c1_0_1", "name": "look", "args": "{"}
            ]
        },
        "results": [
            {"status": "ok", "content": [{"type": "text", "text": "0"}]},
            {"status": "ok", "content": [{"type": "text", "text": "1"}]}
        ]
    });
    check(turn(2), shape.clone());
    for results in [
        json!([]),
        json!([shape["results"][0]]),
        json!([
            shape["results"][0],
            shape["results"][1],
            shape["results"][1]
        ]),
    ] {
        let count = results.as_array().map_or(0, Vec::len);
        let mut unpaired = shape.clone();
        unpaired["results"] = results;
        refuse::<Turn>(
            unpaired.clone(),
            &format!("unpaired turn: 2 calls, {count} results"),
        );
        unpaired["entry"] = json!("turn");
        refuse::<Entry>(unpaired, "unpaired turn: 2 calls");
    }
}

#[test]
fn open_turn_reads_back_when_results_are_missing() {
    let mut open = Turn::open(Arc::new(reply(2)));
    open.put(id(1), Arc::new(CallResult::ok("1")))
        .expect("the call waits for its result");
    let shape = json!({
        "reply": serde_json::to_value(reply(2)).expect("it can be stored"),
        "slots": [null, {"status": "ok", "content": [{"type": "text", "text": "1"}]}]
    });
    check(open, shape);
}

fn transcript() -> Transcript {
    let custom = Custom {
        kind: "mark".into(),
        value: json!({"at": 1}),
    };
    let summary = Summary {
        text: "before".into(),
        covers: 3,
    };
    [
        user("hi"),
        Entry::Turn(turn(1)),
        Entry::Summary(summary),
        Entry::Custom(custom),
    ]
    .into_iter()
    .collect()
}

#[test]
fn transcript_reads_back_when_it_has_every_entry() {
    let transcript = transcript();
    let stored = serde_json::to_value(&transcript).expect("it can be stored");
    assert_eq!(
        (&stored["version"], &stored["next"]),
        (&json!(1), &json!(4))
    );
    let first = json!({
        "id": 0, "tokens": 5, "entry": "user", "content": [{"type": "text", "text": "hi"}], "origin": {"kind": "person"}
    });
    assert_eq!(stored["entries"][0], first);
    let kinds: Vec<_> = (0..4)
        .map(|n| stored["entries"][n]["entry"].clone())
        .collect();
    assert_eq!(kinds, ["user", "turn", "summary", "custom"]);
    let back: Transcript = serde_json::from_value(stored.clone()).expect("it reads back");
    assert_eq!(
        (back.tokens(), back.next_id()),
        (transcript.tokens(), EntryId(4))
    );
    for stored in transcript.iter() {
        check::<Stored>(
            serde_json::from_value(serde_json::to_value(stored).expect("it can be stored"))
                .expect("it reads back"),
            serde_json::to_value(stored).expect("it can be stored"),
        );
    }
    check(transcript, stored);
    check(
        Transcript::new(),
        json!({"version": 1, "next": 0, "entries": []}),
    );
    refuse::<Entry>(json!({"entry": "dream"}), "unknown variant `dream`");
}

#[test]
fn transcript_does_not_load_when_it_cannot_be_right() {
    let newer = json!({"version": 2, "next": 0, "entries": [], "more": {}});
    refuse::<Transcript>(newer, "transcript of version 2: this program reads 1");
    let entry =
        |id: u64| json!({"id": id, "tokens": 1, "entry": "summary", "text": "a", "covers": 1});
    for (ids, wrong) in [
        (vec![0, 0], 0),
        (vec![1, 0], 0),
        (vec![0, 2], 2),
        (vec![u64::MAX], u64::MAX),
    ] {
        let entries: Vec<_> = ids.into_iter().map(entry).collect();
        let stored = json!({"version": 1, "next": 2, "entries": entries});
        refuse::<Transcript>(
            stored,
            &format!("entry {wrong} of a transcript is out of order"),
        );
    }
    let mut unpaired = serde_json::to_value(transcript()).expect("it can be stored");
    unpaired["entries"][1]["results"] = json!([]);
    refuse::<Transcript>(unpaired, "unpaired turn: 1 calls, 0 results");
}

#[test]
fn view_and_edits_read_back_when_they_are_stored() {
    let summary = Summary {
        text: "a".into(),
        covers: 2,
    };
    check(summary.clone(), json!({"text": "a", "covers": 2}));
    check(
        Custom {
            kind: "k".into(),
            value: Value::Null,
        },
        json!({"kind": "k", "value": null}),
    );
    let entry = json!({"entry": "user", "content": [{"type": "text", "text": "b"}], "origin": {"kind": "person"}});
    let edits = [
        (
            Edit::Append { entry: user("b") },
            json!({"edit": "append", "entry": entry}),
        ),
        (
            Edit::Replace {
                at: EntryId(1),
                with: user("b"),
            },
            json!({"edit": "replace", "at": 1, "with": entry}),
        ),
        (
            Edit::Fold {
                upto: EntryId(1),
                keep: vec![EntryId(0)],
                into: summary.clone(),
            },
            json!({"edit": "fold", "upto": 1, "keep": [0], "into": {"text": "a", "covers": 2}}),
        ),
        (
            Edit::Fold {
                upto: EntryId(1),
                keep: Vec::new(),
                into: summary,
            },
            json!({"edit": "fold", "upto": 1, "into": {"text": "a", "covers": 2}}),
        ),
    ];
    let mut view = View::default();
    for text in ["a", "b", "c"] {
        view.apply(&Edit::Append { entry: user(text) })
            .expect("appending always fits");
    }
    for (edit, shape) in edits {
        view.apply(&edit).expect("the entry is shown");
        check(edit, shape);
        let stored = serde_json::to_value(&view).expect("it can be stored");
        check(view.clone(), stored);
    }
    refuse::<Edit>(json!({"edit": "undo"}), "unknown variant `undo`");
}

fn text_of(stored: &Stored) -> String {
    match &stored.entry {
        Entry::User(message) => message.content[0].as_text().unwrap_or_default().to_owned(),
        _ => "no message".to_owned(),
    }
}

/// Compares a transcript with the plain list that it stands for.
fn agree(transcript: &Transcript, model: &[String], from: usize) {
    let texts: Vec<_> = transcript.iter().map(|it| text_of(it)).collect();
    assert_eq!(texts, model);
    let reversed: Vec<_> = transcript.iter().rev().map(|it| text_of(it)).collect();
    assert!(reversed.iter().eq(model.iter().rev()));
    let rest: Vec<_> = transcript.iter_from(from).map(|it| text_of(it)).collect();
    assert_eq!(rest, model.get(from..).unwrap_or_default());
    assert_eq!(
        (transcript.len(), transcript.is_empty()),
        (model.len(), model.is_empty())
    );
    assert_eq!(
        transcript.get(from).map(|it| text_of(it)),
        model.get(from).cloned()
    );
    assert_eq!(
        transcript.last().map(|it| text_of(it)),
        model.last().cloned()
    );
    assert_eq!(
        transcript.tokens(),
        transcript.iter().map(|it| it.tokens).sum::<u64>()
    );
    assert!(
        transcript
            .iter()
            .enumerate()
            .all(|(n, it)| it.id == EntryId(n as u64))
    );
}

proptest! {
    #[test]
    fn transcript_is_a_list_when_clones_go_their_own_way(
        first in 0_usize..200, one in 0_usize..140, two in 0_usize..140, from in 0_usize..350
    ) {
        let (mut transcript, mut model) = (Transcript::new(), Vec::new());
        let grow = |transcript: &mut Transcript, model: &mut Vec<String>, by: usize, mark: &str| {
            for _ in 0..by {
                let text = format!("{mark}{}", model.len());
                let stored = transcript.push(user(&text));
                assert_eq!(stored.id, EntryId(model.len() as u64));
                model.push(text);
            }
        };
        grow(&mut transcript, &mut model, first, "a");
        let (mut other, mut other_model) = (transcript.clone(), model.clone());
        prop_assert_eq!(&other, &transcript);
        grow(&mut transcript, &mut model, one, "b");
        agree(&other, &other_model, from);
        grow(&mut other, &mut other_model, two, "c");
        agree(&transcript, &model, from);
        agree(&other, &other_model, from);
        prop_assert_eq!(transcript == other, model == other_model);
        let stored = serde_json::to_string(&transcript).expect("it can be stored");
        let mut back: Transcript = serde_json::from_str(&stored).expect("it reads back");
        prop_assert_eq!(&back, &transcript);
        grow(&mut back, &mut model, two, "d");
        agree(&back, &model, from);
    }

    #[test]
    fn open_turn_pairs_exactly_when_results_come_in_any_order(
        calls in 0_u32..6, order in prop::collection::vec(0_u32..8, 0..20)
    ) {
        let mut open: OpenTurn = Turn::open(Arc::new(reply(calls)));
        let mut model: Vec<Option<Arc<CallResult>>> = vec![None; calls as usize];
        for (n, block) in order.into_iter().enumerate() {
            let result = Arc::new(CallResult::ok(n.to_string()));
            let expect = match model.get_mut(block as usize) {
                Some(slot @ None) => {
                    *slot = Some(Arc::clone(&result));
                    Ok(())
                }
                Some(Some(_)) | None => Err(Arc::clone(&result)),
            };
            prop_assert_eq!(open.put(id(block), result), expect);
        }
        let missing: Vec<_> = open.missing().map(|call| call.id).collect();
        let expect: Vec<_> = (0..calls).filter(|block| model[*block as usize].is_none()).map(id).collect();
        prop_assert_eq!(&missing, &expect);
        prop_assert!(open.slots().map(|(_, slot)| slot.cloned()).eq(model.iter().cloned()));
        match open.close() {
            Ok(turn) => {
                prop_assert!(missing.is_empty());
                prop_assert_eq!(turn.results().len(), calls as usize);
                let pairs = turn.pairs().map(|(call, result)| (call.id, Some(Arc::clone(result))));
                prop_assert!(pairs.eq((0..calls).map(id).zip(model)));
            }
            Err(_) => prop_assert!(!missing.is_empty()),
        }
    }
}
