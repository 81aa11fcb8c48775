//! Notifications to a client during a call.

use adjutant_agent::{Event, EventKind};
use adjutant_llm::Content;
use rmcp::{
    RoleServer,
    model::{
        LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken,
    },
    service::RequestContext,
};
use serde_json::{Value, json};

/// The notifications that one client requested for one call.
pub(super) struct Told<'a> {
    cx: &'a RequestContext<RoleServer>,
    token: Option<ProgressToken>,
    logs: bool,
    /// True if the calls of an agent are reported; those of a tool itself are not.
    is_agent: bool,
    last: Option<f64>,
}

/// One notification.
struct News {
    message: String,
    details: Value,
}

impl<'a> Told<'a> {
    /// `level` is the level that a client before 2026-07-28 has set.
    pub(super) fn new(
        cx: &'a RequestContext<RoleServer>,
        level: Option<LoggingLevel>,
        is_agent: bool,
    ) -> Self {
        let wished = cx.meta.log_level().or(level);
        let logs =
            wished.is_some_and(|level| matches!(level, LoggingLevel::Debug | LoggingLevel::Info));
        Self {
            cx,
            token: cx.meta.get_progress_token(),
            logs,
            is_agent,
            last: None,
        }
    }

    /// Reports an event if it is relevant: as progress to a client that sent a token, otherwise as a log message.
    pub(super) async fn tell(&mut self, event: &Event) {
        if self.token.is_none() && !self.logs {
            return;
        }
        let Some(News { message, details }) = self.news(event) else {
            return;
        };
        let sent = match &self.token {
            Some(token) => {
                // Numbers of the tool's own count as long as they grow.
                let own = details["progress"]
                    .as_f64()
                    .filter(|own| self.last.is_none_or(|last| *own > last));
                let progress = own.unwrap_or_else(|| self.last.map_or(1.0, |last| last + 1.0));
                self.last = Some(progress);
                let mut told =
                    ProgressNotificationParam::new(token.clone(), progress).with_message(message);
                told.total = details["total"].as_f64();
                self.cx.peer.notify_progress(told).await
            }
            None => {
                let told = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(message));
                self.cx.peer.notify_logging_message(told).await
            }
        };
        if let Err(error) = sent {
            tracing::debug!(%error, "a client could not be notified of its call");
        }
    }

    fn news(&self, event: &Event) -> Option<News> {
        match &event.kind {
            EventKind::ToolProgress { progress, .. } => {
                let texts: Vec<_> = progress
                    .content
                    .iter()
                    .filter_map(Content::as_text)
                    .collect();
                Some(News {
                    message: texts.join("\n"),
                    details: progress.details.clone(),
                })
            }
            EventKind::ToolStarted { name, title, .. } if self.is_agent => {
                let message = title.as_deref().unwrap_or(name.as_str()).to_owned();
                Some(News {
                    message,
                    details: Value::Null,
                })
            }
            _ => None,
        }
    }
}
