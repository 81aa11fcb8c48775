//! Hazards of streams and connections that break, stall, or never end.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use adjutant_llm::{BlockKind, Chunk, Error, ErrorKind, FinishReason, ModelInfo, Script, model_fn};
use futures_core::Stream;
use tokio::sync::oneshot;

use super::{
    Limits, Subject, Verdict,
    stage::{HazardStage, Heard, ensure, hello, same, with_oracle},
};
use crate::{Fault, FaultPosition, Loopback};

/// An offset in the body after several deltas, on every wire.
const MIDDLE: u64 = 4_000;

/// A text whose stream is much longer than that.
fn sentence() -> String {
    "The bridge over the river is open again for everyone. ".repeat(20)
}

async fn broken(subject: &dyn Subject, limits: Limits, fault: Fault) -> Result<Heard, String> {
    let scripts = [Script::new().text(sentence())];
    let stage =
        HazardStage::broken(subject, limits, scripts, |setup| setup.fault_all(fault)).await?;
    let heard = stage.ask(hello()).await;
    stage.ensure_requested()?;
    Ok(heard)
}

/// Checks that the received content is a part of the sent one, and not empty.
fn part_of(heard: &Heard) -> Verdict {
    let text = heard.text();
    let sentence = sentence();
    ensure(
        !text.is_empty() && sentence.starts_with(&text) && text != sentence,
        || format!("expected a beginning of what was said, got {text:?}"),
    )
}

pub(super) async fn error_after_200(subject: &dyn Subject) -> Verdict {
    let heard = broken(subject, Limits::patient(), Fault::ErrorAfter { frames: 12 }).await?;
    part_of(&heard)?;
    heard.error(&[ErrorKind::Overloaded]).map(|_| ())
}

pub(super) async fn error_at_once(subject: &dyn Subject) -> Verdict {
    let heard = broken(subject, Limits::patient(), Fault::ErrorAfter { frames: 0 }).await?;
    same("the text", heard.text().as_str(), "")?;
    heard.error(&[ErrorKind::Overloaded]).map(|_| ())
}

pub(super) async fn failed_reply(subject: &dyn Subject) -> Verdict {
    let failure = Error::new(ErrorKind::Overloaded, "the model has failed");
    let stage =
        HazardStage::new(subject, [Script::new().text("Half an ans").fail(failure)]).await?;
    let heard = stage.ask(hello()).await;
    same("the text", heard.text().as_str(), "Half an ans")?;
    heard.error(&[ErrorKind::Overloaded]).map(|_| ())
}

pub(super) async fn reset_before_first_byte(subject: &dyn Subject) -> Verdict {
    let heard = broken(subject, Limits::patient(), Fault::Hangup).await?;
    heard.error(&[ErrorKind::Network]).map(|_| ())
}

pub(super) async fn reset_midway(subject: &dyn Subject) -> Verdict {
    let heard = broken(subject, Limits::patient(), Fault::CutAt(MIDDLE)).await?;
    part_of(&heard)?;
    heard
        .error(&[ErrorKind::Network, ErrorKind::Protocol])
        .map(|_| ())
}

pub(super) async fn stall(subject: &dyn Subject) -> Verdict {
    let heard = broken(subject, Limits::short(), Fault::StallAt(0)).await?;
    heard.error(&[ErrorKind::Timeout]).map(|_| ())
}

pub(super) async fn stall_midway(subject: &dyn Subject) -> Verdict {
    let heard = broken(subject, Limits::short(), Fault::StallAt(MIDDLE)).await?;
    part_of(&heard)?;
    heard.error(&[ErrorKind::Timeout]).map(|_| ())
}

pub(super) async fn missing_finish(subject: &dyn Subject) -> Verdict {
    let heard = broken(subject, Limits::patient(), Fault::MissingFinish).await?;
    heard
        .error(&[
            ErrorKind::Protocol,
            ErrorKind::Network,
            ErrorKind::Overloaded,
        ])
        .map(|_| ())
}

