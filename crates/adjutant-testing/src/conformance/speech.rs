//! Hazards of a provider's output: text, thinking, ends and usage.

use std::sync::Arc;

use adjutant_llm::{Block, Chunk, ErrorKind, FinishReason, Options, Script, Thinking, Usage};
use bytes::Bytes;
use serde_json::json;

use super::{
    Limits, Subject, Verdict,
    stage::{HazardStage, Heard, collect_user_text, ensure, hello, same, with_tools},
};
use crate::{Fault, FaultPosition};

/// A reason to stop that no wire knows.
const TIRED: &str = "tired";
/// Letters of one to four bytes.
const LETTERS: &str =
    "Grüße aus Köln, \u{65e5}\u{672c} und \u{1f600}\u{1f468}\u{200d}\u{1f469}! \"So\\n\"\n\ttoo.";

pub(super) async fn text(subject: &dyn Subject) -> Verdict {
    let stage = HazardStage::new(subject, [Script::new().text(LETTERS)]).await?;
    let heard = stage.ask(hello().system("Be brief.")).await;
    let started = heard
        .chunks
        .iter()
        .filter(|chunk| matches!(chunk, Chunk::Start { .. }))
        .count();
    let reply = heard.reply()?;
    same("starts", started, 1)?;
    same("the text", reply.text().as_str(), LETTERS)?;
    same("the stop", reply.stop, FinishReason::End)?;
    same("the model", &reply.model, &stage.model.info().id)?;
    let asked = stage.understood(0)?;
    same("the system prompt", &*asked.system, "Be brief.")?;
    same(
        "the user's text",
        collect_user_text(&asked).as_str(),
        "Hello!",
    )
}

pub(super) async fn empty(subject: &dyn Subject) -> Verdict {
    let stage = HazardStage::new(subject, [Script::new()]).await?;
    let reply = stage.reply(hello()).await?;
    same("the text", reply.text().as_str(), "")?;
    same("the calls", reply.calls().count(), 0)?;
    same("the stop", reply.stop, FinishReason::End)
}

pub(super) async fn split_utf8(subject: &dyn Subject) -> Verdict {
    let script = Script::new().text(LETTERS).delta_chars(1);
    let breaks = |setup: crate::Setup| setup.fault_all(Fault::SplitEvery(1));
    let stage = HazardStage::broken(subject, Limits::patient(), [script], breaks).await?;
    same(
        "the text",
        stage.reply(hello()).await?.text().as_str(),
        LETTERS,
    )
}

pub(super) async fn large_delta(subject: &dyn Subject) -> Verdict {
    let text = "ä".repeat(300_000);
    let stage = HazardStage::new(
        subject,
        [Script::new().text(text.as_str()).delta_chars(300_000)],
    )
    .await?;
    let reply = stage.reply(hello()).await?;
    ensure(reply.text() == text, || {
        format!(
            "expected 300,000 letters, got {}",
            reply.text().chars().count()
        )
    })
}

pub(super) async fn unpaired_surrogate(subject: &dyn Subject) -> Verdict {
    let script = Script::new().text("before ~~~ after").delta_chars(100);
    let half = Fault::Replace {
        what: "~~~".into(),
        with: "\\ud83d".into(),
    };
    let stage = HazardStage::broken(subject, Limits::patient(), [script], |setup| {
        setup.fault_all(half)
    })
    .await?;
    let heard = stage.ask(hello()).await;
    match heard.reply() {
        Ok(reply) => {
            let text = reply.text();
            ensure(
                text.starts_with("before ") && text.ends_with(" after"),
                || format!("the text is {text:?}"),
            )
        }
        // A protocol error is an answer too; the grammar was checked.
        Err(why) => ensure(why.contains("Protocol"), || why),
    }
}

pub(super) async fn thinking(subject: &dyn Subject) -> Verdict {
    let script = Script::new()
        .thinking(Thinking::new("Let me think."))
        .text("Yes.");
    let stage = HazardStage::new(subject, [script]).await?;
    let reply = stage.reply(hello()).await?;
    let kinds: Vec<String> = reply
        .blocks
        .iter()
        .map(|block| describe_block(block))
        .collect();
    same(
        "the blocks",
        kinds,
        vec!["thinking Let me think.".to_owned(), "text Yes.".to_owned()],
    )
}

