//! Rows of stored sessions: what was promised of them, what their stores did, and the faults they had.

use super::{How::*, Row, rows};

pub(crate) const ROWS: &[Row] = rows! { "sessions";
    // What the overview and the options say.
    "conversations are kept by stores that can be exchanged"
        => Test("tests/tests/sessions.rs::session_is_the_same_whatever_keeps_it"),
    "WithSession: an id and a store"
        => Test("tests/tests/sessions.rs::session_is_the_same_whatever_keeps_it"),
    "WithSession: loaded if it exists"
        => Test("crates/adjutant-agent/tests/crash.rs::session_goes_on_when_another_program_opens_its_log"),
    "WithSession: made if it does not"
        => Test("crates/adjutant-agent/tests/sessions.rs::log_tells_its_agent_when_it_is_new"),
    "without a session there is no history" => Deviation {
        test: "crates/adjutant-agent/tests/loop_runs.rs::clones_share_a_session_and_new_sessions_are_empty",
        why: "every agent has a session, in memory unless a journal is set; a new one is a method away",
    },
    "a chat keeps its conversation"
        => Test("crates/adjutant-agent/tests/queues/sessions.rs::append_is_recorded_when_the_log_is_opened_again"),
    "Continue goes on from what is stored"
        => Test("crates/adjutant-agent/tests/external.rs::external_results_go_on_in_another_program_when_the_log_is_opened"),
    "a template of a fan-out has no session of its own" => Deviation {
        test: "crates/adjutant-orchestration/tests/fan_out.rs::events_of_all_agents_are_in_one_stream_when_tasks_are_fanned_out",
        why: "only its configuration counts: each task has a conversation of its own",
    },
    // A session.
    "session: its id"
        => Test("crates/adjutant-agent/tests/agent_api/setters.rs::session_id_is_unique_when_agents_are_made"),
    "session: all messages, oldest first"
        => Test("crates/adjutant-testing/src/journal_suite.rs::append_then_read"),
    "session: the last few messages" => Deviation {
        test: "crates/adjutant-agent/tests/sessions/shows.rs::pages_are_the_whole_when_they_are_put_together",
        why: "a log is read from a record on or shown in pages; what a model sees is a view, not a tail of messages",
    },
    "session: a limit of 0 is nothing, a negative one everything, an error, or a panic" => Deviation {
        test: "crates/adjutant-testing/src/journal_suite.rs::read_after_cursor",
        why: "reading begins after a place that cannot be negative, the same in every store",
    },
    "session: a page has at least one log in it"
        => Test("crates/adjutant-testing/src/journal_suite.rs::pages_hold_one"),
    "session: messages are added"
        => Test("crates/adjutant-agent/tests/queues/sessions.rs::append_adds_entries_when_the_session_is_idle"),
    "session: the newest message is taken off" => Deviation {
        test: "crates/adjutant-agent/tests/sessions/forks.rs::fork_has_the_same_bytes_and_links_when_it_is_made_anywhere",
        why: "nothing is taken out of a log; a fork at an earlier record is the session without its end",
    },
    "session: taking off from an empty one gives nothing" => Deviation {
        test: "crates/adjutant-agent/tests/sessions/forks.rs::fork_is_refused_when_there_is_nothing_to_copy_or_no_place",
        why: "a fork of nothing is a typed error",
    },
    "session: cleared, it is empty"
        => Test("crates/adjutant-agent/tests/queues/sessions.rs::new_session_leaves_the_configuration_and_what_waits"),
    "session: cleared, it may exist or not, by store" => Deviation {
        test: "crates/adjutant-agent/tests/queues/sessions.rs::new_session_leaves_the_configuration_and_what_waits",
        why: "a cleared session goes on in a new log, and the old one stays what it was, in every store",
    },
    // A store.
    "store: whether a session exists"
        => Test("crates/adjutant-testing/src/journal_suite.rs::missing_log"),
    "store: a missing session is loaded as nothing or as an empty one, by store" => Deviation {
        test: "crates/adjutant-testing/src/journal_suite.rs::missing_log",
        why: "what is known of a missing log is a typed error everywhere, reading it gives nothing and makes nothing",
    },
    "store: made where one exists it is replaced, emptied or refused, by store" => Deviation {
        test: "crates/adjutant-agent/tests/sessions.rs::session_is_not_made_when_its_name_or_what_is_said_is_wrong",
        why: "a name that is taken is a typed error in every store, and nothing is lost",
    },
    "store: a second create fails"
        => Test("crates/adjutant-agent/tests/sessions.rs::session_is_not_made_when_its_name_or_what_is_said_is_wrong"),
    "store: created"
        => Test("crates/adjutant-agent/tests/sessions.rs::session_is_made_when_its_name_is_free"),
    "store: deleted"
        => Test("crates/adjutant-testing/src/journal_suite.rs::deleted_is_gone"),
    "store: deleting a missing one is fine or an error, by store" => Deviation {
        test: "crates/adjutant-testing/src/journal_suite.rs::deleted_is_gone",
        why: "it is the same typed error in every store",
    },
    "store: deleting one leaves the others"
        => Test("crates/adjutant-testing/src/journal_suite.rs::attachments_are_shared"),
    "store: sessions are apart"
        => Test("crates/adjutant-testing/src/journal_suite.rs::names_are_distinct"),
    "store: tables with different prefixes are apart" => Deviation {
        test: "crates/adjutant-store/tests/postgres/connect.rs::schema_that_cannot_be_is_invalid",
        why: "a schema of PostgreSQL or a file of SQLite takes the place of a prefix, and its name is checked",
    },
    "store: concurrent adds lose nothing"
        => Test("crates/adjutant-testing/src/journal_suite.rs::many_logs_at_once"),
    "store: concurrent adds of two writers to one session" => Deviation {
        test: "crates/adjutant-testing/src/journal_suite.rs::second_owner_refused",
        why: "a log has one owner, a second one gets a typed error and may post instead",
    },
    "store: a cancelled operation is an error" => Deviation {
        test: "crates/adjutant-testing/src/journal_suite.rs::append_dropped",
        why: "cancelling is dropping: the append happened whole or not at all, and the log goes on",
    },
    "store: opened again it appends"
        => Test("crates/adjutant-testing/src/journal_suite.rs::chain_verifies"),
    "store: the same tests for every store"
        => Test("tests/tests/spec_table.rs::suites_are_played_on_every_store"),
    "store: operations at random do what a model of it does"
        => Test("crates/adjutant-testing/src/journal_suite.rs::random_operations"),
    // What is stored.
    "stored: unicode"
        => Test("crates/adjutant-testing/src/journal_suite.rs::texts_survive"),
    "stored: one very large message"
        => Test("crates/adjutant-testing/src/journal_suite.rs::large_text"),
    "stored: 100 MB"
        => Test("crates/adjutant-store/tests/sqlite/journal.rs::log_keeps_a_text_of_100_megabytes"),
    "stored: calls, results, pictures, bytes, summaries"
        => Test("crates/adjutant-llm/tests/serde.rs::transcript_reads_back_when_it_has_every_entry"),
    "stored: parts of text, reasoning, calls, tagged with their type"
        => Test("crates/adjutant-llm/tests/serde.rs::reply_reads_back_when_it_has_every_block"),
    "stored: a result with its error flag and metadata"
        => Test("crates/adjutant-llm/tests/serde.rs::call_result_reads_back_when_it_is_stored"),
    "stored: the time of a message"
        => Test("crates/adjutant-agent/tests/stamped.rs::record_is_one_json_object_when_it_is_written"),
    "stored: the model of a message"
        => Test("crates/adjutant-llm/tests/serde.rs::reply_reads_back_when_it_has_every_block"),
    "stored: everything a record can be"
        => Test("crates/adjutant-agent/tests/stamped.rs::record_is_the_same_when_it_was_written_and_read"),
    "stored: unknown kinds of parts are skipped on reading" => Deviation {
        test: "crates/adjutant-agent/tests/stamped.rs::record_is_refused_when_a_newer_program_wrote_it",
        why: "nothing is dropped in silence: what a newer program wrote is refused and says so",
    },
    "stored: a message's content is its first text part only" => Deviation {
        test: "crates/adjutant-agent/tests/sessions/shows.rs::session_reads_like_a_conversation_when_it_is_shown",
        why: "all parts of a message are its content",
    },
    "finish: end of the turn"
        => Test("crates/adjutant-agent/tests/basic.rs::stream_ends_with_run_finished_when_the_answer_is_text"),
    "finish: tokens, tools, unknown"
        => Test("crates/adjutant-llm/tests/serde.rs::words_read_back_when_they_are_stored"),
    "finish: cancelled"
        => Test("crates/adjutant-agent/tests/cancel.rs::text_stays_when_the_run_is_cancelled_in_the_middle_of_it"),
    "finish: the limit of turns"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::run_executes_the_last_calls_when_its_turns_are_spent"),
    // Faults.
    "fault: a crash leaves a damaged or empty file"
        => Test("crates/adjutant-store/tests/jsonl.rs::tail_that_was_cut_off_is_found_at_every_byte"),
    "fault: a full disk leaves half a write"
        => Test("crates/adjutant-store/tests/jsonl.rs::full_disk_is_told_and_nothing_half_written_is_believed"),
    "fault: an id is a path out of the folder"
        => Test("crates/adjutant-store/tests/jsonl.rs::names_never_leave_the_folder"),
    "fault: ids with slashes and dots, in any store"
        => Test("crates/adjutant-testing/src/journal_suite.rs::names_are_data"),
    "fault: the lock is an object's, not the file's"
        => Test("crates/adjutant-testing/src/journal_suite.rs::one_of_many"),
    "fault: every append writes the whole file anew"
        => Test("tests/tests/sessions.rs::file_only_grows_when_its_session_goes_on"),
    "fault: several rows without a transaction leave calls without results"
        => Test("crates/adjutant-testing/src/journal_suite.rs::batch_is_atomic"),
    "fault: calls without results after a failure, in any session"
        => Test("crates/adjutant-agent/tests/property.rs::session_is_one_log_when_anything_happens"),
    "fault: order by time, so that a summary sorts behind what it precedes"
        => Test("crates/adjutant-testing/src/journal_suite.rs::clock_backwards"),
    "fault: ties of time have no order"
        => Test("crates/adjutant-testing/src/journal_suite.rs::append_then_read"),
    "fault: adding to a session that does not exist"
        => Test("crates/adjutant-testing/src/journal_suite.rs::posts_need_a_log"),
    "fault: a session that was deleted is written on"
        => Test("crates/adjutant-testing/src/journal_suite.rs::fenced_after_delete"),
    "fault: connections are never closed"
        => Test("crates/adjutant-store/tests/postgres/ownership.rs::two_hundred_sessions_at_once_share_few_connections"),
    "fault: a password in an error"
        => Test("crates/adjutant-store/tests/postgres/connect.rs::errors_and_debug_tell_no_secret"),
    "fault: the message of a failed request stays and is doubled by a second try" => Deviation {
        test: "crates/adjutant-agent/tests/queues/going_on.rs::continue_answers_when_the_tail_is_a_message_of_the_user",
        why: "a failed run keeps its message in the history; going on answers it without saying it again",
    },
    "fault: popping and adding again is not one step" => Deviation {
        test: "crates/adjutant-context/tests/compact/cut.rs::run_ends_as_it_should_when_it_is_cut_around_a_compaction",
        why: "nothing is popped: an edit of the view is one record, there whole or not at all",
    },
    "fault: two chats on one session mix"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::session_is_busy_when_it_runs"),
    "gap: messages have no ids"
        => Test("crates/adjutant-llm/tests/transcript.rs::edits_take_no_id_twice_when_the_newest_entries_are_gone"),
    "gap: signatures of reasoning are lost"
        => Test("tests/tests/contents.rs::provider_gets_its_own_back_when_the_conversation_goes_on"),
    "gap: metadata of providers is lost"
        => Test("tests/tests/contents.rs::opaque_block_goes_back_as_it_came_when_the_provider_is_the_same"),
    "gap: no version of the format"
        => Test("crates/adjutant-agent/tests/stamped.rs::record_of_version_one_is_read_when_an_old_log_is_opened"),
    // What earlier suites of sessions held.
    "suite: a reply with calls is followed at once by its results"
        => Test("crates/adjutant-llm/tests/serde.rs::turn_reads_back_when_it_is_paired"),
    "suite: the limit of turns leaves no call open"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::run_executes_the_last_calls_when_its_turns_are_spent"),
    "suite: the second turn loads cleanly"
        => Test("tests/tests/sessions.rs::session_is_the_same_whatever_keeps_it"),
    "suite: one system prompt for each request, and none is stored"
        => Test("tests/tests/sessions.rs::prompt_of_an_old_session_stays_and_its_change_is_announced"),
    "suite: a changed system prompt counts for a session that exists"
        => Test("tests/tests/sessions.rs::prompt_of_an_old_session_stays_and_its_change_is_announced"),
    "suite: pops and adds are applied exactly" => Deviation {
        test: "tests/tests/sessions.rs::summary_is_written_once_when_a_session_goes_on_in_other_programs",
        why: "the history is not rewritten: it keeps every entry, and the view holds one summary and what was kept",
    },
    "suite: pops and adds are applied for Continue too" => Deviation {
        test: "tests/tests/sessions.rs::summary_is_written_once_when_a_session_goes_on_in_other_programs",
        why: "every drive folds the same view, whether it began with a message or goes on",
    },
    "suite: summarising keeps one summary"
        => Test("tests/tests/sessions.rs::summary_is_written_once_when_a_session_goes_on_in_other_programs"),
    "suite: nothing is summarised again while it fits"
        => Test("tests/tests/sessions.rs::summary_is_written_once_when_a_session_goes_on_in_other_programs"),
    "suite: reasoning is no part of summaries"
        => Test("crates/adjutant-context/tests/window.rs::summarise_keeps_the_recent_when_the_view_is_too_large"),
    "suite: stores in memory and in files behave alike"
        => Test("tests/tests/sessions.rs::session_is_the_same_whatever_keeps_it"),
};
