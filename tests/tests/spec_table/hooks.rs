//! Rows of an assistant: asking, confirming, its options, its hooks.

use super::{How::*, Row, rows};

pub(crate) const ROWS: &[Row] = rows! { "hooks";
    // An assistant.
    "chat with any model"
        => Test("tests/tests/switch.rs::conversation_is_taken_when_it_goes_over_three_wires_and_back"),
    "tools run on their own during a conversation"
        => Test("crates/adjutant-agent/tests/basic.rs::run_answers_when_a_tool_is_called"),
    "New with a model and options"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::instructions_are_the_whole_system_prompt_when_nothing_else_is_set"),
    "streaming by events"
        => Test("crates/adjutant-agent/tests/basic.rs::stream_ends_with_run_finished_when_the_answer_is_text"),
    "ParseToolInput reads arguments into a type"
        => Test("crates/adjutant-tool/tests/tool_macro.rs::tool_takes_and_shows_types_of_the_user"),
    // Asking.
    "BuildContextMessages: what would be sent" => Deviation {
        test: "crates/adjutant-agent/tests/preview.rs::preview_shows_the_next_request_when_nothing_is_recorded",
        why: "there is one preview, and it changes nothing",
    },
    "PeekContextMessages changes nothing"
        => Test("crates/adjutant-agent/tests/preview.rs::preview_shows_the_next_request_when_nothing_is_recorded"),
    "Chat gives the response"
        => Test("crates/adjutant-agent/tests/basic.rs::run_answers_when_a_tool_is_called"),
    "Chat may end at another agent"
        => Test("crates/adjutant-orchestration/tests/relay.rs::target_answers_with_its_own_prompt_and_tools_when_it_gets_the_conversation"),
    "ChatStream: deltas, calls, final response"
        => Test("tests/tests/trace.rs::trace_is_as_drawn_when_runs_are_real"),
    "ChatStream tells of transfers"
        => Test("crates/adjutant-orchestration/tests/relay.rs::events_of_all_follow_each_other_when_a_conversation_is_handed_over"),
    "ChatStream closes after response or error"
        => Test("crates/adjutant-agent/tests/property.rs::session_is_one_log_when_anything_happens"),
    "Continue with results from outside"
        => Test("crates/adjutant-agent/tests/external.rs::run_goes_on_when_external_results_come"),
    "Continue needs a stored conversation" => Deviation {
        test: "crates/adjutant-agent/tests/external.rs::external_results_go_on_in_another_program_when_the_log_is_opened",
        why: "every session has a log, in memory at least, so there is nothing to require",
    },
    "Continue after the limit of turns was hit" => Deviation {
        test: "crates/adjutant-agent/tests/pauses/limit.rs::limit_is_extended_when_the_answer_says_so",
        why: "the calls of the last turn are executed and closed at a limit; a limit that may be extended is a pause",
    },
    "Continue matches results with the calls"
        => Test("crates/adjutant-agent/tests/external.rs::external_results_are_refused_when_they_do_not_match"),
    "Continue may be asked for results again"
        => Test("crates/adjutant-agent/tests/external.rs::calls_are_given_back_again_when_the_model_asks_for_more"),
    "ContinueStream"
        => Test("crates/adjutant-agent/tests/external.rs::external_run_can_be_streamed_when_it_goes_on"),
    // Events of a chat.
    "event: Type"
        => Test("tests/tests/events_table.rs::table_names_every_event_when_the_types_are_asked"),
    "event: Content"
        => Test("tests/tests/decorators/retry.rs::run_tells_each_delta_once_when_an_attempt_is_taken_back"),
    "event: Thinking"
        => Test("tests/tests/events_table.rs::table_names_the_fields_when_a_run_shows_them"),
    "event: ToolCall"
        => Test("tests/tests/trace.rs::trace_is_as_drawn_when_runs_are_real"),
    "event: ToolResult"
        => Test("crates/adjutant-agent/tests/tools_loop.rs::tool_result_is_reported_when_it_ends"),
    "event: Response at the end"
        => Test("crates/adjutant-agent/tests/basic.rs::stream_ends_with_run_finished_when_the_answer_is_text"),
    "event: Error at the end"
        => Test("crates/adjutant-agent/tests/property.rs::session_is_one_log_when_anything_happens"),
    "event: AgentName at a transfer"
        => Test("crates/adjutant-orchestration/tests/relay.rs::events_of_all_follow_each_other_when_a_conversation_is_handed_over"),
    "event: ConfirmationRequest"
        => Test("crates/adjutant-agent/tests/approval.rs::asking_is_shown_before_the_responder_when_a_stream_is_read"),
    "event: TeamMessage"
        => Test("crates/adjutant-orchestration/tests/team/seen.rs::events_tell_of_members_and_messages"),
    // Options of one chat.
    "options count for one call"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::options_count_for_one_run_when_they_are_set"),
    "WithMaxTurns goes over the agent's limit"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::options_count_for_one_run_when_they_are_set"),
    "WithMaxTurns counts rounds of tools" => Deviation {
        test: "crates/adjutant-agent/tests/loop_rules.rs::run_executes_the_last_calls_when_its_turns_are_spent",
        why: "a number of turns counts requests; the calls of the last reply are executed and closed",
    },
    "WithMaxTurns 0 is the agent's own" => Deviation {
        test: "crates/adjutant-agent/tests/budgets/runs.rs::limits_of_one_run_win_when_options_set_them",
        why: "unset is the agent's own, 0 is none, unlimited is said in words: each can be expressed",
    },
    // What a chat gives back.
    "response: Content"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::result_tells_everything_when_the_run_ends"),
    "response: ToolCalls that wait"
        => Test("crates/adjutant-agent/tests/external.rs::calls_are_given_back_when_the_run_executes_none"),
    "response: ToolResults of all executions"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::result_tells_everything_when_the_run_ends"),
    "response: Usage over all requests"
        => Test("tests/tests/usage.rs::run_counts_each_request_once_when_it_has_several"),
    "response: FinishReason"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::run_finishes_by_length_when_a_text_was_cut_off"),
    "response: AgentName"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::result_tells_everything_when_the_run_ends"),
    "response: AgentName after a transfer"
        => Test("crates/adjutant-orchestration/tests/relay.rs::target_answers_with_its_own_prompt_and_tools_when_it_gets_the_conversation"),
    "response: TotalToolCalls"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::result_tells_everything_when_the_run_ends"),
    "response: TotalDuration"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::result_tells_everything_when_the_run_ends"),
    "response: TotalTurns counts requests"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::result_tells_everything_when_the_run_ends"),
    // Confirmation.
    "a provider decides whether a call goes on"
        => Test("crates/adjutant-agent/tests/approval.rs::call_runs_when_its_approval_is_granted"),
    "it waits for the decision"
        => Test("crates/adjutant-agent/tests/approval.rs::asking_is_shown_before_the_responder_when_a_stream_is_read"),
    "true approves"
        => Test("crates/adjutant-agent/tests/approval.rs::call_runs_when_its_approval_is_granted"),
    "false rejects"
        => Test("crates/adjutant-agent/tests/approval.rs::call_is_refused_when_its_approval_is_denied"),
    "an error of the provider is no approval"
        => Test("crates/adjutant-agent/tests/approval.rs::call_is_refused_when_the_responder_fails"),
    "tools that always require it"
        => Test("crates/adjutant-agent/tests/approval.rs::request_tells_what_is_asked_when_a_call_wants_approval"),
    "tools that ask in the middle of a call"
        => Test("crates/adjutant-agent/tests/approval/own.rs::tool_goes_on_when_its_own_question_is_granted"),
    "streams show the request before the provider is asked"
        => Test("crates/adjutant-agent/tests/approval.rs::asking_is_shown_before_the_responder_when_a_stream_is_read"),
    "approve everything"
        => Test("crates/adjutant-agent/tests/approval.rs::call_runs_when_its_approval_is_granted"),
    "without a provider all is approved" => Deviation {
        test: "crates/adjutant-agent/tests/approval.rs::call_never_runs_when_nobody_can_be_asked",
        why: "approval without anyone to ask is never granted: the run parks, or refuses if it is unattended",
    },
    // Options of an agent.
    "WithAutoExecute is on by default"
        => Test("crates/adjutant-agent/tests/basic.rs::run_answers_when_a_tool_is_called"),
    "WithAutoExecute off gives calls to the caller"
        => Test("crates/adjutant-agent/tests/external.rs::calls_are_given_back_when_the_run_executes_none"),
    "WithConfirmationProvider"
        => Test("crates/adjutant-agent/tests/approval.rs::call_runs_when_its_approval_is_granted"),
    "WithContextStrategy: trims when the conversation is too large"
        => Test("crates/adjutant-context/tests/window.rs::strategy_is_asked_before_every_request_when_it_is_set"),
    "WithContextStrategy: a limit in tokens"
        => Test("crates/adjutant-context/tests/window.rs::strategy_is_asked_before_every_request_when_it_is_set"),
    "strategy: truncate"
        => Test("crates/adjutant-context/tests/window.rs::truncate_drops_the_oldest_when_the_view_is_too_large"),
    "strategy: sliding window, keep the last N"
        => Test("crates/adjutant-context/tests/window.rs::window_keeps_the_newest_when_it_is_sliding"),
    "strategy: summarise with a model"
        => Test("crates/adjutant-context/tests/window.rs::summarise_keeps_the_recent_when_the_view_is_too_large"),
    "WithHooks observe, change, block"
        => Test("crates/adjutant-agent/tests/hook_rules.rs::changes_feed_forward_when_several_hooks_change"),
    "WithHooks several times adds to the chain"
        => Test("crates/adjutant-agent/tests/hook_rules.rs::hooks_run_in_their_order_when_several_are_registered"),
    "WithHooks run in order of registration"
        => Test("crates/adjutant-agent/tests/hook_rules.rs::hooks_run_in_their_order_when_several_are_registered"),
    "WithInstructionProvider makes the prompt at run time"
        => Test("crates/adjutant-agent/tests/instructions_of_runs.rs::provider_wins_when_a_text_is_set_too"),
    "WithInstructionProvider goes over the text"
        => Test("crates/adjutant-agent/tests/instructions_of_runs.rs::provider_wins_when_a_text_is_set_too"),
    "WithInstructionProvider gets context and state"
        => Test("crates/adjutant-agent/tests/instructions_of_runs.rs::provider_wins_when_a_text_is_set_too"),
    "WithMaxIterations bounds rounds of tools"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::run_executes_the_last_calls_when_its_turns_are_spent"),
    "WithMaxIterations is 10 by default" => Deviation {
        test: "crates/adjutant-agent/tests/loop_rules.rs::run_goes_past_the_default_when_turns_are_unlimited",
        why: "50 requests: long work is the purpose, and unlimited is said in words",
    },
    "WithMaxParallelTools bounds what runs at once"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::batch_keeps_to_its_width_when_there_are_more_calls"),
    "WithMaxParallelTools is unlimited by default" => Deviation {
        test: "crates/adjutant-agent/tests/loop_rules.rs::batch_runs_together_when_nothing_forbids_it",
        why: "8: what a model asks for is bounded",
    },
    "WithSequentialToolExecution"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::batch_runs_one_by_one_when_a_tool_or_the_run_says_so"),
    "tools run together by default"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::batch_runs_together_when_nothing_forbids_it"),
    "WithState fills a template"
        => Test("crates/adjutant-agent/tests/instructions/template.rs::template_shows_the_state_when_it_is_given"),
    "templates have conditions, loops, nested data"
        => Test("crates/adjutant-agent/tests/instructions/template.rs::template_shows_the_state_when_it_is_given"),
    "templates are those of Go" => Deviation {
        test: "crates/adjutant-agent/tests/instructions/template.rs::builtins_cover_what_other_template_languages_have",
        why: "templates are Jinja's, known beyond one language, and strict: a missing name is an error, not a text \
               in the prompt",
    },
    "WithSystemPrompt"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::instructions_are_the_whole_system_prompt_when_nothing_else_is_set"),
    "WithTools adds tools"
        => Test("crates/adjutant-agent/tests/basic.rs::run_answers_when_a_tool_is_called"),
    "WithToolsets: resolved for each request"
        => Test("crates/adjutant-agent/tests/tools_loop.rs::toolset_is_resolved_once_a_turn_when_it_changes"),
    "WithToolsets: named groups that filter"
        => Test("crates/adjutant-agent/tests/tools_loop.rs::toolbox_filters_by_context_when_its_predicate_says_so"),
    "WithToolsets: sets in sets"
        => Test("crates/adjutant-agent/tests/tools_loop.rs::toolbox_filters_by_context_when_its_predicate_says_so"),
    "WithSubAgents: children as tools"
        => Test("crates/adjutant-agent/tests/subagents/delegates.rs::subagent_answers_as_a_tool_when_the_model_calls_it"),
    "WithSubAgents: a fresh context for each call"
        => Test("crates/adjutant-agent/tests/subagents/delegates.rs::subagent_can_be_reused_when_it_is_called_again"),
    "WithSubAgents: no history, tools or prompt of the parent"
        => Test("crates/adjutant-agent/tests/subagents.rs::child_has_no_tools_when_none_are_handed_over"),
    "WithSubAgents: the parent's hooks go to children without own ones" => Deviation {
        test: "crates/adjutant-agent/tests/subagents_more.rs::parents_hooks_stand_outside_when_a_child_has_its_own",
        why: "they stand outside the child's own, for every child, and nothing is copied into a shared agent",
    },
    "SubAgentConfig: name, description, agent"
        => Test("crates/adjutant-agent/tests/subagents/delegates.rs::subagent_answers_as_a_tool_when_the_model_calls_it"),
    "sub-agents work apart and return their result"
        => Test("crates/adjutant-agent/tests/subagents/delegates.rs::subagent_answers_as_a_tool_when_the_model_calls_it"),
    "sub-agents in the background"
        => Test("crates/adjutant-orchestration/tests/background.rs::agent_tool_answers_in_place_when_it_is_not_called_in_the_background"),
    "tools to collect and stop tasks"
        => Test("crates/adjutant-orchestration/tests/background.rs::tools_are_there_when_tasks_are_installed"),
    "WithFanOut and its configuration"
        => Test("crates/adjutant-orchestration/tests/fan_out.rs::agents_at_work_are_as_many_as_the_options_allow_when_there_are_more_tasks"),
    "WithHandoffs and their configuration"
        => Test("crates/adjutant-orchestration/tests/promises/handing.rs::tools_tell_when_to_hand_over_and_only_to_whom_one_may"),
    "BackgroundTask"
        => Test("crates/adjutant-orchestration/tests/background/told.rs::watcher_sees_each_state_when_tasks_come_and_go"),
    "TaskManager: Launch"
        => Test("crates/adjutant-orchestration/tests/background.rs::result_is_given_when_the_model_waits_for_it"),
    "TaskManager: GetResult"
        => Test("crates/adjutant-orchestration/tests/background.rs::status_is_running_when_the_model_does_not_wait_or_waits_too_short"),
    "TaskManager: Stop"
        => Test("crates/adjutant-orchestration/tests/background.rs::task_is_cancelled_when_the_model_stops_it"),
    "TaskManager: ListAll"
        => Test("crates/adjutant-orchestration/tests/background.rs::tasks_are_listed_in_the_order_of_their_launch_when_several_run"),
    "TaskManager: CancelAll and WaitAll" => Deviation {
        test: "crates/adjutant-orchestration/tests/background/ends.rs::run_goes_on_until_all_tasks_have_ended_when_the_options_say_so",
        why: "the end of a run cancels all tasks, or waits for them if the options say so",
    },
    "TaskStatus: running, completed, failed, cancelled"
        => Test("crates/adjutant-orchestration/tests/background/told.rs::agent_is_told_why_when_a_task_has_failed"),
    // Hooks.
    "action: allow"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::run_is_the_same_when_no_hook_is_set"),
    "action: deny"
        => Test("crates/adjutant-agent/tests/hook_rules.rs::deny_ends_the_chain_when_a_later_hook_would_pass"),
    "action: modify"
        => Test("crates/adjutant-agent/tests/hook_rules.rs::changes_feed_forward_when_several_hooks_change"),
    "one point is set alone"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::run_is_the_same_when_no_hook_is_set"),
    "PreToolUse"
        => Test("crates/adjutant-agent/tests/hooks/tool_points.rs::call_is_denied_when_before_tool_says_so"),
    "PreToolUse: another input"
        => Test("crates/adjutant-agent/tests/hooks/tool_points.rs::arguments_are_changed_when_before_tool_says_so"),
    "PreToolUse: another input is validated again"
        => Test("crates/adjutant-agent/tests/hooks/tool_points.rs::changed_arguments_are_refused_when_they_do_not_fit"),
    "PreToolUse: reason of a denial"
        => Test("crates/adjutant-agent/tests/hooks/tool_points.rs::denial_says_something_when_it_has_no_reason"),
    "PostToolUse: another output"
        => Test("crates/adjutant-agent/tests/hooks/tool_results.rs::after_tool_changes_each_field_alone_when_it_sets_it"),
    "PreModelCall: messages and tools"
        => Test("crates/adjutant-agent/tests/effects_engine/hook.rs::before_model_changes_one_request_when_it_edits"),
    "PreModelCall: both must be given" => Deviation {
        test: "crates/adjutant-agent/tests/hook_rules_failures.rs::before_model_may_change_entries_alone_when_it_leaves_the_tools",
        why: "what is left as it is stays as it is",
    },
    "PostModelCall: another reply"
        => Test("crates/adjutant-agent/tests/effects_engine/hook.rs::after_model_changes_the_reply_when_it_says_so"),
    "PostModelCall: duration and error" => Deviation {
        test: "crates/adjutant-agent/tests/agent_api/ends.rs::after_model_tells_the_duration_and_model_error_the_error",
        why: "a reply passes after_model with its duration, a failure passes model_error with its error, and never both",
    },
    "OnSubagentStart"
        => Test("crates/adjutant-agent/tests/subagents.rs::subagent_points_fire_once_when_a_child_starts_and_stops"),
    "OnSubagentStop"
        => Test("crates/adjutant-agent/tests/subagents.rs::subagent_points_fire_once_when_a_child_starts_and_stops"),
    "OnToolError: another output mends it"
        => Test("crates/adjutant-agent/tests/hooks/tool_results.rs::tool_error_mends_the_result_when_a_hook_says_so"),
    "OnModelError: a reply mends it"
        => Test("crates/adjutant-agent/tests/effects_engine/hook.rs::model_error_is_mended_when_a_hook_gives_a_reply"),
    "BeforeAgent may answer"
        => Test("crates/adjutant-agent/tests/hooks/run.rs::before_agent_answers_when_it_has_an_answer"),
    "AfterAgent may change the response"
        => Test("crates/adjutant-agent/tests/hooks/run.rs::after_agent_changes_the_answer_when_it_says_so"),
    "BeforeRun and AfterRun observe"
        => Test("crates/adjutant-agent/tests/hooks/run.rs::before_run_and_after_run_stand_around_a_run_when_both_observe"),
    "OnUserMessage: another text"
        => Test("crates/adjutant-agent/tests/hooks/run.rs::user_message_is_replaced_when_a_hook_changes_it"),
    "OnUserMessage: a denial with its reason"
        => Test("crates/adjutant-agent/tests/hooks/run.rs::run_fails_before_the_model_when_a_hook_denies_the_message"),
    "OnEvent hears of every point"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::observer_sees_each_point_once_when_a_run_has_them_all"),
    "OnTeammateJoin and the four other points of teams are declared"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::points_of_upper_crates_are_declared_when_their_names_are_asked"),
    "NewObservingHooks only looks"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::observer_changes_nothing_when_it_only_looks"),
    // What hooks are told.
    "told: event kinds: tools and models, four"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::observer_sees_each_point_once_when_a_run_has_them_all"),
    "told: event kinds: tool_error, model_error"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::observer_sees_each_point_once_when_a_run_has_them_all"),
    "told: event kinds: agent and run, four"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::observer_sees_each_point_once_when_a_run_has_them_all"),
    "told: event kind: user_message"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::observer_sees_each_point_once_when_a_run_has_them_all"),
    "told: event kinds: subagent_start, subagent_stop"
        => Test("crates/adjutant-agent/tests/subagents.rs::subagent_points_fire_once_when_a_child_starts_and_stops"),
    "told: event kinds: teammates, five"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::points_of_upper_crates_are_declared_when_their_names_are_asked"),
    "told: Type and Timestamp"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::observer_sees_the_facts_when_a_point_fires"),
    "told: AgentName, TaskID, Branch"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::observer_sees_the_facts_when_a_point_fires"),
    "told: ToolCallID, ToolName, Input, Output, IsError"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::observer_sees_the_facts_when_a_point_fires"),
    "told: Duration and Usage"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::observer_sees_the_facts_when_a_point_fires"),
    "told: Error"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::observer_sees_the_facts_when_a_point_fires"),
    "told: LifecycleContext: agent, task, branch, input, response"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::observer_sees_the_facts_when_a_point_fires"),
    "told: LifecycleResult: action and response"
        => Test("crates/adjutant-agent/tests/hooks/run.rs::before_agent_answers_when_it_has_an_answer"),
    "told: ModelCallContext: messages, tools, identity"
        => Test("crates/adjutant-agent/tests/effects_engine/hook.rs::before_model_changes_one_request_when_it_edits"),
    "told: ModelCallResult"
        => Test("crates/adjutant-agent/tests/effects_engine/hook.rs::before_model_changes_one_request_when_it_edits"),
    "told: ModelErrorContext: messages, tools, error" => Deviation {
        test: "crates/adjutant-agent/tests/hook_rules_watched.rs::observer_sees_the_facts_when_a_point_fires",
        why: "the point tells the error and the reply that mends it; before_model has just told what the request shows",
    },
    "told: ModelErrorResult needs a reply to mend"
        => Test("crates/adjutant-agent/tests/effects_engine/hook.rs::model_error_stays_when_no_hook_mends_it"),
    "told: ModelResponseContext and ModelResponseResult"
        => Test("crates/adjutant-agent/tests/effects_engine/hook.rs::after_model_changes_the_reply_when_it_says_so"),
    "told: PostToolUseContext: output, error flag, duration"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::observer_sees_the_facts_when_a_point_fires"),
    "told: PostToolUseResult"
        => Test("crates/adjutant-agent/tests/hooks/tool_results.rs::after_tool_changes_each_field_alone_when_it_sets_it"),
    "told: PreToolUseResult"
        => Test("crates/adjutant-agent/tests/hooks/tool_points.rs::arguments_are_changed_when_before_tool_says_so"),
    "told: RunContext: input, response, error, duration"
        => Test("crates/adjutant-agent/tests/hooks/run.rs::before_run_and_after_run_stand_around_a_run_when_both_observe"),
    "told: SubagentEventContext: task, branch, result, error, duration"
        => Test("crates/adjutant-agent/tests/subagents.rs::subagent_points_fire_once_when_a_child_starts_and_stops"),
    "told: TeamMessageContext and TeammateEventContext"
        => Test("crates/adjutant-orchestration/tests/team/seen.rs::hooks_hear_of_members"),
    "told: ToolErrorContext: error, output, duration" => Deviation {
        test: "crates/adjutant-agent/tests/hook_rules_watched.rs::observer_sees_the_facts_when_a_point_fires",
        why: "the point tells arguments and failed result; after_tool, which follows, tells how long the call took",
    },
    "told: ToolErrorResult"
        => Test("crates/adjutant-agent/tests/hooks/tool_results.rs::tool_error_mends_the_result_when_a_hook_says_so"),
    "told: ToolUseContext: id, name, input, identity"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::observer_sees_the_facts_when_a_point_fires"),
    "told: UserMessageContext"
        => Test("crates/adjutant-agent/tests/hooks/run.rs::user_message_is_replaced_when_a_hook_changes_it"),
    "told: UserMessageResult"
        => Test("crates/adjutant-agent/tests/hooks/run.rs::run_fails_before_the_model_when_a_hook_denies_the_message"),
    // Reports of tools.
    "report: ToolCallID matches the request"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::results_keep_the_order_of_the_calls_when_tools_end_in_reverse"),
    "report: ToolName"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::result_tells_everything_when_the_run_ends"),
    "report: Input is the raw JSON"
        => Test("crates/adjutant-agent/tests/tools_loop.rs::tool_result_is_reported_when_it_ends"),
    "report: Output is the text"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::result_tells_everything_when_the_run_ends"),
    "report: IsError"
        => Test("crates/adjutant-agent/tests/loop_bounds.rs::model_is_told_when_a_tool_fails_or_panics"),
    "report: Duration by the clock"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::result_tells_everything_when_the_run_ends"),
};
