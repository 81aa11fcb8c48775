//! Hazards of histories: earlier messages of any author are sent in a form that the provider accepts.

use std::sync::Arc;

use adjutant_llm::{
    Audio, Block, Call, CallId, CallResult, Content, Effort, Entry, Extra, FinishReason, Image,
    Options, Origin, Reply, Request, Script, Source, Status, Summary, Thinking, UserMessage,
    WarningKind,
};
use serde_json::json;

use super::{
    Subject, Verdict,
    stage::{
        HazardStage, build_reply, collect_user_text, ensure, hello, results, same, signed_thinking,
        turn, with_tools,
    },
};

/// A signature that the server sends; base64.
const SEAL: &str = "c2VhbGVkIGluIGEgdGVzdA==";
/// A signature that no server here has sent; base64.
const FOREIGN: &str = "bmV2ZXIgc2VhbGVkIGhlcmU=";
/// One transparent pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

fn thinking_on() -> Options {
    Options {
        thinking: Some(Effort::High),
        max_output_tokens: Some(20_000),
        ..Options::default()
    }
}

pub(super) async fn thinking_replayed(subject: &dyn Subject) -> Verdict {
    let call = |text: &str, seal: &str| {
        let thinking = Script::new().thinking(signed_thinking(text, seal));
        thinking
            .call("look", json!({"city": "Köln"}))
            .call("find", json!({"city": "Bonn"}))
    };
    check_seals(
        subject,
        [call("First.", SEAL), call("Second.", "c2VhbGVkIGFnYWlu")],
    )
    .await
}

pub(super) async fn redacted_replayed(subject: &dyn Subject) -> Verdict {
    let mut withheld = signed_thinking("", SEAL);
    withheld.redacted = true;
    let call = |thinking: Thinking| {
        Script::new()
            .thinking(thinking)
            .call("look", json!({"city": "Köln"}))
    };
    check_seals(
        subject,
        [
            call(withheld),
            call(signed_thinking("", "c2VhbGVkIGFnYWlu")),
        ],
    )
    .await
}

/// Two turns with calls and one without; everything that the provider has sealed must be in the request after them.
async fn check_seals(subject: &dyn Subject, scripts: [Script; 2]) -> Verdict {
    let ends = [
        Script::new().text("Done."),
        Script::new().text("Done again."),
    ];
    let stage = HazardStage::new(subject, scripts.into_iter().chain(ends)).await?;
    let mut request = with_tools().options(thinking_on());
    for number in 1..=2 {
        let reply = stage.reply(request.clone()).await?;
        request
            .entries
            .push(turn(&reply, |_| CallResult::ok("Found."))?);
        // Nothing may be lost between one request and the next.
        let seals = stage.server.signatures();
        let reply = if number == 2 {
            Some(stage.reply(request.clone()).await?)
        } else {
            None
        };
        let Some(reply) = reply else { continue };
        let sent = stage.request_body(number)?.to_string();
        if let Some(lost) = seals.iter().find(|seal| !sent.contains(seal.as_str())) {
            return Err(format!("a signature did not go back: {lost}"));
        }
        request.entries.push(turn(&reply, |_| CallResult::ok(""))?);
    }
    let last = stage.reply(request.user("And now?")).await?;
    same("the last reply", last.text().as_str(), "Done again.")
}

