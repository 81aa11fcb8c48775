//! The descriptions of records, in words, in one line.

use adjutant_llm::{
    Block, CallResult, Content, Edit, Entry, FinishReason, Origin, Reply, Status, UserMessage,
};
use adjutant_tool::{Answer, AskKind};

use super::short;
use crate::{
    journal::Stamped,
    outcome::{Completion, Outcome},
    pause::{Answered, Pause},
    record::{AcknowledgedPart, Admission, OutputVerdict, Record},
};

/// The maximum number of characters of a text in a line.
const MAX_CHARS: usize = 100;

/// Returns a description of a record; with its thread, if that is not the first one.
pub(super) fn record(stamped: &Stamped) -> String {
    let said = conversation(&stamped.record)
        .or_else(|| turn(&stamped.record))
        .or_else(|| call(&stamped.record))
        .or_else(|| waiting(&stamped.record))
        .unwrap_or_else(|| end(&stamped.record));
    match stamped.thread.as_str() {
        "main" => said,
        thread => format!("{thread}: {said}"),
    }
}

fn conversation(record: &Record) -> Option<String> {
    Some(match record {
        Record::Seeded { entries } => format!("begins with {}", entries_in_line(entries)),
        Record::Appended { entries } => format!("appended {}", entries_in_line(entries)),
        Record::Began { run, prompts, .. } => {
            format!("run {run} began: {}", entries_in_line(prompts))
        }
        Record::Queued { item, content, .. } => {
            format!("message {item} queued: {}", entry_in_line(content))
        }
        Record::Withdrawn { item } => format!("message {item} withdrawn"),
        Record::Placed { items, .. } => {
            format!(
                "placed {}",
                items
                    .iter()
                    .map(u64::to_string)
                    .collect::<Vec<_>>()
                    .join(", ")
            )
        }
        Record::Heeded { post } => format!("posts heeded up to {post}"),
        Record::App { kind, data, .. } => {
            format!("{kind}: {}", short::line(&data.to_string(), MAX_CHARS))
        }
        _ => return None,
    })
}

fn turn(record: &Record) -> Option<String> {
    Some(match record {
        Record::Opened { turn, last: None } => format!("turn {turn} opened"),
        Record::Opened {
            turn,
            last: Some(limit),
        } => format!("turn {turn} opened, the last one: {limit}"),
        Record::Configured { config } => format!("configured for {}", config.model),
        Record::Declared { prefix } => format!("declared {} tools", prefix.tools.len()),
        Record::Prepared {
            turn, edits, model, ..
        } => {
            let edits: Vec<&str> = edits.iter().map(edit).collect();
            let edits = if edits.is_empty() {
                String::new()
            } else {
                format!(" ({})", edits.join(", "))
            };
            format!("turn {turn} prepared for {model}{edits}")
        }
        Record::Overflowed { turn, .. } => format!("turn {turn} did not fit"),
        Record::Refused {
            turn,
            edits,
            reason,
        } => format!(
            "turn {turn}: media of {} entries were refused: {reason}",
            edits.len()
        ),
        Record::Heard {
            turn,
            attempt,
            parts,
            ..
        } => {
            format!(
                "heard of turn {turn}, attempt {attempt}: {}",
                short::line(&join_parts(parts), MAX_CHARS)
            )
        }
        Record::Retracted { turn, attempt, .. } => {
            format!("attempt {attempt} at turn {turn} was void")
        }
        Record::Replied { reply, .. } => reply_in_line(reply),
        Record::OutputChecked {
            verdict: OutputVerdict::Accepted { .. },
            ..
        } => "the answer is accepted".to_owned(),
        Record::OutputChecked {
            verdict: OutputVerdict::Refused { reason, .. },
            ..
        } => {
            format!("the answer is refused: {}", short::line(reason, MAX_CHARS))
        }
        Record::Settled {
            turn, stop: false, ..
        } => format!("turn {turn} settled"),
        Record::Settled {
            turn, stop: true, ..
        } => format!("turn {turn} settled, and the run stops"),
        Record::Exhausted { limit } => format!("limit reached: {limit}"),
        Record::Billed { by, .. } => format!("billed by {by}"),
        _ => return None,
    })
}

fn call(record: &Record) -> Option<String> {
    Some(match record {
        Record::Admitted { call, admission } => format!("{call} {}", describe_admission(admission)),
        Record::Launched { calls } => {
            format!(
                "launched {}",
                calls
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(", ")
            )
        }
        Record::Returned { call, result, .. } => {
            format!("{call} returned {}", result_in_line(result))
        }
        Record::Begun { call, key } => format!("{call} began step {key:?}"),
        Record::Noted { call, key, value } => {
            format!(
                "{call} noted {key:?}: {}",
                short::line(&value.to_string(), MAX_CHARS)
            )
        }
        Record::Spent { call, .. } => format!("{call} spent on models"),
        Record::ChildOpened { call, who, .. } => format!("{call} opened agent {}", who.name),
        Record::ChildEnded {
            call,
            outcome: ended,
            ..
        } => format!("agent of {call} ended: {}", outcome(ended)),
        Record::Denied { point, reason, .. } => {
            format!("denied at {point}: {}", short::line(reason, MAX_CHARS))
        }
        _ => return None,
    })
}

