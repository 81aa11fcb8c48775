//! The tools that hand a conversation over.

use std::sync::{Arc, Mutex, PoisonError};

use adjutant_agent::{RunLine, Verdict, points::Handoff};
use adjutant_llm::{CallResult, Terminate};
use adjutant_tool::{CallContext, ErasedTool, Replay, ToolError, ToolErrorKind, ToolSpec, tool_fn};
use serde_json::{Value, json};

use super::{HandoffTarget, active::FIELD};

/// The largest number of characters of a reason that are kept.
const MAX_REASON: usize = 1_000;

/// The state that the tools of one handoff run share.
pub(super) struct HandoffRun {
    /// The remaining number of handoffs.
    pub(super) left: usize,
    /// The agent that gets the conversation, once a call was granted.
    taken: Mutex<Option<Arc<str>>>,
}

/// The conversation, reserved for one handoff; it is released if the call does not complete.
struct Granted<'a> {
    handoff_run: &'a HandoffRun,
    stays: bool,
}

impl HandoffRun {
    pub(super) fn new(left: usize) -> Arc<Self> {
        Arc::new(Self {
            left,
            taken: Mutex::default(),
        })
    }

    /// Grants the conversation to one, for as long as that is held; fails if another one was first.
    fn take(&self, to: &Arc<str>) -> Result<Granted<'_>, ToolError> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = &*taken {
            let message = format!("ignored: the conversation goes to {other} already");
            return Err(ToolError::failed(message));
        }
        *taken = Some(Arc::clone(to));
        Ok(Granted {
            handoff_run: self,
            stays: false,
        })
    }
}

impl Drop for Granted<'_> {
    fn drop(&mut self) {
        if !self.stays {
            *self
                .handoff_run
                .taken
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = None;
        }
    }
}

/// The tool that hands the conversation to a target.
///
/// A batch with this call runs sequentially, so that the first of several handoffs counts.
pub(super) fn tool(
    target: &HandoffTarget,
    handoff_run: &Arc<HandoffRun>,
) -> impl ErasedTool + 'static {
    let schema = json!({
        "type": "object",
        "properties": {"reason": {"type": "string", "description": "Why, in a sentence; the other one reads it."}},
    });
    let about = target.description.trim();
    let description = format!(
        "Hands the whole conversation to {}, who answers from then on. {about}",
        target.name
    );
    let spec = ToolSpec::new(
        format!("transfer_to_{}", target.name),
        description.trim_end().to_owned(),
        schema,
    );
    let (to, handoff_run) = (Arc::clone(&target.name), Arc::clone(handoff_run));
    tool_fn(
        ToolSpec {
            replay: Replay::Idempotent,
            sequential: true,
            ..spec
        },
        move |args: Value, cx: CallContext| {
            let (to, handoff_run) = (Arc::clone(&to), Arc::clone(&handoff_run));
            async move { transfer(&args, &cx, &to, &handoff_run).await }
        },
    )
}

async fn transfer(
    args: &Value,
    cx: &CallContext,
    to: &Arc<str>,
    handoff_run: &HandoffRun,
) -> Result<CallResult, ToolError> {
    if handoff_run.left == 0 {
        let message =
            "the conversation was handed over too often without an answer: answer it yourself";
        return Err(ToolError::new(ToolErrorKind::Denied, message));
    }
    let line = RunLine::from_context(cx)?;
    let mut granted = handoff_run.take(to)?;
    let reason: String = args
        .get("reason")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .trim()
        .chars()
        .take(MAX_REASON)
        .collect();
    let point = Handoff::new(Arc::clone(&cx.who), Arc::clone(to), reason.as_str().into());
    let reason = match line.pass(point).await {
        Verdict::Pass(point) => point.reason,
        Verdict::Deny(reason) => {
            return Err(ToolError::new(
                ToolErrorKind::Denied,
                format!("the conversation stays here: {reason}"),
            ));
        }
    };
    granted.stays = true;
    let from = Arc::clone(&cx.who.name);
    let data = json!({"from": from, "to": to, "reason": reason});
    line.app(FIELD, 1, data.clone());
    let why = if reason.is_empty() {
        String::new()
    } else {
        format!(": {reason}")
    };
    let told = CallResult::ok(format!("{to} has the conversation now{why}"));
    Ok(CallResult {
        details: json!({ FIELD: data }),
        terminate: Terminate::Now,
        ..told
    })
}
