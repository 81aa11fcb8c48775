//! The texts for the model about calls that may not run.

use adjutant_llm::{CallResult, Status, ToolName, json::Misread};
use adjutant_tool::{Answer, AskKind, Bound, Toolset};

use crate::effects::FIND_TOOLS;

/// The maximum number of tool names in the message about an unknown tool.
const MAX_NAMES: usize = 50;

/// A hook denied the call.
pub(super) fn denial_result(reason: &str) -> CallResult {
    CallResult::new(Status::Denied, format!("not executed: {reason}"))
}

/// A tool that is there, but not in this turn.
pub(super) fn hidden(name: &ToolName) -> CallResult {
    CallResult::new(
        Status::Denied,
        format!(
            "not executed: tool {:?} is not available in this turn",
            name.as_str()
        ),
    )
}

/// A call that was cancelled before it started.
pub(super) fn cancellation_result() -> CallResult {
    CallResult::new(
        Status::Cancelled,
        "cancelled: the call was stopped before it began",
    )
}

/// The call that is the wanted answer.
pub(super) fn receipt_result() -> CallResult {
    CallResult::ok("received")
}

/// The call that should be the wanted answer, and does not fit.
pub(super) fn misfit() -> CallResult {
    CallResult::new(
        Status::InvalidArguments,
        "not accepted: see the next message",
    )
}

/// A call that needs an approval in an unattended run.
pub(super) fn nobody() -> CallResult {
    CallResult::new(
        Status::Denied,
        "not executed: the call needs someone's word, and nobody can be asked in this run",
    )
}

/// A call that the application must run, in an unattended run.
pub(super) fn no_executor(tool: &Bound) -> CallResult {
    let name = tool.spec().name().as_str();
    let message = format!(
        "not executed: tool {name:?} is run elsewhere, and nobody can be asked in this run"
    );
    CallResult::new(Status::Denied, message)
}

/// The rule that decides about an approval has failed.
pub(super) fn rule_panic_result(panic: &str) -> CallResult {
    let message = format!(
        "not executed: the rule that says whether the call needs someone's word panicked: {panic}"
    );
    CallResult::new(Status::Denied, message)
}

/// Returns the text for the application that runs a call.
pub(super) fn run_elsewhere(tool: &Bound) -> String {
    format!(
        "Run {:?} with these arguments and give its result.",
        tool.spec().name().as_str()
    )
}

/// True if the question is for an approval that lets a call run.
pub(super) fn is_word(kind: AskKind) -> bool {
    matches!(kind, AskKind::Approval | AskKind::Authorisation)
}

/// The approved arguments cannot be parsed.
pub(super) fn unreadable(error: &Misread) -> CallResult {
    CallResult::new(
        Status::InvalidArguments,
        format!("the recorded arguments cannot be read: {error}"),
    )
}

/// The call did not get the answer that it needs.
pub(super) fn refusal_result(kind: AskKind, answer: &Answer) -> CallResult {
    let words = |said: &str, words: &str| match words.trim() {
        "" => format!("not executed: {said}"),
        words => format!("not executed: {said}: {words}"),
    };
    match (kind, answer) {
        (AskKind::External, Answer::Expired) => CallResult::new(
            Status::TimedOut,
            "no result came in time; the call may have taken effect",
        ),
        (_, Answer::Expired) => CallResult::new(
            Status::Denied,
            "not executed: nobody approved the call in time",
        ),
        (_, Answer::Deny { reason }) => {
            CallResult::new(Status::Denied, words("a person refused the call", reason))
        }
        (_, Answer::Decline { message }) => CallResult::new(
            Status::Denied,
            words(
                "the call was declined",
                message.as_deref().unwrap_or_default(),
            ),
        ),
        _ => CallResult::new(Status::Denied, "not executed: the call was not approved"),
    }
}

/// A tool that is there and was not loaded.
pub(super) fn not_loaded_result(name: &ToolName) -> CallResult {
    let name = name.as_str();
    let message = format!(
        "not executed: tool {name:?} is not loaded. Load it first: call {FIND_TOOLS:?} with {{\"names\": [{name:?}]}}, and \
         call it in your next message"
    );
    CallResult::new(Status::Denied, message)
}

/// A tool that is not there.
pub(super) fn unknown(tools: &Toolset, name: &ToolName, hidden: &[ToolName]) -> CallResult {
    let names = tools
        .iter()
        .map(|tool| tool.spec().name())
        .filter(|name| !hidden.contains(name));
    let names: Vec<&str> = names.take(MAX_NAMES).map(ToolName::as_str).collect();
    let name = name.as_str();
    let message = match names.is_empty() {
        true => format!("unknown tool {name:?}: there are no tools"),
        false => format!("unknown tool {name:?}; the tools are: {}", names.join(", ")),
    };
    CallResult::new(Status::UnknownTool, message)
}
