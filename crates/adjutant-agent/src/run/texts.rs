//! What the model is told about calls that did not run.

use adjutant_llm::{CallResult, Status, Stop};

/// The result of a call of a reply that was cut off or refused.
pub(super) fn of_stop(stop: Stop) -> CallResult {
    match stop {
        Stop::Length => CallResult::new(
            Status::Truncated,
            "not executed: the reply hit the output token limit, so the arguments may be incomplete; \
             call again, with shorter arguments if they were long",
        ),
        Stop::Refused | Stop::Filtered => CallResult::new(Status::Denied, "not executed: the reply was refused"),
        _ => CallResult::new(Status::Cancelled, "not executed: the reply was interrupted"),
    }
}

/// The result of a call that a cancel or a failure kept from running.
pub(super) fn never_started() -> CallResult {
    CallResult::new(Status::Cancelled, "not executed: the run was ended first")
}

/// The result of a call that was started and whose end nobody saw.
pub(super) fn unknown() -> CallResult {
    CallResult::new(
        Status::OutcomeUnknown,
        "outcome unknown: the call was started, but the program ended before its result was seen; \
         check whether it took effect before you call it again",
    )
}
