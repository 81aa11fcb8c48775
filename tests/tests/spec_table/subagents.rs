//! Rows of agents over streams and of sub-agents within calls.

use super::{How::*, Row, rows};

pub(crate) const ROWS: &[Row] = rows! { "subagents";
    // An agent over streams and tools.
    "the loop hides what need not be seen of streams"
        => Test("crates/adjutant-agent/tests/basic.rs::run_answers_when_a_tool_is_called"),
    "what is told suffices for a screen"
        => Test("tests/tests/trace.rs::trace_is_as_drawn_when_runs_are_real"),
    "permissions are not the loop's, tools may have them" => Deviation {
        test: "crates/adjutant-agent/tests/approval.rs::call_is_refused_when_its_approval_is_denied",
        why: "tools still may, and approval is also a pause of the loop, so that it lasts over a restart",
    },
    "NewAgent with model, prompt, tools"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::instructions_are_the_whole_system_prompt_when_nothing_else_is_set"),
    "SessionID is unique"
        => Test("crates/adjutant-agent/tests/agent_api/setters.rs::session_id_is_unique_when_agents_are_made"),
    "AddUserTurn adds without asking the model"
        => Test("crates/adjutant-agent/tests/queues/sessions.rs::append_adds_entries_when_the_session_is_idle"),
    "AddUserTurn is an error while running"
        => Test("crates/adjutant-agent/tests/queues/sessions.rs::append_is_refused_when_the_session_runs"),
    "SendUserMessage gives a stream of events"
        => Test("crates/adjutant-agent/tests/basic.rs::stream_ends_with_run_finished_when_the_answer_is_text"),
    "the end of the stream follows the last event"
        => Test("crates/adjutant-agent/tests/property.rs::session_is_one_log_when_anything_happens"),
    // Events.
    "error: the agent stopped with it"
        => Test("crates/adjutant-agent/tests/loop_bounds.rs::run_tells_of_itself_when_the_log_fails_at_any_batch"),
    "canceled: by the caller"
        => Test("crates/adjutant-agent/tests/cancel.rs::text_stays_when_the_run_is_cancelled_in_the_middle_of_it"),
    "canceled: by a deadline"
        => Test("crates/adjutant-agent/tests/loop_bounds.rs::run_is_cancelled_when_its_deadline_passes"),
    "done: the agent ended well, not by a tool"
        => Test("crates/adjutant-agent/tests/basic.rs::stream_ends_with_run_finished_when_the_answer_is_text"),
    "three terminal events" => Deviation {
        test: "tests/tests/trace.rs::trace_is_as_drawn_when_runs_are_real",
        why: "one terminal event, run_finished, whose outcome says which: nobody can forget a case",
    },
    "assistant text, complete parts only" => Deviation {
        test: "crates/adjutant-agent/tests/basic.rs::stream_ends_with_run_finished_when_the_answer_is_text",
        why: "deltas are there too; who wants whole parts reads block_finished and ignores the rest",
    },
    "assistant reasoning, complete parts only" => Deviation {
        test: "tests/tests/events_table.rs::table_names_the_fields_when_a_run_shows_them",
        why: "as for text, by block_finished",
    },
    "tool call"
        => Test("tests/tests/trace.rs::trace_is_as_drawn_when_runs_are_real"),
    "tool complete with call and result"
        => Test("crates/adjutant-agent/tests/tools_loop.rs::tool_result_is_reported_when_it_ends"),
    "turn complete, with the usage of the turn" => Deviation {
        test: "tests/tests/events_table.rs::table_names_the_fields_when_a_run_shows_them",
        why: "the usage comes with reply_finished, before the calls run, so that it is told also when they never end",
    },
    "events name their agent: id"
        => Test("crates/adjutant-agent/tests/subagent_events.rs::events_name_their_agent_when_several_speak"),
    "events name their agent: depth, 0 at the root"
        => Test("crates/adjutant-agent/tests/subagent_events.rs::events_name_their_agent_when_several_speak"),
    "the id is stable within a session"
        => Test("crates/adjutant-agent/tests/subagent_events.rs::events_name_their_agent_when_several_speak"),
    // Sub-agents.
    "sub-agents of sub-agents"
        => Test("crates/adjutant-agent/tests/subagents.rs::depth_counts_levels_when_children_nest"),
    "only while a call is served"
        => Test("crates/adjutant-agent/tests/subagents.rs::child_is_made_only_within_a_call_when_it_is_asked_for"),
    "events of the tree are one stream"
        => Test("crates/adjutant-agent/tests/subagent_events.rs::childs_events_are_mirrored_once_when_it_works"),
    "a tool gets the creator from its context"
        => Test("crates/adjutant-agent/tests/subagents.rs::child_is_made_only_within_a_call_when_it_is_asked_for"),
    "running children are cancelled when the call returns"
        => Test("crates/adjutant-agent/tests/subagents/ends.rs::children_end_before_their_call_when_it_returns"),
    "a creator that is used too late panics" => Deviation {
        test: "crates/adjutant-agent/tests/subagents.rs::spawner_is_an_error_when_its_call_has_returned",
        why: "a typed error: libraries do not panic",
    },
    "a tool must wait for its children"
        => Test("crates/adjutant-agent/tests/subagents/ends.rs::children_end_before_their_call_when_it_returns"),
    "later: a clone with prompt, tools and history"
        => Test("crates/adjutant-agent/tests/subagents.rs::child_knows_the_conversation_when_it_is_cloned_with_history"),
    "SubAgentDepth: 0 in a tool of the root, 1 below"
        => Test("crates/adjutant-agent/tests/subagents.rs::depth_counts_levels_when_children_nest"),
    "a tool may refuse by depth"
        => Test("crates/adjutant-agent/tests/subagents.rs::depth_counts_levels_when_children_nest"),
    "SubAgentCreatorFromContext"
        => Test("crates/adjutant-agent/tests/subagents.rs::child_is_made_only_within_a_call_when_it_is_asked_for"),
    "creating may fail"
        => Test("crates/adjutant-agent/tests/subagents.rs::spawner_is_an_error_when_its_call_has_returned"),
    "AgentToolsFromContext: the parent's tools"
        => Test("crates/adjutant-agent/tests/subagents.rs::child_has_no_tools_when_none_are_handed_over"),
    "an own prompt and own tools"
        => Test("crates/adjutant-agent/tests/subagents.rs::child_has_the_parents_model_when_it_names_none"),
    "a stream of the child's own"
        => Test("crates/adjutant-agent/tests/subagent_events.rs::childs_events_are_mirrored_once_when_it_works"),
    "every event is mirrored to the parent"
        => Test("crates/adjutant-agent/tests/subagent_events.rs::childs_events_are_mirrored_once_when_it_works"),
    "several at once within a call"
        => Test("crates/adjutant-agent/tests/subagents.rs::children_run_together_when_a_call_makes_several"),
    "usage of its own"
        => Test("crates/adjutant-agent/tests/subagents/spent.rs::usage_counts_once_for_every_ancestor_when_a_child_spends"),
    "usage is added to all ancestors"
        => Test("crates/adjutant-agent/tests/subagents/spent.rs::usage_counts_once_for_every_ancestor_when_a_child_spends"),
    "AgentCreator: one function for root and child"
        => Test("crates/adjutant-agent/tests/subagents.rs::factory_makes_a_root_or_a_child_when_it_is_one"),
    "NewAgentCreator makes roots"
        => Test("crates/adjutant-agent/tests/subagents.rs::factory_makes_a_root_or_a_child_when_it_is_one"),
    "New with model, prompt, tools"
        => Test("crates/adjutant-agent/tests/subagents.rs::child_has_the_parents_model_when_it_names_none"),
    "NewWithDefaultModel: the parent's model"
        => Test("crates/adjutant-agent/tests/subagents.rs::child_has_the_parents_model_when_it_names_none"),
    "NewWithDefaultModel at the root: the package's" => Deviation {
        test: "crates/adjutant-agent/tests/subagents.rs::factory_makes_a_root_or_a_child_when_it_is_one",
        why: "a root factory is made with a model: a silent default costs money and goes stale",
    },
    // Notes.
    "stopping early is by the context"
        => Test("crates/adjutant-agent/tests/cancel.rs::model_is_not_asked_when_the_token_was_cancelled_before"),
    "all methods are safe from several threads"
        => Test("crates/adjutant-agent/tests/snapshot.rs::snapshot_can_be_taken_when_the_run_is_on_another_task"),
    "one run at a time"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::session_is_busy_when_it_runs"),
    "the second call fails on its own stream" => Deviation {
        test: "crates/adjutant-agent/tests/loop_runs.rs::session_is_busy_when_it_runs",
        why: "the typed error comes at once, before there is a stream",
    },
    "sandboxes belong to tools"
        => Test("crates/adjutant-tool/tests/tool_macro.rs::tool_takes_state_and_context_when_mixed_with_arguments"),
    // Asking an agent.
    "Status"
        => Test("crates/adjutant-agent/tests/snapshot.rs::snapshot_shows_the_partial_reply_when_the_model_is_speaking"),
    "Turns while it runs"
        => Test("crates/adjutant-agent/tests/snapshot.rs::snapshot_can_be_taken_when_the_run_is_on_another_task"),
    "TokenUsage, cumulative"
        => Test("crates/adjutant-agent/tests/snapshot.rs::snapshot_tells_the_usage_when_runs_have_ended"),
    "ContextUsagePercent is a whole number from 0 to 100"
        => Test("crates/adjutant-agent/tests/snapshot.rs::context_follows_the_newest_reply_when_it_reports_usage"),
    "0 is unused, 100 is full"
        => Test("crates/adjutant-agent/tests/snapshot.rs::context_percent_stays_within_bounds_when_the_numbers_are_odd"),
    "inactive: used and available tokens"
        => Test("crates/adjutant-agent/tests/snapshot.rs::context_follows_the_newest_reply_when_it_reports_usage"),
    // The whole.
    "stands on the streaming layer, without packages of others" => Deviation {
        test: "xtask/src/tidy/edges.rs::table_reports_an_edge_when_it_is_not_listed_or_wrongly_versioned",
        why: "edges between our crates are a checked table; well-kept libraries do the jobs that are not ours",
    },
    "signatures are required as they are written" => Deviation {
        test: "crates/adjutant-agent/tests/basic.rs::run_answers_when_a_tool_is_called",
        why: "the same abilities in the forms of this language: values and setters, typed errors, streams",
    },
};