pub(super) async fn length(subject: &dyn Subject) -> Verdict {
    let reply = reply_with_stop(subject, FinishReason::Length).await??;
    same("the text", reply.text().as_str(), "Half an ans")?;
    same("the stop", reply.stop, FinishReason::Length)
}

pub(super) async fn refusal(subject: &dyn Subject) -> Verdict {
    check_refusal(subject, FinishReason::Refused).await
}

pub(super) async fn filtered(subject: &dyn Subject) -> Verdict {
    check_refusal(subject, FinishReason::Filtered).await
}

/// A refusal can be a reply or an error with this meaning.
async fn check_refusal(subject: &dyn Subject, stop: FinishReason) -> Verdict {
    match reply_with_stop(subject, stop).await? {
        Ok(reply) => ensure(
            matches!(reply.stop, FinishReason::Refused | FinishReason::Filtered),
            || {
                format!(
                    "expected a refusal, got a reply that stops with {:?}",
                    reply.stop
                )
            },
        ),
        // A custom wire may not have this reason: then its server reports an error.
        Err(_) if subject.oracle().is_some() => Ok(()),
        Err(why) => ensure(why.contains(&format!("{:?}", ErrorKind::Refused)), || why),
    }
}

async fn reply_with_stop(
    subject: &dyn Subject,
    stop: FinishReason,
) -> Result<Result<Arc<adjutant_llm::Reply>, String>, String> {
    let stage = HazardStage::new(subject, [Script::new().text("Half an ans").stop(stop)]).await?;
    Ok(stage.reply(hello()).await)
}

pub(super) async fn stop_sequence(subject: &dyn Subject) -> Verdict {
    let stage = HazardStage::new(
        subject,
        [Script::new().text("One").stop(FinishReason::Sequence)],
    )
    .await?;
    let heard = stage
        .ask(hello().options(Options {
            stop: vec!["two".into()],
            ..Options::default()
        }))
        .await;
    let warned = !heard.warnings().is_empty();
    let reply = heard.reply()?;
    same("the text", reply.text().as_str(), "One")?;
    ensure(
        matches!(reply.stop, FinishReason::End | FinishReason::Sequence),
        || format!("the reply stops with {:?}", reply.stop),
    )?;
    let asked = stage.understood(0)?.options.stop.len();
    ensure(asked == 1 || warned, || {
        "the stop sequence was dropped without a warning".into()
    })
}