pub(super) async fn garbage(subject: &dyn Subject) -> Verdict {
    let bytes = "data: {garbage\n\n".into();
    let heard = broken(
        subject,
        Limits::patient(),
        Fault::Garbage {
            at: FaultPosition::Frame(9),
            bytes,
        },
    )
    .await?;
    whole_or_protocol(heard)
}

pub(super) async fn invalid_utf8(subject: &dyn Subject) -> Verdict {
    let heard = broken(
        subject,
        Limits::patient(),
        Fault::InvalidUtf8 { at: MIDDLE },
    )
    .await?;
    match heard.reply() {
        // One letter of the text may be another one.
        Ok(reply) => {
            let (came, said) = (reply.text().chars().count(), sentence().chars().count());
            ensure(came.abs_diff(said) <= 1, || {
                format!("expected {said} letters, got {came}")
            })
        }
        Err(why) => ensure(why.contains("Protocol"), || why),
    }
}

fn whole_or_protocol(heard: Heard) -> Verdict {
    match heard.reply() {
        Ok(reply) => same("the text", reply.text(), sentence()),
        Err(why) => ensure(why.contains("Protocol"), || why),
    }
}

pub(super) async fn endless_frame(subject: &dyn Subject) -> Verdict {
    let heard = broken(subject, Limits::patient(), Fault::EndlessFrame).await?;
    heard.error(&[ErrorKind::Protocol]).map(|_| ())
}

pub(super) async fn slow_close(subject: &dyn Subject) -> Verdict {
    let heard = broken(subject, Limits::patient(), Fault::SlowClose).await?;
    let reply = heard.reply()?;
    same("the stop", reply.stop, FinishReason::End)?;
    same("the text", reply.text(), sentence())
}

/// Sends one letter, signals when it is dropped, and sends nothing else.
struct Letter {
    chunks: Vec<Chunk>,
    dropped: Option<oneshot::Sender<()>>,
}

impl Stream for Letter {
    type Item = Result<Chunk, Error>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.chunks
            .pop()
            .map_or(Poll::Pending, |chunk| Poll::Ready(Some(Ok(chunk))))
    }
}

impl Drop for Letter {
    fn drop(&mut self) {
        if let Some(dropped) = self.dropped.take() {
            // There is no receiver if the hazard has failed before.
            let _ = dropped.send(());
        }
    }
}

pub(super) async fn abort(subject: &dyn Subject) -> Verdict {
    let (sender, dropped) = oneshot::channel();
    let sender = Arc::new(Mutex::new(Some(sender)));
    let info = ModelInfo::new("scripted/model");
    let id = info.id.clone();
    let served = model_fn(info, move |_| {
        let chunks = vec![
            Chunk::Delta {
                block: 0,
                text: "a".into(),
            },
            Chunk::Open {
                block: 0,
                kind: BlockKind::Text,
            },
            Chunk::Start {
                attempt: 0,
                model: id.clone(),
                limits: Box::default(),
                warnings: Vec::new(),
            },
        ];
        let dropped = sender.lock().unwrap_or_else(PoisonError::into_inner).take();
        Box::pin(Letter { chunks, dropped })
    });
    let server = with_oracle(subject, Loopback::setup(served))
        .start()
        .await
        .map_err(|error| format!("the server did not start: {error}"))?;
    let model = subject.model(&server, Limits::patient());
    let mut stream = model.stream(hello());
    loop {
        match std::future::poll_fn(|cx| stream.as_mut().poll_next(cx)).await {
            Some(Ok(Chunk::Delta { .. })) => break,
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(format!("expected a letter, got {error}")),
            None => return Err("expected a letter, got the end of the stream".into()),
        }
    }
    ensure(server.request_count() > 0, || {
        "the provider was never asked".into()
    })?;
    drop(stream);
    dropped
        .await
        .map_err(|_| "the request was never made".to_owned())
}
