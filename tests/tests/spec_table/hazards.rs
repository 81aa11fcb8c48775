//! Rows of hazards: traces, properties, compaction, budgets, loops, children, arguments, retries.

use super::{How::*, Row, rows};

pub(crate) const ROWS: &[Row] = rows! { "g";
    // Traces.
    "text only"
        => Test("tests/tests/trace.rs::trace_is_as_drawn_when_runs_are_real"),
    "one tool"
        => Test("tests/tests/trace.rs::trace_is_as_drawn_when_runs_are_real"),
    "two parallel tools that finish in reverse"
        => Test("tests/tests/trace.rs::trace_is_as_drawn_when_runs_are_real"),
    "a batch that is forced to be sequential"
        => Test("crates/adjutant-agent/tests/tools_loop.rs::events_of_denied_and_terminated_batches_are_as_drawn_when_they_run"),
    "a blocked tool"
        => Test("crates/adjutant-agent/tests/tools_loop.rs::events_of_denied_and_terminated_batches_are_as_drawn_when_they_run"),
    "an unknown tool"
        => Test("tests/tests/trace.rs::trace_is_as_drawn_when_runs_are_real"),
    "invalid arguments"
        => Test("tests/tests/trace.rs::trace_is_as_drawn_when_runs_are_real"),
    "a panic in a tool"
        => Test("tests/tests/trace.rs::trace_is_as_drawn_when_runs_are_real"),
    "a panic in each hook"
        => Test("crates/adjutant-agent/tests/hook_rules_failures.rs::panic_of_any_hook_leaves_a_valid_session_when_it_happens"),
    "abort in mid-stream"
        => Test("tests/tests/trace.rs::trace_is_as_drawn_when_runs_are_real"),
    "abort in a parallel batch"
        => Test("tests/tests/trace.rs::trace_is_as_drawn_when_runs_are_real"),
    "abort in a sequential batch"
        => Test("crates/adjutant-agent/tests/cancel.rs::batch_closes_what_waits_when_it_runs_one_by_one"),
    "abort in a sequential batch shows every call"
        => Test("crates/adjutant-agent/tests/tools_loop.rs::sequential_calls_stop_when_the_run_is_cancelled"),
    "terminate by all results"
        => Test("crates/adjutant-agent/tests/tools_loop.rs::events_of_denied_and_terminated_batches_are_as_drawn_when_they_run"),
    "terminate by some results"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::run_ends_when_results_terminate_it"),
    "steering at the start"
        => Test("crates/adjutant-agent/tests/queues/polls.rs::steer_is_placed_after_the_prompts_when_it_came_before_the_run"),
    "steering between turns"
        => Test("crates/adjutant-agent/tests/queues/polls.rs::steer_is_placed_before_the_next_request_when_a_tool_is_at_work"),
    "steering after a plain answer"
        => Test("crates/adjutant-agent/tests/queues/polls.rs::steer_keeps_the_run_going_when_the_reply_was_an_answer"),
    "steering on a terminated batch"
        => Test("crates/adjutant-agent/tests/queues/polls.rs::steer_keeps_the_run_going_when_all_results_would_end_it"),
    "an unconditional end with filled queues"
        => Test("crates/adjutant-agent/tests/queues/polls.rs::queue_waits_when_a_result_ends_the_run_now"),
    "a chain of follow-ups"
        => Test("crates/adjutant-agent/tests/queues/polls.rs::follow_ups_chain_when_each_gets_an_answer"),
    "steering before follow-ups"
        => Test("crates/adjutant-agent/tests/queues/polls.rs::steering_goes_first_when_follow_ups_wait_too"),
    "a stop after the turn with filled queues"
        => Test("crates/adjutant-agent/tests/queues/kept.rs::queues_stay_when_stop_after_turn_ends_the_run"),
    "continue: empty transcript"
        => Test("crates/adjutant-agent/tests/queues/going_on.rs::continue_fails_when_the_transcript_is_empty"),
    "continue: user message at the tail"
        => Test("crates/adjutant-agent/tests/queues/going_on.rs::continue_answers_when_the_tail_is_a_message_of_the_user"),
    "continue: results at the tail"
        => Test("crates/adjutant-agent/tests/queues/going_on.rs::continue_answers_when_the_tail_is_a_turn_with_results"),
    "continue: answer at the tail with queued messages"
        => Test("crates/adjutant-agent/tests/queues/going_on.rs::continue_takes_one_steering_item_when_the_tail_is_an_answer"),
    "continue: answer at the tail, nothing queued"
        => Test("crates/adjutant-agent/tests/queues/going_on.rs::continue_fails_when_the_tail_is_an_answer_and_nothing_waits"),
    "continue while running loses nothing"
        => Test("crates/adjutant-agent/tests/queues/going_on.rs::continue_loses_nothing_when_the_session_is_busy"),
    // Properties.
    "what a provider is sent has calls and results in pairs, after aborts and errors too"
        => Test("crates/adjutant-agent/tests/property.rs::session_is_one_log_when_anything_happens"),
    "no result comes first, no reply is empty"
        => Test("crates/adjutant-providers/src/projection/tests.rs::shown_is_nothing_when_nothing_is_left"),
    "one start and one terminal for each stream"
        => Test("tests/tests/conformance.rs::wires_bear_every_hazard"),
    "one start and one end for each tool call"
        => Test("crates/adjutant-agent/tests/property.rs::session_is_one_log_when_anything_happens"),
    "start and end bracket a run"
        => Test("crates/adjutant-agent/tests/property.rs::session_is_one_log_when_anything_happens"),
    "the state is the fold of the events"
        => Test("crates/adjutant-agent/tests/property.rs::session_is_one_log_when_anything_happens"),
    "the same holds when everything runs at once"
        => Test("crates/adjutant-agent/tests/threads.rs::promises_hold_when_everything_runs_at_once"),
    "queues lose nothing when everything runs at once"
        => Test("crates/adjutant-agent/tests/queues/polls.rs::queue_keeps_its_order_when_threads_fill_it"),
    // Truncated and repaired calls.
    "a truncated call never executes"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::calls_never_run_when_the_reply_was_cut_off"),
    "a truncated call never executes, on any wire"
        => Test("tests/tests/conformance.rs::wires_bear_every_hazard"),
    "repaired arguments: what goes back is what was executed"
        => Test("crates/adjutant-providers/src/pieces/tests.rs::args_are_an_object_when_the_model_wrote_none"),
    "cut off arguments are never completed"
        => Test("crates/adjutant-tool/tests/admit_properties.rs::admit_refuses_when_an_object_is_cut_anywhere"),
    // Compaction.
    "never splits calls from results"
        => Test("crates/adjutant-context/tests/compact.rs::compact_keeps_pairs_together_when_it_cuts_anywhere"),
    "monotone, no oscillation"
        => Test("crates/adjutant-context/tests/compact.rs::compact_does_not_oscillate_when_the_usage_falls_after_it"),
    "a breaker after failures or too little gain"
        => Test("crates/adjutant-context/tests/compact/failures.rs::compact_gives_up_when_it_fails_or_gains_too_little"),
    "one turn of the user with 200 tools compacts"
        => Test("crates/adjutant-context/tests/compact.rs::compact_acts_within_one_run_when_it_has_two_hundred_calls"),
    "below the threshold nothing happens"
        => Test("crates/adjutant-context/tests/compact.rs::compact_does_nothing_when_it_is_below_its_threshold"),
    "pictures are counted"
        => Test("crates/adjutant-context/tests/compact.rs::compact_counts_pictures_when_it_measures"),
    "folds at its threshold"
        => Test("crates/adjutant-context/tests/compact.rs::compact_folds_the_beginning_when_the_window_fills"),
    "a failed or empty summary wipes nothing"
        => Test("crates/adjutant-context/tests/compact/failures.rs::compact_keeps_all_when_the_summary_is_empty_or_fails"),
    "its own request has room"
        => Test("crates/adjutant-context/tests/compact.rs::compact_reserves_room_when_it_asks_for_the_summary"),
    "an overflow compacts once and tries again"
        => Test("crates/adjutant-context/tests/compact/failures.rs::compact_tries_the_turn_again_once_when_the_provider_says_it_does_not_fit"),
    "it is metered and told"
        => Test("crates/adjutant-context/tests/compact.rs::compact_is_charged_and_reported_when_it_asks_a_model"),
    "several effects never act on one stale number"
        => Test("crates/adjutant-context/tests/window.rs::strategies_act_on_fresh_numbers_when_several_are_set"),
    // Budgets.
    "warned once at 80 percent"
        => Test("crates/adjutant-agent/tests/effects_budget.rs::budget_is_told_once_after_the_results_when_four_fifths_are_spent"),
    "the warning stands after the results"
        => Test("crates/adjutant-agent/tests/effects_budget.rs::budget_is_told_once_after_the_results_when_four_fifths_are_spent"),
    "a hard stop leaves a valid transcript"
        => Test("crates/adjutant-agent/tests/effects_budget.rs::run_ends_with_a_limit_when_the_budget_is_spent"),
    "armed again for each run"
        => Test("crates/adjutant-agent/tests/effects_budget.rs::budget_is_armed_again_when_the_next_run_begins"),
    "held with parallel children"
        => Test("crates/adjutant-agent/tests/budgets/runs.rs::budget_holds_when_children_spend_together"),
    // Loops and stalls.
    "loops: form of the arguments does not matter"
        => Test("crates/adjutant-agent/tests/effects_loops.rs::loop_is_seen_when_arguments_differ_only_in_form"),
    "loops: armed again"
        => Test("crates/adjutant-agent/tests/effects_loops.rs::loop_is_told_again_when_it_goes_on"),
    "loops: more than the window still nudges"
        => Test("crates/adjutant-agent/tests/effects_loops.rs::loop_is_told_when_it_is_longer_than_the_window"),
    "stalls: armed again after progress"
        => Test("crates/adjutant-agent/tests/effects_stall.rs::stall_is_told_again_when_there_was_progress_between"),
    // Children.
    "children truly overlap"
        => Test("crates/adjutant-agent/tests/subagents.rs::children_run_together_when_a_call_makes_several"),
    "the bound of depth is global"
        => Test("crates/adjutant-agent/tests/subagents.rs::depth_is_bounded_for_the_tree_when_a_limit_is_set"),
    "delegation to oneself is refused"
        => Test("crates/adjutant-orchestration/tests/delegation/tools.rs::delegation_to_oneself_refuses_the_whole_call_when_one_task_is_one"),
    "one child is cancelled"
        => Test("crates/adjutant-agent/tests/subagents/ends.rs::child_is_cancelled_alone_when_it_is_stopped"),
    "a cancelled parent cancels all"
        => Test("crates/adjutant-agent/tests/subagents/ends.rs::children_are_cancelled_when_the_parent_is"),
    "a child's error stays apart"
        => Test("crates/adjutant-agent/tests/subagents/ends.rs::parent_goes_on_when_a_child_fails"),
    "usage reaches the parent exactly once"
        => Test("crates/adjutant-agent/tests/subagents/spent.rs::usage_counts_once_for_every_ancestor_when_a_child_spends"),
    "completion told twice"
        => Test("crates/adjutant-orchestration/tests/delegation/ends.rs::first_report_counts_when_there_are_two"),
    "limit of a chain of transfers"
        => Test("crates/adjutant-orchestration/tests/relay.rs::handoff_is_refused_when_the_conversation_goes_back_and_forth"),
    "a transfer after a completion in one batch"
        => Test("crates/adjutant-orchestration/tests/delegation/handoffs.rs::handoff_counts_when_the_agent_reports_in_the_same_turn"),
    // Providers.
    "there and back over three wires keeps pairs, with ids that each takes"
        => Test("tests/tests/switch.rs::conversation_is_taken_when_it_goes_over_three_wires_and_back"),
    "calls and results stay in pairs whoever is shown them"
        => Test("crates/adjutant-providers/src/projection/tests.rs::shown_pairs_calls_and_results_when_anything_was_said"),
    "ids never collide"
        => Test("crates/adjutant-agent/tests/property.rs::session_is_one_log_when_anything_happens"),
    "signed thinking of the same model is kept byte for byte"
        => Test("tests/tests/conformance.rs::wires_bear_every_hazard"),
    // Arguments.
    "coercion: to numbers"
        => Test("crates/adjutant-tool/tests/admit.rs::admit_coerces_to_numbers_when_nothing_is_lost"),
    "coercion: to booleans, texts and nulls"
        => Test("crates/adjutant-tool/tests/admit.rs::admit_coerces_to_booleans_texts_and_nulls_when_the_table_says_so"),
    "coercion: several types"
        => Test("crates/adjutant-tool/tests/admit.rs::admit_coerces_to_the_first_type_when_several_are_allowed"),
    "coercion: branches"
        => Test("crates/adjutant-tool/tests/admit.rs::admit_follows_the_first_branch_that_can_fit"),
    "coercion: integers stay exact"
        => Test("crates/adjutant-tool/tests/admit_properties.rs::admit_keeps_integers_exact_when_they_have_64_bits"),
    "errors list all paths"
        => Test("crates/adjutant-tool/tests/admit.rs::admit_names_every_path_when_several_fail"),
    // Overflow.
    "what vendors say when a request does not fit"
        => Test("crates/adjutant-providers/src/overflow/tests.rs::numbers_are_read_when_a_vendor_says_them"),
    "rates and throttling are no overflow"
        => Test("crates/adjutant-providers/src/overflow/tests.rs::is_overflow_says_no_when_a_rate_is_meant"),
    "a full window that says nothing"
        => Test("crates/adjutant-providers/src/overflow/tests.rs::silent_is_an_overflow_when_nothing_was_said_at_a_full_window"),
    // Retry.
    "429 with Retry-After"
        => Test("tests/tests/decorators/retry.rs::retry_waits_as_asked_when_a_header_tells_how_long"),
    "529"
        => Test("tests/tests/decorators/retry.rs::retry_asks_again_when_nothing_was_said_yet"),
    "connection reset before the first byte"
        => Test("tests/tests/decorators/retry.rs::retry_asks_again_when_nothing_was_said_yet"),
    "connection reset after it"
        => Test("tests/tests/decorators/retry.rs::retry_shows_no_delta_twice_when_an_answer_breaks_midway"),
    "no delta twice, whatever fails"
        => Test("crates/adjutant-llm/tests/retry.rs::reader_sees_no_delta_twice_whatever_fails"),
    "a cap on what a server asks to wait"
        => Test("crates/adjutant-llm/tests/retry.rs::retry_waits_as_the_policy_says_when_an_attempt_fails"),
    // Reloading.
    "a session that was left anywhere loads and continues"
        => Test("crates/adjutant-agent/tests/crash.rs::session_goes_on_when_another_program_opens_its_log"),
    "queued messages are there again"
        => Test("crates/adjutant-agent/tests/queues/kept.rs::items_are_queued_again_when_a_log_is_opened"),
};
