//! Rows of the life of agents: manifests, workspaces, processes, statuses, the prompt surface, supervision.

use super::{How::*, Row, rows};

/// A test of this crate's life of agents: file and function.
macro_rules! runtime {
    ($file:literal :: $name:ident) => {
        Test(concat!(
            "crates/adjutant-runtime/tests/",
            $file,
            ".rs::",
            stringify!($name)
        ))
    };
    ($file:literal :: $name:ident, $why:literal) => {
        Deviation {
            test: concat!(
                "crates/adjutant-runtime/tests/",
                $file,
                ".rs::",
                stringify!($name)
            ),
            why: $why,
        }
    };
}
/// A check of the public suite of lifecycles.
macro_rules! suite {
    ($name:ident) => {
        Test(concat!(
            "crates/adjutant-testing/src/lifecycle_suite.rs::",
            stringify!($name)
        ))
    };
    ($name:ident, $why:literal) => {
        Deviation {
            test: concat!(
                "crates/adjutant-testing/src/lifecycle_suite.rs::",
                stringify!($name)
            ),
            why: $why,
        }
    };
}
/// A test of the command.
macro_rules! command {
    ($file:literal :: $name:ident) => {
        Test(concat!(
            "crates/adjutant-cli/tests/cli/",
            $file,
            ".rs::",
            stringify!($name)
        ))
    };
    ($file:literal :: $name:ident, $why:literal) => {
        Deviation {
            test: concat!(
                "crates/adjutant-cli/tests/cli/",
                $file,
                ".rs::",
                stringify!($name)
            ),
            why: $why,
        }
    };
}