/// Only one wire has phases; on the others nothing can be lost.
pub(super) async fn phase_replayed(subject: &dyn Subject) -> Verdict {
    let script = Script::new()
        .text("I shall look.")
        .call("look", json!({"city": "Köln"}));
    let stage = HazardStage::new(subject, [script, Script::new().text("Done.")]).await?;
    let mut request = with_tools();
    let reply = stage.reply(request.clone()).await?;
    request
        .entries
        .push(turn(&reply, |_| CallResult::ok("Found."))?);
    same(
        "the reply",
        stage.reply(request).await?.text().as_str(),
        "Done.",
    )?;
    let (first, second) = (stage.request_body(0)?, stage.request_body(1)?);
    // The models before this family get no phase.
    let told = first["input"].is_array()
        && !first["model"]
            .as_str()
            .unwrap_or_default()
            .starts_with("gpt-4");
    ensure(
        !told || second.to_string().contains(r#""phase":"commentary""#),
        || "the phase did not go back".into(),
    )
}

/// A reply with everything that only its issuer understands.
fn peculiar(model: &str) -> Arc<Reply> {
    let mut withheld = signed_thinking("", FOREIGN);
    withheld.redacted = true;
    let mut thought = signed_thinking("Hidden thoughts.", FOREIGN);
    thought.extra = Extra::from(json!({"id": "rs_foreign", "signature": FOREIGN}));
    let id = |block| CallId {
        turn: 1,
        attempt: 0,
        block,
    };
    let call = |block, wire_id: &str, name: &str| {
        let mut call = Call::new(id(block), name, r#"{"city":"Köln"}"#);
        call.wire_id = Some(wire_id.into());
        call.extra = Extra::from(
            json!({"id": "fc_foreign", "signature": FOREIGN, "thoughtSignature": FOREIGN}),
        );
        Block::Call(call)
    };
    let odd = format!("call|{}:é/ü|fc_1", "x".repeat(80));
    let opaque = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "search", "input": {"q": FOREIGN}});
    let blocks = vec![
        Block::Thinking(thought),
        Block::Thinking(withheld),
        Block::text("Said elsewhere."),
        Block::Opaque {
            issuer: "elsewhere".into(),
            value: opaque,
        },
        call(4, &odd, "look"),
        call(5, "call|other", "find"),
    ];
    build_reply(model, blocks, FinishReason::Calls)
}

pub(super) async fn replay_other_provider(subject: &dyn Subject) -> Verdict {
    check_replay(subject, |_| "elsewhere/other-model".to_owned()).await
}

pub(super) async fn replay_other_model(subject: &dyn Subject) -> Verdict {
    check_replay(subject, HazardStage::other_model).await
}

async fn check_replay(subject: &dyn Subject, model: impl Fn(&HazardStage) -> String) -> Verdict {
    let stage = HazardStage::new(
        subject,
        [Script::new().text("Done."), Script::new().text("Again.")],
    )
    .await?;
    let mut request = with_tools().options(thinking_on());
    request
        .entries
        .push(turn(&peculiar(&model(&stage)), |call| {
            CallResult::ok(call.name.as_str())
        })?);
    let reply = stage.reply(request.clone()).await?;
    let sent = stage.request_body(0)?.to_string();
    ensure(!sent.contains(FOREIGN), || {
        "a foreign signature was sent".into()
    })?;
    let pair = |name: &str| (name.to_owned(), name.to_owned());
    let understood = stage.understood(0)?;
    same(
        "the results",
        results(&understood),
        vec![pair("look"), pair("find")],
    )?;
    ensure(sent.contains("Said elsewhere."), || {
        "the text of the foreign reply was lost".into()
    })?;
    request.entries.push(turn(&reply, |_| CallResult::ok(""))?);
    same(
        "the second reply",
        stage.reply(request.user("Again?")).await?.text().as_str(),
        "Again.",
    )
}

