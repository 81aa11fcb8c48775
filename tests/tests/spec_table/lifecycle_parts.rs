//! Rows of what the parents know about the life of agents, part by part, with the faults that they had.

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
/// A test of another place.
macro_rules! other {
    ($file:literal :: $name:ident) => {
        Test(concat!($file, ".rs::", stringify!($name)))
    };
    ($file:literal :: $name:ident, $why:literal) => {
        Deviation {
            test: concat!($file, ".rs::", stringify!($name)),
            why: $why,
        }
    };
}

pub(crate) const ROWS: &[Row] = rows! { "lifecycle parts";
    // C1: the contract.
    "C1 Prepare caches success alone" => suite!(preparing_again),
    "C1 a pull error gives pull_error" => suite!(preparing_again),
    "C1 a model or a credential gives model_error"
        => runtime!("lifecycle/both"::missing_key_is_a_failure_of_the_model_and_is_looked_up_again),
    "C1 a credential that a process lacks gives model_error"
        => other!("crates/adjutant-cli/tests/cli/agent/alone"::missing_key_is_named_when_an_agent_is_started),
    "C1 anything else gives init_error"
        => runtime!("lifecycle/workspace"::workspace_that_cannot_be_written_leaves_nothing_half),
    "C1 a failure keeps its cause" => runtime!("lifecycle/adverse"::host_that_tells_why_it_cannot_begin_is_believed),
    "C1 Run: prepare, spawn, wait"
        => suite!(second_run_refused),
    "C1 Run ends stopped, also after a crash"
        => runtime!("lifecycle/adverse"::crash_is_told_with_the_signal_and_is_no_stop,
        "a crash is failed with its reason, and never a stop"),
    "C1 Start: agent already running"
        => suite!(second_run_refused),
    "C1 Start: agent removed" => suite!(lives_from_created_to_removed),
    "C1 Start resolves credentials again"
        => runtime!("lifecycle/both"::missing_key_is_a_failure_of_the_model_and_is_looked_up_again),
    "C1 Start of a process resolves credentials again"
        => runtime!("lifecycle/adverse"::credentials_are_looked_up_at_each_start_and_stand_nowhere_but_in_the_environment),
    "C1 Stop: cancel, wait, nothing if it does not run" => suite!(work_is_stopped),
    "C1 Remove: a failure leaves removing"
        => runtime!("lifecycle/found"::removal_that_could_not_be_done_is_done_when_asked_again),
    "C1 statuses: created to removed"
        => runtime!("lifecycle/status"::status_becomes_what_the_table_says_and_nothing_else),
    "C1 String() of an unknown status"
        => runtime!("lifecycle/status"::statuses_are_written_as_words_and_unknown_words_are_refused,
        "there is no unknown status: another word is refused where it is read"),
    "C1 statuses: preparing, starting, ready, working, failed with reasons"
        => runtime!("lifecycle/status"::statuses_are_written_as_words_and_unknown_words_are_refused),
    "C1 the first status is pulling" => suite!(lives_from_created_to_removed,
        "the first one is created: nothing is done until somebody wishes it"),
    "C1 tracker: 16 values are kept for each watcher"
        => runtime!("lifecycle/status"::slow_watcher_sees_the_newest_status_then_the_end,
        "one value is kept, the newest: that is the one that counts"),
    "C1 tracker: cancel may be called twice"
        => runtime!("lifecycle/status"::watches_are_set_and_dropped_by_fifty_threads,
        "a watch is dropped, which happens once"),
    "C1 WaitForStatus: subscribe, look, wait"
        => runtime!("lifecycle/status"::waiting_looks_at_the_current_status_first),
    "C1 fixed: a panic when Set meets cancel"
        => runtime!("lifecycle/status"::watches_are_set_and_dropped_by_fifty_threads),
    "C1 fixed: cleaning up overwrote failed and removed"
        => runtime!("lifecycle/status"::cleaning_up_does_not_overwrite_a_failure_or_a_removal),
    "C1 fixed: waiting on a closed watch gave nothing"
        => runtime!("lifecycle/status"::waiting_ends_when_the_status_can_never_come),
    "C1 fixed: stop during prepare did nothing"
        => runtime!("lifecycle/workspace"::stop_while_the_workspace_is_made_gives_stopped),
    "C1 fixed: a supervisor restarted what was stopped while it began"
        => runtime!("supervisor/keeping"::stop_is_no_failure_when_an_agent_begins),
    "C1 fixed: concurrent Run"
        => suite!(second_run_refused),
    "C1 fixed: Remove stops first" => suite!(lives_from_created_to_removed),
    "C1 fixed: an agent that was found lacked its address"
        => suite!(found_again),
    "C1 fault: running before the process is there"
        => runtime!("lifecycle/adverse"::host_that_never_gets_ready_is_killed),
    "C1 fault: a crash looks like a stop"
        => runtime!("lifecycle/adverse"::crash_is_told_with_the_signal_and_is_no_stop),
    "C1 fault: no kill after a grace"
        => suite!(deaf_is_killed),
    "C1 fault: the last status can be missed"
        => runtime!("lifecycle/status"::thousand_watchers_see_the_end_of_ten_thousand_transitions),
    // C2: backends.
    "C2 Create: a folder by its uuid" => suite!(lives_from_created_to_removed),
    "C2 Create reserves a port" => runtime!("lifecycle/adverse"::port_is_kept_and_a_new_one_is_told_when_it_is_taken,
        "the process takes a port itself and holds it, so that nobody can come between"),
    "C2 Create does not materialise" => suite!(lives_from_created_to_removed),
    "C2 a log file of each agent" => runtime!("lifecycle/logs"::tail_reads_over_files_that_were_put_aside),
    "C2 Load scans folders that are called by a uuid"
        => suite!(found_again),
    "C2 Load skips what cannot be read"
        => runtime!("lifecycle/found"::agents_that_cannot_be_read_are_told_beside_the_others,
        "they are told beside the others: what is skipped in silence is never mended"),
    "C2 Load makes nothing anew" => suite!(found_again),
    "C2 fault: agents that were found lose their log"
        => suite!(found_again),
    "C2 fault: two operators over one root"
        => runtime!("supervisor/homes"::second_operator_is_refused_and_told_who_works_when_there_is_one),
    "C2 fault: Destroy leaves running agents" => suite!(destroyed_whole),
    "C2 backends: a process each" => suite!(outlives_its_operator),
    "C2 backends: docker" => runtime!("lifecycle/both"::agent_in_this_process_ends_when_nobody_holds_it,
        "the second backend is the program itself; one of containers can be written, since a backend is a trait"),
    "C2 prompting by type assertion" => suite!(lives_from_created_to_removed,
        "every instance gives the one prompt surface, while it runs"),
    // C3: what is resolved.
    "C3 id, source and what is resolved are kept"
        => suite!(found_again),
    "C3 the file is 0644" => suite!(folder_is_private,
        "it is its owner's alone, as all of the folder"),
    "C3 keys are never serialised"
        => other!("tests/tests/secrets"::credential_is_used_and_stands_nowhere_when_it_is_hunted),
    "C3 credentials travel as environment of the one process"
        => runtime!("lifecycle/adverse"::credentials_are_looked_up_at_each_start_and_stand_nowhere_but_in_the_environment),
    "C3 the prefix of a model names its variables"
        => runtime!("manifest/resolve"::needs_name_the_variables_of_models_and_stores),
    "C3 no prefix, no key" => runtime!("engine/models"::missing_model_and_missing_key_are_errors_of_models,
        "a model has a prefix always, and a provider says whether it needs a key"),
    "C3 never on argv" => other!("tests/tests/secrets"::credential_is_used_and_stands_nowhere_when_it_is_hunted),
    "C3 never on disk" => other!("tests/tests/secrets"::credential_is_used_and_stands_nowhere_when_it_is_hunted),
    "C3 argv: serve with root, model and address"
        => other!("crates/adjutant-cli/tests/cli/agent_host"::agent_host_serves_until_it_is_stopped_and_again_on_its_port,
        "it has the workspace alone, where all the rest stands"),
    "C3 fault: the environment is inherited"
        => runtime!("lifecycle/adverse"::credentials_are_looked_up_at_each_start_and_stand_nowhere_but_in_the_environment),
    "C3 PATH of the agent's folder alone"
        => runtime!("engine/programs"::program_has_the_environment_of_the_manifest_and_nothing_else,
        "a shell script needs a PATH; tools are named by the manifest, not found in it"),
    "C3 HOME and TMPDIR inside, LANG=C.UTF-8"
        => runtime!("engine/programs"::program_has_the_environment_of_the_manifest_and_nothing_else),
    "C3 environment of the user, reserved names refused"
        => runtime!("manifest/wrong"::wrong_manifests_are_told_with_place_and_hint),
    "C3 the working folder is its own"
        => runtime!("engine/programs"::program_has_the_environment_of_the_manifest_and_nothing_else),
    "C3 provenance: image" => runtime!("manifest/wrong"::wrong_manifests_are_told_with_place_and_hint,
        "nothing pulls images, so a manifest that names one is refused with the cure"),
    "C3 provenance is best effort" => runtime!("lifecycle/provenance"::every_change_of_a_file_is_found,
        "it is made of files that are there, so it is whole or the workspace is not made"),
    "C3 provenance is printed and verified"
        => other!("crates/adjutant-cli/tests/cli/agent/carried"::provenance_tells_what_was_changed_and_the_agent_is_not_started),
    "C3 a static resolver for tests" => runtime!("engine/models"::provider_of_the_manifest_is_asked_with_its_key),
    "C3 another key counts from the next start"
        => runtime!("lifecycle/both"::missing_key_is_a_failure_of_the_model_and_is_looked_up_again),
    "C3 files are written whole or not at all"
        => runtime!("lifecycle/found"::what_was_half_made_or_half_removed_is_finished),
    "C3 ${ENV} is expanded" => runtime!("manifest/read"::variable_is_what_is_asked_for_and_never_a_structure),
    "C3 ${ENV} never names a credential"
        => runtime!("manifest/wrong"::no_secret_of_a_variable_is_repeated_in_a_problem),
    "C3 fault: tools inherit the keys"
        => other!("tests/tests/secrets"::credential_is_used_and_stands_nowhere_when_it_is_hunted),
    "C3 tools cannot read the token of their agent"
        => other!("crates/adjutant-toolkit/tests/files"::agents_are_not_shown_wherever_they_are_kept),
    "C3 a root above the workspace does not show it"
        => runtime!("engine/toolboxes"::workspace_is_not_among_the_files_of_a_root_above_it),
    // C4: the prompt surface.
    "C4 an empty session is the default one"
        => runtime!("surface/prompting"::prompt_without_a_session_uses_the_default_one),
    "C4 an empty text is no prompt" => runtime!("surface/refusing"::prompt_that_is_empty_is_refused),
    "C4 Prompt writes message.create alone" => runtime!("surface/prompting"::prompt_answers_and_goes_on_in_its_session),
    "C4 the seven events" => runtime!("surface/raw"::simple_stream_has_the_seven_names_and_their_contents),
    "C4 the last event holds the full text"
        => runtime!("surface/raw"::simple_stream_has_the_seven_names_and_their_contents),
    "C4 tool_id and duration_ms" => runtime!("surface/raw"::simple_stream_has_the_seven_names_and_their_contents),
    "C4 back-pressure" => runtime!("surface/prompting"::reader_that_is_slow_holds_the_run_back),
    "C4 regenerate" => runtime!("engine/places"::session_has_one_handle_and_its_own_conversation,
        "another branch is another session: the surface has no word of its own for it"),
    "C4 object: schema is required" => runtime!("surface/object"::object_without_a_usable_schema_is_refused_unasked),
    "C4 object: the schema must declare a type"
        => runtime!("surface/object"::object_without_a_usable_schema_is_refused_unasked),
    "C4 object: generation fails" => runtime!("surface/object"::object_that_never_fits_is_an_error),
    "C4 object: no model is bound" => runtime!("engine/models"::missing_model_and_missing_key_are_errors_of_models,
        "an agent without a model does not start, so nobody can ask it"),
    "C4 messages: user or assistant" => runtime!("surface/history"::messages_tell_of_tools_and_leave_out_empty_texts),
    "C4 messages: the limit" => runtime!("surface/history"::messages_refuse_limits_out_of_range),
    "C4 dial waits 20 s" => runtime!("surface/wire"::nobody_who_listens_is_a_connection_error,
        "who asks is told at once that nobody listens; whoever wants to wait watches the status"),
    "C4 no address is an error" => suite!(lives_from_created_to_removed),
    // C5: the server.
    "C5 services: chat, stream, object, sessions, messages, health, ready"
        => runtime!("surface/openapi"::openapi_names_every_route_and_method_and_no_other),
    "C5 gRPC" => runtime!("surface/openapi"::openapi_is_served_and_every_route_answers_as_it_says,
        "HTTP with JSON and server-sent events: a shell and a browser speak it too"),
    "C5 health tells status and agent" => runtime!("surface/openapi"::status_and_stop_fit_their_schemas),
    "C5 graceful stop on SIGTERM"
        => runtime!("lifecycle/adverse"::host_that_was_asked_to_end_by_somebody_else_has_stopped),
    "C5 a stop lets runs end" => runtime!("surface/cancelling"::agent_that_stops_ends_its_runs_and_takes_no_more),
    "C5 boot: context files in order, with headings"
        => runtime!("engine/agents"::context_files_are_told_in_their_order_under_their_names),
    "C5 boot: sessions in SQLite" => runtime!("engine/places"::sessions_are_kept_in_a_database_of_the_workspace),
    "C5 defaults: 20 iterations" => runtime!("engine/bounds"::turns_are_limited,
        "50 turns; a manifest says another number"),
    "C5 defaults: memory strategy summarize" => runtime!("engine/agents"::effects_act_with_their_parameters,
        "no strategy acts unless the manifest names it in effects"),
    "C5 chat: user and answer are stored" => runtime!("surface/prompting"::prompt_answers_and_goes_on_in_its_session),
    "C5 fault: store failures are only logged"
        => runtime!("engine/places"::store_that_is_no_database_is_an_error_of_storage),
    "C5 fault: a failure leaves a dangling user row"
        => runtime!("surface/prompting"::failed_run_is_an_error_and_its_stream_ends_with_it),
    "C5 compaction: summary of the older part"
        => other!("crates/adjutant-context/tests/window"::summarise_keeps_the_recent_when_the_view_is_too_large),
    "C5 compaction: failure falls back"
        => other!("crates/adjutant-context/tests/compact/failures"::compact_leaves_out_the_oldest_when_the_summary_fails_and_something_must_go),
    "C5 compaction: sliding keeps the newest"
        => other!("crates/adjutant-context/tests/window"::window_keeps_the_newest_when_it_is_sliding),
    "C5 compaction writes a notice as a user"
        => other!("crates/adjutant-context/tests/compact"::compact_is_charged_and_reported_when_it_asks_a_model,
        "it is told by an event; nothing is put into the mouth of the user"),
    "C5 replacing happens in one transaction"
        => other!("crates/adjutant-context/tests/window"::window_stays_when_the_log_is_opened_again,
        "nothing is replaced: the view is edited by records, and the history stays whole"),
    "C5 fault: the oldest 50 messages, ties in a second"
        => runtime!("surface/history"::messages_are_paged_from_the_newest_and_oldest_first),
    "C5 fault: every later turn compacts again"
        => other!("crates/adjutant-context/tests/compact"::compact_does_not_oscillate_when_the_usage_falls_after_it),
    "C5 fault: the limit is ignored" => runtime!("surface/history"::messages_refuse_limits_out_of_range),
    "C5 fault: tool calls and results are lost"
        => runtime!("surface/history"::messages_tell_of_tools_and_leave_out_empty_texts),
    "C5 fault: no lock of a session"
        => runtime!("surface/prompting"::second_prompt_of_a_session_is_refused_while_others_run),
    "C5 fault: documented knobs are dead" => runtime!("engine/fields"::every_field_has_a_test_of_its_effect),
    "C5 fault: the error event is never sent"
        => runtime!("surface/raw"::simple_stream_ends_with_an_error_when_there_is_no_answer),
    "C5 tools: one text split as a shell does"
        => runtime!("engine/programs"::program_gets_arguments_in_its_command_line,
        "arguments are JSON by a schema, placed word by word: there is nothing to split"),
    "C5 tools: the failure keeps what was written"
        => runtime!("engine/programs"::exit_code_and_standard_error_are_told_when_a_program_fails),
    "C5 fault: no time limit of tools"
        => runtime!("engine/stubborn"::program_that_takes_too_long_is_killed_with_its_children),
    "C5 fault: no limit of output" => runtime!("engine/programs"::output_is_kept_up_to_its_size_and_the_rest_is_told),
    "C5 neighbours: message_<name>" => runtime!("engine/others"::tasks_are_given_to_agents_of_the_manifest,
        "agents of one manifest give tasks to each other in one process, with one budget and one cancellation"),
    "C5 fault: neighbours speak to nobody" => runtime!("engine/others"::tasks_are_given_to_agents_of_the_manifest),
    "C5 a key is required for some providers"
        => runtime!("engine/models"::missing_model_and_missing_key_are_errors_of_models),
    "C5 others go without a key" => runtime!("engine/models"::model_of_the_manifest_is_known_by_what_it_says),
    // C6: the file.
    "C6 line oriented" => runtime!("manifest/read"::manifest_of_one_agent_is_read_in_short,
        "YAML with a published schema, so that editors know it"),
    "C6 errors name the line" => runtime!("manifest/wrong"::wrong_manifests_are_told_with_place_and_hint),
    "C6 undefined variables stay" => runtime!("manifest/wrong"::wrong_manifests_are_told_with_place_and_hint,
        "one that is not set is an error with its line"),
    "C6 CONTEXT: the same name replaces" => runtime!("manifest/extends"::other_lists_are_replaced,
        "a child replaces the list as a whole, which shows what it has"),
    "C6 BIN: a tool with a description" => runtime!("engine/programs"::program_is_shown_as_the_manifest_describes_it),
    "C6 ADD: files with descriptions"
        => runtime!("engine/agents"::data_files_are_told_with_their_places_and_descriptions),
    "C6 LABEL" => runtime!("engine/models"::what_an_operator_is_shown_is_kept_as_it_was),
    "C6 ENV: reserved names are refused" => runtime!("manifest/wrong"::wrong_manifests_are_told_with_place_and_hint),
    "C6 CAPABILITY: an allow-list" => runtime!("engine/toolboxes"::toolbox_has_only_the_tools_that_are_named),
    "C6 inheritance: scalars" => runtime!("manifest/extends"::scalars_of_the_child_win),
    "C6 inheritance: labels, the child wins" => runtime!("manifest/extends"::maps_are_merged_by_key),
    "C6 inheritance: tools are appended" => runtime!("manifest/extends"::tools_and_toolboxes_are_merged_by_name),
    "C6 inheritance: ten deep, no circles"
        => runtime!("manifest/extends"::chain_of_parents_is_followed_ten_deep_and_no_deeper),
    "C6 inheritance: a circle is refused" => runtime!("manifest/hostile"::manifest_cannot_extend_itself),
    "C6 fault: a grandparent is merged twice" => runtime!("manifest/extends"::grandparent_is_merged_once),
    "C6 fault: values with = or !" => runtime!("manifest/resolve"::any_value_reads_back_equal_when_it_is_written),
    "C6 fault: the order of expansion is random"
        => runtime!("manifest/read"::variable_is_what_is_asked_for_and_never_a_structure),
    "C6 fault: names stand twice" => runtime!("manifest/wrong"::wrong_manifests_are_told_with_place_and_hint),
    "C6 fault: files of one name overwrite each other"
        => runtime!("lifecycle/workspace"::data_may_not_leave_the_working_folder_or_meet),
    "C6 fault: a limit of 64 KiB a line" => runtime!("manifest/hostile"::huge_file_is_refused,
        "a file may have 1 MiB, in lines of any length"),
    "C6 fault: what is required is not enforced"
        => runtime!("manifest/wrong"::wrong_manifests_are_told_with_place_and_hint),
    "C6 AGENT.md lists binaries and data"
        => runtime!("engine/agents"::data_files_are_told_with_their_places_and_descriptions),
    "C6 the layout of the folder"
        => runtime!("lifecycle/workspace"::files_are_copied_and_paths_are_those_of_the_copies),
    // C7: images and bundles.
    "C7 an OCI manifest of the agent"
        => runtime!("supervisor/bundles"::agent_is_the_same_when_it_was_exported_and_imported,
        "an agent is carried in one file of its own; a registry is not asked, and images are refused"),
    "C7 the same input gives the same digest"
        => runtime!("supervisor/bundles"::agent_is_the_same_when_it_was_exported_and_imported),
    "C7 export and import in one file"
        => runtime!("supervisor/bundles"::agent_is_the_same_when_it_was_exported_and_imported),
    "C7 export without secrets"
        => other!("tests/tests/secrets"::credential_is_used_and_stands_nowhere_when_it_is_hunted),
    "C7 every byte is checked" => runtime!("supervisor/bundles"::import_is_refused_when_any_byte_is_another_or_missing),
    "C7 fault: a digest is read as a tag"
        => runtime!("manifest/wrong"::wrong_manifests_are_told_with_place_and_hint,
            "nothing pulls images, so a manifest that names one is refused with the cure"),
    "C7 fault: a program of another system runs"
        => runtime!("engine/programs"::program_that_cannot_run_is_refused_when_the_engine_is_built),
    "C7 fixed: hostile names are materialised"
        => runtime!("supervisor/bundles"::import_is_refused_when_a_file_would_lie_elsewhere),
    "C7 fixed: a hostile manifest in an artifact"
        => runtime!("supervisor/bundles"::import_is_refused_when_its_manifest_points_out_of_the_folder),
    // C8: the supervisor.
    "C8 so many run at a time"
        => runtime!("supervisor/keeping"::agents_wait_for_a_place_and_are_seen_to_when_so_many_run),
    "C8 fault: the fifth waits unseen"
        => runtime!("supervisor/keeping"::agents_wait_for_a_place_and_are_seen_to_when_so_many_run),
    "C8 restart after pull, init and model"
        => other!("crates/adjutant-runtime/src/supervisor/course/tests"::one_that_can_heal_is_tried_without_end_and_config_never_again),
    "C8 pauses of 1 s, doubled, 30 s at most"
        => other!("crates/adjutant-runtime/src/supervisor/course/tests"::pauses_double_to_thirty_seconds_when_it_fails_again_and_again),
    "C8 no restart after a crash"
        => runtime!("supervisor/keeping"::agent_is_given_up_when_it_crashes_too_often_and_begins_anew_when_it_is_started,
        "one that crashed is started again, until five crashes within five minutes"),
    "C8 no restart after a readiness timeout"
        => runtime!("supervisor/keeping"::agent_is_stopped_and_tried_again_when_it_does_not_become_ready,
        "it is tried again with pauses: a machine that was busy is not busy for ever"),
    "C8 no restart after a stop" => runtime!("supervisor/keeping"::stop_ends_a_pause_when_an_agent_had_failed),
    "C8 readiness is probed" => runtime!("lifecycle/adverse"::host_that_never_gets_ready_is_killed),
    "C8 an agent that answers no more" => runtime!("supervisor/keeping"::agent_begins_anew_when_it_does_not_answer),
    "C8 Start begins the count anew"
        => runtime!("supervisor/keeping"::agent_is_given_up_when_it_crashes_too_often_and_begins_anew_when_it_is_started),
    "C8 a line in the log when it fails"
        => runtime!("lifecycle/adverse"::host_that_exits_at_once_has_crashed_with_its_last_words),
    "C8 the end waits for all" => runtime!("supervisor/ending"::every_agent_is_accounted_for_when_the_supervisor_ends),
    "C8 jobs with their own life"
        => other!("crates/adjutant-orchestration/tests/background/ends"::run_ends_at_once_when_it_would_wait_and_nothing_runs,
        "work in the background belongs to a run and ends with it; what outlives one is an agent"),
    "C8 cancel kills the group of processes"
        => runtime!("engine/stubborn"::program_is_killed_when_its_run_is_cancelled),
    "C8 notes of an agent" => runtime!("engine/places"::notes_of_the_manifest_are_shared_by_its_agents),
    "C8 a directed graph of who may call whom"
        => runtime!("engine/others"::each_agent_gives_tasks_to_those_that_it_names_itself),
    "C8 tokens of ten years" => runtime!("surface/status"::wrong_token_is_denied_whatever_is_asked,
        "a token lives as long as the process that made it"),
    "C8 sandbox by bwrap, silently none"
        => runtime!("engine/programs"::program_has_the_environment_of_the_manifest_and_nothing_else,
        "none is promised: tools run as their user, with a clean environment, and the documents say so"),

    // The engine of the first parent.
    "A9 providers with base_url, key, model"
        => runtime!("engine/models"::provider_of_the_manifest_is_asked_with_its_key),
    "A9 providers: api_key in the file" => runtime!("manifest/wrong"::wrong_manifests_are_told_with_place_and_hint,
        "a manifest names the variable of a key and never holds one"),
    "A9 context_window and max_tokens of a model"
        => runtime!("engine/models"::model_of_the_manifest_is_known_by_what_it_says),
    "A9 rate_limit: requests" => runtime!("engine/models"::requests_wait_for_their_turn),
    "A9 rate_limit: tokens of input" => runtime!("engine/models"::input_waits_for_its_turn),
    "A9 rate_limit: retries" => runtime!("engine/models"::failed_call_is_tried_again_as_often_as_the_manifest_says),
    "A9 batch and mcp_servers" => runtime!("manifest/documented"::every_field_is_documented_and_nothing_else_is,
        "a manifest has no field of them: what is not built is not documented, and an unknown field is an error"),
    "A9 agents: name, description, instructions" => runtime!("engine/agents"::instructions_are_the_system_prompt),
    "A9 toolboxes: a name, or a name and its tools"
        => runtime!("engine/toolboxes"::toolbox_has_only_the_tools_that_are_named),
    "A9 skills" => runtime!("engine/agents"::skills_are_those_that_the_agent_names),
    "A9 effects: kind and params" => runtime!("engine/agents"::effects_act_with_their_parameters),
    "A9 max_iterations" => runtime!("engine/bounds"::turns_are_limited),
    "A9 max_delegation_depth" => runtime!("engine/others"::depth_bounds_the_levels_below),
    "A9 max_handoffs" => runtime!("engine/others"::task_may_be_handed_on_as_often_as_the_agent_says),
    "A9 interaction_mode" => runtime!("engine/bounds"::unattended_run_refuses_instead_of_waiting),
    "A9 prefix" => runtime!("engine/agents"::prefix_stands_before_the_lines_of_an_agent),
    "A9 estimated_cost and skills_tags" => runtime!("engine/others"::profiles_tell_what_others_are_good_for),
    "A9 max_concurrency" => runtime!("engine/others"::so_many_work_at_a_time_as_the_agent_says),
    "A9 entry_agent" => runtime!("engine/models"::prompts_go_to_the_entry_agent),
    "A9 variables after parsing, unset is empty"
        => runtime!("manifest/wrong"::wrong_manifests_are_told_with_place_and_hint,
        "one that is not set is an error with its line, since an empty text is never what was meant"),
    "A9 a variable never changes the structure"
        => runtime!("manifest/read"::variable_is_what_is_asked_for_and_never_a_structure),
    "A9 validation lists all that is wrong" => runtime!("manifest/wrong"::wrong_manifests_are_told_with_place_and_hint),
    "A9 one Send of a session at a time"
        => runtime!("surface/prompting"::second_prompt_of_a_session_is_refused_while_others_run),
    "A9 a session goes on later" => runtime!("engine/places"::conversation_goes_on_in_another_engine),
    "A9 a question is answered" => runtime!("surface/pausing"::run_that_waits_goes_on_with_the_answer),
    "A9 event bus: drops when a subscriber is full"
        => other!("crates/adjutant-agent/tests/listeners"::subscriber_misses_no_lifecycle_event_when_it_is_slow,
        "nothing is dropped: deltas are joined for whoever is slow, and what was missed is read from the log"),
    "A9 Close waits for what is at work"
        => runtime!("surface/cancelling"::agent_that_stops_ends_its_runs_and_takes_no_more),
    "A9 providers of one's own kind" => runtime!("engine/models"::given_model_tells_about_itself),
    "A9 context files are bounded" => runtime!("lifecycle/workspace"::files_that_are_too_long_are_refused),
    "A9 sessions are listed in pages" => runtime!("surface/history"::sessions_are_paged_from_the_newest),
    "A9 attachments stand once"
        => other!("crates/adjutant-agent/tests/sessions/files"::attachment_stands_once_when_many_records_have_it),

    // What may go wrong.
    "bad input: hostile names" => suite!(bad_names_refused),
    "bad input: hostile paths" => runtime!("manifest/hostile"::paths_are_refused_when_they_lead_elsewhere),
    "bad input: links out of the project" => runtime!("lifecycle/workspace"::links_out_of_the_project_are_refused),
    "bad input: device files" => runtime!("lifecycle/workspace"::what_is_no_regular_file_is_refused),
    "bad input: huge files" => runtime!("manifest/hostile"::huge_file_is_refused),
    "bad input: YAML bombs" => runtime!("manifest/hostile"::yaml_bombs_are_refused),
    "bad input: a port that is taken"
        => runtime!("lifecycle/adverse"::port_is_kept_and_a_new_one_is_told_when_it_is_taken),
    "bad input: a binary that is missing or not executable"
        => runtime!("lifecycle/adverse"::host_that_is_missing_or_cannot_be_executed_is_told),
    "bad input: a binary that was changed"
        => runtime!("lifecycle/adverse"::tool_that_was_changed_since_the_agent_was_made_is_refused),
    "bad input: a child that ignores signals"
        => suite!(deaf_is_killed),
    "bad input: a child that forks" => suite!(children_end_with_it),
    "bad input: a child that floods its output"
        => runtime!("lifecycle/adverse"::host_that_floods_its_output_fills_no_disk),
    "bad input: a disk that is full"
        => runtime!("lifecycle/workspace"::workspace_that_cannot_be_written_leaves_nothing_half),
    "bad input: two operators on one folder"
        => runtime!("supervisor/homes"::second_operator_is_refused_and_told_who_works_when_there_is_one),
    "bad input: a wrong token" => runtime!("surface/status"::wrong_token_is_denied_whatever_is_asked),
    "bad input: an operator that is killed at any moment"
        => other!("tests/tests/chaos"::agents_stand_where_they_should_when_they_and_their_operator_are_killed),
    "bad input: agents among the files of a toolbox"
        => runtime!("engine/toolboxes"::root_among_the_agents_of_a_folder_is_refused),
    // What is built beside the contract.
    "build: several agents and files of agents" => runtime!("manifest/include"::agents_are_included_with_every_field),
    "build: errors with file, line, column and the nearest word"
        => runtime!("manifest/wrong"::wrong_manifests_are_told_with_place_and_hint),
    "build: the schema is published" => other!("crates/adjutant-cli/tests/cli/manifest"::schema_is_printed),
    "build: the schema takes every example" => runtime!("manifest/schema"::schema_takes_every_example),
    "build: nothing documented is ignored" => runtime!("engine/fields"::every_field_has_a_test_of_its_effect),
    "build: routes and their description agree"
        => runtime!("surface/openapi"::openapi_names_every_route_and_method_and_no_other),
    "build: logs are rotated" => runtime!("lifecycle/logs"::log_that_is_long_is_put_aside_and_the_oldest_is_forgotten),
    "build: init writes what runs at once"
        => other!("crates/adjutant-cli/tests/cli/init"::init_writes_a_manifest_that_is_right),
    "build: up supervises a directory"
        => other!("crates/adjutant-cli/tests/cli/up"::agents_are_made_supervised_and_stopped_when_an_operator_works),
    "build: desired state outlives its operator"
        => other!("crates/adjutant-cli/tests/cli/up"::next_operator_adopts_agents_when_one_was_killed),
};