pub(crate) const ROWS: &[Row] = rows! { "lifecycle";
    // The contract of an agent.
    "agent: the lifecycle contract for a running agent"
        => suite!(lives_from_created_to_removed),
    "agent: UUID" => suite!(lives_from_created_to_removed),
    "agent: Runtime" => suite!(lives_from_created_to_removed,
        "an instance has what is resolved from the moment it is created, so that nobody meets an agent without it"),
    "Prepare materializes the workspace without starting the process"
        => suite!(lives_from_created_to_removed),
    "Prepare is idempotent" => suite!(prepared_once),
    "Prepare is safe to call concurrently" => suite!(prepared_once),
    "Prepare: repeat calls return the same error" => suite!(preparing_again,
        "only success is kept, so that an agent goes on once its cause is mended; the reference chose the same"),
    "Prepare surfaces errors before anything runs" => suite!(preparing_again),
    "Run starts the process and blocks until it exits"
        => suite!(second_run_refused),
    "Run ends when ctx is cancelled" => suite!(goes_on_unwatched,
        "a future that is dropped stops nothing: an agent is stopped by a word, never by whoever forgot it"),
    "Run calls Prepare if that was not done"
        => suite!(second_run_refused),
    "Run: errors of initialisation are returned and told by the status"
        => suite!(preparing_again),
    "Start re-runs a stopped agent on the same workspace"
        => suite!(lives_from_created_to_removed),
    "Start blocks until the process exits" => runtime!("lifecycle/adverse"::start_is_waited_for_no_longer_than_it_takes,
        "it returns when the agent is ready, which whoever starts one wants to know; run waits for the end"),
    "Start fails if the agent runs"
        => suite!(second_run_refused),
    "Start fails if the agent was removed" => suite!(lives_from_created_to_removed),
    "Start reuses workspace and loopback address"
        => suite!(found_again),
    "Start takes another port if the first one is taken, and tells it"
        => runtime!("lifecycle/adverse"::port_is_kept_and_a_new_one_is_told_when_it_is_taken),
    "Stop signals the agent and waits until Run has returned"
        => suite!(second_run_refused),
    "Stop of an agent that does not run does nothing"
        => suite!(lives_from_created_to_removed),
    "Stop ends an agent that works" => suite!(work_is_stopped),
    "Remove deletes what is on disk" => suite!(lives_from_created_to_removed),
    "Remove: callers must stop first" => suite!(lives_from_created_to_removed,
        "it stops first by itself, so that nothing is deleted under a process that runs"),
    "Remove goes through removing to removed"
        => runtime!("lifecycle/status"::status_becomes_what_the_table_says_and_nothing_else),
    // What is asked.
    "ObjectPromptRequest: a prompt and a schema"
        => runtime!("surface/object"::object_fits_its_schema_and_leaves_no_session),
    "ObjectPromptRequest: no session, stateless"
        => runtime!("surface/object"::object_fits_its_schema_and_leaves_no_session),
    "ObjectPromptRequest: past the loop of tools"
        => runtime!("surface/object"::object_fits_its_schema_and_leaves_no_session),
    "SchemaName and SchemaDescription are optional"
        => runtime!("surface/object"::object_fits_its_schema_and_leaves_no_session),
    "ObjectPrompter: an object that conforms to the schema"
        => runtime!("surface/object"::object_fits_its_schema_and_leaves_no_session),
    "ObjectPrompter: invalid JSON even with repair"
        => runtime!("surface/object"::object_that_never_fits_is_an_error),
    "ObjectPrompter: repair before failure" => runtime!("surface/object"::object_is_repaired_before_it_fails),
    "PromptEvent: typed events for progress"
        => runtime!("surface/prompting"::stream_gives_every_event_in_order_and_the_end_last),
    "PromptEvent: step.start, step.finish, text.delta, tool.call, tool.result, message.create"
        => runtime!("surface/raw"::simple_stream_has_the_seven_names_and_their_contents),
    "PromptEvent: error" => runtime!("surface/raw"::simple_stream_ends_with_an_error_when_there_is_no_answer),
    "PromptRequest: addressed at a session" => runtime!("surface/prompting"::prompt_answers_and_goes_on_in_its_session),
    "PromptRequest: without a session the runtime picks one"
        => runtime!("surface/prompting"::prompt_without_a_session_uses_the_default_one),
    "Prompter: the full answer, without events"
        => runtime!("surface/prompting"::prompt_answers_and_goes_on_in_its_session),
    "StreamPrompter: events as they arrive"
        => runtime!("surface/prompting"::stream_has_the_same_events_however_it_is_asked),
    "StreamPrompter: slow callbacks hold the stream back"
        => runtime!("surface/raw"::client_that_reads_slowly_holds_its_run_back),
    "StreamPrompter: a slow reader in the same process holds the run back"
        => runtime!("surface/prompting"::reader_that_is_slow_holds_the_run_back),
    "SessionMessage: one stored turn, role and text"
        => runtime!("surface/history"::messages_tell_of_tools_and_leave_out_empty_texts),
    "SessionReader: the last messages of a session"
        => runtime!("surface/history"::messages_are_paged_from_the_newest_and_oldest_first),
    "SessionReader: an optional companion"
        => runtime!("surface/history"::messages_of_a_session_that_is_not_there_are_missing,
            "every agent here has sessions, so the reader is part of the one trait"),
    // What it is made of.
    "Provenance: the image's digest"
        => runtime!("manifest/wrong"::wrong_manifests_are_told_with_place_and_hint,
            "nothing pulls images, so a manifest that names one is refused with the cure"),
    "Provenance: the runtime's reference and digest"
        => runtime!("lifecycle/adverse"::host_that_was_changed_is_refused_unless_that_is_accepted),
    "Provenance: the tools' digests"
        => runtime!("lifecycle/adverse"::tool_that_was_changed_since_the_agent_was_made_is_refused),
    "Provenance: optional, if there is a resolver" => runtime!("lifecycle/provenance"::every_change_of_a_file_is_found,
        "it is always there: the files are read when the workspace is made, and nobody is asked for it"),
    "Provenance: which bytes is this agent running?"
        => runtime!("lifecycle/provenance"::every_change_of_a_file_is_found),
    "Provider: Create" => suite!(lives_from_created_to_removed),
    "Provider: Create makes it ready to run" => suite!(lives_from_created_to_removed,
        "it is written down alone: whoever makes a hundred agents need not wait for a hundred workspaces"),
    "Provider: Load recovers agents" => suite!(found_again),
    "Provider: Destroy removes all agents" => suite!(destroyed_whole),
    "Provider: a backend of its own kind each" => suite!(lives_from_created_to_removed),
    "ResolvedConfig: what is merged after overrides" => runtime!("manifest/resolve"::overrides_change_what_they_name),
    "ResolvedConfig: APIBase and APIKey are never written"
        => Test("tests/tests/secrets.rs::credential_is_used_and_stands_nowhere_when_it_is_hunted"),
    "ResolvedConfig: credentials are resolved on every start"
        => runtime!("lifecycle/adverse"::credentials_are_looked_up_at_each_start_and_stand_nowhere_but_in_the_environment),
    "ResolvedConfig: credentials travel by environment alone"
        => runtime!("lifecycle/adverse"::credentials_are_looked_up_at_each_start_and_stand_nowhere_but_in_the_environment),
    "ResolvedConfig: older files that hold them are read"
        => runtime!("lifecycle/found"::agents_that_cannot_be_read_are_told_beside_the_others,
        "there are no older files; one with a field that is unknown is told as damaged"),
    "ResolvedTool: name, description, binary, digest"
        => runtime!("engine/programs"::program_is_shown_as_the_manifest_describes_it),
    "ResolvedTool: the digest is held"
        => runtime!("lifecycle/workspace"::tools_must_be_what_was_pinned_in_the_manifest),
    "Runtime: id, source and what is resolved are kept"
        => suite!(found_again),
    "LoadRuntime reads what WriteTo wrote"
        => runtime!("manifest/resolve"::resolved_reads_back_equal_when_it_is_written),
    "WriteTo writes YAML" => runtime!("manifest/resolve"::resolved_is_written_for_people),
    // Where it stands.
    "Status: the state of an agent"
        => runtime!("lifecycle/status"::status_becomes_what_the_table_says_and_nothing_else),
    "Status: words" => runtime!("lifecycle/status"::statuses_are_written_as_words_and_unknown_words_are_refused),
    "WaitForStatus: blocks until the status is one of the target"
        => runtime!("lifecycle/status"::waiting_looks_at_the_current_status_first),
    "WaitForStatus: ends with ctx" => runtime!("lifecycle/status"::waiting_for_a_time_tells_where_it_stands_then),
    "WaitForStatus: gives the status that it saw"
        => runtime!("lifecycle/status"::waiting_looks_at_the_current_status_first),
    "WaitForStatus: looks at the current one first"
        => runtime!("lifecycle/status"::waiting_looks_at_the_current_status_first),
    "StatusObserver: Status" => runtime!("lifecycle/status"::tracker_keeps_its_status_when_a_transition_is_illegal),
    "StatusObserver: a channel of transitions" => suite!(work_is_told),
    "StatusObserver: slow subscribers may miss what is between"
        => runtime!("lifecycle/status"::slow_watcher_sees_the_newest_status_then_the_end),
    "StatusObserver: call Status to catch up"
        => runtime!("lifecycle/status"::slow_watcher_sees_the_newest_status_then_the_end,
        "the last status is never lost, so nobody has to catch up"),
    "StatusObserver: cancel, or the subscription leaks"
        => runtime!("lifecycle/status"::watches_are_set_and_dropped_by_fifty_threads,
        "a watch that is dropped is gone: there is nothing to forget"),
    "StatusTracker: set and broadcast"
        => runtime!("lifecycle/status"::thousand_watchers_see_the_end_of_ten_thousand_transitions),
    "StatusTracker: sends do not block"
        => runtime!("lifecycle/status"::slow_watcher_sees_the_newest_status_then_the_end),
    "StatusTracker: cancel closes the channel"
        => runtime!("lifecycle/status"::watcher_sees_the_last_status_of_a_tracker_that_is_gone),

    // What the parent's tests check: statuses and lives.
    "tests: strings of the statuses"
        => runtime!("lifecycle/status"::statuses_are_written_as_words_and_unknown_words_are_refused),
    "tests: the first status" => suite!(lives_from_created_to_removed),
    "tests: subscribers see the order" => suite!(work_is_told),
    "tests: cancel closes and may be called twice"
        => runtime!("lifecycle/status"::watcher_sees_the_last_status_of_a_tracker_that_is_gone),
    "tests: waiting for what is there already"
        => runtime!("lifecycle/status"::waiting_looks_at_the_current_status_first),
    "tests: waiting for a transition" => suite!(work_is_told),
    "tests: waiting runs out of time" => runtime!("lifecycle/status"::waiting_for_a_time_tells_where_it_stands_then),
    "tests: SetUnless" => runtime!("lifecycle/status"::cleaning_up_does_not_overwrite_a_failure_or_a_removal),
    "tests: a failure is cleared by Set" => suite!(preparing_again),
    "tests: Set and cancel at the same time"
        => runtime!("lifecycle/status"::watches_are_set_and_dropped_by_fifty_threads),
    "tests: stop during pull gives stopped"
        => runtime!("lifecycle/workspace"::stop_while_the_workspace_is_made_gives_stopped),
    "tests: a second Run is rejected"
        => suite!(second_run_refused),
    "tests: a hostile artifact is rejected" => suite!(bad_names_refused),
    "tests: a hostile bundle is rejected"
        => runtime!("supervisor/bundles"::import_is_refused_when_a_file_would_lie_elsewhere),
    "tests: load restores the address" => suite!(found_again),
    "tests: the environment leaks no secrets of the host"
        => runtime!("engine/programs"::program_has_the_environment_of_the_manifest_and_nothing_else),
    "tests: key and base address come by environment"
        => runtime!("lifecycle/adverse"::credentials_are_looked_up_at_each_start_and_stand_nowhere_but_in_the_environment),
    "tests: argv holds no secrets"
        => Test("tests/tests/secrets.rs::credential_is_used_and_stands_nowhere_when_it_is_hunted"),
    // Its tests of the file.
    "tests: a complete example is read" => runtime!("manifest/read"::everything_is_read_when_a_manifest_says_it),
    "tests: a reference of a file" => runtime!("engine/agents"::instructions_of_a_file_are_the_system_prompt),
    "tests: usage by heredoc" => runtime!("manifest/read"::everything_is_read_when_a_manifest_says_it,
        "YAML has texts of many lines, and a tool is described there"),
    "tests: the default syntax" => runtime!("manifest/read"::manifest_of_one_agent_is_read_in_short),
    "tests: ARG is substituted" => runtime!("manifest/read"::variable_is_what_is_asked_for_and_never_a_structure),
    "tests: an undefined ARG stays" => runtime!("manifest/wrong"::wrong_manifests_are_told_with_place_and_hint,
        "a variable that is not set is an error with its line, unless it has a default"),
    "tests: a context of the child wins" => runtime!("manifest/extends"::other_lists_are_replaced),
    "tests: the name AGENT is reserved"
        => runtime!("manifest/documented"::every_field_is_documented_and_nothing_else_is,
        "no file of a context is made by us, so no name of one is reserved"),
    "tests: an unknown instruction is refused"
        => runtime!("manifest/wrong"::wrong_manifests_are_told_with_place_and_hint),
    "tests: required with a default is refused" => runtime!("manifest/schema"::schema_refuses_what_no_manifest_can_say,
        "a field is required or has a default by its type: no manifest can say both"),
    "tests: FROM stands first" => runtime!("manifest/extends"::scalars_of_the_child_win,
        "`extends` may stand anywhere in the file: YAML has no order of keys"),
    "tests: RUNTIME clears configs" => runtime!("manifest/extends"::null_takes_a_field_away,
        "a child takes a field away by null, one by one, so that nothing vanishes unseen"),
    // Its tests of the runtime.
    "tests: the prompt's order and separators"
        => runtime!("engine/agents"::context_files_are_told_in_their_order_under_their_names),
    "tests: what is missing is skipped"
        => runtime!("engine/agents"::context_files_are_told_in_their_order_under_their_names),
    "tests: rules of keys" => runtime!("manifest/resolve"::needs_name_the_variables_of_models_and_stores),
    "tests: chat goes there and back" => runtime!("surface/prompting"::prompt_answers_and_goes_on_in_its_session),
    "tests: a stream goes there and back"
        => runtime!("surface/prompting"::stream_has_the_same_events_however_it_is_asked),
    "tests: errors of the agent arrive"
        => runtime!("surface/prompting"::failed_run_is_an_error_and_its_stream_ends_with_it),
    "tests: PromptObject refuses wrong input"
        => runtime!("surface/object"::object_without_a_usable_schema_is_refused_unasked),
    "tests: sessions are listed" => runtime!("surface/history"::sessions_are_paged_from_the_newest),
    "tests: a session is deleted" => Deviation {
        test: "crates/adjutant-runtime/tests/surface/openapi.rs::openapi_names_every_route_and_method_and_no_other",
        why: "no route deletes one: what was said is a journal that its owner deletes with the store",
    },
    "tests: replacing drops empty texts"
        => runtime!("surface/history"::messages_tell_of_tools_and_leave_out_empty_texts),
    "tests: compaction does nothing below its threshold"
        => Test("crates/adjutant-context/tests/compact.rs::compact_does_nothing_when_it_is_below_its_threshold"),
    "tests: compaction slides"
        => Test("crates/adjutant-context/tests/window.rs::window_keeps_the_newest_when_it_is_sliding"),
    "tests: words of a command line" => runtime!("engine/programs"::program_gets_arguments_in_its_command_line),
    "tests: PATH is prepended"
        => runtime!("engine/programs"::program_has_the_environment_of_the_manifest_and_nothing_else,
        "the tools of an agent are named one by one: none is found by chance in a path"),
    "tests: standard output is the content"
        => runtime!("engine/programs"::program_gets_its_arguments_as_a_line_of_json),
    "tests: another exit code is an error"
        => runtime!("engine/programs"::exit_code_and_standard_error_are_told_when_a_program_fails),
    "tests: a neighbour answers" => runtime!("engine/others"::tasks_are_given_to_agents_of_the_manifest),
    "tests: a neighbour answers something else than 200"
        => runtime!("surface/wire"::errors_keep_their_kinds_and_messages_on_the_way),
    "tests: a neighbour answers with bad JSON" => runtime!("surface/wire"::answer_that_cannot_be_read_is_an_error),
    "tests: no token" => runtime!("surface/raw"::token_is_needed_for_everything_but_ready),
    // Its tests of the supervisor.
    "tests: the schedule of pauses"
        => Test("crates/adjutant-runtime/src/supervisor/course/tests.rs::pauses_double_to_thirty_seconds_when_it_fails_again_and_again"),
    "tests: a retry after a failure of the model, then recovery"
        => runtime!("supervisor/keeping"::agent_is_started_again_after_pauses_when_its_model_fails),
    "tests: stop ends a pause" => runtime!("supervisor/keeping"::stop_ends_a_pause_when_an_agent_had_failed),
    "tests: replay at boot" => runtime!("supervisor/ending"::next_supervisor_starts_what_should_run_when_one_has_ended),
    "tests: cancel of a job" => runtime!("surface/cancelling"::stream_that_is_dropped_cancels_its_run),
    "tests: orphans are marked"
        => suite!(death_unseen_is_told),
    "tests: filters by labels" => command!("agent/alone"::json_tells_the_same_when_it_is_wished,
        "labels are told with `--json`, and whatever filters JSON filters them"),
    "tests: JWT with its algorithm pinned, expiry, revocation"
        => runtime!("surface/status"::wrong_token_is_denied_whatever_is_asked,
        "a token is random and new at each start: there is no algorithm to confuse, and a restart revokes it"),
};
