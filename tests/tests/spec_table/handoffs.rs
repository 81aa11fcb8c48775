//! Rows of handoffs, sub-agents, fan-out and background tasks.

use super::{How::*, Row, rows};

pub(crate) const ROWS: &[Row] = rows! { "handoffs";
    // Handoffs, as they are declared.
    "HandoffConfig: the name makes the tool transfer_to_<name>"
        => Test("crates/adjutant-orchestration/tests/relay.rs::target_answers_with_its_own_prompt_and_tools_when_it_gets_the_conversation"),
    "HandoffConfig: the description tells the model when"
        => Test("crates/adjutant-orchestration/tests/promises/handing.rs::tools_tell_when_to_hand_over_and_only_to_whom_one_may"),
    "HandoffConfig: the agent gets control"
        => Test("crates/adjutant-orchestration/tests/relay.rs::target_answers_with_its_own_prompt_and_tools_when_it_gets_the_conversation"),
    "the target has its own prompt and tools"
        => Test("crates/adjutant-orchestration/tests/relay.rs::target_answers_with_its_own_prompt_and_tools_when_it_gets_the_conversation"),
    "the target knows the whole history"
        => Test("crates/adjutant-orchestration/tests/relay.rs::conversation_goes_through_a_chain_when_targets_hand_on"),
    "the tools are there by themselves"
        => Test("crates/adjutant-orchestration/tests/relay.rs::target_answers_with_its_own_prompt_and_tools_when_it_gets_the_conversation"),
    "WithHandoffs: peers that one may hand over to"
        => Test("crates/adjutant-orchestration/tests/promises/handing.rs::tools_tell_when_to_hand_over_and_only_to_whom_one_may"),
    "WithHandoffs: an option of the agent" => Deviation {
        test: "crates/adjutant-orchestration/tests/relay.rs::relay_is_refused_when_its_names_cannot_be",
        why: "the agents of one conversation are a relay beside them, which checks their names; the agents stay as \
               they are",
    },
    "the conversation goes on with the new agent"
        => Test("crates/adjutant-orchestration/tests/relay.rs::target_answers_with_its_own_prompt_and_tools_when_it_gets_the_conversation"),
    "targets may have targets: chains"
        => Test("crates/adjutant-orchestration/tests/relay.rs::conversation_goes_through_a_chain_when_targets_hand_on"),
    "Chat: the active agent may change in the middle"
        => Test("crates/adjutant-orchestration/tests/relay.rs::conversation_goes_through_a_chain_when_targets_hand_on"),
    "ChatStream tells of a handoff"
        => Test("crates/adjutant-orchestration/tests/relay.rs::events_of_all_follow_each_other_when_a_conversation_is_handed_over"),
    "ChatEvent: AgentName is the target's"
        => Test("crates/adjutant-orchestration/tests/relay.rs::events_of_all_follow_each_other_when_a_conversation_is_handed_over"),
    "ChatResponse: AgentName is who answered"
        => Test("crates/adjutant-orchestration/tests/relay.rs::target_answers_with_its_own_prompt_and_tools_when_it_gets_the_conversation"),
    // Handoffs, as they work.
    "a reason may be given"
        => Test("crates/adjutant-orchestration/tests/relay.rs::target_answers_with_its_own_prompt_and_tools_when_it_gets_the_conversation"),
    "a reason may be left out"
        => Test("crates/adjutant-orchestration/tests/relay.rs::other_calls_run_when_their_turn_hands_over"),
    "the result names target and reason"
        => Test("crates/adjutant-orchestration/tests/relay.rs::target_answers_with_its_own_prompt_and_tools_when_it_gets_the_conversation"),
    "arguments that are no JSON do no harm" => Deviation {
        test: "crates/adjutant-tool/tests/admit.rs::admit_refuses_when_the_text_is_no_json",
        why: "one rule for all tools: what can be repaired without loss is, and else the model is told what is wrong",
    },
    "the first one in the order of calls counts"
        => Test("crates/adjutant-orchestration/tests/relay.rs::first_handoff_counts_when_a_turn_has_several"),
    "other calls of the turn run all the same"
        => Test("crates/adjutant-orchestration/tests/relay.rs::other_calls_run_when_their_turn_hands_over"),
    "system messages are exchanged, all else is kept"
        => Test("crates/adjutant-orchestration/tests/relay.rs::target_answers_with_its_own_prompt_and_tools_when_it_gets_the_conversation"),
    "the count of turns begins anew" => Deviation {
        test: "crates/adjutant-orchestration/tests/relay.rs::handoff_is_refused_when_the_conversation_goes_back_and_forth",
        why: "each agent keeps to its own limit, and handoffs after one prompt are counted, so that going back and \
               forth ends",
    },
    "the first agent's limit of turns and options stay" => Deviation {
        test: "crates/adjutant-orchestration/tests/relay.rs::target_keeps_to_its_own_rules_when_it_takes_over",
        why: "who has the conversation keeps to its own rules, limits too",
    },
    "tools and hooks are the target's"
        => Test("crates/adjutant-orchestration/tests/relay.rs::target_keeps_to_its_own_rules_when_it_takes_over"),
    "the target's responder is asked"
        => Test("crates/adjutant-orchestration/tests/promises/handing.rs::responder_of_the_target_is_asked_when_it_has_the_conversation"),
    "the target's session goes on" => Deviation {
        test: "crates/adjutant-orchestration/tests/relay.rs::target_keeps_the_conversation_when_another_program_opens_it",
        why: "there is one session for all of them, so that the history has no hole",
    },
    "a handoff that a hook denies does not happen"
        => Test("crates/adjutant-orchestration/tests/relay.rs::conversation_stays_when_a_hook_denies_the_handoff"),
    "a call that is denied hands nothing over"
        => Test("crates/adjutant-orchestration/tests/relay.rs::conversation_stays_when_the_call_itself_is_denied"),
    "going back and forth is bounded"
        => Test("crates/adjutant-orchestration/tests/relay.rs::handoff_is_refused_when_the_conversation_goes_back_and_forth"),
    "targets in a circle do no harm"
        => Test("crates/adjutant-orchestration/tests/relay.rs::handoff_is_refused_when_the_conversation_goes_back_and_forth"),
    "who has the conversation keeps it for the next prompt"
        => Test("crates/adjutant-orchestration/tests/relay.rs::target_answers_with_its_own_prompt_and_tools_when_it_gets_the_conversation"),
    "and in another program"
        => Test("crates/adjutant-orchestration/tests/relay.rs::target_keeps_the_conversation_when_another_program_opens_it"),
    "a crash in between loses nothing"
        => Test("crates/adjutant-orchestration/tests/relay.rs::handoff_goes_on_wherever_a_crash_cut_it"),
    "what the target sees can be filtered"
        => Test("crates/adjutant-orchestration/tests/relay.rs::target_sees_what_its_filter_leaves_when_it_takes_over"),
    "a handoff can be refused case by case"
        => Test("crates/adjutant-orchestration/tests/relay.rs::conversation_stays_when_a_hook_denies_the_handoff"),
    // Handoffs, as they were tested.
    "tested: basic"
        => Test("crates/adjutant-orchestration/tests/relay.rs::target_answers_with_its_own_prompt_and_tools_when_it_gets_the_conversation"),
    "tested: an ordinary tool hands nothing over"
        => Test("crates/adjutant-orchestration/tests/promises/handing.rs::conversation_stays_when_an_ordinary_tool_is_called"),
    "tested: a chain of three"
        => Test("crates/adjutant-orchestration/tests/relay.rs::conversation_goes_through_a_chain_when_targets_hand_on"),
    "tested: no reason"
        => Test("crates/adjutant-orchestration/tests/relay.rs::other_calls_run_when_their_turn_hands_over"),
    "tested: the event in a stream"
        => Test("crates/adjutant-orchestration/tests/relay.rs::events_of_all_follow_each_other_when_a_conversation_is_handed_over"),
    "tested: the name in the answer of a stream"
        => Test("crates/adjutant-orchestration/tests/relay.rs::events_of_all_follow_each_other_when_a_conversation_is_handed_over"),
    "tested: the whole history but the system prompt"
        => Test("crates/adjutant-orchestration/tests/relay.rs::conversation_goes_through_a_chain_when_targets_hand_on"),
    "tested: the system prompt is the target's"
        => Test("crates/adjutant-orchestration/tests/relay.rs::target_answers_with_its_own_prompt_and_tools_when_it_gets_the_conversation"),
    "tested: a circle ends"
        => Test("crates/adjutant-orchestration/tests/relay.rs::handoff_is_refused_when_the_conversation_goes_back_and_forth"),
    // Sub-agents.
    "SubAgentConfig: the name is the tool's"
        => Test("crates/adjutant-agent/tests/subagents/delegates.rs::subagent_answers_as_a_tool_when_the_model_calls_it"),
    "SubAgentConfig: the description is the tool's"
        => Test("crates/adjutant-agent/tests/subagents/delegates.rs::subagent_answers_as_a_tool_when_the_model_calls_it"),
    "SubAgentConfig: the agent does the task"
        => Test("crates/adjutant-agent/tests/subagents/delegates.rs::subagent_answers_as_a_tool_when_the_model_calls_it"),
    "unlike with a handoff, the result comes back"
        => Test("crates/adjutant-agent/tests/subagents/delegates.rs::subagent_answers_as_a_tool_when_the_model_calls_it"),
    "in place, or in the background"
        => Test("crates/adjutant-orchestration/tests/background.rs::agent_tool_answers_in_place_when_it_is_not_called_in_the_background"),
    "WithSubAgents: each is a tool"
        => Test("crates/adjutant-agent/tests/subagents/delegates.rs::subagent_answers_as_a_tool_when_the_model_calls_it"),
    "WithSubAgents: a loop of its own, with nothing said before"
        => Test("crates/adjutant-agent/tests/subagents/delegates.rs::subagent_can_be_reused_when_it_is_called_again"),
    "WithSubAgents: background: true launches it"
        => Test("crates/adjutant-orchestration/tests/background.rs::agent_tool_answers_in_place_when_it_is_not_called_in_the_background"),
    "WithSubAgents: tools to collect and to stop are there then"
        => Test("crates/adjutant-orchestration/tests/background.rs::tools_are_there_when_tasks_are_installed"),
    "WithSubAgents: no history, tools or prompt of the parent"
        => Test("crates/adjutant-orchestration/tests/background.rs::task_knows_nothing_of_the_conversation_when_it_is_launched"),
    "WithSubAgents: agents are configured when they are made"
        => Test("crates/adjutant-agent/tests/subagents_more.rs::child_is_unchanged_when_two_parents_share_it"),
    "WithSubAgents: hooks go to those without own ones" => Deviation {
        test: "crates/adjutant-agent/tests/subagents_more.rs::parents_hooks_stand_outside_when_a_child_has_its_own",
        why: "they stand outside the child's own, for every child",
    },
    "input: the task is required"
        => Test("crates/adjutant-agent/tests/subagents/delegates.rs::subagent_call_is_refused_when_its_task_is_missing_or_empty"),
    "input: a number of turns"
        => Test("crates/adjutant-agent/tests/subagents/delegates.rs::subagent_keeps_to_its_turns_when_the_call_limits_them"),
    "a failure is the text of an error result"
        => Test("crates/adjutant-agent/tests/subagents/ends.rs::parent_goes_on_when_a_child_fails"),
    "contexts of teams, tasks and confirmation leak in" => Deviation {
        test: "crates/adjutant-orchestration/tests/team/roles.rs::agent_under_the_lead_is_no_lead_when_it_has_its_configuration",
        why: "nothing of the parent's place is passed on with a context",
    },
    "only the text comes back" => Deviation {
        test: "crates/adjutant-agent/tests/subagents/spent.rs::usage_counts_once_for_every_ancestor_when_a_child_spends",
        why: "usage counts for all ancestors, and the calls are in the child's thread of the log",
    },
    "in the background, and nowhere to keep tasks: in place" => Deviation {
        test: "crates/adjutant-orchestration/tests/background.rs::agent_tool_answers_in_place_when_it_is_not_called_in_the_background",
        why: "a tool has the word only if it is made by what keeps the tasks",
    },
    "start and stop are told of runs in place too"
        => Test("crates/adjutant-agent/tests/subagents.rs::subagent_points_fire_once_when_a_child_starts_and_stops"),
    "depth is bounded"
        => Test("crates/adjutant-agent/tests/subagents.rs::depth_is_bounded_for_the_tree_when_a_limit_is_set"),
    "what a child says is seen"
        => Test("crates/adjutant-agent/tests/subagent_events.rs::childs_events_are_mirrored_once_when_it_works"),
    "tested sub-agents: basic"
        => Test("crates/adjutant-agent/tests/subagents/delegates.rs::subagent_answers_as_a_tool_when_the_model_calls_it"),
    "tested sub-agents: an empty task, wrong input"
        => Test("crates/adjutant-agent/tests/subagents/delegates.rs::subagent_call_is_refused_when_its_task_is_missing_or_empty"),
    "tested sub-agents: the text of an error"
        => Test("crates/adjutant-agent/tests/subagents/ends.rs::parent_goes_on_when_a_child_fails"),
    "tested sub-agents: several"
        => Test("crates/adjutant-agent/tests/subagents.rs::children_run_together_when_a_call_makes_several"),
    "tested sub-agents: in a stream"
        => Test("crates/adjutant-agent/tests/subagent_events.rs::childs_events_are_mirrored_once_when_it_works"),
    // Fan-out.
    "FanOutConfig: the name is the tool's"
        => Test("crates/adjutant-orchestration/tests/promises/made.rs::tools_have_the_names_and_descriptions_that_they_are_given"),
    "FanOutConfig: the description is the tool's"
        => Test("crates/adjutant-orchestration/tests/promises/made.rs::tools_have_the_names_and_descriptions_that_they_are_given"),
    "FanOutConfig: the agent does each task"
        => Test("crates/adjutant-orchestration/tests/fan_out.rs::answers_come_in_the_order_of_tasks_when_agents_end_in_another"),
    "FanOutConfig: MaxConcurrency bounds what runs at once"
        => Test("crates/adjutant-orchestration/tests/fan_out.rs::agents_at_work_are_as_many_as_the_options_allow_when_there_are_more_tasks"),
    "FanOutConfig: MaxConcurrency 0 is unlimited" => Deviation {
        test: "crates/adjutant-orchestration/tests/fan_out.rs::agents_at_work_are_as_many_as_the_options_allow_when_there_are_more_tasks",
        why: "8 unless it is set, and at least one: what a model asks for is bounded",
    },
    "the model gives a list of tasks"
        => Test("crates/adjutant-orchestration/tests/fan_out.rs::answers_come_in_the_order_of_tasks_when_agents_end_in_another"),
    "each task has a run of its own, at once with others"
        => Test("crates/adjutant-orchestration/tests/fan_out.rs::all_tasks_are_done_once_when_a_hundred_work_on_several_threads"),
    "the results are one answer"
        => Test("crates/adjutant-orchestration/tests/fan_out.rs::answers_come_in_the_order_of_tasks_when_agents_end_in_another"),
    "a template must have no session" => Deviation {
        test: "crates/adjutant-orchestration/tests/fan_out.rs::events_of_all_agents_are_in_one_stream_when_tasks_are_fanned_out",
        why: "only its configuration counts: each task has a conversation of its own, whatever session the template \
               has",
    },
    "no tasks: an error"
        => Test("crates/adjutant-orchestration/tests/fan_out.rs::call_is_refused_when_there_are_no_tasks_or_they_are_none"),
    "wrong input: an error"
        => Test("crates/adjutant-orchestration/tests/fan_out.rs::call_is_refused_when_there_are_no_tasks_or_they_are_none"),
    "results are in the order of tasks"
        => Test("crates/adjutant-orchestration/tests/fan_out.rs::answers_come_in_the_order_of_tasks_when_agents_end_in_another"),
    "a section for each task"
        => Test("crates/adjutant-orchestration/tests/fan_out.rs::answers_come_in_the_order_of_tasks_when_agents_end_in_another"),
    "a failure stands in its section"
        => Test("crates/adjutant-orchestration/tests/fan_out/failures.rs::failure_is_told_per_task_when_others_succeed"),
    "the whole is never an error" => Deviation {
        test: "crates/adjutant-orchestration/tests/fan_out/failures.rs::call_fails_when_every_task_has_failed",
        why: "if no task was completed the call has failed, and says so of each",
    },
    "an agent without an answer is a failure of its task"
        => Test("crates/adjutant-orchestration/tests/fan_out/failures.rs::agent_that_panics_has_failed_when_others_go_on"),
    "others can be stopped at a failure"
        => Test("crates/adjutant-orchestration/tests/fan_out/failures.rs::others_are_cancelled_when_one_fails_and_the_options_say_so"),
    "usage counts once"
        => Test("crates/adjutant-orchestration/tests/fan_out.rs::details_tell_each_task_when_the_application_looks"),
    "those that wait for their turn hear the wish to stop"
        => Test("crates/adjutant-orchestration/tests/fan_out/failures.rs::others_are_cancelled_when_one_fails_and_the_options_say_so"),
    "tested fan-out: basic"
        => Test("crates/adjutant-orchestration/tests/fan_out.rs::answers_come_in_the_order_of_tasks_when_agents_end_in_another"),
    "tested fan-out: empty"
        => Test("crates/adjutant-orchestration/tests/fan_out.rs::call_is_refused_when_there_are_no_tasks_or_they_are_none"),
    "tested fan-out: invalid"
        => Test("crates/adjutant-orchestration/tests/fan_out.rs::call_is_refused_when_there_are_no_tasks_or_they_are_none"),
    "tested fan-out: partial failure"
        => Test("crates/adjutant-orchestration/tests/fan_out/failures.rs::failure_is_told_per_task_when_others_succeed"),
    "tested fan-out: width"
        => Test("crates/adjutant-orchestration/tests/fan_out.rs::agents_at_work_are_as_many_as_the_options_allow_when_there_are_more_tasks"),
    "tested fan-out: format"
        => Test("crates/adjutant-orchestration/tests/fan_out.rs::answers_come_in_the_order_of_tasks_when_agents_end_in_another"),
    "tested fan-out: in a stream"
        => Test("crates/adjutant-orchestration/tests/fan_out.rs::events_of_all_agents_are_in_one_stream_when_tasks_are_fanned_out"),
    // Background tasks: what is kept of one.
    "BackgroundTask: ID"
        => Test("crates/adjutant-orchestration/tests/background/told.rs::watcher_sees_each_state_when_tasks_come_and_go"),
    "BackgroundTask: AgentName"
        => Test("crates/adjutant-orchestration/tests/background/told.rs::watcher_sees_each_state_when_tasks_come_and_go"),
    "BackgroundTask: Status"
        => Test("crates/adjutant-orchestration/tests/background/told.rs::watcher_sees_each_state_when_tasks_come_and_go"),
    "BackgroundTask: Result"
        => Test("crates/adjutant-orchestration/tests/background/told.rs::watcher_sees_each_state_when_tasks_come_and_go"),
    "BackgroundTask: Error"
        => Test("crates/adjutant-orchestration/tests/background/told.rs::agent_is_told_why_when_a_task_has_failed"),
    "BackgroundTask: StartedAt and EndedAt" => Deviation {
        test: "crates/adjutant-orchestration/tests/background/told.rs::events_tell_of_a_task_when_it_is_launched_and_when_it_has_ended",
        why: "its events say when, as all events do, and so do the records of its thread",
    },
    "TaskRunning"
        => Test("crates/adjutant-orchestration/tests/background.rs::status_is_running_when_the_model_does_not_wait_or_waits_too_short"),
    "TaskCompleted"
        => Test("crates/adjutant-orchestration/tests/background.rs::result_is_given_when_the_model_waits_for_it"),
    "TaskFailed"
        => Test("crates/adjutant-orchestration/tests/background/told.rs::agent_is_told_why_when_a_task_has_failed"),
    "TaskCancelled"
        => Test("crates/adjutant-orchestration/tests/background.rs::task_is_cancelled_when_the_model_stops_it"),
    // Background tasks: what is done with them.
    "TaskManager follows each task to its end"
        => Test("crates/adjutant-orchestration/tests/background/told.rs::watcher_sees_each_state_when_tasks_come_and_go"),
    "results are waited for or not, with a timeout"
        => Test("crates/adjutant-orchestration/tests/background.rs::status_is_running_when_the_model_does_not_wait_or_waits_too_short"),
    "all are cancelled when the parent is done"
        => Test("crates/adjutant-orchestration/tests/background/ends.rs::tasks_are_cancelled_when_their_run_ends"),
    "Launch gives a unique id"
        => Test("crates/adjutant-orchestration/tests/background/lost.rs::id_is_given_once_when_the_program_began_again"),
    "Launch takes options of one run"
        => Test("crates/adjutant-orchestration/tests/background.rs::turns_are_limited_when_the_launch_says_so"),
    "GetResult tells where a task stands"
        => Test("crates/adjutant-orchestration/tests/background.rs::status_is_running_when_the_model_does_not_wait_or_waits_too_short"),
    "GetResult waits until the end"
        => Test("crates/adjutant-orchestration/tests/background.rs::result_is_given_when_the_model_waits_for_it"),
    "GetResult waits no longer than the timeout"
        => Test("crates/adjutant-orchestration/tests/background.rs::status_is_running_when_the_model_does_not_wait_or_waits_too_short"),
    "GetResult with timeout 0 waits for ever" => Deviation {
        test: "crates/adjutant-orchestration/tests/background.rs::result_is_given_when_the_model_waits_for_it",
        why: "without a timeout it waits for an hour at most, and can be called again: no call lasts for ever",
    },
    "Stop cancels by id"
        => Test("crates/adjutant-orchestration/tests/background.rs::task_is_cancelled_when_the_model_stops_it"),
    "ListAll lists all, whatever their status"
        => Test("crates/adjutant-orchestration/tests/background.rs::tasks_are_listed_in_the_order_of_their_launch_when_several_run"),
    "CancelAll" => Deviation {
        test: "crates/adjutant-orchestration/tests/background/ends.rs::tasks_are_cancelled_when_their_run_ends",
        why: "that is the end of a run; an application stops one task, or the run",
    },
    "WaitAll" => Deviation {
        test: "crates/adjutant-orchestration/tests/background/ends.rs::run_goes_on_until_all_tasks_have_ended_when_the_options_say_so",
        why: "an option of the run's end: the run waits for all, and its agent hears of each",
    },
    // Background tasks, as they work.
    "ids count from task-1"
        => Test("crates/adjutant-orchestration/tests/background.rs::tasks_are_listed_in_the_order_of_their_launch_when_several_run"),
    "a task ends in one of three ways"
        => Test("crates/adjutant-orchestration/tests/background/told.rs::agent_is_told_why_when_a_task_has_failed"),
    "the start is told before the launch returns" => Deviation {
        test: "crates/adjutant-orchestration/tests/background/told.rs::task_fails_when_a_hook_denies_its_agent",
        why: "before the agent asks its model, which a hook may deny; the launch is answered at once",
    },
    "a panic is a failure"
        => Test("crates/adjutant-orchestration/tests/background/told.rs::agent_is_told_why_when_a_task_has_failed"),
    "a cancelled task is cancelled, even with a result" => Deviation {
        test: "crates/adjutant-orchestration/tests/background.rs::task_counts_as_completed_when_it_had_a_result_before_it_was_stopped",
        why: "a result that is there is not thrown away",
    },
    "the stop is told when the status is known"
        => Test("crates/adjutant-orchestration/tests/background/told.rs::hooks_hear_of_tasks_when_they_begin_and_when_they_end"),
    "launch answers id, agent, launched"
        => Test("crates/adjutant-orchestration/tests/background.rs::result_is_given_when_the_model_waits_for_it"),
    "get answers id, agent, status, result or error"
        => Test("crates/adjutant-orchestration/tests/background.rs::result_is_given_when_the_model_waits_for_it"),
    "an unknown id is an error"
        => Test("crates/adjutant-orchestration/tests/background.rs::task_is_unknown_when_there_is_none_of_that_id"),
    "stop answers cancelled, for ended tasks too" => Deviation {
        test: "crates/adjutant-orchestration/tests/background.rs::task_is_cancelled_when_the_model_stops_it",
        why: "of one that has ended it says how that was",
    },
    "list answers id, agent, status in any order" => Deviation {
        test: "crates/adjutant-orchestration/tests/background.rs::tasks_are_listed_in_the_order_of_their_launch_when_several_run",
        why: "in the order of their launch, with task and progress",
    },
    "waiting ends with the caller"
        => Test("crates/adjutant-orchestration/tests/background.rs::waiting_ends_when_the_run_is_stopped"),
    "tasks never outlive a run" => Deviation {
        test: "crates/adjutant-orchestration/tests/background/kept.rs::kept_task_is_told_to_a_later_run_when_its_own_has_ended",
        why: "by default they do not; with a durable journal a task can be kept by its session",
    },
    "what is kept of tasks is bounded"
        => Test("crates/adjutant-orchestration/tests/background/rooms.rs::tasks_stay_bounded_when_an_agent_launches_a_thousand"),
    "how many run is bounded"
        => Test("crates/adjutant-orchestration/tests/background/rooms.rs::launch_is_refused_when_enough_tasks_run"),
    "the end is told without asking"
        => Test("crates/adjutant-orchestration/tests/background/told.rs::agent_is_told_when_a_task_has_ended"),
    "progress is seen"
        => Test("crates/adjutant-orchestration/tests/background.rs::progress_is_what_the_agent_did_last_when_it_is_listed"),
    "results stay until they are read"
        => Test("crates/adjutant-orchestration/tests/background/rooms.rs::result_survives_its_run_when_it_was_not_read"),
    "what was lost in a crash is told"
        => Test("crates/adjutant-orchestration/tests/background/lost.rs::task_is_lost_and_why_is_told_when_its_agent_is_not_known_any_more"),
    "events tell of each task"
        => Test("crates/adjutant-orchestration/tests/background/told.rs::events_tell_of_a_task_when_it_is_launched_and_when_it_has_ended"),
};
