//! The results for calls that did not run.

use adjutant_llm::{CallResult, FinishReason, Status};

use crate::outcome::Limit;

/// The result of a call of a reply that was cut off or refused.
pub(super) fn stop_result(stop: FinishReason) -> CallResult {
    match stop {
        FinishReason::Length => CallResult::new(
            Status::Truncated,
            "not executed: the reply hit the output token limit, so the arguments may be incomplete; \
             call again, with shorter arguments if they were long",
        ),
        FinishReason::Refused | FinishReason::Filtered => {
            CallResult::new(Status::Denied, "not executed: the reply was refused")
        }
        _ => CallResult::new(Status::Cancelled, "not executed: the reply was interrupted"),
    }
}

/// The result of a call that did not run because of a cancellation or failure.
pub(super) fn never_started() -> CallResult {
    CallResult::new(Status::Cancelled, "not executed: the run was ended first")
}

/// The result of a call that was started and whose end is unknown.
pub(super) fn unknown() -> CallResult {
    CallResult::new(
        Status::OutcomeUnknown,
        "outcome unknown: the call was started, but the program ended before its result was seen; \
         check whether it took effect before you call it again",
    )
}

/// The result of a call of the last turn.
pub(super) fn last_turn(limit: &Limit) -> CallResult {
    CallResult::new(
        Status::OverLimit,
        format!("not executed: the run has reached its limit of {limit}"),
    )
}

/// The result of a call that was cancelled while it waited for an answer.
pub(super) fn never_answered() -> CallResult {
    CallResult::new(
        Status::Cancelled,
        "cancelled: the run was ended before an answer came",
    )
}
