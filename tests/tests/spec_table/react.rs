//! Rows of the one agent: its options, effects, middleware, prompt and loop.

use super::{How::*, Row, rows};

pub(crate) const ROWS: &[Row] = rows! { "react";
    // The whole.
    "one kind of agent: with a loop, others to give work to, and skills"
        => Test("crates/adjutant-orchestration/tests/delegation/briefs.rs::agent_inherits_the_registry_when_depth_is_left"),
    "model and tools take turns until there is an answer"
        => Test("crates/adjutant-agent/tests/basic.rs::run_answers_when_a_tool_is_called"),
    "or until the limit of turns"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::run_executes_the_last_calls_when_its_turns_are_spent"),
    "others are found and given work while a run goes on"
        => Test("crates/adjutant-orchestration/tests/delegation/events.rs::whole_tree_is_in_one_stream_when_agents_delegate_on"),
    "skills are folders that say step by step how something is done"
        => Test("crates/adjutant-skills/tests/skills/reading.rs::skill_has_every_field_when_its_file_is_whole"),
    "some skills stand in the prompt"
        => Test("crates/adjutant-skills/tests/skills/runs.rs::prompt_has_inline_skills_and_the_list_when_they_are_installed"),
    "the others are loaded by load_skill"
        => Test("crates/adjutant-skills/tests/skills/runs.rs::skill_is_loaded_once_when_it_is_asked_for_again"),
    "middleware for time, panics, the log and checks of the answer"
        => Test("crates/adjutant-agent/tests/middleware/ready.rs::recovery_makes_a_failure_when_something_panics"),
    "effects are set for an agent and act in every turn"
        => Test("crates/adjutant-orchestration/tests/promises.rs::effect_knows_turn_agent_and_model_when_it_acts"),
    "effects: compaction, shorter results, loops, reflection on failures, progress"
        => Test("crates/adjutant-agent/tests/effects_engine.rs::effects_are_made_of_kind_and_parameters_when_the_kind_is_known"),
    "events of calls and messages go to a callback, if there is one" => Deviation {
        test: "crates/adjutant-agent/tests/listeners.rs::subscribers_hear_all_events_in_order_when_there_are_several",
        why: "events are one stream, which anybody may read or subscribe to; a callback is made of it",
    },
    "start and end of agents below go to a second callback" => Deviation {
        test: "crates/adjutant-orchestration/tests/delegation/events.rs::whole_tree_is_in_one_stream_when_agents_delegate_on",
        why: "they are events of the same stream, in order with all others",
    },
    // The agent.
    "New takes name, description, instructions, model, options" => Deviation {
        test: "crates/adjutant-agent/tests/loop_runs.rs::instructions_are_the_whole_system_prompt_when_nothing_else_is_set",
        why: "a model is all that is required; the rest is set by name, and the description is the registry's, where \
               others look for it",
    },
    "Run is the loop with the middleware around it"
        => Test("crates/adjutant-agent/tests/middleware.rs::first_middleware_is_outermost_when_there_are_several"),
    "Init makes the prompt, by itself at every run"
        => Test("crates/adjutant-agent/tests/instructions_of_runs.rs::section_is_announced_when_it_has_changed_in_the_next_run"),
    "Init may be called after registry and tools were added" => Deviation {
        test: "crates/adjutant-agent/tests/preview.rs::preview_shows_the_next_request_when_nothing_is_recorded",
        why: "there is nothing to call: the prompt is made when a run begins, and a preview shows it before",
    },
    "Init may be called again"
        => Test("crates/adjutant-orchestration/tests/delegation/tools.rs::section_lists_the_agents_when_a_run_starts"),
    "SetRegistry lets an agent delegate"
        => Test("crates/adjutant-orchestration/tests/delegation/tools.rs::tools_of_the_root_do_not_complete_tasks_when_it_delegates"),
    "AddToolBoxes adds tools"
        => Test("crates/adjutant-agent/tests/basic.rs::run_answers_when_a_tool_is_called"),
    "AddToolBoxes: the same box counts once" => Deviation {
        test: "crates/adjutant-agent/tests/loop_bounds.rs::first_toolbox_wins_when_two_have_a_tool_of_one_name",
        why: "tools are told apart by name, in whatever box they are, and a second one is warned of",
    },
    "Name is the instance's own"
        => Test("crates/adjutant-orchestration/tests/registry.rs::instances_are_fresh_and_named_after_entry_and_task_when_they_are_spawned"),
    "ConfigName is the registry's key"
        => Test("crates/adjutant-orchestration/tests/delegation/briefs.rs::agent_has_names_task_and_prefix_when_it_is_opened"),
    "ConfigName is the name, for an agent of a session"
        => Test("crates/adjutant-orchestration/tests/promises.rs::first_agent_has_one_name_no_mark_and_nobody_above_when_it_is_made"),
    "Description" => Deviation {
        test: "crates/adjutant-orchestration/tests/registry.rs::get_finds_nothing_when_the_name_is_unknown",
        why: "it stands in the profile of the registry: the same agent may be there under several",
    },
    "Prefix is shown before an agent's lines"
        => Test("crates/adjutant-orchestration/tests/delegation/briefs.rs::agent_has_names_task_and_prefix_when_it_is_opened"),
    "Prefix is a robot if none is set" => Deviation {
        test: "crates/adjutant-orchestration/tests/promises.rs::first_agent_has_one_name_no_mark_and_nobody_above_when_it_is_made",
        why: "it is empty: marks are for whoever shows something, and not every terminal has them",
    },
    "Chat"
        => Test("crates/adjutant-agent/tests/loop_runs.rs::prompt_is_kept_when_it_says_something"),
    "Completer" => Deviation {
        test: "crates/adjutant-orchestration/tests/promises.rs::effect_knows_turn_agent_and_model_when_it_acts",
        why: "whatever acts within a run is handed the model; nobody takes it out of an agent",
    },
    "CompletionResult is what task_complete has set"
        => Test("crates/adjutant-orchestration/tests/delegation/ends.rs::completion_is_whole_when_the_agent_reports"),
    "CompletionResult is nothing without it"
        => Test("crates/adjutant-orchestration/tests/delegation/ends.rs::completion_is_found_in_the_run_when_there_is_one"),
    // Its options.
    "MaxIterations bounds the loop"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::run_executes_the_last_calls_when_its_turns_are_spent"),
    "MaxIterations 0 is unlimited" => Deviation {
        test: "crates/adjutant-agent/tests/loop_rules.rs::run_goes_past_the_default_when_turns_are_unlimited",
        why: "0 is none, and unlimited is said in words",
    },
    "MaxDelegationDepth bounds the tree"
        => Test("crates/adjutant-orchestration/tests/delegation/bounds.rs::depth_is_bounded_when_an_agent_delegates_to_itself_through_another"),
    "MaxDelegationDepth 0 cannot delegate"
        => Test("crates/adjutant-orchestration/tests/delegation/tools.rs::tools_are_absent_when_no_depth_is_left"),
    "Skills"
        => Test("crates/adjutant-skills/tests/skills/runs.rs::prompt_has_inline_skills_and_the_list_when_they_are_installed"),
    "Middleware around Run"
        => Test("crates/adjutant-agent/tests/middleware.rs::middleware_sees_result_and_error_when_a_drive_ends"),
    "Effects inside the loop"
        => Test("crates/adjutant-agent/tests/effects_engine.rs::effects_see_fresh_numbers_when_several_are_set"),
    "Context stands in the prompt"
        => Test("crates/adjutant-agent/tests/instructions/sections.rs::project_context_opens_with_a_note_once"),
    "EventNotifier tells of agents below" => Deviation {
        test: "crates/adjutant-orchestration/tests/delegation/events.rs::whole_tree_is_in_one_stream_when_agents_delegate_on",
        why: "start and end of agents are events of the one stream",
    },
    "Prefix for a screen"
        => Test("crates/adjutant-orchestration/tests/delegation/briefs.rs::agent_has_names_task_and_prefix_when_it_is_opened"),
    "TaskBoard is optional"
        => Test("crates/adjutant-orchestration/src/delegation/tests.rs::result_has_a_warning_when_there_is_no_board"),
    "TaskBoard: tasks are claimed and ended by delegation"
        => Test("crates/adjutant-orchestration/tests/delegation/boards.rs::task_of_the_board_is_ended_when_its_agent_is_done"),
    "ReflectionDir keeps notes on failures"
        => Test("crates/adjutant-orchestration/tests/reflection/directory.rs::file_is_markdown_that_people_can_read"),
    "ReflectionDir unset: nothing is kept"
        => Test("crates/adjutant-orchestration/tests/promises/below.rs::nothing_is_learned_when_no_reflections_are_set"),
    "DisableBehavioralHints leaves the section out"
        => Test("crates/adjutant-agent/tests/instructions/sections.rs::behavioral_constraints_are_there_by_choice_and_can_be_switched_off"),
    "the hints are there unless they are switched off" => Deviation {
        test: "crates/adjutant-agent/tests/instructions/sections.rs::behavioral_constraints_are_there_by_choice_and_can_be_switched_off",
        why: "a prompt is what an application wrote; the hints are added by choice, and can be switched off again",
    },
    "EventFunc is optional"
        => Test("crates/adjutant-agent/tests/listeners.rs::run_never_waits_when_nobody_reads"),
    "EventFunc tells what happens within the loop"
        => Test("tests/tests/trace.rs::trace_is_as_drawn_when_runs_are_real"),
    // What callbacks are told.
    "EventNotifier: context, kind, name, data" => Deviation {
        test: "crates/adjutant-orchestration/tests/delegation/events.rs::whole_tree_is_in_one_stream_when_agents_delegate_on",
        why: "an event names its agent by its whole identity, and its kind is a type with fields",
    },
    "EventFunc: context, kind, data"
        => Test("tests/tests/events_table.rs::table_names_the_fields_when_a_run_shows_them"),
    "ToolCallEventData: name and id of the call"
        => Test("crates/adjutant-agent/tests/tools_loop.rs::tool_result_is_reported_when_it_ends"),
    "MessageAddedEventData: role and message" => Deviation {
        test: "tests/tests/events_table.rs::table_names_the_fields_when_a_run_shows_them",
        why: "an entry is added, whose kind says whose it is; a reply is finished, a call is finished",
    },
    "AgentEventData: Prefix"
        => Test("crates/adjutant-orchestration/tests/delegation/briefs.rs::agent_has_names_task_and_prefix_when_it_is_opened"),
    "AgentEventData: Parent"
        => Test("crates/adjutant-orchestration/tests/promises/below.rs::end_of_an_agent_is_told_when_it_fails_and_when_it_is_done"),
    "AgentEventData: no Parent for a first agent"
        => Test("crates/adjutant-orchestration/tests/promises.rs::first_agent_has_one_name_no_mark_and_nobody_above_when_it_is_made"),
    "ErrMaxIterations when there is no answer in time" => Deviation {
        test: "crates/adjutant-agent/tests/loop_rules.rs::run_executes_the_last_calls_when_its_turns_are_spent",
        why: "an outcome that tells the limit, and no error: what was done until then is in the result",
    },
    // Effects.
    "effects can be put in and act in every turn"
        => Test("crates/adjutant-agent/tests/effects_engine.rs::effects_see_fresh_numbers_when_several_are_set"),
    "two phases: before the request, after the reply" => Deviation {
        test: "crates/adjutant-agent/tests/effects_budget.rs::budget_is_told_once_after_the_results_when_four_fifths_are_spent",
        why: "effects act before a request; what follows a reply is for hooks, and nothing stands between calls and \
               their results",
    },
    "they are configured, and the loop stays as it is"
        => Test("crates/adjutant-agent/tests/effects_engine.rs::effects_are_made_of_kind_and_parameters_when_the_kind_is_known"),
    "Eval is one method"
        => Test("crates/adjutant-orchestration/tests/promises.rs::effect_knows_turn_agent_and_model_when_it_acts"),
    "an error of an effect ends the run"
        => Test("crates/adjutant-agent/tests/effects_engine.rs::run_fails_when_an_effect_fails_panics_or_edits_what_is_not_shown"),
    "effects act one after the other, in order"
        => Test("crates/adjutant-agent/tests/effects_engine.rs::effects_see_fresh_numbers_when_several_are_set"),
    "PhaseBeforeComplete"
        => Test("crates/adjutant-agent/tests/effects_engine.rs::hidden_and_offered_tools_are_what_the_model_is_shown"),
    "PhaseAfterComplete, before the calls run" => Deviation {
        test: "crates/adjutant-agent/tests/effects_engine/hook.rs::after_model_changes_the_reply_when_it_says_so",
        why: "it is a point of hooks: what it changes is recorded with the reply",
    },
    "IterationContext: Phase"
        => Test("crates/adjutant-context/tests/window.rs::strategy_is_asked_before_every_request_when_it_is_set"),
    "IterationContext: Iteration"
        => Test("crates/adjutant-orchestration/tests/promises.rs::effect_knows_turn_agent_and_model_when_it_acts"),
    "IterationContext: Chat"
        => Test("crates/adjutant-agent/tests/effects_engine.rs::effects_see_fresh_numbers_when_several_are_set"),
    "IterationContext: Completer"
        => Test("crates/adjutant-orchestration/tests/promises.rs::effect_knows_turn_agent_and_model_when_it_acts"),
    "IterationContext: AgentName"
        => Test("crates/adjutant-orchestration/tests/promises.rs::effect_knows_turn_agent_and_model_when_it_acts"),
    "Resetter is optional, for effects with state of a run" => Deviation {
        test: "crates/adjutant-agent/tests/effects_loops.rs::loop_is_armed_again_when_the_next_run_begins",
        why: "an effect has no state: what it must remember is a memo in the log, which counts for its run",
    },
    "Reset is called before every run"
        => Test("crates/adjutant-agent/tests/effects_budget.rs::budget_is_armed_again_when_the_next_run_begins"),
    "EffectFunc makes an effect of a function"
        => Test("crates/adjutant-orchestration/tests/promises.rs::effect_knows_turn_agent_and_model_when_it_acts"),
    "effects are listed in the options"
        => Test("crates/adjutant-agent/tests/effects_engine.rs::effects_see_fresh_numbers_when_several_are_set"),
    "effects are listed in a file, by kind and parameters"
        => Test("crates/adjutant-agent/tests/effects_engine.rs::effects_are_made_of_kind_and_parameters_when_the_kind_is_known"),
    "ready effects"
        => Test("crates/adjutant-context/tests/compact.rs::compact_acts_within_one_run_when_it_has_two_hundred_calls"),
    // Middleware.
    "middleware wraps Run"
        => Test("crates/adjutant-agent/tests/middleware.rs::middleware_sees_result_and_error_when_a_drive_ends"),
    "the first one is outermost"
        => Test("crates/adjutant-agent/tests/middleware.rs::first_middleware_is_outermost_when_there_are_several"),
    "Runner and RunnerFunc"
        => Test("crates/adjutant-agent/tests/middleware.rs::middleware_replaces_the_outcome_when_it_gives_another"),
    "a middleware takes the next one and gives another"
        => Test("crates/adjutant-agent/tests/middleware.rs::first_middleware_is_outermost_when_there_are_several"),
    "Timeout sets a deadline"
        => Test("crates/adjutant-agent/tests/middleware/ready.rs::timeout_ends_the_drive_when_it_takes_too_long"),
    "Recovery makes errors of panics"
        => Test("crates/adjutant-agent/tests/middleware/ready.rs::recovery_makes_a_failure_when_something_panics"),
    "Logger: start, end, duration, errors"
        => Test("crates/adjutant-agent/tests/middleware/ready.rs::logger_tells_start_and_end_when_somebody_listens"),
    "OutputGuardrail checks the last message"
        => Test("crates/adjutant-agent/tests/middleware/ready.rs::output_guardrail_refuses_the_answer_when_it_does_not_hold"),
    "OutputGuardrail gives the error of the check"
        => Test("crates/adjutant-agent/tests/middleware/ready.rs::output_guardrail_refuses_the_answer_when_it_does_not_hold"),
    "OutputGuardrail is passed over when the run has failed"
        => Test("crates/adjutant-agent/tests/middleware/ready.rs::output_guardrail_refuses_the_answer_when_it_does_not_hold"),
    // The prompt.
    "sections stand in tags"
        => Test("crates/adjutant-agent/tests/instructions/sections.rs::instructions_stand_in_tags_when_another_section_speaks"),
    "what stays comes first, what changes last"
        => Test("crates/adjutant-agent/tests/instructions/sections.rs::sections_stand_in_their_order_whatever_was_registered_first"),
    "identity: name and description" => Deviation {
        test: "crates/adjutant-agent/tests/instructions/sections.rs::instructions_stand_in_tags_when_another_section_speaks",
        why: "the section is first when an application sets it; the name of each instance in the prompt would cost \
               the provider's cache",
    },
    "completion_protocol: only for an agent below"
        => Test("crates/adjutant-orchestration/tests/delegation/briefs.rs::agent_has_its_own_tools_only_when_its_parent_has_others"),
    "notes_protocol: only with tools for notes"
        => Test("crates/adjutant-orchestration/tests/notes/agents.rs::section_is_there_only_when_the_tools_are_and_holds_no_note"),
    "instructions"
        => Test("crates/adjutant-agent/tests/instructions_of_runs.rs::section_is_announced_when_it_has_changed_in_the_next_run"),
    "behavioral_constraints"
        => Test("crates/adjutant-agent/tests/instructions/sections.rs::behavioral_constraints_are_there_by_choice_and_can_be_switched_off"),
    "project_context"
        => Test("crates/adjutant-agent/tests/instructions/sections.rs::project_context_opens_with_a_note_once"),
    "skills: those without a description"
        => Test("crates/adjutant-skills/tests/skills/reading.rs::skill_is_inline_when_it_has_no_description"),
    "available_skills: those with one, and how to load them"
        => Test("crates/adjutant-skills/tests/skills/runs.rs::prompt_has_inline_skills_and_the_list_when_they_are_installed"),
    "available_agents: all others, last"
        => Test("crates/adjutant-orchestration/tests/delegation/tools.rs::section_lists_the_agents_when_a_run_starts"),
    // The loop.
    "the name is known to whatever the run calls"
        => Test("crates/adjutant-orchestration/tests/notes/agents.rs::tools_write_read_list_and_search_when_an_agent_calls_them"),
    "the prompt is there before the first request"
        => Test("crates/adjutant-agent/tests/instructions_of_runs.rs::section_is_announced_when_it_has_changed_in_the_next_run"),
    "tools: the agent's own, those to delegate, that to complete"
        => Test("crates/adjutant-orchestration/tests/delegation/briefs.rs::agent_inherits_the_registry_when_depth_is_left"),
    "of two tools of one name the first is declared"
        => Test("crates/adjutant-agent/tests/loop_bounds.rs::first_toolbox_wins_when_two_have_a_tool_of_one_name"),
    "effects begin anew"
        => Test("crates/adjutant-agent/tests/effects_loops.rs::loop_is_armed_again_when_the_next_run_begins"),
    "turns are bounded"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::run_executes_the_last_calls_when_its_turns_are_spent"),
    "turns may be unlimited"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::run_goes_past_the_default_when_turns_are_unlimited"),
    "a turn: effects, before the request"
        => Test("crates/adjutant-agent/tests/effects_engine.rs::hidden_and_offered_tools_are_what_the_model_is_shown"),
    "a turn: the model sees conversation and tools"
        => Test("crates/adjutant-orchestration/tests/relay.rs::target_answers_with_its_own_prompt_and_tools_when_it_gets_the_conversation"),
    "a turn: the reply is kept, and told"
        => Test("tests/tests/trace.rs::trace_is_as_drawn_when_runs_are_real"),
    "a turn: effects, after the reply" => Deviation {
        test: "crates/adjutant-agent/tests/effects_engine/hook.rs::after_model_changes_the_reply_when_it_says_so",
        why: "hooks are passed there; effects see the whole turn before the next request",
    },
    "a turn: without calls the reply is the answer"
        => Test("crates/adjutant-agent/tests/basic.rs::stream_ends_with_run_finished_when_the_answer_is_text"),
    "a turn: all calls run at once"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::batch_runs_together_when_nothing_forbids_it"),
    "a turn: as many at once as the model wants" => Deviation {
        test: "crates/adjutant-agent/tests/loop_rules.rs::batch_keeps_to_its_width_when_there_are_more_calls",
        why: "8 at a time, unless it is said otherwise: what a model asks for is bounded",
    },
    "a turn: results keep the order of calls"
        => Test("crates/adjutant-agent/tests/loop_rules.rs::results_keep_the_order_of_the_calls_when_tools_end_in_reverse"),
    "a turn: results are kept, and told"
        => Test("tests/tests/trace.rs::trace_is_as_drawn_when_runs_are_real"),
    "a turn: task_complete ends the run at once"
        => Test("crates/adjutant-orchestration/tests/delegation/ends.rs::run_of_the_agent_ends_at_once_when_it_reports"),
    "too many turns end in ErrMaxIterations" => Deviation {
        test: "crates/adjutant-agent/tests/loop_rules.rs::run_executes_the_last_calls_when_its_turns_are_spent",
        why: "the outcome tells the limit, and the result what was done",
    },
    // The package.
    "the files and what is in each" => Deviation {
        test: "xtask/src/tidy/edges.rs::table_reports_an_edge_when_it_is_not_listed_or_wrongly_versioned",
        why: "each of these parts is a crate or a module of its own, and the edges between crates are a checked \
               table",
    },
    "what the package stands on" => Deviation {
        test: "xtask/src/tidy/edges.rs::table_reports_an_edge_when_it_is_not_listed_or_wrongly_versioned",
        why: "edges between our crates are a checked table",
    },
    "usage: an agent with tools"
        => Test("crates/adjutant-agent/tests/basic.rs::run_answers_when_a_tool_is_called"),
    "usage: a registry, depth, skills, middleware, effects, events"
        => Test("crates/adjutant-orchestration/tests/delegation/events.rs::whole_tree_is_in_one_stream_when_agents_delegate_on"),
};
