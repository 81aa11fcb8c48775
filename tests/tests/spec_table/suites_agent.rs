//! Rows of earlier test suites: counting, templates, events, queues, children in tools.

use super::{How::*, Row, rows};

pub(crate) const ROWS: &[Row] = rows! { "e";
    // Counting tokens.
    "overhead of the system prompt" => Deviation {
        test: "crates/adjutant-llm/tests/rate_limit.rs::limiter_counts_system_and_tools_when_it_estimates",
        why: "the system prompt counts as its text; frames are those of messages",
    },
    "an empty prompt counts nothing"
        => Test("crates/adjutant-agent/tests/snapshot.rs::context_is_the_sum_of_its_parts_when_no_reply_tells_it"),
    "system messages are skipped" => Deviation {
        test: "crates/adjutant-llm/tests/rate_limit.rs::limiter_counts_system_and_tools_when_it_estimates",
        why: "the system prompt is no message, so none has to be skipped",
    },
    "costs of calls and thinking"
        => Test("crates/adjutant-agent/tests/snapshot.rs::context_is_the_sum_of_its_parts_when_no_reply_tells_it"),
    "costs of results"
        => Test("crates/adjutant-llm/tests/tokens.rs::context_used_adds_what_came_after_the_report_when_there_is_one"),
    "costs of pictures"
        => Test("crates/adjutant-llm/tests/tokens.rs::entry_counts_a_picture_by_its_size_when_its_head_is_readable"),
    "costs of tools"
        => Test("crates/adjutant-llm/tests/rate_limit.rs::limiter_counts_system_and_tools_when_it_estimates"),
    "the total is the sum"
        => Test("crates/adjutant-agent/tests/snapshot.rs::context_is_the_sum_of_its_parts_when_no_reply_tells_it"),
    "counting twice is the same"
        => Test("crates/adjutant-agent/tests/snapshot.rs::context_is_the_sum_of_its_parts_when_no_reply_tells_it"),
    "exact vocabularies"
        => Test("crates/adjutant-llm/tests/tokens.rs::tiktoken_counts_exactly_when_the_vocabulary_is_known"),
    // Templates.
    "strict: a missing name is an error"
        => Test("crates/adjutant-agent/tests/instructions/template.rs::strict_template_fails_when_a_variable_is_undefined_or_null"),
    "lenient is a choice"
        => Test("crates/adjutant-agent/tests/instructions/template.rs::lenient_template_prints_nothing_when_a_variable_is_undefined_or_null"),
    "required names, all missing ones are told"
        => Test("crates/adjutant-agent/tests/instructions/template.rs::required_variables_are_all_named_when_missing"),
    "a kept template is the same one" => Deviation {
        test: "crates/adjutant-agent/tests/instructions/template.rs::clone_of_a_template_keeps_its_strictness_when_the_other_becomes_lenient",
        why: "a template is kept by whoever made it, and its clones share what was compiled",
    },
    "the key of a kept template" => Deviation {
        test: "crates/adjutant-agent/tests/instructions/template.rs::clone_of_a_template_keeps_its_strictness_when_the_other_becomes_lenient",
        why: "a template is a value that is compiled when it is made; there is no cache that could be stale",
    },
    "functions of the application" => Deviation {
        test: "crates/adjutant-agent/tests/instructions_of_runs.rs::provider_wins_when_a_text_is_set_too",
        why: "what an application computes it puts into the state, or gives as a source of instructions, which is code",
    },
    "each builtin"
        => Test("crates/adjutant-agent/tests/instructions/template.rs::builtins_cover_what_other_template_languages_have"),
    "a broken template is told with name and line" => Deviation {
        test: "crates/adjutant-agent/tests/instructions/template.rs::template_is_refused_with_its_line_when_it_does_not_parse",
        why: "it is told when the template is made, with the line; a template has no name, the code that made it has",
    },
    "an empty prompt is none"
        => Test("crates/adjutant-agent/tests/instructions_of_runs.rs::prompt_is_absent_when_the_text_is_empty"),
    "state of one run"
        => Test("crates/adjutant-agent/tests/instructions_of_runs.rs::state_can_be_set_for_one_run_when_options_have_it"),
    "made anew for each run"
        => Test("crates/adjutant-agent/tests/instructions_of_runs.rs::section_is_announced_when_it_has_changed_in_the_next_run"),
    // A simple send.
    "the exact list of events"
        => Test("crates/adjutant-agent/tests/basic.rs::stream_ends_with_run_finished_when_the_answer_is_text"),
    "text is told before thinking and before calls" => Deviation {
        test: "tests/tests/trace.rs::trace_is_as_drawn_when_runs_are_real",
        why: "blocks are told as they come, each with start, deltas and end, so nothing is buffered",
    },
    "trailing parts are one final event" => Deviation {
        test: "crates/adjutant-agent/tests/loop_runs.rs::result_tells_everything_when_the_run_ends",
        why: "the answer's text is asked of the reply; blocks stay as the model made them",
    },
    "the finished turn counts, not what was streamed"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::usage_and_cost_count_when_an_attempt_was_taken_back"),
    "text is kept when the stream has no end"
        => Test("crates/adjutant-agent/tests/loop_bounds.rs::text_stays_when_the_stream_ends_without_a_reply"),
    "text is kept on cancellation"
        => Test("crates/adjutant-agent/tests/cancel.rs::text_stays_when_the_run_is_cancelled_in_the_middle_of_it"),
    "a retry starts the bookkeeping over"
        => Test("tests/tests/decorators/retry.rs::run_tells_each_delta_once_when_an_attempt_is_taken_back"),
    "text before thinking at the end is not final" => Deviation {
        test: "crates/adjutant-agent/tests/loop_runs.rs::result_tells_everything_when_the_run_ends",
        why: "no event claims to be final; the reply holds all blocks in order",
    },
    // Tools and usage.
    "the whole sequence with a tool"
        => Test("tests/tests/trace.rs::trace_is_as_drawn_when_runs_are_real"),
    "an unknown tool: no tool, an error result"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::model_is_told_when_a_call_cannot_run"),
    "output of a tool: nothing happens outside a call"
        => Test("crates/adjutant-agent/tests/subagent_events.rs::tool_output_is_shown_when_a_call_is_at_work"),
    "output of a tool: an event for display only inside"
        => Test("crates/adjutant-agent/tests/subagent_events.rs::tool_output_is_shown_when_a_call_is_at_work"),
    "usage from outside: nothing happens outside a call"
        => Test("crates/adjutant-agent/tests/subagents/spent.rs::external_usage_counts_for_all_ancestors_when_a_tool_reports_it"),
    "usage from outside: counts as usage, not as context"
        => Test("crates/adjutant-agent/tests/subagents/spent.rs::external_usage_counts_for_all_ancestors_when_a_tool_reports_it"),
    "usage from outside: counts when the tool ends at once"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::charge_counts_when_the_tool_ends_at_once"),
    "usage from outside: reaches ancestors from a child's tool"
        => Test("crates/adjutant-agent/tests/subagents/spent.rs::external_usage_counts_for_all_ancestors_when_a_tool_reports_it"),
    // Identity and settings.
    "depth of the root is 0"
        => Test("crates/adjutant-agent/tests/subagent_events.rs::events_name_their_agent_when_several_speak"),
    "a default model" => Deviation {
        test: "crates/adjutant-agent/tests/subagents.rs::factory_makes_a_root_or_a_child_when_it_is_one",
        why: "a root is made with a model; only children have a default, their parent's",
    },
    "settings of a creator are merged"
        => Test("crates/adjutant-agent/tests/subagents_more.rs::child_options_join_when_several_are_given"),
    "not storing at the provider: on each send, inherited" => Deviation {
        test: "crates/adjutant-providers/src/openai/tests.rs::body_is_written_byte_for_byte_when_all_is_set",
        why: "requests ask not to be stored unless an option says otherwise, so there is no switch to pass on",
    },
    "context in percent: half"
        => Test("crates/adjutant-agent/tests/snapshot.rs::context_follows_the_newest_reply_when_it_reports_usage"),
    "context in percent: cached input counts"
        => Test("crates/adjutant-agent/tests/snapshot.rs::context_follows_the_newest_reply_when_it_reports_usage"),
    "context in percent: at most 100"
        => Test("crates/adjutant-agent/tests/snapshot.rs::context_percent_stays_within_bounds_when_the_numbers_are_odd"),
    "context in percent: unknown is 0"
        => Test("crates/adjutant-agent/tests/snapshot.rs::context_percent_stays_within_bounds_when_the_numbers_are_odd"),
    // Ends.
    "finish reason: end of turn"
        => Test("crates/adjutant-agent/tests/basic.rs::stream_ends_with_run_finished_when_the_answer_is_text"),
    "finish reason: token limit is an error" => Deviation {
        test: "crates/adjutant-agent/tests/loop_rules.rs::run_finishes_by_length_when_a_text_was_cut_off",
        why: "a cut answer finishes with `length`, and cut calls never run and are told to the model",
    },
    "finish reason: refused or filtered is an error"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::run_fails_with_its_calls_closed_when_the_model_refuses"),
    "finish reason: error"
        => Test("tests/tests/faults.rs::run_ends_well_when_anything_goes_wrong_on_any_wire"),
    "finish reason: unknown is an error where the list is closed"
        => Test("crates/adjutant-providers/src/gemini/tests.rs::answers_become_chunks_when_anything_is_sent"),
    "finish reason: unknown is an error where every host has words of its own" => Deviation {
        test: "crates/adjutant-providers/src/chat/tests.rs::answers_become_chunks_when_anything_is_sent",
        why: "a word that a host adds does not turn a whole answer into an error: what the reply holds decides",
    },
    "wish to call without calls is an error"
        => Test("crates/adjutant-providers/src/chat/tests.rs::answers_become_chunks_when_anything_is_sent"),
    "a second send at the same time is refused"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::session_is_busy_when_it_runs"),
    "adding while running is refused"
        => Test("crates/adjutant-agent/tests/queues/sessions.rs::append_is_refused_when_the_session_runs"),
    "adding while calls wait for results is refused"
        => Test("crates/adjutant-agent/tests/external.rs::append_is_refused_when_calls_wait_for_results"),
    "idle again after a cancel"
        => Test("crates/adjutant-agent/tests/cancel.rs::nothing_happens_when_a_run_is_cancelled_after_its_end"),
    // Queued messages.
    "after the end of a turn the same run goes on"
        => Test("crates/adjutant-agent/tests/queues/polls.rs::steer_keeps_the_run_going_when_the_reply_was_an_answer"),
    "after results it stands before the next request"
        => Test("crates/adjutant-agent/tests/queues/polls.rs::steer_is_placed_before_the_next_request_when_a_tool_is_at_work"),
    "order of the events of queuing and sending"
        => Test("crates/adjutant-agent/tests/queues/polls.rs::queue_events_are_in_order_when_items_are_placed"),
    "queued only while running" => Deviation {
        test: "crates/adjutant-agent/tests/queues/polls.rs::steer_is_placed_after_the_prompts_when_it_came_before_the_run",
        why: "an idle agent takes messages too, for its next run",
    },
    "dropped on abort" => Deviation {
        test: "crates/adjutant-agent/tests/queues/kept.rs::queues_stay_when_the_run_is_cancelled",
        why: "nothing that someone said is dropped: queues survive a cancel",
    },
    // Children in tools.
    "turns are given as a copy"
        => Test("crates/adjutant-agent/tests/snapshot.rs::snapshot_stays_when_the_agent_goes_on"),
    "a child mirrors all events and all usage"
        => Test("crates/adjutant-agent/tests/subagent_events.rs::events_of_a_tool_with_a_child_are_in_order_when_it_ends"),
    "outside a call: depth is -1" => Deviation {
        test: "crates/adjutant-agent/tests/subagents.rs::depth_counts_levels_when_children_nest",
        why: "outside a run there is no identity and so no number",
    },
    "outside a call: no tools"
        => Test("crates/adjutant-agent/tests/subagents.rs::child_has_no_tools_when_none_are_handed_over"),
    "outside a call: two distinct panics" => Deviation {
        test: "crates/adjutant-agent/tests/subagents.rs::child_is_made_only_within_a_call_when_it_is_asked_for",
        why: "two distinct typed errors",
    },
    "the start is told once over two sends"
        => Test("crates/adjutant-agent/tests/subagent_events.rs::childs_start_is_told_once_when_it_is_prompted_twice"),
    "no start without a send"
        => Test("crates/adjutant-agent/tests/subagent_events.rs::nothing_is_told_when_a_child_is_never_prompted"),
    "a second send goes on with the conversation"
        => Test("crates/adjutant-agent/tests/subagents.rs::child_runs_on_the_same_thread_when_it_is_prompted_twice"),
    "an abandoned child is cancelled before its call is complete"
        => Test("crates/adjutant-agent/tests/subagents/ends.rs::children_end_before_their_call_when_it_returns"),
    "the call is complete when the child has ended"
        => Test("crates/adjutant-agent/tests/subagents/ends.rs::children_end_before_their_call_when_it_returns"),
    "a child that ignores the wish to stop does not hang the parent"
        => Test("crates/adjutant-agent/tests/subagents/ends.rs::call_ends_when_a_child_ignores_the_wish_to_stop"),
    "an unread child does not stall"
        => Test("crates/adjutant-agent/tests/subagents/ends.rs::child_goes_on_when_nobody_reads_it"),
    "a creator panics after the call" => Deviation {
        test: "crates/adjutant-agent/tests/subagents.rs::spawner_is_an_error_when_its_call_has_returned",
        why: "a typed error: libraries do not panic",
    },
    "nested depths 0, 1, 2"
        => Test("crates/adjutant-agent/tests/subagents.rs::depth_counts_levels_when_children_nest"),
    // The final text.
    "it is that of the first agent"
        => Test("crates/adjutant-agent/tests/subagent_events.rs::last_text_is_the_roots_when_children_answered_too"),
    "ends of descendants are ignored"
        => Test("crates/adjutant-agent/tests/subagent_events.rs::childs_end_is_not_the_end_when_it_is_mirrored"),
    "errors are errors"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::run_fails_with_its_calls_closed_when_the_model_refuses"),
    "a cancelled run has no final text" => Deviation {
        test: "crates/adjutant-agent/tests/cancel.rs::text_stays_when_the_run_is_cancelled_in_the_middle_of_it",
        why: "it is an outcome, and what was said so far is in the result",
    },
};