pub(super) async fn orphan_call(subject: &dyn Subject) -> Verdict {
    let stage = HazardStage::new(subject, [Script::new().text("Done.")]).await?;
    let id = |block| CallId {
        turn: 1,
        attempt: 0,
        block,
    };
    let blocks = vec![
        Block::text("I shall look."),
        Block::Call(Call::new(id(1), "look", r#"{"city":"Köln"}"#)),
        Block::Call(Call::new(id(2), "find", r#"{"ci"#)),
    ];
    let reply = build_reply(
        stage.model.info().id.as_str(),
        blocks,
        FinishReason::Interrupted,
    );
    let mut request = with_tools();
    request.entries.push(turn(&reply, |_| {
        CallResult::new(Status::Cancelled, "Cancelled.")
    })?);
    same(
        "the reply",
        stage.reply(request.user("Go on.")).await?.text().as_str(),
        "Done.",
    )?;
    let understood = stage.understood(0)?;
    ensure(collect_user_text(&understood).contains("Go on."), || {
        "the user's last message was lost".into()
    })
}

pub(super) async fn interrupted_turn(subject: &dyn Subject) -> Verdict {
    let stage = HazardStage::new(subject, [Script::new().text("Done.")]).await?;
    let blocks = vec![
        Block::Thinking(Thinking::new("An open thou")),
        Block::text("Half an ans"),
    ];
    let interrupted = build_reply(
        stage.model.info().id.as_str(),
        blocks,
        FinishReason::Interrupted,
    );
    let only_thinking = build_reply(
        stage.model.info().id.as_str(),
        vec![Block::Thinking(Thinking::new("Hm"))],
        FinishReason::Interrupted,
    );
    let nothing = build_reply(
        stage.model.info().id.as_str(),
        Vec::new(),
        FinishReason::Interrupted,
    );
    let mut request = hello().options(thinking_on());
    for reply in [interrupted, only_thinking, nothing] {
        request.entries.push(turn(&reply, |_| CallResult::ok(""))?);
        request = request.user("Go on.");
    }
    same(
        "the reply",
        stage.reply(request).await?.text().as_str(),
        "Done.",
    )?;
    let sent = stage.request_body(0)?.to_string();
    ensure(sent.contains("Half an ans"), || {
        "the finished text of the interrupted reply was lost".into()
    })
}

pub(super) async fn consecutive_messages(subject: &dyn Subject) -> Verdict {
    let stage = HazardStage::new(subject, [Script::new().text("Done.")]).await?;
    let reminder = UserMessage {
        origin: Origin::Reminder { by: "clock".into() },
        ..UserMessage::text("Remember.")
    };
    let request = hello().user("And more.").user(reminder).user("And last.");
    same(
        "the reply",
        stage.reply(request).await?.text().as_str(),
        "Done.",
    )?;
    let said = collect_user_text(&stage.understood(0)?);
    let places: Vec<_> = ["Hello!", "And more.", "Remember.", "And last."]
        .iter()
        .map(|it| said.find(it))
        .collect();
    ensure(
        places.iter().all(Option::is_some) && places.is_sorted(),
        || format!("the user's texts are {said:?}"),
    )
}

pub(super) async fn empty_texts(subject: &dyn Subject) -> Verdict {
    let stage = HazardStage::new(subject, [Script::new().text("Done.")]).await?;
    let id = CallId {
        turn: 1,
        attempt: 0,
        block: 1,
    };
    let blocks = vec![Block::text(""), Block::Call(Call::new(id, "look", "{}"))];
    let reply = build_reply(stage.model.info().id.as_str(), blocks, FinishReason::Calls);
    let silent = build_reply(
        stage.model.info().id.as_str(),
        vec![Block::text(" \n")],
        FinishReason::End,
    );
    let mut request = with_tools();
    request.entries.push(turn(&reply, |_| CallResult::ok(""))?);
    request = request.user(UserMessage::from(vec![
        Content::text(""),
        Content::text("Go on."),
    ]));
    request.entries.push(turn(&silent, |_| CallResult::ok(""))?);
    same(
        "the reply",
        stage.reply(request.user("And on.")).await?.text().as_str(),
        "Done.",
    )?;
    ensure(
        collect_user_text(&stage.understood(0)?).contains("Go on."),
        || "a text beside an empty one was lost".into(),
    )
}

pub(super) async fn summary(subject: &dyn Subject) -> Verdict {
    let stage = HazardStage::new(subject, [Script::new().text("Done.")]).await?;
    let mut request = Request::new();
    request.entries.push(Entry::Summary(Summary {
        text: "They spoke of Köln.".into(),
        covers: 12,
    }));
    same(
        "the reply",
        stage
            .reply(request.user("And Bonn?"))
            .await?
            .text()
            .as_str(),
        "Done.",
    )?;
    let sent = stage.request_body(0)?.to_string();
    ensure(sent.contains("They spoke of Köln."), || {
        "the summary was lost".into()
    })
}

pub(super) async fn long_history(subject: &dyn Subject) -> Verdict {
    const TURNS: usize = 60;
    let calls =
        (0..TURNS).map(|at| Script::new().call("look", json!({"city": format!("City {at}")})));
    let stage = HazardStage::new(subject, calls.chain([Script::new().text("Done.")])).await?;
    let mut request = with_tools();
    for at in 0..TURNS {
        let reply = stage.reply(request.clone()).await?;
        request
            .entries
            .push(turn(&reply, |_| CallResult::ok(format!("Result {at}.")))?);
        if at % 7 == 6 {
            request = request.user(format!("Message {at}."));
        }
    }
    same(
        "the last reply",
        stage.reply(request).await?.text().as_str(),
        "Done.",
    )?;
    let expected: Vec<_> = (0..TURNS)
        .map(|at| ("look".to_owned(), format!("Result {at}.")))
        .collect();
    same("the results", results(&stage.understood(TURNS)?), expected)
}

fn pixel() -> Content {
    Content::Image(Image {
        media_type: "image/png".into(),
        source: Source::Base64 { data: PIXEL.into() },
    })
}

pub(super) async fn image(subject: &dyn Subject) -> Verdict {
    let stage = HazardStage::new(subject, [Script::new().text("A pixel.")]).await?;
    let request = Request::new().user(UserMessage::from(vec![
        Content::text("What is this?"),
        pixel(),
    ]));
    same(
        "the reply",
        stage.reply(request).await?.text().as_str(),
        "A pixel.",
    )?;
    ensure(
        collect_user_text(&stage.understood(0)?).contains("What is this?"),
        || "the text was lost".into(),
    )?;
    check_picture(&stage, 0)
}

pub(super) async fn image_result(subject: &dyn Subject) -> Verdict {
    let scripts = [
        Script::new()
            .call("look", json!({"city": "Köln"}))
            .call("find", json!({"city": "Bonn"})),
        Script::new().text("A pixel."),
    ];
    let stage = HazardStage::new(subject, scripts).await?;
    let mut request = with_tools();
    let reply = stage.reply(request.clone()).await?;
    let seen = |call: &Call| {
        let mut result = CallResult::ok("Seen.");
        if call.name.as_str() == "look" {
            result.content.push(pixel());
        } else {
            result.content = vec![pixel()];
        }
        result
    };
    request.entries.push(turn(&reply, seen)?);
    same(
        "the reply",
        stage.reply(request).await?.text().as_str(),
        "A pixel.",
    )?;
    check_picture(&stage, 1)
}

pub(super) async fn audio(subject: &dyn Subject) -> Verdict {
    // A head of a WAV file.
    const SOUND: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAgD4AAAB9AAACABAAZGF0YQAAAAA=";
    let stage = HazardStage::new(subject, [Script::new().text("Silence.")]).await?;
    let sound = Content::Audio(Audio {
        media_type: "audio/wav".into(),
        source: Source::Base64 { data: SOUND.into() },
    });
    let request = Request::new().user(UserMessage::from(vec![
        Content::text("What do you hear?"),
        sound,
    ]));
    let heard = stage.ask(request).await;
    let marked = heard
        .warnings()
        .iter()
        .any(|it| it.kind == WarningKind::ContentChanged);
    same("the reply", heard.reply()?.text().as_str(), "Silence.")?;
    let sent = stage.request_body(0)?.to_string();
    ensure(
        sent.contains(SOUND) != marked && sent.contains("What do you hear?"),
        || format!("what was sent: {sent}"),
    )?;
    ensure(stage.model.info().inputs.audio || marked, || {
        "a recording was sent to a model that takes none".into()
    })
}

/// Checks that a picture was sent if the model takes pictures, and not otherwise.
fn check_picture(stage: &HazardStage, request: usize) -> Verdict {
    let sent = stage.request_body(request)?.to_string().contains(PIXEL);
    match (stage.model.info().inputs.images, sent) {
        (true, false) => Err("the picture was lost".into()),
        (false, true) => Err("a picture was sent to a model that takes none".into()),
        _ => Ok(()),
    }
}