pub(super) async fn unknown_finish_reason(subject: &dyn Subject) -> Verdict {
    let said = unknown_finish(subject, Script::new().text("So be it.")).await?;
    let warned = said
        .warnings()
        .iter()
        .any(|warning| warning.message.contains(TIRED));
    let reply = said.reply()?;
    same("the text", reply.text().as_str(), "So be it.")?;
    same("the stop", reply.stop, FinishReason::End)?;
    ensure(warned, || "no warning names the reason".into())?;

    let called = unknown_finish(subject, Script::new().call("look", json!({"city": "Bonn"})))
        .await?
        .reply()?;
    let calls: Vec<_> = called
        .calls()
        .map(|call| (call.name.as_str(), &*call.args))
        .collect();
    same("the calls", calls, vec![("look", r#"{"city":"Bonn"}"#)])?;
    ensure(called.may_run_calls(), || {
        format!(
            "the calls may not run, the reply stops with {:?}",
            called.stop
        )
    })?;

    let error = unknown_finish(subject, Script::new())
        .await?
        .error(&[ErrorKind::Protocol])?;
    ensure(error.message().contains(TIRED), || {
        format!("the error does not name the reason: {error}")
    })?;
    same(
        "whether to try again",
        error.details().should_retry,
        Some(false),
    )
}

/// Plays a script with an unknown stop reason, and returns the received reply.
async fn unknown_finish(subject: &dyn Subject, script: Script) -> Result<Heard, String> {
    let breaks = |setup: crate::Setup| {
        let known = [
            "\"max_tokens\"",
            "\"length\"",
            "\"max_output_tokens\"",
            "\"MAX_TOKENS\"",
        ];
        let with = || format!("{TIRED:?}").into();
        known.into_iter().fold(setup, |setup, what| {
            setup.fault_all(Fault::Replace {
                what: what.into(),
                with: with(),
            })
        })
    };
    let stage = HazardStage::broken(
        subject,
        Limits::patient(),
        [script.stop(FinishReason::Length)],
        breaks,
    )
    .await?;
    Ok(stage.ask(with_tools()).await)
}

fn tokens() -> Usage {
    Usage {
        input_uncached: 700,
        cache_read: 200,
        cache_write: 100,
        cache_write_1h: 0,
        output: 60,
        reasoning: 20,
    }
}

pub(super) async fn usage(subject: &dyn Subject) -> Verdict {
    let stage = HazardStage::new(subject, [Script::new().text("Yes.").usage(tokens())]).await?;
    check_usage(subject, &stage.reply(hello()).await?.usage)
}

pub(super) async fn duplicate_usage(subject: &dyn Subject) -> Verdict {
    let script = Script::new().text("Yes.").usage(tokens());
    let breaks = |setup: crate::Setup| setup.fault_all(Fault::DuplicateUsage);
    let stage = HazardStage::broken(subject, Limits::patient(), [script], breaks).await?;
    let reply = stage.reply(hello()).await?;
    same("the text", reply.text().as_str(), "Yes.")?;
    check_usage(subject, &reply.usage)
}

/// Not every wire reports cache writes, or reasoning tokens; a custom one may not report cache reads.
fn check_usage(subject: &dyn Subject, usage: &Usage) -> Verdict {
    same("the input", usage.input(), 1_000)?;
    if subject.oracle().is_none() || usage.cache_read != 0 {
        same("what the cache served", usage.cache_read, 200)?;
    }
    same("the output", usage.output, 60)?;
    ensure(matches!(usage.cache_write, 0 | 100), || {
        format!("the cache stored {}", usage.cache_write)
    })?;
    ensure(matches!(usage.reasoning, 0 | 20), || {
        format!("the reasoning is {}", usage.reasoning)
    })
}

pub(super) async fn unknown_event(subject: &dyn Subject) -> Verdict {
    const DATA: &str = r#"{"type":"brand_new","choices":[],"candidates":[],"new":1}"#;
    let event = if is_lines(subject) {
        format!("{DATA}\n")
    } else {
        format!("event: brand_new\ndata: {DATA}\n\n")
    };
    check_garbage(subject, event.into()).await
}

pub(super) async fn heartbeat(subject: &dyn Subject) -> Verdict {
    let silence: &[u8] = if is_lines(subject) {
        b"\n  \n\r\n"
    } else {
        b": keep-alive\n\n\n: keep-alive\r\n\r\n"
    };
    check_garbage(subject, Bytes::from_static(silence)).await
}

/// True if answers are lines, which know no comments and have no names.
fn is_lines(subject: &dyn Subject) -> bool {
    subject.oracle().is_some_and(|it| it.is_lines())
}

async fn check_garbage(subject: &dyn Subject, bytes: Bytes) -> Verdict {
    let breaks = |mut setup: crate::Setup| {
        for at in [0, 1, 3] {
            setup = setup.fault_all(Fault::Garbage {
                at: FaultPosition::Frame(at),
                bytes: bytes.clone(),
            });
        }
        setup
    };
    let script = Script::new().text(LETTERS);
    let stage = HazardStage::broken(subject, Limits::patient(), [script], breaks).await?;
    let reply = stage.reply(hello()).await?;
    same("the text", reply.text().as_str(), LETTERS)?;
    same("the stop", reply.stop, FinishReason::End)
}

pub(super) async fn concurrent(subject: &dyn Subject) -> Verdict {
    let echo = || {
        Script::from_fn(|request| {
            Script::new()
                .text(collect_user_text(request))
                .delta_chars(1)
        })
    };
    let stage = HazardStage::new(subject, [echo(), echo()]).await?;
    let ask = |text: &'static str| stage.reply(adjutant_llm::Request::new().user(text));
    let (first, second) = tokio::join!(
        ask("first, and first again"),
        ask("second, and second again")
    );
    same(
        "the first reply",
        first?.text().as_str(),
        "first, and first again",
    )?;
    same(
        "the second reply",
        second?.text().as_str(),
        "second, and second again",
    )
}

fn describe_block(block: &Block) -> String {
    match block {
        Block::Text(said) => format!("text {}", said.text),
        Block::Thinking(thinking) => format!("thinking {}", thinking.text),
        Block::Call(call) => format!("call {}", call.name),
        other => format!("{other:?}"),
    }
}
