//! The points where hooks intercept or observe. A point is passed by value: the returned value counts.

use std::{sync::Arc, time::Duration};

use adjutant_core::{Lane, Outcome, Pause, RunChange, RunResult};
use adjutant_llm::{Call, CallId, CallResult, Edit, Entry, Reply, ToolDecl, ToolName, Transcript};
use adjutant_tool::{Answer, Identity, Replay, Toolset};
use serde_json::Value;

use crate::hooks::{Fail, Point};

macro_rules! points {
    ($($(#[$doc:meta])* $name:ident $text:literal $fail:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* } $($about:expr)?;)*) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone)]
        #[non_exhaustive]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        impl $name {
            /// Creates the point with its data; only needed for custom points.
            pub fn new($($field: $type),*) -> Self {
                Self { $($field),* }
            }
        }

        impl Point for $name {
            const NAME: &'static str = $text;
            const FAIL: Fail = Fail::$fail;

            fn call(&self) -> Option<(CallId, ToolName)> {
                let about: fn(&Self) -> Option<&Call> = points!(@about $($about)?);
                about(self).map(|call| (call.id, call.name.clone()))
            }
        }
    )* };
    (@about) => { |_| None };
    (@about $about:expr) => { $about };
}

points! {
    /// Before anything else of a run. Observed only.
    BeforeRun "before_run" Open {
        /// The prompt of the run.
        prompts: Arc<[Entry]>,
    };
    /// A message of the prompt, before it is recorded: change it, or deny it and fail the run.
    UserMessage "user_message" Closed {
        /// The message.
        message: adjutant_llm::UserMessage,
    };
    /// Before the first turn: may answer at once, in the model's place.
    BeforeAgent "before_agent" Closed {
        /// The prompt of the run.
        prompts: Arc<[Entry]>,
        /// The answer, if the model need not be called.
        answer: Option<Arc<Reply>>,
    };
    /// Before a request.
    BeforeModel "before_model" Closed {
        /// The view that the request would show.
        view: Transcript,
        /// The tools that it would show.
        tools: Arc<[ToolDecl]>,
        /// The changes in the view, recorded.
        edits: Vec<Edit>,
        /// The changes in this request alone, recorded too; the next one does not show them.
        once: Vec<Edit>,
        /// The tools that are neither declared nor run in this turn.
        hidden: Vec<ToolName>,
        /// Tools that are declared and run in this turn, after the others.
        offered: Vec<Toolset>,
    };
    /// A reply arrived: change it before it counts; the model's original is stored next to it.
    AfterModel "after_model" Open {
        /// The reply.
        reply: Arc<Reply>,
        /// The time that it took.
        duration: Duration,
    };
    /// A request failed: a hook can provide a reply instead of the model's.
    ModelError "model_error" Open {
        /// The failure.
        error: adjutant_llm::Error,
        /// The reply in the model's place.
        reply: Option<Arc<Reply>>,
    };
    /// Before a call runs: change its arguments, which are validated again, or deny it.
    BeforeTool "before_tool" Closed {
        /// The call.
        call: Call,
        /// The arguments it would run with.
        args: Value,
        /// The replay class of its tool: a `Pure` one is read-only.
        replay: Replay,
    } |point| Some(&point.call);
    /// A tool failed: change the result to recover.
    ToolError "tool_error" Open {
        /// The call.
        call: Call,
        /// The arguments it ran with, as JSON text.
        args: Arc<str>,
        /// The failure.
        result: CallResult,
    } |point| Some(&point.call);
    /// A call has run: change its result field by field.
    AfterTool "after_tool" Open {
        /// The call.
        call: Call,
        /// The arguments it ran with, as JSON text.
        args: Arc<str>,
        /// The result.
        result: CallResult,
        /// The time for which it ran.
        duration: Duration,
    } |point| Some(&point.call);
    /// A turn is closed: what should be different from the next one on.
    NextTurn "next_turn" Closed {
        /// The reply.
        reply: Arc<Reply>,
        /// The results of its calls, in order.
        results: Vec<Arc<CallResult>>,
        /// The view that the next request would show.
        view: Transcript,
        /// The change from the next turn on.
        change: RunChange,
    };
    /// A turn is closed: whether the run should end here.
    AfterTurn "after_turn" Closed {
        /// The reply.
        reply: Arc<Reply>,
        /// The results of its calls, in order.
        results: Vec<Arc<CallResult>>,
        /// The view that the next request would show, with the changes made by then.
        view: Transcript,
        /// The entries that the run has added to the conversation.
        entries: Vec<Entry>,
        /// True if the run ends.
        stop: bool,
    };
    /// The run has ended: change how it counts as ended, or its answer; a deny fails it.
    AfterAgent "after_agent" Open {
        /// The outcome of the run.
        outcome: Outcome,
        /// The last reply.
        reply: Option<Arc<Reply>>,
    };
    /// After everything else of a run, on every path. Observed only.
    AfterRun "after_run" Open {
        /// The result of the run.
        result: Arc<RunResult>,
    };
    /// A message waits to be placed. Observed only.
    MessageQueued "message_queued" Open {
        /// Its number.
        item: u64,
        /// The queue.
        lane: Lane,
        /// The message.
        content: Entry,
    };
    /// A queued message joins the conversation: change it, or deny it and drop it.
    MessagePlaced "message_placed" Closed {
        /// Its number.
        item: u64,
        /// The queue.
        lane: Lane,
        /// The message.
        content: Entry,
    };
    /// The run is about to wait for the outside. Observed only.
    Pausing "pausing" Open {
        /// The pause with the question.
        pause: Arc<Pause>,
    } |point| point.pause.call.as_ref();
    /// A pause was answered: change the answer, or deny it and leave the pause open.
    PauseAnswered "pause_answered" Closed {
        /// The pause that was answered.
        pause: Arc<Pause>,
        /// The answer.
        answer: Answer,
    } |point| point.pause.call.as_ref();
    /// An agent under this one begins: deny it and its task fails.
    SubagentStarted "subagent_started" Closed {
        /// The identity of the child.
        child: Arc<Identity>,
        /// The prompt of the child.
        prompts: Arc<[Entry]>,
    };
    /// An agent under this one has ended. Observed only.
    SubagentStopped "subagent_stopped" Open {
        /// The identity of the child.
        child: Arc<Identity>,
        /// The result of the child.
        result: Arc<RunResult>,
    };
    /// The conversation is about to be handed to another agent: denying it keeps the conversation here.
    Handoff "handoff" Closed {
        /// The agent that hands over.
        from: Arc<Identity>,
        /// The agent that takes over.
        to: Arc<str>,
        /// The reason.
        reason: Arc<str>,
    };
    /// A member joined the team. Observed only.
    TeammateJoined "teammate_joined" Open {
        /// The team.
        team: Arc<str>,
        /// The member.
        member: Arc<Identity>,
    };
    /// A member left the team before it was done. Observed only.
    TeammateLeft "teammate_left" Open {
        /// The team.
        team: Arc<str>,
        /// The member.
        member: Arc<Identity>,
        /// The reason.
        reason: Arc<str>,
    };
    /// A message between members: change it, or deny it.
    TeamMessage "team_message" Closed {
        /// The team.
        team: Arc<str>,
        /// The sender.
        from: Arc<str>,
        /// The receiver; `*` for all others.
        to: Arc<str>,
        /// The text of the message.
        content: Arc<str>,
    };
    /// A member is done. Observed only.
    TeammateCompleted "teammate_completed" Open {
        /// The team.
        team: Arc<str>,
        /// The member.
        member: Arc<Identity>,
        /// The result of the member.
        result: Arc<RunResult>,
    };
    /// A member failed. Observed only.
    TeammateFailed "teammate_failed" Open {
        /// The team.
        team: Arc<str>,
        /// The member.
        member: Arc<Identity>,
        /// The error.
        error: Arc<str>,
    };
}
