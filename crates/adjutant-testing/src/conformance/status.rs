//! Hazards of answers that are no stream: statuses and web pages.

use std::time::Duration;

use adjutant_llm::{Error, ErrorKind, Script};

use super::{
    Limits, Subject, Verdict,
    stage::{HazardStage, ensure, hello, same},
};
use crate::Fault;

async fn provoke_error(
    subject: &dyn Subject,
    fault: Fault,
    kinds: &[ErrorKind],
) -> Result<Error, String> {
    let scripts = [Script::new().text("Never said.")];
    let stage = HazardStage::broken(subject, Limits::patient(), scripts, |setup| {
        setup.fault_all(fault)
    })
    .await?;
    let heard = stage.ask(hello()).await;
    stage.ensure_requested()?;
    heard.error(kinds)
}

pub(super) async fn rate_limited(subject: &dyn Subject) -> Verdict {
    let error = provoke_error(subject, Fault::rate_limited(7), &[ErrorKind::RateLimited]).await?;
    same("the status", error.details().status, Some(429))?;
    same(
        "the wait",
        error.retry_after(),
        Some(Duration::from_secs(7)),
    )?;
    ensure(error.is_retryable(), || {
        "it is not worth trying again".into()
    })
}

pub(super) async fn overloaded(subject: &dyn Subject) -> Verdict {
    let error = provoke_error(subject, Fault::overload_error(), &[ErrorKind::Overloaded]).await?;
    ensure(matches!(error.details().status, Some(503 | 529)), || {
        format!("the status is {:?}", error.details().status)
    })
}

pub(super) async fn server_error(subject: &dyn Subject) -> Verdict {
    let error = provoke_error(subject, Fault::server_error(), &[ErrorKind::Overloaded]).await?;
    same("the status", error.details().status, Some(500))
}

pub(super) async fn unauthorized(subject: &dyn Subject) -> Verdict {
    let error = provoke_error(subject, Fault::auth_error(), &[ErrorKind::Auth]).await?;
    ensure(!error.is_retryable(), || {
        "a wrong key would be tried again".into()
    })
}

pub(super) async fn not_found(subject: &dyn Subject) -> Verdict {
    let kinds = [ErrorKind::Config, ErrorKind::Invalid, ErrorKind::Auth];
    provoke_error(subject, Fault::not_found(), &kinds)
        .await
        .map(|_| ())
}

pub(super) async fn html(subject: &dyn Subject) -> Verdict {
    provoke_error(subject, Fault::Html, &[ErrorKind::Protocol])
        .await
        .map(|_| ())
}

pub(super) async fn overflow(subject: &dyn Subject) -> Verdict {
    let script = Script::from_fn(|_| {
        Script::new().fail(Error::new(ErrorKind::Overflow, "the input is too long"))
    });
    let stage = HazardStage::new(subject, [script]).await?;
    let error = stage.ask(hello()).await.error(&[ErrorKind::Overflow])?;
    ensure(!error.is_retryable(), || {
        "the same request would be tried again".into()
    })
}
