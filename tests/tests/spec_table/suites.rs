//! Rows of earlier test suites: loop and tools, hooks, confirmation, sub-agents.

use super::{How::*, Row, rows};

pub(crate) const ROWS: &[Row] = rows! { "e";
    // Loop and tools.
    "a single call"
        => Test("crates/adjutant-agent/tests/basic.rs::run_answers_when_a_tool_is_called"),
    "several calls in one turn"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::results_keep_the_order_of_the_calls_when_tools_end_in_reverse"),
    "several iterations"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::options_count_for_one_run_when_they_are_set"),
    "an early stop without calls asks once"
        => Test("crates/adjutant-agent/tests/basic.rs::stream_ends_with_run_finished_when_the_answer_is_text"),
    "a limit of 2 is 3 requests, the last calls wait" => Deviation {
        test: "crates/adjutant-agent/tests/loop_rules.rs::run_executes_the_last_calls_when_its_turns_are_spent",
        why: "a limit counts requests and leaves no call open: 2 are 2 requests and their calls are executed",
    },
    "a limit of 1 for one run is 2 requests" => Deviation {
        test: "crates/adjutant-agent/tests/loop_runs.rs::options_count_for_one_run_when_they_are_set",
        why: "a limit counts requests: 1 is 1",
    },
    "the limit is the finish reason"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::run_executes_the_last_calls_when_its_turns_are_spent"),
    "a tool that fails: the model is told, the loop goes on"
        => Test("crates/adjutant-agent/tests/loop_bounds.rs::model_is_told_when_a_tool_fails_or_panics"),
    "a tool with an error result: the same"
        => Test("crates/adjutant-agent/tests/tools_loop/output.rs::content_is_kept_when_a_tool_fails_with_some"),
    "sequential: one at a time"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::batch_runs_one_by_one_when_a_tool_or_the_run_says_so"),
    "parallel: more than one"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::batch_runs_together_when_a_tool_is_unknown"),
    "a limit of 2 at once holds"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::batch_keeps_to_its_width_when_there_are_more_calls"),
    "a span for each call"
        => Test("crates/adjutant-agent/tests/spans.rs::run_is_one_span_with_its_calls_inside_when_somebody_listens"),
    "a span around several calls" => Deviation {
        test: "crates/adjutant-agent/tests/spans.rs::run_is_one_span_with_its_calls_inside_when_somebody_listens",
        why: "calls stand directly in the span of their run, as the semantic conventions have it",
    },
    "the same spans in a stream" => Deviation {
        test: "crates/adjutant-agent/tests/spans.rs::run_is_one_span_with_its_calls_inside_when_somebody_listens",
        why: "there is one path: blocking is a collect over the stream",
    },
    "a denied tool has no span"
        => Test("crates/adjutant-agent/tests/hooks/tool_points.rs::call_is_denied_when_before_tool_says_so"),
    "usage is summed over turns"
        => Test("tests/tests/usage.rs::run_counts_each_request_once_when_it_has_several"),
    "turns, calls and duration are counted"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::result_tells_everything_when_the_run_ends"),
    "the same numbers in a stream"
        => Test("crates/adjutant-agent/tests/property.rs::session_is_one_log_when_anything_happens"),
    "background: a launch tells that it was launched"
        => Test("crates/adjutant-orchestration/tests/background.rs::result_is_given_when_the_model_waits_for_it"),
    "background: waiting gives the result"
        => Test("crates/adjutant-orchestration/tests/background.rs::result_is_given_when_the_model_waits_for_it"),
    "background: not waiting tells that it runs"
        => Test("crates/adjutant-orchestration/tests/background.rs::status_is_running_when_the_model_does_not_wait_or_waits_too_short"),
    "background: waiting too short tells that it runs"
        => Test("crates/adjutant-orchestration/tests/background.rs::status_is_running_when_the_model_does_not_wait_or_waits_too_short"),
    "background: stopping cancels"
        => Test("crates/adjutant-orchestration/tests/background.rs::task_is_cancelled_when_the_model_stops_it"),
    "background: several tasks"
        => Test("crates/adjutant-orchestration/tests/background.rs::tasks_are_listed_in_the_order_of_their_launch_when_several_run"),
    "background: in place it is as ever"
        => Test("crates/adjutant-orchestration/tests/background.rs::agent_tool_answers_in_place_when_it_is_not_called_in_the_background"),
    "background: an unknown id is an error"
        => Test("crates/adjutant-orchestration/tests/background.rs::task_is_unknown_when_there_is_none_of_that_id"),
    "background: tasks end before the run does"
        => Test("crates/adjutant-orchestration/tests/background/ends.rs::tasks_are_cancelled_when_their_run_ends"),
    "background: in a stream"
        => Test("crates/adjutant-orchestration/tests/background/told.rs::events_tell_of_a_task_when_it_is_launched_and_when_it_has_ended"),
    "background: the tools are there by themselves"
        => Test("crates/adjutant-orchestration/tests/background.rs::tools_are_there_when_tasks_are_installed"),
    "background: tasks can be listed"
        => Test("crates/adjutant-orchestration/tests/background.rs::tasks_are_listed_in_the_order_of_their_launch_when_several_run"),
    "a limit of turns reaches a sub-agent"
        => Test("crates/adjutant-agent/tests/subagents/delegates.rs::subagent_keeps_to_its_turns_when_the_call_limits_them"),
    "a limit of turns reaches a background task"
        => Test("crates/adjutant-orchestration/tests/background.rs::turns_are_limited_when_the_launch_says_so"),
    "options of one call directly"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::options_count_for_one_run_when_they_are_set"),
    // Chains of hooks.
    "before a tool: denial ends the chain"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::observer_sees_denials_and_errors_when_a_chain_ends_early"),
    "before a tool: deny wins over allow"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::observer_sees_denials_and_errors_when_a_chain_ends_early"),
    "before a tool: the last change wins, the next hook sees it"
        => Test("crates/adjutant-agent/tests/hook_rules_chains.rs::changes_feed_forward_when_several_hooks_change_a_call"),
    "before a tool: an error denies with its text"
        => Test("crates/adjutant-agent/tests/hook_rules_chains.rs::before_point_of_a_turn_denies_when_its_hook_fails"),
    "before a tool: the denied text names the reason, the input stays"
        => Test("crates/adjutant-agent/tests/hooks/tool_points.rs::call_is_denied_when_before_tool_says_so"),
    "after a tool: deny is ignored" => Deviation {
        test: "crates/adjutant-agent/tests/hooks/tool_results.rs::result_is_denied_when_after_tool_denies_it",
        why: "a denial after the fact makes an error result, which is visible, instead of being dropped",
    },
    "after a tool: an error is swallowed" => Deviation {
        test: "crates/adjutant-agent/tests/hook_rules_failures.rs::after_point_of_a_turn_is_a_warning_when_its_hook_fails",
        why: "the result stays, and a warning tells of the failure",
    },
    "after a tool: changes feed forward, the last wins"
        => Test("crates/adjutant-agent/tests/hook_rules_chains.rs::changes_feed_forward_when_several_hooks_change_a_call"),
    "after a tool: the error flag cannot be changed" => Deviation {
        test: "crates/adjutant-agent/tests/hooks/tool_results.rs::after_tool_changes_each_field_alone_when_it_sets_it",
        why: "each field can be overridden alone",
    },
    "before the model: the last change wins"
        => Test("crates/adjutant-agent/tests/hook_rules_chains.rs::changes_feed_forward_when_several_hooks_change_a_request_and_its_reply"),
    "before the model: an error ends the run"
        => Test("crates/adjutant-agent/tests/hook_rules_chains.rs::before_point_of_a_turn_denies_when_its_hook_fails"),
    "before the model: deny is ignored" => Deviation {
        test: "crates/adjutant-agent/tests/effects_engine/hook.rs::run_fails_when_before_model_denies_the_request",
        why: "one chain rule for all points: a deny before a request fails the run",
    },
    "after the model: the last change wins"
        => Test("crates/adjutant-agent/tests/hook_rules_chains.rs::changes_feed_forward_when_several_hooks_change_a_request_and_its_reply"),
    "after the model: an error ends the run" => Deviation {
        test: "crates/adjutant-agent/tests/hook_rules_failures.rs::after_point_of_a_turn_is_a_warning_when_its_hook_fails",
        why: "what was paid for is kept: after-points fail open with a warning",
    },
    "tool error: the first mending wins, all hooks run" => Deviation {
        test: "crates/adjutant-agent/tests/hook_rules_chains.rs::mended_failure_is_seen_by_the_next_hook_when_several_mend",
        why: "one chain rule for all points: a later hook sees what was mended, and changes it only if it wants to",
    },
    "tool error: fires for errors and for error results"
        => Test("crates/adjutant-agent/tests/hooks/tool_results.rs::tool_error_mends_the_result_when_a_hook_says_so"),
    "tool error: an error of the hook mends nothing"
        => Test("crates/adjutant-agent/tests/hook_rules_chains.rs::failure_stays_when_a_hook_that_should_mend_it_fails"),
    "model error: the first reply wins" => Deviation {
        test: "crates/adjutant-agent/tests/hook_rules_chains.rs::mended_failure_is_seen_by_the_next_hook_when_several_mend",
        why: "one chain rule for all points: a later hook sees the reply, and changes it only if it wants to",
    },
    "model error: no reply mends nothing"
        => Test("crates/adjutant-agent/tests/effects_engine/hook.rs::model_error_stays_when_no_hook_mends_it"),
    "model error: mended with calls, the loop goes on"
        => Test("crates/adjutant-agent/tests/hook_rules_failures.rs::loop_goes_on_when_a_failure_is_mended_with_calls"),
    "before the agent: denial ends the chain and the run"
        => Test("crates/adjutant-agent/tests/hooks/run.rs::run_ends_unasked_when_before_agent_denies_it"),
    "before the agent: a denied run succeeds with nothing" => Deviation {
        test: "crates/adjutant-agent/tests/hooks/run.rs::run_ends_unasked_when_before_agent_denies_it",
        why: "a denied run is a failure that says so",
    },
    "before the agent: an error ends the run"
        => Test("crates/adjutant-agent/tests/hook_rules.rs::before_point_denies_when_its_hook_fails"),
    "after the agent: the last change wins, seen by the next"
        => Test("crates/adjutant-agent/tests/hooks/run.rs::after_agent_changes_the_answer_when_it_says_so"),
    "after the agent: an error ends the run" => Deviation {
        test: "crates/adjutant-agent/tests/hook_rules.rs::after_point_is_a_warning_when_its_hook_fails",
        why: "an answer is not thrown away because someone failed to look at it",
    },
    "user message: denial, error, change"
        => Test("crates/adjutant-agent/tests/hooks/run.rs::run_fails_before_the_model_when_a_hook_denies_the_message"),
    "order of two hooks"
        => Test("crates/adjutant-agent/tests/hook_rules.rs::hooks_run_in_their_order_when_several_are_registered"),
    "no hooks, no harm"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::run_is_the_same_when_no_hook_is_set"),
    "hooks run at once under parallel tools" => Deviation {
        test: "crates/adjutant-agent/tests/hooks/tool_points.rs::before_tool_keeps_the_order_of_calls_when_tools_run_together",
        why: "calls are admitted in their order, so that approvals and verdicts are repeatable",
    },
    "denied or rejected calls skip the points after a tool"
        => Test("crates/adjutant-agent/tests/hooks/tool_results.rs::denied_call_is_not_told_to_tool_error_when_it_never_ran"),
    "the points after a tool see mended output"
        => Test("crates/adjutant-agent/tests/hooks/tool_results.rs::after_tool_sees_errors_when_a_tool_failed"),
    "the points after a tool see the changed input"
        => Test("crates/adjutant-agent/tests/hooks/tool_points.rs::arguments_are_changed_when_before_tool_says_so"),
    "a change of one request does not pile up"
        => Test("crates/adjutant-agent/tests/effects_engine/hook.rs::before_model_changes_one_request_when_it_edits"),
    "tools that a hook offers can be called, hidden ones cannot"
        => Test("crates/adjutant-agent/tests/hook_rules_failures.rs::tools_of_before_model_can_be_called_when_it_offered_them"),
    "after-points fire when an agent is denied"
        => Test("crates/adjutant-agent/tests/hook_rules.rs::before_and_after_are_balanced_when_a_run_ends_anyhow"),
    "after the run: the error is told when the model fails"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::observer_sees_the_facts_when_a_point_fires"),
    "before and after are balanced on every path"
        => Test("crates/adjutant-agent/tests/hook_rules.rs::before_and_after_are_balanced_when_a_run_ends_anyhow"),
    "hooks fire for the last request after a declined limit"
        => Test("crates/adjutant-agent/tests/hook_rules_chains.rs::hooks_are_passed_when_the_last_request_follows_a_declined_limit"),
    // Observing.
    "sub-agents: start and stop on success"
        => Test("crates/adjutant-agent/tests/subagents.rs::subagent_points_fire_once_when_a_child_starts_and_stops"),
    "sub-agents: start and stop on error"
        => Test("crates/adjutant-agent/tests/subagents.rs::subagent_points_fire_once_when_a_child_starts_and_stops"),
    "background tasks: start and stop"
        => Test("crates/adjutant-orchestration/tests/background/told.rs::hooks_hear_of_tasks_when_they_begin_and_when_they_end"),
    "hooks reach a child without hooks"
        => Test("crates/adjutant-agent/tests/subagents_more.rs::parents_hooks_stand_outside_when_a_child_has_its_own"),
    "hooks reach a child with hooks of its own"
        => Test("crates/adjutant-agent/tests/subagents_more.rs::parents_hooks_stand_outside_when_a_child_has_its_own"),
    "a child may be left alone"
        => Test("crates/adjutant-agent/tests/subagents_more.rs::child_runs_alone_when_it_opts_out_of_the_parents_hooks"),
    "a shared child is not changed"
        => Test("crates/adjutant-agent/tests/subagents_more.rs::child_is_unchanged_when_two_parents_share_it"),
    "observing hooks know all kinds"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::points_of_upper_crates_are_declared_when_their_names_are_asked"),
    "the set of points of a full run"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::observer_sees_each_point_once_when_a_run_has_them_all"),
    "the same set in a stream"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::observer_sees_each_point_once_when_a_run_has_them_all"),
    "tool_error and model_error are observed"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::observer_sees_each_point_once_when_a_run_has_them_all"),
    "denials and errors are observed"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::observer_sees_denials_and_errors_when_a_chain_ends_early"),
    // Hooks in a stream.
    "a mended model error completes with its content"
        => Test("crates/adjutant-agent/tests/effects_engine/hook.rs::model_error_is_mended_when_a_hook_gives_a_reply"),
    "an agent that is answered at once completes"
        => Test("crates/adjutant-agent/tests/hooks/run.rs::before_agent_answers_when_it_has_an_answer"),
    "a changed answer is in the last event"
        => Test("crates/adjutant-agent/tests/hooks/run.rs::after_agent_changes_the_answer_when_it_says_so"),
    "a denied message ends in an error"
        => Test("crates/adjutant-agent/tests/hooks/run.rs::run_fails_before_the_model_when_a_hook_denies_the_message"),
    "a failing hook of the message ends in an error"
        => Test("crates/adjutant-agent/tests/hook_rules.rs::before_point_denies_when_its_hook_fails"),
    "a failing hook before the agent ends in an error"
        => Test("crates/adjutant-agent/tests/hook_rules.rs::before_point_denies_when_its_hook_fails"),
    "calls that a hook adds are announced"
        => Test("crates/adjutant-agent/tests/effects_engine/hook.rs::after_model_changes_the_reply_when_it_says_so"),
    "an error is told to hooks once"
        => Test("crates/adjutant-agent/tests/hook_rules_failures.rs::model_error_is_told_once_when_a_stream_breaks"),
    "run hooks fire when external results go on"
        => Test("crates/adjutant-agent/tests/external.rs::external_results_go_on_in_another_program_when_the_log_is_opened"),
    "deny, answer, error and change when external results go on" => Deviation {
        test: "crates/adjutant-agent/tests/external.rs::points_before_a_run_are_not_passed_again_when_it_goes_on",
        why: "the points before the run were passed before it waited; those after it change and fail as ever",
    },
    // Confirmation.
    "approved"
        => Test("crates/adjutant-agent/tests/approval.rs::call_runs_when_its_approval_is_granted"),
    "rejected: error result, tool not run"
        => Test("crates/adjutant-agent/tests/approval.rs::call_is_refused_when_its_approval_is_denied"),
    "no provider: the tool runs" => Deviation {
        test: "crates/adjutant-agent/tests/approval.rs::call_never_runs_when_nobody_can_be_asked",
        why: "fail closed: approval without anyone to ask is never granted",
    },
    "the request has id, name and input"
        => Test("crates/adjutant-agent/tests/approval.rs::request_tells_what_is_asked_when_a_call_wants_approval"),
    "the input is as hooks changed it"
        => Test("crates/adjutant-agent/tests/approval.rs::request_tells_what_is_asked_when_a_call_wants_approval"),
    "in mid-call: approved"
        => Test("crates/adjutant-agent/tests/approval/own.rs::tool_goes_on_when_its_own_question_is_granted"),
    "in mid-call: rejected"
        => Test("crates/adjutant-agent/tests/approval/own.rs::tool_goes_on_when_its_own_question_is_granted"),
    "in mid-call: no provider" => Deviation {
        test: "crates/adjutant-agent/tests/approval/own.rs::tool_goes_on_when_its_own_question_is_granted",
        why: "fail closed: the call is suspended until someone answers",
    },
    "a stream shows the request"
        => Test("crates/adjutant-agent/tests/approval.rs::asking_is_shown_before_the_responder_when_a_stream_is_read"),
    "a hook that denies comes first"
        => Test("crates/adjutant-agent/tests/approval.rs::nobody_is_asked_when_a_hook_denies_the_call"),
    "parallel calls each ask"
        => Test("crates/adjutant-agent/tests/approval.rs::calls_are_asked_together_when_several_want_approval"),
    "after a transfer the target's provider is asked"
        => Test("crates/adjutant-orchestration/tests/promises/handing.rs::responder_of_the_target_is_asked_when_it_has_the_conversation"),
    "an error of the provider is an error result"
        => Test("crates/adjutant-agent/tests/approval.rs::call_is_refused_when_the_responder_fails"),
    "a set of tools that require it leaves its tools as they were"
        => Test("crates/adjutant-agent/tests/approval.rs::approval_wrapper_leaves_its_toolbox_as_it_was_when_it_is_put_around"),
    "requests of children are not swallowed"
        => Test("crates/adjutant-agent/tests/subagents_more.rs::approval_of_a_child_reaches_the_parents_responder_when_it_has_none"),
    "approval for the rest of the run"
        => Test("crates/adjutant-agent/tests/approval.rs::approval_lasts_for_the_run_when_the_answer_says_so"),
    "approval with edited arguments"
        => Test("crates/adjutant-agent/tests/approval.rs::call_runs_as_edited_when_the_answer_changes_its_arguments"),
    "waiting without a process"
        => Test("crates/adjutant-agent/tests/pauses.rs::run_goes_on_when_its_pauses_are_answered"),
    "all that waits is asked at once"
        => Test("crates/adjutant-agent/tests/pauses.rs::run_parks_with_all_pauses_when_nobody_answers"),
    // Sub-agents.
    "basic"
        => Test("crates/adjutant-agent/tests/subagents/delegates.rs::subagent_answers_as_a_tool_when_the_model_calls_it"),
    "empty task"
        => Test("crates/adjutant-agent/tests/subagents/delegates.rs::subagent_call_is_refused_when_its_task_is_missing_or_empty"),
    "invalid input"
        => Test("crates/adjutant-agent/tests/subagents/delegates.rs::subagent_call_is_refused_when_its_task_is_missing_or_empty"),
    "text of a child's error"
        => Test("crates/adjutant-agent/tests/subagents/ends.rs::parent_goes_on_when_a_child_fails"),
    "several"
        => Test("crates/adjutant-agent/tests/subagents/delegates.rs::subagent_answers_as_a_tool_when_the_model_calls_it"),
    "in a stream"
        => Test("crates/adjutant-agent/tests/subagent_events.rs::childs_events_are_mirrored_once_when_it_works"),
};
