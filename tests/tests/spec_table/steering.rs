//! Rows of the loop: driving, entries, the agent, events, tools, configuration, state.

use super::{How::*, Row, rows};

pub(crate) const ROWS: &[Row] = rows! { "loop";
    // Driving a run.
    "a driver that needs no agent works on a given transcript"
        => Test("tests/tests/examples.rs::bare_driver_leaves_a_log_when_it_runs"),
    "prompts extend entries that are given beforehand"
        => Test("crates/adjutant-agent/tests/queues/sessions.rs::run_begins_after_given_entries_when_a_session_starts_from_them"),
    "a turn streams, runs its calls, adds the results, and the next one follows until the model stops"
        => Test("crates/adjutant-agent/tests/basic.rs::run_answers_when_a_tool_is_called"),
    "text alone ends a run after one request"
        => Test("crates/adjutant-agent/tests/basic.rs::stream_ends_with_run_finished_when_the_answer_is_text"),
    "the last event tells the entries that the run added"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::results_tell_of_their_own_run_when_there_are_several"),
    "after a turn: prepare the next one, then ask whether to stop"
        => Test("crates/adjutant-agent/tests/agent_api/turns.rs::turn_points_keep_their_order_when_a_run_has_them_all"),
    "follow-ups are asked for only when a run would stop"
        => Test("crates/adjutant-agent/tests/queues/polls.rs::follow_up_waits_when_the_run_has_more_to_do"),
    "without follow-ups such a run ends"
        => Test("crates/adjutant-agent/tests/basic.rs::stream_ends_with_run_finished_when_the_answer_is_text"),
    "events must be read to their end" => Deviation {
        test: "crates/adjutant-agent/tests/loop_runs.rs::run_goes_on_when_it_is_detached",
        why: "a run is driven by who reads it, may be let go on unread, and closes its turn when it is dropped, so \
               nobody wedges it",
    },
    "nothing is bundled: no tools, no prompt"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::instructions_are_the_whole_system_prompt_when_nothing_else_is_set"),
    "storage is the application's" => Deviation {
        test: "crates/adjutant-agent/tests/crash.rs::session_goes_on_when_another_program_opens_its_log",
        why: "a journal is part of every session, in memory unless another one is set",
    },
    "compaction hangs on the transformation of the context" => Deviation {
        test: "crates/adjutant-context/tests/compact.rs::compact_lasts_when_the_next_run_begins",
        why: "compaction is an effect with recorded edits, so that it lasts; the transformation only shows entries \
               otherwise",
    },
    "extension points are function fields of one configuration" => Deviation {
        test: "crates/adjutant-agent/tests/hook_rules_watched.rs::run_is_the_same_when_no_hook_is_set",
        why: "points are typed hooks, effects and middleware, each with a form made of a closure; an empty list is \
               the plain loop",
    },
    "a plain loop needs a model only"
        => Test("crates/adjutant-agent/tests/basic.rs::run_answers_when_a_tool_is_called"),
    // Entries.
    "standard messages and entries of the application share one transcript"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::prompt_is_kept_when_it_says_something"),
    "an entry tells its standard message, or that it has none" => Deviation {
        test: "crates/adjutant-llm/tests/serde.rs::transcript_reads_back_when_it_has_every_entry",
        why: "an entry is one of four kinds that are told apart by matching, so nothing has to be asked of it",
    },
    "own entries are in history and events, and filtered before the model"
        => Test("crates/adjutant-agent/tests/agent_api/entries.rs::custom_entries_stay_out_when_there_is_no_projection"),
    "own kinds need no marker of ours" => Deviation {
        test: "crates/adjutant-agent/tests/effects_engine.rs::custom_entries_reach_the_model_when_the_projection_shows_them",
        why: "an own entry is a kind and a JSON value, so that logs stay readable to everyone",
    },
    "standard messages are adapted" => Deviation {
        test: "crates/adjutant-agent/tests/loop_runs.rs::prompt_is_kept_when_it_says_something",
        why: "entries are one enum, nothing needs adapting",
    },
    "user message: text first, then pictures, in order"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::prompt_is_kept_when_it_says_something"),
    "a user message serves as prompt, steering, follow-up and seed"
        => Test("crates/adjutant-agent/tests/queues/polls.rs::follow_ups_chain_when_each_gets_an_answer"),
    "starting context: prompt of the system, entries, tools"
        => Test("crates/adjutant-agent/tests/queues/sessions.rs::run_begins_after_given_entries_when_a_session_starts_from_them"),
    // After and before a tool.
    "after-tool sees reply, call, arguments, result, error flag, context"
        => Test("crates/adjutant-agent/tests/hooks/tool_results.rs::points_of_tools_see_the_whole_call_when_they_fire"),
    "after-tool comes before the events of the result"
        => Test("crates/adjutant-agent/tests/hooks/tool_results.rs::after_tool_changes_each_field_alone_when_it_sets_it"),
    "override: content replaces the whole when set"
        => Test("crates/adjutant-agent/tests/hooks/tool_results.rs::after_tool_changes_each_field_alone_when_it_sets_it"),
    "override: details replace when set"
        => Test("crates/adjutant-agent/tests/hooks/tool_results.rs::after_tool_changes_each_field_alone_when_it_sets_it"),
    "override: error flag replaces when set"
        => Test("crates/adjutant-agent/tests/hooks/tool_results.rs::after_tool_changes_each_field_alone_when_it_sets_it"),
    "override: terminate replaces when set"
        => Test("crates/adjutant-agent/tests/hooks/tool_results.rs::after_tool_changes_each_field_alone_when_it_sets_it"),
    "no override keeps the result"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::run_is_the_same_when_no_hook_is_set"),
    "before-tool sees reply, call, arguments, context"
        => Test("crates/adjutant-agent/tests/hooks/tool_results.rs::points_of_tools_see_the_whole_call_when_they_fire"),
    "before-tool comes after validation"
        => Test("crates/adjutant-agent/tests/approval.rs::nobody_is_asked_when_arguments_do_not_fit"),
    "blocking skips the tool"
        => Test("crates/adjutant-agent/tests/hooks/tool_points.rs::call_is_denied_when_before_tool_says_so"),
    "the reason of a block is the text of the error result"
        => Test("crates/adjutant-agent/tests/hooks/tool_points.rs::call_is_denied_when_before_tool_says_so"),
    "a block without reason has a default text"
        => Test("crates/adjutant-agent/tests/hooks/tool_points.rs::denial_says_something_when_it_has_no_reason"),
    // The agent.
    "the agent owns transcript, subscriptions and both queues"
        => Test("crates/adjutant-agent/tests/snapshot.rs::snapshot_tells_the_configuration_when_the_agent_is_idle"),
    "prompt blocks until the run is over, steering comes from elsewhere meanwhile"
        => Test("crates/adjutant-agent/tests/queues/polls.rs::steer_is_placed_before_the_next_request_when_a_tool_is_at_work"),
    "all methods may be used at once"
        => Test("crates/adjutant-agent/tests/queues/polls.rs::queue_keeps_its_order_when_threads_fill_it"),
    "Abort"
        => Test("crates/adjutant-agent/tests/agent_api/setters.rs::run_is_cancelled_when_the_agent_is_told_to_stop"),
    "ClearFollowUpQueue"
        => Test("crates/adjutant-agent/tests/queues/handles.rs::queue_is_empty_when_its_lane_was_cleared"),
    "ClearQueues"
        => Test("crates/adjutant-agent/tests/queues/handles.rs::queue_is_empty_when_its_lane_was_cleared"),
    "ClearSteeringQueue"
        => Test("crates/adjutant-agent/tests/queues/handles.rs::queue_is_empty_when_its_lane_was_cleared"),
    "HasQueuedMessages"
        => Test("crates/adjutant-agent/tests/queues/handles.rs::queue_is_empty_when_its_lane_was_cleared"),
    "Continue: no new message is added"
        => Test("crates/adjutant-agent/tests/queues/going_on.rs::continue_answers_when_the_tail_is_a_message_of_the_user"),
    "Continue: retry or answer what was appended elsewhere"
        => Test("crates/adjutant-agent/tests/queues/sessions.rs::append_adds_entries_when_the_session_is_idle"),
    "Continue: an empty transcript is an error"
        => Test("crates/adjutant-agent/tests/queues/going_on.rs::continue_fails_when_the_transcript_is_empty"),
    "Continue: a tail of results is answered"
        => Test("crates/adjutant-agent/tests/queues/going_on.rs::continue_answers_when_the_tail_is_a_turn_with_results"),
    "Continue: an answer at the tail takes steering first"
        => Test("crates/adjutant-agent/tests/queues/going_on.rs::continue_takes_one_steering_item_when_the_tail_is_an_answer"),
    "Continue: then a follow-up"
        => Test("crates/adjutant-agent/tests/queues/going_on.rs::continue_takes_a_follow_up_when_no_steering_waits"),
    "Continue: an answer at the tail and empty queues are the only other error"
        => Test("crates/adjutant-agent/tests/queues/going_on.rs::continue_fails_when_the_tail_is_an_answer_and_nothing_waits"),
    "FollowUp"
        => Test("crates/adjutant-agent/tests/queues/polls.rs::follow_up_waits_when_the_run_has_more_to_do"),
    "Prompt takes a text, a message, several messages"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::prompt_is_kept_when_it_says_something"),
    "Prompt refuses what says nothing"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::prompt_is_refused_when_it_says_nothing"),
    "Prompt adds the messages of the run to the transcript"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::clones_share_a_session_and_new_sessions_are_empty"),
    "Prompt is an error when the run failed"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::run_fails_with_its_calls_closed_when_the_model_refuses"),
    "Prompt is an error when the run was cancelled" => Deviation {
        test: "crates/adjutant-agent/tests/cancel.rs::first_wish_counts_when_a_run_is_cancelled_again",
        why: "limits and cancels are outcomes of a result with what was done so far, not errors",
    },
    "Prompt while a run is going on is an error"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::session_is_busy_when_it_runs"),
    "Reset clears transcript, last error, both queues and keeps the configuration"
        => Test("crates/adjutant-agent/tests/queues/sessions.rs::new_session_leaves_the_configuration_and_what_waits"),
    "Reset is for an idle agent" => Deviation {
        test: "crates/adjutant-agent/tests/queues/sessions.rs::new_session_leaves_the_configuration_and_what_waits",
        why: "nothing is cleared: a new session stands beside the old one, whose run may go on",
    },
    "SetModel counts for the next run"
        => Test("crates/adjutant-agent/tests/agent_api/setters.rs::setters_count_for_the_next_run_when_one_is_going_on"),
    "SetSystemPrompt counts for the next run"
        => Test("crates/adjutant-agent/tests/agent_api/setters.rs::setters_count_for_the_next_run_when_one_is_going_on"),
    "SetThinkingLevel counts for the next run"
        => Test("crates/adjutant-agent/tests/agent_api/setters.rs::setters_count_for_the_next_run_when_one_is_going_on"),
    "SetToolExecution counts for the next run"
        => Test("crates/adjutant-agent/tests/agent_api/setters.rs::setters_count_for_the_next_run_when_one_is_going_on"),
    "SetTools counts for the next run, the list is copied"
        => Test("crates/adjutant-agent/tests/agent_api/setters.rs::setters_count_for_the_next_run_when_one_is_going_on"),
    "another model within a run comes from the point between turns"
        => Test("crates/adjutant-agent/tests/agent_api/turns.rs::prepare_next_turn_changes_the_run_when_it_says_so"),
    "Steer: into the running run, before its next turn"
        => Test("crates/adjutant-agent/tests/queues/polls.rs::steer_is_placed_before_the_next_request_when_a_tool_is_at_work"),
    "Subscribe: several listeners hear all events in order"
        => Test("crates/adjutant-agent/tests/listeners.rs::subscribers_hear_all_events_in_order_when_there_are_several"),
    "Subscribe gives back how to end it"
        => Test("crates/adjutant-agent/tests/listeners.rs::subscriber_hears_no_more_when_it_is_dropped"),
    "listeners stand in the way of the run, called by who prompts" => Deviation {
        test: "crates/adjutant-agent/tests/listeners.rs::run_never_waits_when_nobody_reads",
        why: "each listener has a bounded mailbox of its own, so that a slow one never holds the run up",
    },
    "Snapshot"
        => Test("crates/adjutant-agent/tests/snapshot.rs::snapshot_tells_the_configuration_when_the_agent_is_idle"),
    // Events.
    "an event has a type and fields by type"
        => Test("tests/tests/events_table.rs::table_names_the_fields_when_a_run_shows_them"),
    "agent_start"
        => Test("tests/tests/trace.rs::trace_is_as_drawn_when_runs_are_real"),
    "agent_end with the entries of the run, last" => Deviation {
        test: "tests/tests/trace.rs::trace_is_as_drawn_when_runs_are_real",
        why: "run_finished carries the whole result, of which the entries are a part",
    },
    "turn_start"
        => Test("tests/tests/trace.rs::trace_is_as_drawn_when_runs_are_real"),
    "turn_end with the results, after its calls" => Deviation {
        test: "tests/tests/trace.rs::trace_is_as_drawn_when_runs_are_real",
        why: "turn_finished closes the bracket; the results came as tool_finished, and events are records that do \
               not repeat themselves",
    },
    "message_start for user messages" => Deviation {
        test: "tests/tests/trace.rs::trace_is_as_drawn_when_runs_are_real",
        why: "an entry enters whole with entry_added; start and end of something whole are one event",
    },
    "message_start for replies" => Deviation {
        test: "tests/tests/trace.rs::trace_is_as_drawn_when_runs_are_real",
        why: "reply_started is the name; a reply begins with its model and attempt",
    },
    "message_start for results" => Deviation {
        test: "tests/tests/trace.rs::trace_is_as_drawn_when_runs_are_real",
        why: "a result is told once, by tool_finished",
    },
    "message_update passes the event of the model on" => Deviation {
        test: "tests/tests/events_table.rs::mapping_leads_to_events_when_it_leads_anywhere",
        why: "block and delta events without a copy of the message so far, whose cost would grow with its square",
    },
    "message_end" => Deviation {
        test: "tests/tests/events_table.rs::mapping_leads_to_events_when_it_leads_anywhere",
        why: "reply_finished holds the finished reply",
    },
    "tool_execution_start"
        => Test("tests/tests/trace.rs::trace_is_as_drawn_when_runs_are_real"),
    "tool_execution_update"
        => Test("crates/adjutant-agent/tests/loop_bounds.rs::progress_is_shown_during_a_call_and_never_after_it"),
    "tool_execution_end"
        => Test("tests/tests/trace.rs::trace_is_as_drawn_when_runs_are_real"),
    "the message of a lifecycle event"
        => Test("tests/tests/events_table.rs::table_names_the_fields_when_a_run_shows_them"),
    "id and name of the tool on events of tools"
        => Test("crates/adjutant-agent/tests/tools_loop.rs::tool_result_is_reported_when_it_ends"),
    "validated arguments on events of tools"
        => Test("crates/adjutant-agent/tests/tools_loop.rs::tool_result_is_reported_when_it_ends"),
    "result, whole or in part, on events of tools"
        => Test("crates/adjutant-agent/tests/loop_bounds.rs::progress_is_shown_during_a_call_and_never_after_it"),
    "error flag of a finished result"
        => Test("crates/adjutant-agent/tests/tools_loop.rs::tool_result_is_reported_when_it_ends"),
    // Tools.
    "definition: schema and description for the model"
        => Test("crates/adjutant-tool/tests/tool_macro.rs::tool_says_what_its_function_says"),
    "label for people"
        => Test("crates/adjutant-tool/tests/tool_macro.rs::tool_takes_every_option"),
    "arguments may be rewritten before validation"
        => Test("crates/adjutant-tool/tests/admit.rs::admit_rewrites_before_it_coerces"),
    "no rewrite leaves them as they are"
        => Test("crates/adjutant-tool/tests/admit.rs::admit_keeps_the_text_when_it_fits"),
    "a failing tool is an error result, the run goes on"
        => Test("crates/adjutant-agent/tests/loop_bounds.rs::model_is_told_when_a_tool_fails_or_panics"),
    "partial results during the call only"
        => Test("crates/adjutant-agent/tests/loop_bounds.rs::progress_is_shown_during_a_call_and_never_after_it"),
    "mode of one tool over that of the run"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::batch_runs_one_by_one_when_a_tool_or_the_run_says_so"),
    "an empty mode inherits"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::batch_runs_together_when_nothing_forbids_it"),
    "parallel: together, the default"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::batch_runs_together_when_nothing_forbids_it"),
    "parallel without bound" => Deviation {
        test: "crates/adjutant-agent/tests/loop_rules.rs::batch_keeps_to_its_width_when_there_are_more_calls",
        why: "at most 8 at a time unless set otherwise: what a model asks for is bounded",
    },
    "sequential: one at a time"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::batch_runs_one_by_one_when_a_tool_or_the_run_says_so"),
    "result content: text or pictures for the model"
        => Test("crates/adjutant-agent/tests/tools_loop/output.rs::result_reaches_the_model_with_its_pictures_when_a_tool_returns_some"),
    "result details: for logs and screens"
        => Test("crates/adjutant-agent/tests/tools_loop/output.rs::details_stay_out_of_the_request_when_a_tool_sets_them"),
    "terminate is a hint, all results must have it"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::run_ends_when_results_terminate_it"),
    // Configuration of a run.
    "Model: until the point between turns replaces it"
        => Test("crates/adjutant-agent/tests/agent_api/turns.rs::prepare_next_turn_changes_the_run_when_it_says_so"),
    "StreamOptions: of each request"
        => Test("crates/adjutant-agent/tests/agent_api/setters.rs::options_reach_every_request_when_the_agent_sets_them"),
    "StreamFn: another way to a model" => Deviation {
        test: "crates/adjutant-agent/tests/cancel.rs::run_ends_when_it_is_cancelled_before_the_model_says_anything",
        why: "a model is a trait with a form made of a function, so there is no second seam",
    },
    "StreamFn unset: the usual way" => Deviation {
        test: "crates/adjutant-agent/tests/basic.rs::run_answers_when_a_tool_is_called",
        why: "an agent is made with a model; there is none by default",
    },
    "StreamFn: failing at setup is an error value"
        => Test("crates/adjutant-agent/tests/agent_api/ends.rs::model_failure_is_an_outcome_when_the_request_cannot_be_made"),
    "StreamFn: failing midway is an item that carries the message" => Deviation {
        test: "crates/adjutant-agent/tests/loop_bounds.rs::text_stays_when_the_stream_ends_without_a_reply",
        why: "an error is the last item of a stream, and what was said is kept as an interrupted reply",
    },
    "StreamFn: no panics"
        => Test("crates/adjutant-agent/tests/loop_bounds.rs::run_fails_when_the_model_panics_before_its_stream"),
    "ConvertToLLM: projects for one request"
        => Test("crates/adjutant-agent/tests/effects_engine.rs::custom_entries_reach_the_model_when_the_projection_shows_them"),
    "ConvertToLLM unset: standard entries only"
        => Test("crates/adjutant-providers/src/projection/tests.rs::shown_is_nothing_when_nothing_is_left"),
    "GetAPIKey: before each request, for keys that expire"
        => Test("crates/adjutant-providers/tests/http/keys.rs::every_request_has_a_token_of_its_own_when_the_key_is_asked_for"),
    "GetAPIKey: empty leaves the key"
        => Test("crates/adjutant-providers/tests/http/keys.rs::configured_key_is_kept_when_the_answer_is_empty"),
    "GetAPIKey is asked by provider's name" => Deviation {
        test: "crates/adjutant-providers/tests/http/keys.rs::request_is_not_sent_when_its_key_cannot_be_had",
        why: "a key is resolved by the provider that needs it, so no name has to be asked for",
    },
    "ToolExecution empty: parallel"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::batch_runs_together_when_nothing_forbids_it"),
    "BeforeToolCall"
        => Test("crates/adjutant-agent/tests/hooks/tool_points.rs::call_is_denied_when_before_tool_says_so"),
    "AfterToolCall"
        => Test("crates/adjutant-agent/tests/hooks/tool_results.rs::after_tool_changes_each_field_alone_when_it_sets_it"),
    "ShouldStopAfterTurn: before another request"
        => Test("crates/adjutant-agent/tests/agent_api/turns.rs::stop_after_turn_ends_the_run_when_it_says_so"),
    "PrepareNextTurn: model, thinking, context"
        => Test("crates/adjutant-agent/tests/agent_api/turns.rs::prepare_next_turn_changes_the_run_when_it_says_so"),
    "PrepareNextTurn: nothing keeps the settings"
        => Test("crates/adjutant-agent/tests/agent_api/turns.rs::prepare_next_turn_changes_nothing_when_it_is_silent"),
    "TransformContext: before the projection" => Deviation {
        test: "crates/adjutant-agent/tests/agent_api/entries.rs::transform_context_changes_the_request_alone_when_it_is_set",
        why: "the projection of an own entry is recorded once, so that a hook before the request edits what the model would see",
    },
    "GetSteeringMessages: polled when the calls of a turn are done"
        => Test("crates/adjutant-agent/tests/queues/polls.rs::steer_is_placed_before_the_next_request_when_a_tool_is_at_work"),
    "GetFollowUpMessages: polled when it would stop"
        => Test("crates/adjutant-agent/tests/queues/polls.rs::follow_up_waits_when_the_run_has_more_to_do"),
    "both polls are functions of the caller" => Deviation {
        test: "crates/adjutant-agent/tests/queues/polls.rs::queue_events_are_in_order_when_items_are_placed",
        why: "queues are data of the session, recorded, so nothing is lost between a poll and an error",
    },
    // Options of an agent.
    "option: SystemPrompt"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::instructions_are_the_whole_system_prompt_when_nothing_else_is_set"),
    "option: Model"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::options_count_for_one_run_when_they_are_set"),
    "option: ThinkingLevel, also over StreamOptions"
        => Test("crates/adjutant-agent/tests/agent_api/setters.rs::thinking_reaches_the_request_when_the_agent_sets_it"),
    "option: Tools"
        => Test("crates/adjutant-agent/tests/basic.rs::run_answers_when_a_tool_is_called"),
    "option: Messages, a transcript to start with"
        => Test("crates/adjutant-agent/tests/queues/sessions.rs::run_begins_after_given_entries_when_a_session_starts_from_them"),
    "option: Messages whose open calls are closed"
        => Test("crates/adjutant-agent/tests/queues/sessions.rs::open_calls_are_closed_when_a_session_starts_from_entries"),
    "ConvertToLLM and TransformContext of the agent"
        => Test("crates/adjutant-agent/tests/agent_api/entries.rs::transform_context_changes_the_request_alone_when_it_is_set"),
    "ToolExecution of the agent"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::batch_runs_one_by_one_when_a_tool_or_the_run_says_so"),
    "GetAPIKey of the agent" => Deviation {
        test: "crates/adjutant-providers/tests/http/keys.rs::every_request_has_a_token_of_its_own_when_the_key_is_asked_for",
        why: "keys belong to providers, agents never see them",
    },
    "SteeringMode: one at a time by default"
        => Test("crates/adjutant-agent/tests/queues/polls.rs::queue_gives_one_item_when_its_mode_is_the_default"),
    "FollowUpMode: one at a time by default"
        => Test("crates/adjutant-agent/tests/queues/polls.rs::queue_gives_one_item_when_its_mode_is_the_default"),
    "QueueMode: all"
        => Test("crates/adjutant-agent/tests/queues/polls.rs::queue_gives_all_items_when_its_mode_says_so"),
    "the two modes are set apart"
        => Test("crates/adjutant-agent/tests/queues/polls.rs::queue_modes_are_apart_when_only_one_is_set"),
    "StreamOptions: temperature, output limit, headers"
        => Test("crates/adjutant-agent/tests/agent_api/setters.rs::options_reach_every_request_when_the_agent_sets_them"),
    "StreamOptions: observers of request and response"
        => Test("crates/adjutant-providers/tests/http/observe.rs::observer_sees_all_when_a_reply_comes"),
    "StreamOptions: the body may be rewritten"
        => Test("crates/adjutant-providers/tests/http/observe.rs::body_is_another_one_when_the_observer_rewrites_it"),
    "hooks of the agent count for all its runs"
        => Test("crates/adjutant-agent/tests/hook_rules.rs::hooks_run_in_their_order_when_several_are_registered"),
    // State.
    "state: SystemPrompt, Model, ThinkingLevel, Tools, Messages"
        => Test("crates/adjutant-agent/tests/snapshot.rs::snapshot_tells_the_configuration_when_the_agent_is_idle"),
    "the snapshot is read-only"
        => Test("crates/adjutant-agent/tests/snapshot.rs::snapshot_stays_when_the_agent_goes_on"),
    "IsStreaming"
        => Test("crates/adjutant-agent/tests/snapshot.rs::snapshot_shows_the_partial_reply_when_the_model_is_speaking"),
    "StreamingMessage grows, and goes when it is complete"
        => Test("crates/adjutant-agent/tests/snapshot.rs::snapshot_shows_the_partial_reply_when_the_model_is_speaking"),
    "PendingToolCalls in the order of their starts"
        => Test("crates/adjutant-agent/tests/snapshot.rs::snapshot_lists_pending_calls_when_tools_are_at_work"),
    "ErrorMessage of the last failed run"
        => Test("crates/adjutant-agent/tests/snapshot.rs::snapshot_tells_the_last_error_when_a_run_failed"),
    // Turns.
    "turn points see the reply and the results"
        => Test("crates/adjutant-agent/tests/agent_api/turns.rs::turn_points_see_the_turn_when_it_is_closed"),
    "turn points see the context, and what the run would give back now"
        => Test("crates/adjutant-agent/tests/agent_api/turns.rs::turn_points_see_the_turn_when_it_is_closed"),
    "turn points come when reply and results are in the transcript"
        => Test("crates/adjutant-agent/tests/agent_api/turns.rs::turn_points_see_the_turn_when_it_is_closed"),
    "update: context"
        => Test("crates/adjutant-agent/tests/agent_api/turns.rs::prepare_next_turn_changes_the_run_when_it_says_so"),
    "update: model"
        => Test("crates/adjutant-agent/tests/agent_api/turns.rs::prepare_next_turn_changes_the_run_when_it_says_so"),
    "update: thinking"
        => Test("crates/adjutant-agent/tests/agent_api/turns.rs::prepare_next_turn_changes_the_run_when_it_says_so"),
};
