//! Rows of strategies that keep a conversation within its window, of counters of tokens, and the faults they had.

use super::{How::*, Row, rows};

pub(crate) const ROWS: &[Row] = rows! { "context";
    // What the options say.
    "a strategy acts when the conversation passes the limit"
        => Test("crates/adjutant-context/tests/window.rs::truncate_drops_the_oldest_when_the_view_is_too_large"),
    "nothing happens below it"
        => Test("crates/adjutant-context/tests/compact.rs::compact_does_nothing_when_it_is_below_its_threshold"),
    "the limit is given in tokens" => Deviation {
        test: "crates/adjutant-context/tests/compact.rs::compact_is_made_of_its_parameters_when_they_are_right",
        why: "it is a share of the model's window with a reserve in tokens, so that it follows the model",
    },
    "example: truncate"
        => Test("crates/adjutant-context/tests/window.rs::truncate_drops_the_oldest_when_the_view_is_too_large"),
    "example: a sliding window of the last 20"
        => Test("crates/adjutant-context/tests/window.rs::window_keeps_the_newest_when_it_is_sliding"),
    "example: a summary by a model"
        => Test("crates/adjutant-context/tests/window.rs::summarise_keeps_the_recent_when_the_view_is_too_large"),
    "BuildContextMessages: what would be sent, by the strategy"
        => Test("crates/adjutant-agent/tests/preview.rs::preview_shows_the_next_request_when_nothing_is_recorded"),
    "BuildContextMessages changes the session" => Deviation {
        test: "crates/adjutant-agent/tests/preview.rs::preview_shows_the_next_request_when_nothing_is_recorded",
        why: "a look changes nothing",
    },
    "PeekContextMessages changes nothing"
        => Test("crates/adjutant-agent/tests/preview.rs::preview_shows_the_next_request_when_nothing_is_recorded"),
    "fault: Peek leaves out memories" => Deviation {
        test: "crates/adjutant-context/tests/memories/injected.rs::run_pays_when_a_query_is_embedded_and_a_preview_asks_nobody",
        why: "a look asks nobody, and looking for facts may ask an embedder: they join when the run begins",
    },
    "fault: Peek pays for a summary"
        => Test("crates/adjutant-agent/tests/preview.rs::preview_asks_neither_hooks_nor_models_when_the_window_is_full"),
    // The interface.
    "a strategy sees messages, prompt, tools, counter and limit"
        => Test("crates/adjutant-context/tests/window.rs::strategy_is_asked_before_every_request_when_it_is_set"),
    "a strategy gives messages, and what changes in the session" => Deviation {
        test: "crates/adjutant-context/tests/window.rs::window_stays_when_the_log_is_opened_again",
        why: "it gives edits of the view, which are recorded; the history stays whole",
    },
    "truncate: the oldest go first"
        => Test("crates/adjutant-context/tests/window.rs::truncate_drops_the_oldest_when_the_view_is_too_large"),
    "truncate: the system prompt stays"
        => Test("crates/adjutant-context/tests/window.rs::window_keeps_the_newest_when_it_is_sliding"),
    "truncate: a least number of messages" => Deviation {
        test: "crates/adjutant-context/tests/window.rs::truncate_drops_the_oldest_when_the_view_is_too_large",
        why: "what is kept is given in tokens, and the newest message and turn always stay",
    },
    "truncate: pairs are kept by choice" => Deviation {
        test: "crates/adjutant-context/tests/compact.rs::compact_keeps_pairs_together_when_it_cuts_anywhere",
        why: "a turn is a reply with its results, one entry: nothing can part them",
    },
    "sliding: the last N are kept"
        => Test("crates/adjutant-context/tests/window.rs::window_keeps_the_newest_when_it_is_sliding"),
    "summarise: the newest stay as they are"
        => Test("crates/adjutant-context/tests/window.rs::summarise_keeps_the_recent_when_the_view_is_too_large"),
    "summarise: a model of its own"
        => Test("crates/adjutant-context/tests/compact.rs::compact_is_charged_and_reported_when_it_asks_a_model"),
    "summarise: the context begins with the newest summary"
        => Test("crates/adjutant-context/tests/compact.rs::compact_folds_the_beginning_when_the_window_fills"),
    "summarise: the summary before is part of the next"
        => Test("crates/adjutant-context/tests/compact.rs::compact_gives_the_earlier_summary_when_it_writes_the_next"),
    "summarise: names of calls and results without their contents" => Deviation {
        test: "crates/adjutant-context/tests/compact.rs::compact_folds_the_beginning_when_the_window_fills",
        why: "the model is shown arguments and results, so that the summary knows what happened",
    },
    "summarise: reasoning is skipped"
        => Test("crates/adjutant-context/tests/window.rs::summarise_keeps_the_recent_when_the_view_is_too_large"),
    "summarise: a failed model changes nothing"
        => Test("crates/adjutant-context/tests/compact/failures.rs::compact_keeps_all_when_the_summary_is_empty_or_fails"),
    "summarise: older messages stay for audit"
        => Test("crates/adjutant-context/tests/compact.rs::compact_acts_within_one_run_when_it_has_two_hundred_calls"),
    "fixed: every later turn summarised again"
        => Test("tests/tests/sessions.rs::summary_is_written_once_when_a_session_goes_on_in_other_programs"),
    // Faults of strategies.
    "fault: a result is left without its call"
        => Test("crates/adjutant-context/tests/compact.rs::compact_keeps_pairs_together_when_it_cuts_anywhere"),
    "fault: a window begins with a result"
        => Test("crates/adjutant-context/tests/compact.rs::compact_keeps_pairs_together_when_it_cuts_anywhere"),
    "fault: a summary parts calls and results"
        => Test("crates/adjutant-context/tests/compact.rs::compact_keeps_a_pinned_result_with_its_call"),
    "fault: an endless loop when only the system prompt is left"
        => Test("crates/adjutant-context/tests/window.rs::truncate_drops_the_oldest_when_the_view_is_too_large"),
    "fault: every step counts everything again" => Deviation {
        test: "crates/adjutant-llm/tests/serde.rs::transcript_reads_back_when_it_has_every_entry",
        why: "an entry is counted once, when it enters, and the sum is kept with the conversation",
    },
    "fault: a sliding window passes the limit of tokens"
        => Test("crates/adjutant-context/tests/window.rs::window_keeps_the_newest_when_it_is_sliding"),
    "fault: with few messages nothing is done and the request does not fit"
        => Test("crates/adjutant-context/tests/compact/failures.rs::compact_leaves_out_the_oldest_when_the_summary_fails_and_something_must_go"),
    "fault: a failed summary leaves a request that does not fit"
        => Test("crates/adjutant-context/tests/compact/failures.rs::compact_leaves_out_the_oldest_when_the_summary_fails_and_something_must_go"),
    "fault: a summary beside a message makes two turns of the user"
        => Test("tests/tests/conformance.rs::wires_bear_every_hazard"),
    "fault: a summary reaches a provider raw when the strategy is another one"
        => Test("tests/tests/conformance.rs::wires_bear_every_hazard"),
    "fault: no reserve for the reply"
        => Test("crates/adjutant-context/tests/compact.rs::compact_reserves_room_when_it_asks_for_the_summary"),
    "fault: nobody looks whether the result fits"
        => Test("crates/adjutant-context/tests/compact/failures.rs::compact_gives_up_when_it_fails_or_gains_too_little"),
    "fault: a model without a known window makes strategies act always"
        => Test("tests/tests/sessions.rs::strategy_rests_when_the_window_of_the_model_is_not_known"),
    "fault: applied once, before the loop"
        => Test("crates/adjutant-context/tests/window.rs::strategy_is_asked_before_every_request_when_it_is_set"),
    "fault: going on acts before the results are there"
        => Test("crates/adjutant-context/tests/window.rs::strategy_is_asked_before_every_request_when_it_is_set"),
    // Counters.
    "counter: a vocabulary, exactly"
        => Test("crates/adjutant-llm/tests/tokens.rs::tiktoken_counts_exactly_when_the_vocabulary_is_known"),
    "counter: one vocabulary for every model" => Deviation {
        test: "crates/adjutant-llm/tests/tokens.rs::estimate_counts_scripts_and_pictographs",
        why: "whoever counts chooses a function of the text; the one that is set by itself estimates and follows what providers report",
    },
    "counter: the vocabulary is read anew for every chat" => Deviation {
        test: "crates/adjutant-llm/tests/tokens.rs::tiktoken_counts_exactly_when_the_vocabulary_is_known",
        why: "a vocabulary is static, read once for the whole program",
    },
    "counter: fixed sums for messages, calls and results" => Deviation {
        test: "crates/adjutant-llm/tests/tokens.rs::meter_follows_reports_when_they_differ_from_estimates",
        why: "each entry has a small frame, and the rest is learned from reports",
    },
    "counter: 512 for any picture" => Deviation {
        test: "crates/adjutant-llm/tests/tokens.rs::entry_counts_a_picture_by_its_size_when_its_head_is_readable",
        why: "pictures are counted by their size",
    },
    "counter: a breakdown by prompt, messages and tools"
        => Test("crates/adjutant-agent/tests/snapshot.rs::context_is_the_sum_of_its_parts_when_no_reply_tells_it"),
    // Gaps.
    "gap: what providers report is not used"
        => Test("crates/adjutant-llm/tests/tokens.rs::context_used_adds_what_came_after_the_report_when_there_is_one"),
    "gap: no counters for other models"
        => Test("crates/adjutant-llm/tests/tokens.rs::estimate_counts_scripts_and_pictographs"),
    "gap: results are not shortened"
        => Test("crates/adjutant-agent/tests/effects_trim.rs::trim_shortens_old_results_when_they_are_long"),
    "gap: nothing is compacted within a loop"
        => Test("crates/adjutant-context/tests/compact.rs::compact_acts_within_one_run_when_it_has_two_hundred_calls"),
    "gap: a request that does not fit is not tried again"
        => Test("crates/adjutant-context/tests/compact/failures.rs::compact_tries_the_turn_again_once_when_the_provider_says_it_does_not_fit"),
    "gap: nothing can be pinned"
        => Test("crates/adjutant-context/tests/window.rs::window_keeps_what_is_pinned_and_the_newest_prompt_when_it_folds"),
};