fn waiting(record: &Record) -> Option<String> {
    Some(match record {
        Record::Paused { pause } => format!("waits for {}", pause_in_line(pause)),
        Record::Unanswered { pause } => format!("nobody here answers {pause}"),
        Record::Suspended { call, pauses } => format!("{call} gave way to {} pauses", pauses.len()),
        Record::Answered {
            pause,
            answer: given,
        } => format!("{pause}: {}", answer(given)),
        Record::Resumed { answers, .. } if answers.is_empty() => {
            "resumed with no answers".to_owned()
        }
        Record::Resumed { answers, .. } => {
            let each = |Answered {
                            pause,
                            answer: given,
                            ..
                        }: &Answered| format!("{pause}: {}", answer(given));
            format!(
                "resumed with {}",
                answers.iter().map(each).collect::<Vec<_>>().join(", ")
            )
        }
        _ => return None,
    })
}

fn end(record: &Record) -> String {
    match record {
        Record::Broke { failure, .. } => {
            format!("broke: {}", short::line(&failure.to_string(), MAX_CHARS))
        }
        Record::CancelAsked { by } => format!("cancel asked by {by}"),
        Record::Ended {
            run,
            outcome: ended,
        } => format!("run {run} ended: {}", outcome(ended)),
        Record::Overruled {
            run,
            outcome: ended,
            by,
            ..
        } => format!("run {run} counts for {by} as {}", outcome(ended)),
        other => short::line(&format!("{other:?}"), MAX_CHARS),
    }
}

fn describe_admission(admission: &Admission) -> String {
    match admission {
        Admission::Allow {
            args,
            changed: true,
            ..
        } => format!("admitted with {}", short::line(args, MAX_CHARS)),
        Admission::Allow { .. } => "admitted".to_owned(),
        Admission::Refuse { result } => format!("refused: {}", result_in_line(result)),
        Admission::Ask { pause, .. } => format!("waits for {}", pause_in_line(pause)),
        Admission::Supplied { result, .. } => {
            format!("was run elsewhere: {}", result_in_line(result))
        }
    }
}

fn entries_in_line(entries: &[Entry]) -> String {
    match entries {
        [] => "nothing".to_owned(),
        [one] => entry_in_line(one),
        [one, rest @ ..] => format!("{} and {} more", entry_in_line(one), rest.len()),
    }
}

fn entry_in_line(entry: &Entry) -> String {
    match entry {
        Entry::User(message) => format!("{:?}", short::line(&user(message), MAX_CHARS)),
        Entry::Turn(turn) => reply_in_line(turn.reply()),
        Entry::Summary(summary) => format!("a summary: {}", short::line(&summary.text, MAX_CHARS)),
        Entry::Custom(custom) => format!("an entry of kind {}", custom.kind),
        other => short::line(&format!("{other:?}"), MAX_CHARS),
    }
}

fn reply_in_line(reply: &Reply) -> String {
    let calls: Vec<String> = reply
        .calls()
        .map(|call| format!("{}({})", call.name, short::line(&call.args, MAX_CHARS)))
        .collect();
    let text = short::line(&reply.text(), MAX_CHARS);
    let cut = cut(reply.stop)
        .map(|how| format!(" ({how})"))
        .unwrap_or_default();
    match (text.is_empty(), calls.is_empty()) {
        (false, true) => format!("replied {text:?}{cut}"),
        (true, false) => format!("replied with calls {}{cut}", calls.join(", ")),
        (false, false) => format!("replied {text:?} with calls {}{cut}", calls.join(", ")),
        (true, true) => format!("replied nothing{cut}"),
    }
}

fn result_in_line(result: &CallResult) -> String {
    format!(
        "{}: {:?}",
        status(result.status),
        short::line(&contents(&result.content), MAX_CHARS)
    )
}

fn pause_in_line(pause: &Pause) -> String {
    format!(
        "{} ({}): {:?}",
        ask(pause.ask.kind),
        pause.id,
        short::line(&pause.ask.prompt, MAX_CHARS)
    )
}

/// Returns the text of a message; pictures and documents by their type.
pub(super) fn user(message: &UserMessage) -> String {
    contents(&message.content)
}

