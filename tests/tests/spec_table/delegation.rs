//! Rows of delegation: the registry, the tools, names, boards, completion, reflections, events.

use super::{How::*, Row, rows};

pub(crate) const ROWS: &[Row] = rows! { "delegation";
    // The registry.
    "a registry may be used by many threads"
        => Test("crates/adjutant-orchestration/tests/promises.rs::registry_is_whole_when_threads_register_list_and_spawn"),
    "NewRegistry is empty"
        => Test("crates/adjutant-orchestration/tests/registry.rs::list_is_sorted_by_name_when_entries_come_in_any_order"),
    "Register takes name, description, factory"
        => Test("crates/adjutant-orchestration/tests/registry.rs::get_finds_nothing_when_the_name_is_unknown"),
    "Register replaces an entry of the same name"
        => Test("crates/adjutant-orchestration/tests/registry.rs::entry_is_replaced_when_its_name_is_registered_again"),
    "Get gives the factory, or tells that there is none" => Deviation {
        test: "crates/adjutant-orchestration/tests/registry.rs::get_finds_nothing_when_the_name_is_unknown",
        why: "it gives what is known of the entry; only spawn calls a factory, so that every instance has a name and \
               a slot",
    },
    "List is sorted by name"
        => Test("crates/adjutant-orchestration/tests/registry.rs::list_is_sorted_by_name_when_entries_come_in_any_order"),
    "Spawn gives a fresh instance"
        => Test("crates/adjutant-orchestration/tests/registry.rs::instances_are_fresh_and_named_after_entry_and_task_when_they_are_spawned"),
    "Spawn is given the depth" => Deviation {
        test: "crates/adjutant-orchestration/tests/delegation/bounds.rs::depth_is_bounded_when_factories_install_delegations_of_their_own",
        why: "depth is that of the place in the tree, so that nobody can pretend another one",
    },
    "Spawn sets the config name"
        => Test("crates/adjutant-orchestration/tests/registry.rs::instances_are_fresh_and_named_after_entry_and_task_when_they_are_spawned"),
    "NextID only grows"
        => Test("crates/adjutant-orchestration/tests/registry.rs::names_are_unique_when_many_threads_spawn"),
    "NextID counts for each config name"
        => Test("crates/adjutant-orchestration/tests/registry.rs::instances_are_fresh_and_named_after_entry_and_task_when_they_are_spawned"),
    "a factory gives a fresh agent"
        => Test("crates/adjutant-orchestration/tests/registry.rs::instances_are_fresh_and_named_after_entry_and_task_when_they_are_spawned"),
    "a fresh agent has no conversation"
        => Test("crates/adjutant-orchestration/tests/delegation/briefs.rs::agent_is_told_context_then_task_when_a_task_is_delegated"),
    "an entry has name and description"
        => Test("crates/adjutant-orchestration/tests/registry.rs::profile_leaves_out_what_is_empty_when_it_is_shown"),
    // Completion.
    "a completion is set by task_complete and read by who delegated"
        => Test("crates/adjutant-orchestration/tests/delegation/ends.rs::completion_is_whole_when_the_agent_reports"),
    "status: completed or failed"
        => Test("crates/adjutant-orchestration/tests/delegation/ends.rs::status_is_an_error_of_the_call_when_it_is_none"),
    "summary: what was done, or why not"
        => Test("crates/adjutant-orchestration/tests/delegation/ends.rs::completion_is_whole_when_the_agent_reports"),
    "files modified, if any"
        => Test("crates/adjutant-orchestration/tests/delegation/ends.rs::completion_is_whole_when_the_agent_reports"),
    "tests run, if any"
        => Test("crates/adjutant-orchestration/tests/delegation/ends.rs::completion_is_whole_when_the_agent_reports"),
    "caveats, if any"
        => Test("crates/adjutant-orchestration/tests/delegation/ends.rs::completion_is_whole_when_the_agent_reports"),
    "what is empty is left out"
        => Test("crates/adjutant-orchestration/tests/delegation/ends.rs::completion_is_found_in_the_run_when_there_is_one"),
    // A board.
    "a board may be set, and delegation works without"
        => Test("crates/adjutant-orchestration/src/delegation/tests.rs::result_has_a_warning_when_there_is_no_board"),
    "with a board, delegate claims tasks and updates their status"
        => Test("crates/adjutant-orchestration/src/delegation/tests.rs::task_is_claimed_before_and_ended_after_when_the_agent_reports"),
    "a board is an interface of two methods" => Deviation {
        test: "crates/adjutant-orchestration/tests/board.rs::one_wins_when_two_claim_a_task",
        why: "it is one type with checked rules on any shelf, so that no board breaks them",
    },
    "ClaimTask: id and agent"
        => Test("crates/adjutant-orchestration/tests/delegation/boards.rs::task_of_the_board_is_ended_when_its_agent_is_done"),
    "UpdateTaskStatus: id and status"
        => Test("crates/adjutant-orchestration/tests/delegation/boards.rs::task_of_the_board_is_ended_when_its_agent_is_done"),
    // The tools.
    "list_agents and delegate are there with a registry and depth"
        => Test("crates/adjutant-orchestration/tests/delegation/tools.rs::tools_of_the_root_do_not_complete_tasks_when_it_delegates"),
    "they are not there otherwise"
        => Test("crates/adjutant-orchestration/tests/delegation/tools.rs::tools_are_absent_when_no_depth_is_left"),
    "list_agents lists all others"
        => Test("crates/adjutant-orchestration/tests/delegation/tools.rs::agents_are_listed_without_oneself_when_they_are_asked_for"),
    "list_agents leaves oneself out in whatever case"
        => Test("crates/adjutant-orchestration/tests/delegation/tools.rs::agents_are_listed_without_oneself_when_they_are_asked_for"),
    "delegate takes one task or several"
        => Test("crates/adjutant-orchestration/tests/delegation/ends.rs::results_are_in_the_order_of_the_tasks_when_agents_end_in_another"),
    "delegate runs all of them at once"
        => Test("crates/adjutant-orchestration/tests/delegation/ends.rs::results_are_in_the_order_of_the_tasks_when_agents_end_in_another"),
    "a task names agent, task and context"
        => Test("crates/adjutant-orchestration/tests/promises/below.rs::call_is_refused_when_a_task_lacks_agent_task_or_context"),
    "a task may name one of the board"
        => Test("crates/adjutant-orchestration/tests/delegation/boards.rs::task_of_the_board_is_ended_when_its_agent_is_done"),
    "task_complete is there below the first agent"
        => Test("crates/adjutant-orchestration/tests/delegation/briefs.rs::agent_has_its_own_tools_only_when_its_parent_has_others"),
    "task_complete is not there for the first agent"
        => Test("crates/adjutant-orchestration/tests/delegation/tools.rs::tools_of_the_root_do_not_complete_tasks_when_it_delegates"),
    "task_complete: status, summary, files, tests, caveats"
        => Test("crates/adjutant-orchestration/tests/delegation/ends.rs::completion_is_whole_when_the_agent_reports"),
    "task_complete counts once a run"
        => Test("crates/adjutant-orchestration/tests/delegation/ends.rs::first_report_counts_when_there_are_two"),
    // How delegate works.
    "1: to oneself is refused"
        => Test("crates/adjutant-orchestration/tests/delegation/tools.rs::delegation_to_oneself_refuses_the_whole_call_when_one_task_is_one"),
    "1: the depth is kept"
        => Test("crates/adjutant-orchestration/tests/delegation/bounds.rs::depth_never_exceeds_the_smaller_bound_when_agents_delegate_all_they_can"),
    "2: agents are spawned from the registry"
        => Test("crates/adjutant-orchestration/tests/delegation/briefs.rs::agent_has_names_task_and_prefix_when_it_is_opened"),
    "2: one deeper"
        => Test("crates/adjutant-orchestration/tests/delegation/bounds.rs::depth_is_bounded_when_an_agent_delegates_to_itself_through_another"),
    "2: with a name of its own"
        => Test("crates/adjutant-orchestration/tests/delegation/bounds.rs::hundred_agents_work_at_once_when_they_are_delegated_to"),
    "3: the registry goes on to them"
        => Test("crates/adjutant-orchestration/tests/delegation/briefs.rs::agent_inherits_the_registry_when_depth_is_left"),
    "3: EventNotifier and EventFunc go on to them"
        => Test("crates/adjutant-orchestration/tests/delegation/events.rs::whole_tree_is_in_one_stream_when_agents_delegate_on"),
    "3: reflections and board go on to them"
        => Test("crates/adjutant-orchestration/tests/promises/below.rs::board_and_reflections_reach_agents_further_down_when_they_delegate"),
    "3: each keeps the depth of its own"
        => Test("crates/adjutant-orchestration/tests/delegation/bounds.rs::depth_is_the_childs_own_when_the_parent_leaves_more"),
    "3: whatever its ancestors leave" => Deviation {
        test: "crates/adjutant-orchestration/tests/delegation/bounds.rs::depth_is_bounded_when_an_agent_delegates_to_itself_through_another",
        why: "the smaller of both counts, so that a tree has a bound",
    },
    "4: only its own tools"
        => Test("crates/adjutant-orchestration/tests/delegation/briefs.rs::agent_has_its_own_tools_only_when_its_parent_has_others"),
    "5: the context first, in tags, as a user message"
        => Test("crates/adjutant-orchestration/tests/delegation/briefs.rs::agent_is_told_context_then_task_when_a_task_is_delegated"),
    "6: then what was learned of such tasks, in tags"
        => Test("crates/adjutant-orchestration/tests/promises/below.rs::board_and_reflections_reach_agents_further_down_when_they_delegate"),
    "7: then the task, as a user message"
        => Test("crates/adjutant-orchestration/tests/promises/below.rs::board_and_reflections_reach_agents_further_down_when_they_delegate"),
    "8: all at once, results collected"
        => Test("crates/adjutant-orchestration/tests/delegation/ends.rs::results_are_in_the_order_of_the_tasks_when_agents_end_in_another"),
    "guard: oneself is known by the config name, in whatever case"
        => Test("crates/adjutant-orchestration/tests/delegation/tools.rs::delegation_to_oneself_is_known_by_the_config_name_when_the_instance_has_another"),
    "guard: MaxDelegationDepth"
        => Test("crates/adjutant-orchestration/tests/delegation/bounds.rs::depth_is_bounded_when_factories_install_delegations_of_their_own"),
    // Names.
    "an agent has two names"
        => Test("crates/adjutant-orchestration/tests/delegation/briefs.rs::agent_has_names_task_and_prefix_when_it_is_opened"),
    "config name: the kind, for looking it up and for telling oneself apart"
        => Test("crates/adjutant-orchestration/tests/delegation/tools.rs::delegation_to_oneself_is_known_by_the_config_name_when_the_instance_has_another"),
    "config name: the instance's, in a session"
        => Test("crates/adjutant-orchestration/tests/promises.rs::first_agent_has_one_name_no_mark_and_nobody_above_when_it_is_made"),
    "config name: set by Spawn"
        => Test("crates/adjutant-orchestration/tests/registry.rs::instances_are_fresh_and_named_after_entry_and_task_when_they_are_spawned"),
    "instance name: unique"
        => Test("crates/adjutant-orchestration/tests/registry.rs::names_are_unique_when_many_threads_spawn"),
    "instance name: the config name, in a session"
        => Test("crates/adjutant-orchestration/tests/promises.rs::first_agent_has_one_name_no_mark_and_nobody_above_when_it_is_made"),
    "instance name: config name, a word of the task, a number"
        => Test("crates/adjutant-orchestration/tests/registry.rs::instances_are_fresh_and_named_after_entry_and_task_when_they_are_spawned"),
    "several of one kind can work at once"
        => Test("crates/adjutant-orchestration/tests/delegation/bounds.rs::hundred_agents_work_at_once_when_they_are_delegated_to"),
    "they are told apart in events"
        => Test("crates/adjutant-orchestration/tests/promises/below.rs::end_of_an_agent_is_told_when_it_fails_and_when_it_is_done"),
    "they are told apart on boards"
        => Test("crates/adjutant-orchestration/tests/delegation/boards.rs::task_of_the_board_is_ended_when_its_agent_is_done"),
    "the config name counts in list_agents, delegate and the prompt"
        => Test("crates/adjutant-orchestration/tests/delegation/briefs.rs::agent_inherits_the_registry_when_depth_is_left"),
    "the instance name counts as identity and for what it calls"
        => Test("crates/adjutant-orchestration/tests/delegation/briefs.rs::hooks_of_the_parent_see_the_calls_of_the_child_when_it_works"),
    "the instance name counts in events"
        => Test("crates/adjutant-orchestration/tests/delegation/events.rs::whole_tree_is_in_one_stream_when_agents_delegate_on"),
    "the instance name counts for claims"
        => Test("crates/adjutant-orchestration/src/delegation/tests.rs::task_is_claimed_before_and_ended_after_when_the_agent_reports"),
    // Tasks of a board.
    "with a board, a task may have an id"
        => Test("crates/adjutant-orchestration/tests/delegation/boards.rs::task_of_the_board_is_ended_when_its_agent_is_done"),
    "it is claimed for the agent before that begins"
        => Test("crates/adjutant-orchestration/src/delegation/tests.rs::task_is_claimed_before_and_ended_after_when_the_agent_reports"),
    "if it cannot be claimed, the task fails at once"
        => Test("crates/adjutant-orchestration/src/delegation/tests.rs::agent_is_not_started_when_its_task_cannot_be_claimed"),
    "it gets the status that was reported"
        => Test("crates/adjutant-orchestration/src/delegation/tests.rs::task_is_claimed_before_and_ended_after_when_the_agent_reports"),
    "out of turns: a failed completion is made"
        => Test("crates/adjutant-orchestration/tests/delegation/ends.rs::failed_completion_is_made_when_the_agent_runs_out_of_turns"),
    "out of turns: the task has failed"
        => Test("crates/adjutant-orchestration/src/delegation/tests.rs::task_fails_when_the_agent_runs_out_of_turns"),
    "an error of the agent: the task has failed"
        => Test("crates/adjutant-orchestration/src/delegation/tests.rs::task_fails_when_the_agent_does"),
    "a cancelled run: the task has failed"
        => Test("crates/adjutant-orchestration/src/delegation/tests.rs::task_fails_when_the_run_is_cancelled"),
    "no task stays in progress"
        => Test("crates/adjutant-orchestration/src/delegation/tests.rs::task_fails_when_its_call_is_given_up_without_a_word"),
    "no report and no error: the task is completed"
        => Test("crates/adjutant-orchestration/src/delegation/tests.rs::task_counts_as_completed_when_the_agent_only_answers"),
    // The protocol of completion.
    "agents below have task_complete"
        => Test("crates/adjutant-orchestration/tests/delegation/briefs.rs::agent_has_its_own_tools_only_when_its_parent_has_others"),
    "agents below are told in the prompt to call it"
        => Test("crates/adjutant-orchestration/tests/delegation/briefs.rs::agent_has_its_own_tools_only_when_its_parent_has_others"),
    "calling it ends the loop at once"
        => Test("crates/adjutant-orchestration/tests/delegation/ends.rs::run_of_the_agent_ends_at_once_when_it_reports"),
    "the result is stored on the agent" => Deviation {
        test: "crates/adjutant-orchestration/tests/delegation/crash.rs::finished_agents_are_not_started_again_when_the_call_is_entered_again",
        why: "it stands in the run, where it is found again after a crash; an agent that others share is not written \
               to",
    },
    "the result is in what delegate answers"
        => Test("crates/adjutant-orchestration/tests/delegation/ends.rs::completion_is_whole_when_the_agent_reports"),
    "without a report until the limit: a failed completion"
        => Test("crates/adjutant-orchestration/tests/delegation/ends.rs::failed_completion_is_made_when_the_agent_runs_out_of_turns"),
    "without a report until the limit: a reflection"
        => Test("crates/adjutant-orchestration/src/delegation/tests.rs::failure_is_recorded_when_the_agent_reports_one_or_runs_out_of_turns"),
    "a second report does no harm"
        => Test("crates/adjutant-orchestration/tests/delegation/ends.rs::first_report_counts_when_there_are_two"),
    "a second report is silent" => Deviation {
        test: "crates/adjutant-orchestration/tests/delegation/ends.rs::first_report_counts_when_there_are_two",
        why: "the model is told that the first one counts, so that it does not believe otherwise",
    },
    // Reflections.
    "failures are written down as markdown"
        => Test("crates/adjutant-orchestration/tests/reflection/directory.rs::file_is_markdown_that_people_can_read"),
    "they are written down when an agent fails"
        => Test("crates/adjutant-orchestration/src/delegation/tests.rs::failure_is_recorded_when_the_agent_reports_one_or_runs_out_of_turns"),
    "they are looked for before a task, by its words"
        => Test("crates/adjutant-orchestration/tests/reflection/ranking.rs::search_goes_by_words_and_not_by_parts_of_words"),
    "any match of words counts, newest first" => Deviation {
        test: "crates/adjutant-orchestration/tests/reflection/ranking.rs::most_relevant_comes_first",
        why: "a real search ranks them, and what has helped before comes first",
    },
    "those that fit are told before the task"
        => Test("crates/adjutant-orchestration/tests/delegation/boards.rs::failure_is_told_before_the_next_task_when_it_is_like_the_one_that_failed"),
    "agents learn from failures"
        => Test("crates/adjutant-orchestration/tests/reflection/agents.rs::helpful_reflection_rises_and_useless_one_drops_out_over_repeated_runs"),
    "at most 5 are told"
        => Test("crates/adjutant-orchestration/tests/reflection/ranking.rs::number_that_is_recalled_is_bounded"),
    "at most 32 KB are told"
        => Test("crates/adjutant-orchestration/tests/reflection/ranking.rs::bytes_that_are_recalled_are_bounded_and_what_is_recalled_is_shown_whole"),
    // Notes.
    "with tools for notes the prompt tells of them"
        => Test("crates/adjutant-orchestration/tests/notes/agents.rs::section_is_there_only_when_the_tools_are_and_holds_no_note"),
    "they are known by list_notes"
        => Test("crates/adjutant-orchestration/src/notes/protocol.rs::section_says_nothing_when_the_run_has_no_such_tool"),
    "notes are shared and durable"
        => Test("crates/adjutant-orchestration/tests/notes/keeping.rs::note_is_read_by_others_when_it_was_written"),
    "no note is in the prompt"
        => Test("crates/adjutant-orchestration/tests/notes/agents.rs::section_is_there_only_when_the_tools_are_and_holds_no_note"),
    // Events.
    "agents below are told of when there is a notifier" => Deviation {
        test: "crates/adjutant-orchestration/tests/delegation/events.rs::whole_tree_is_in_one_stream_when_agents_delegate_on",
        why: "they are told of always, in the one stream; nobody has to read it",
    },
    "agent_start before an agent runs, with prefix and parent"
        => Test("crates/adjutant-orchestration/tests/promises/below.rs::end_of_an_agent_is_told_when_it_fails_and_when_it_is_done"),
    "agent_end after it is done"
        => Test("crates/adjutant-orchestration/tests/delegation/events.rs::whole_tree_is_in_one_stream_when_agents_delegate_on"),
    "agent_end after it has failed"
        => Test("crates/adjutant-orchestration/tests/promises/below.rs::end_of_an_agent_is_told_when_it_fails_and_when_it_is_done"),
    "every level is told of"
        => Test("crates/adjutant-orchestration/tests/delegation/events.rs::whole_tree_is_in_one_stream_when_agents_delegate_on"),
    // Tools stay apart.
    "an agent has its own toolboxes only"
        => Test("crates/adjutant-orchestration/tests/delegation/briefs.rs::agent_has_its_own_tools_only_when_its_parent_has_others"),
    "the parent's are not inherited"
        => Test("crates/adjutant-orchestration/tests/delegation/briefs.rs::agent_has_its_own_tools_only_when_its_parent_has_others"),
    "it can do no more than it was made for"
        => Test("crates/adjutant-agent/tests/subagents.rs::child_has_no_tools_when_none_are_handed_over"),
    // Marks.
    "a prefix can be set"
        => Test("crates/adjutant-orchestration/tests/delegation/briefs.rs::agent_has_names_task_and_prefix_when_it_is_opened"),
    "it is a robot otherwise" => Deviation {
        test: "crates/adjutant-orchestration/tests/promises.rs::first_agent_has_one_name_no_mark_and_nobody_above_when_it_is_made",
        why: "it is empty: marks are for whoever shows something",
    },
    "screens read it from the agent or from events"
        => Test("crates/adjutant-orchestration/tests/delegation/briefs.rs::agent_has_names_task_and_prefix_when_it_is_opened"),
    // What delegation did there besides.
    "list_agents tells skills, cost and how many at a time, if known"
        => Test("crates/adjutant-orchestration/tests/delegation/tools.rs::agents_are_listed_without_oneself_when_they_are_asked_for"),
    "no tasks give no results"
        => Test("crates/adjutant-orchestration/tests/delegation/tools.rs::nothing_comes_of_an_empty_list_when_it_is_delegated"),
    "an unknown agent fails its task alone"
        => Test("crates/adjutant-orchestration/tests/delegation/tools.rs::unknown_agent_fails_its_task_alone_when_others_are_known"),
    "the result is the summary, or a line of status and caveats"
        => Test("crates/adjutant-orchestration/tests/delegation/ends.rs::result_is_a_line_of_status_and_caveats_when_the_summary_is_blank"),
    "the result is the reply otherwise, cut at 2,000 characters"
        => Test("crates/adjutant-orchestration/tests/delegation/ends.rs::result_is_the_reply_when_the_agent_does_not_report"),
    "the context is cut at 16,000 characters"
        => Test("crates/adjutant-orchestration/tests/delegation/briefs.rs::context_is_cut_with_a_mark_when_it_is_too_long"),
    "the word of a name is the first that says something, or task"
        => Test("crates/adjutant-orchestration/src/registry/name.rs::slug_is_the_first_word_that_says_something"),
    "the word of a name has 12 characters at most"
        => Test("crates/adjutant-orchestration/src/registry/name.rs::slug_is_cut_when_its_word_is_long"),
    "progress: what the agent says, cut at 500 characters"
        => Test("crates/adjutant-orchestration/tests/delegation/events.rs::progress_shows_what_the_agent_says_and_what_comes_of_it_when_it_works"),
    "progress: nothing of calls and blank texts, and the result last"
        => Test("crates/adjutant-orchestration/tests/delegation/events.rs::progress_shows_what_the_agent_says_and_what_comes_of_it_when_it_works"),
    "a task that is claimed already can be delegated"
        => Test("crates/adjutant-orchestration/tests/delegation/boards.rs::task_goes_to_the_agent_when_who_delegates_it_had_claimed_it"),
    "cancelled on the board: the agent is stopped"
        => Test("crates/adjutant-orchestration/tests/delegation/boards.rs::agent_is_stopped_when_its_task_is_cancelled"),
    "a board that fails is a warning"
        => Test("crates/adjutant-orchestration/src/delegation/tests.rs::result_has_a_warning_when_the_board_cannot_be_told"),
    "a task is handed on to a peer, with reason and context"
        => Test("crates/adjutant-orchestration/tests/delegation/handoffs.rs::peer_reports_when_the_task_is_handed_on"),
    "it can be handed on once a run"
        => Test("crates/adjutant-orchestration/tests/delegation/handoffs.rs::first_handoff_counts_when_there_are_two"),
    "it can be handed on 3 times if nothing is set" => Deviation {
        test: "crates/adjutant-orchestration/tests/delegation/handoffs.rs::handoff_is_absent_when_the_delegation_allows_none",
        why: "0 is never: what is not set does not happen",
    },
    "how often it is handed on is bounded"
        => Test("crates/adjutant-orchestration/tests/delegation/handoffs.rs::chain_is_bounded_when_peers_hand_on_to_one_another"),
    "to oneself or to nobody is an error"
        => Test("crates/adjutant-orchestration/tests/delegation/handoffs.rs::handoff_is_an_error_when_it_goes_to_oneself_or_to_nobody"),
    "the task of the board is the peer's then"
        => Test("crates/adjutant-orchestration/src/delegation/tests.rs::task_goes_to_the_peer_when_it_is_handed_on"),
    "handing on goes before completion"
        => Test("crates/adjutant-orchestration/tests/delegation/handoffs.rs::handoff_counts_when_the_agent_reports_in_the_same_turn"),
    "an agent may ask, and waits for the answer"
        => Test("crates/adjutant-orchestration/tests/delegation/questions.rs::agent_goes_on_when_its_question_is_answered"),
    "asked while nobody answers: the context is the answer" => Deviation {
        test: "crates/adjutant-orchestration/tests/delegation/questions.rs::nobody_may_ask_when_the_delegation_is_not_interactive",
        why: "an echo is no answer: who cannot be answered has no tool to ask",
    },
    "delegate returns when each agent is done or asks"
        => Test("crates/adjutant-orchestration/tests/delegation/questions.rs::call_returns_when_each_agent_is_done_or_asks"),
    "questions have ids d-n and q-n, which are all checked first"
        => Test("crates/adjutant-orchestration/tests/delegation/questions.rs::nothing_is_answered_when_one_of_the_ids_is_wrong"),
    "a question that is not answered in time stops its agent"
        => Test("crates/adjutant-orchestration/tests/delegation/questions.rs::agent_is_stopped_when_its_question_is_not_answered_in_time"),
    "agents that still ask end with the run"
        => Test("crates/adjutant-orchestration/tests/delegation/questions.rs::agents_end_with_the_run_when_nobody_answers"),
};