/// Returns the text of pieces; pictures and documents by their type.
pub(super) fn contents(pieces: &[Content]) -> String {
    let piece = |piece: &Content| match piece {
        Content::Text { text } => text.to_string(),
        Content::Image(image) => format!("[{}]", image.media_type),
        Content::Document(document) => {
            format!(
                "[{}]",
                document.name.as_deref().unwrap_or(&document.media_type)
            )
        }
        Content::Audio(audio) => format!("[{}]", audio.media_type),
        _ => "[something]".to_owned(),
    };
    pieces.iter().map(piece).collect::<Vec<_>>().join("\n")
}

/// Returns the text of the received parts of a reply.
pub(super) fn join_parts(parts: &[AcknowledgedPart]) -> String {
    parts
        .iter()
        .map(|part| part.text.as_str())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Describes how a reply was cut off, if it was.
pub(super) fn cut(stop: FinishReason) -> Option<&'static str> {
    match stop {
        FinishReason::Length => Some("cut off by the length limit"),
        FinishReason::Refused => Some("refused"),
        FinishReason::Filtered => Some("stopped by a content filter"),
        FinishReason::Interrupted => Some("interrupted"),
        _ => None,
    }
}

/// Describes how a run ended.
pub(super) fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Finished {
            why: Completion::Answer,
            ..
        } => "answered".to_owned(),
        Outcome::Finished {
            why: Completion::Terminated,
            ..
        } => "finished by a tool".to_owned(),
        Outcome::Finished {
            why: Completion::Stopped,
            ..
        } => "stopped".to_owned(),
        Outcome::Finished {
            why: Completion::Length,
            ..
        } => "cut off by the length limit".to_owned(),
        Outcome::Limit { limit } => format!("limit reached: {limit}"),
        Outcome::Cancelled { by } => format!("cancelled by {by}"),
        Outcome::Failed { failure } => format!("failed: {failure}"),
        Outcome::Paused { pauses } => format!("waits for {} answers", pauses.len()),
    }
}

/// An answer to a pause.
pub(super) fn answer(answer: &Answer) -> String {
    let with = |message: &Option<std::sync::Arc<str>>| {
        message
            .as_ref()
            .map(|it| format!(": {it}"))
            .unwrap_or_default()
    };
    match answer {
        Answer::Approve {
            args: Some(args), ..
        } => format!("approved with {}", short::line(args, MAX_CHARS)),
        Answer::Approve { for_run: true, .. } => "approved for the whole run".to_owned(),
        Answer::Approve { .. } => "approved".to_owned(),
        Answer::Deny { reason } if reason.is_empty() => "denied".to_owned(),
        Answer::Deny { reason } => format!("denied: {reason}"),
        Answer::Give { value } => format!("given: {}", short::line(&value.to_string(), MAX_CHARS)),
        Answer::Return { result } => format!("returned {}", result_in_line(result)),
        Answer::Extend { by, message } => format!("extended by {by}{}", with(message)),
        Answer::Decline { message } => format!("declined{}", with(message)),
        Answer::Expired => "expired".to_owned(),
        other => short::line(&format!("{other:?}"), MAX_CHARS),
    }
}

/// Returns the name of a kind of question.
pub(super) fn ask(kind: AskKind) -> &'static str {
    match kind {
        AskKind::Approval => "approval",
        AskKind::Question => "an answer",
        AskKind::External => "a result",
        AskKind::Limit => "a higher limit",
        AskKind::Authorisation => "access",
        _ => "something",
    }
}

/// Describes how a call ended.
pub(super) fn status(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Failed => "failed",
        Status::UnknownTool => "unknown tool",
        Status::InvalidArguments => "invalid arguments",
        Status::Denied => "denied",
        Status::Panicked => "panicked",
        Status::TimedOut => "timed out",
        Status::Cancelled => "cancelled",
        Status::OverLimit => "over a limit",
        Status::OutcomeUnknown => "outcome unknown",
        Status::Truncated => "truncated",
        _ => "ended",
    }
}

/// Returns the sender of a message, if it is not from a person.
pub(super) fn origin(origin: &Origin) -> String {
    match origin {
        Origin::Reminder { by } => by.to_string(),
        Origin::Task { from } | Origin::Peer { from } => from.to_string(),
        _ => "user".to_owned(),
    }
}

/// Returns the text of a block, if it has one.
pub(super) fn block(block: &Block) -> Option<&str> {
    match block {
        Block::Text(said) => Some(&said.text),
        Block::Thinking(thought) => Some(&thought.text),
        _ => None,
    }
}

fn edit(edit: &Edit) -> &'static str {
    match edit {
        Edit::Append { .. } => "appends",
        Edit::Replace { .. } => "replaces",
        Edit::Fold { .. } => "folds",
        _ => "edits",
    }
}
