//! Every field of a manifest has a test that shows its effect: the fields come from the types, the tests are named here.

use std::collections::BTreeSet;

use adjutant_runtime::Manifest;
use serde_json::Value;

/// The files that hold the tests.
const SOURCES: [&str; 14] = [
    include_str!("agents.rs"),
    include_str!("around.rs"),
    include_str!("bounds.rs"),
    include_str!("held.rs"),
    include_str!("models.rs"),
    include_str!("others.rs"),
    include_str!("places.rs"),
    include_str!("programs.rs"),
    include_str!("ruled.rs"),
    include_str!("servers.rs"),
    include_str!("stubborn.rs"),
    include_str!("toolboxes.rs"),
    include_str!("../lifecycle/crashed.rs"),
    include_str!("../lifecycle/peers.rs"),
];

/// Each field, and the test that fails when it has no effect.
const EFFECTS: &[(&str, &str)] = &[
    (
        "Access.default",
        "calls_that_no_rule_fits_are_treated_by_default",
    ),
    (
        "Access.rules",
        "calls_are_allowed_asked_or_denied_by_the_first_rule_that_fits",
    ),
    (
        "AgentSpec.access",
        "calls_are_allowed_asked_or_denied_by_the_first_rule_that_fits",
    ),
    (
        "AgentSpec.behavior",
        "habits_are_told_when_the_agent_says_so",
    ),
    (
        "AgentSpec.budget",
        "tokens_are_limited_for_an_agent_and_for_the_whole",
    ),
    (
        "AgentSpec.compaction",
        "old_turns_are_summarised_as_the_agent_says",
    ),
    (
        "AgentSpec.floor",
        "old_turns_are_summarised_as_the_agent_says",
    ),
    (
        "AgentSpec.context",
        "context_files_are_told_in_their_order_under_their_names",
    ),
    (
        "AgentSpec.delegation",
        "tasks_are_given_to_agents_of_the_manifest",
    ),
    (
        "AgentSpec.description",
        "profiles_tell_what_others_are_good_for",
    ),
    ("AgentSpec.effects", "effects_act_with_their_parameters"),
    (
        "AgentSpec.estimated_cost",
        "profiles_tell_what_others_are_good_for",
    ),
    (
        "AgentSpec.expertise",
        "profiles_tell_what_others_are_good_for",
    ),
    (
        "AgentSpec.instructions",
        "instructions_are_the_system_prompt",
    ),
    ("AgentSpec.limits", "turns_are_limited"),
    (
        "AgentSpec.max_concurrency",
        "so_many_work_at_a_time_as_the_agent_says",
    ),
    ("AgentSpec.max_turns", "turns_are_limited"),
    (
        "AgentSpec.middleware",
        "middleware_surrounds_runs_by_its_name",
    ),
    ("AgentSpec.model", "model_is_the_one_that_is_named"),
    ("AgentSpec.name", "prompts_go_to_the_entry_agent"),
    (
        "AgentSpec.options",
        "options_of_the_manifest_are_those_of_the_request",
    ),
    (
        "AgentSpec.prefix",
        "prefix_stands_before_the_lines_of_an_agent",
    ),
    (
        "AgentSpec.reflections",
        "reflections_are_kept_in_the_store_without_a_folder",
    ),
    (
        "AgentSpec.rules",
        "calls_run_wait_or_are_denied_by_what_they_do",
    ),
    ("AgentSpec.skills", "skills_are_those_that_the_agent_names"),
    (
        "AgentSpec.team",
        "team_is_made_of_the_members_that_the_agent_names",
    ),
    ("AgentSpec.toolboxes", "toolbox_is_the_one_that_is_named"),
    ("AgentSpec.tools", "agent_has_the_programs_that_it_names"),
    (
        "AgentSpec.transfers",
        "conversation_is_handed_to_those_that_the_agent_names",
    ),
    ("ApprovalRule.say", "words_of_a_rule_are_asked_or_told"),
    (
        "ApprovalRule.then",
        "calls_are_allowed_asked_or_denied_by_the_first_rule_that_fits",
    ),
    (
        "ApprovalRule.tools",
        "calls_are_allowed_asked_or_denied_by_the_first_rule_that_fits",
    ),
    (
        "BoardSpec.name",
        "board_of_the_manifest_is_shared_by_its_agents",
    ),
    (
        "AuthSpec.client_id",
        "server_is_reached_as_the_manifest_says",
    ),
    (
        "AuthSpec.client_secret_variable",
        "server_is_reached_as_the_manifest_says",
    ),
    ("AuthSpec.port", "server_is_reached_as_the_manifest_says"),
    ("AuthSpec.scopes", "server_is_reached_as_the_manifest_says"),
    (
        "AuthSpec.token_command",
        "server_is_reached_as_the_manifest_says",
    ),
    (
        "BudgetSpec.agents",
        "levels_and_agents_are_limited_by_the_budget",
    ),
    (
        "BudgetSpec.cost_usd",
        "money_is_limited_where_the_model_has_a_price",
    ),
    (
        "BudgetSpec.depth",
        "levels_and_agents_are_limited_by_the_budget",
    ),
    (
        "BudgetSpec.requests",
        "requests_are_limited_for_an_agent_and_for_the_whole",
    ),
    (
        "BudgetSpec.time",
        "time_is_limited_for_an_agent_and_for_the_whole",
    ),
    (
        "BudgetSpec.tokens",
        "tokens_are_limited_for_an_agent_and_for_the_whole",
    ),
    (
        "BudgetSpec.tool_calls",
        "calls_are_limited_for_an_agent_and_for_the_whole",
    ),
    (
        "DataSpec.description",
        "data_files_are_told_with_their_places_and_descriptions",
    ),
    (
        "DataSpec.file",
        "data_files_are_told_with_their_places_and_descriptions",
    ),
    (
        "DataSpec.to",
        "data_files_are_told_with_their_places_and_descriptions",
    ),
    (
        "DelegationSpec.agents",
        "tasks_are_given_to_those_that_the_agent_names",
    ),
    ("DelegationSpec.depth", "depth_bounds_the_levels_below"),
    (
        "DelegationSpec.on",
        "tasks_go_to_a_fleet_where_one_runs_the_manifest",
    ),
    (
        "DelegationSpec.handoffs",
        "task_may_be_handed_on_as_often_as_the_agent_says",
    ),
    ("EffectParams.kind", "effects_act_with_their_parameters"),
    ("EffectParams.params", "effects_act_with_their_parameters"),
    (
        "Instructions.file",
        "instructions_of_a_file_are_the_system_prompt",
    ),
    (
        "LimitsSpec.at_limit",
        "last_turn_without_tools_follows_a_limit",
    ),
    ("LimitsSpec.grace", "cancelled_call_has_its_grace"),
    (
        "LimitsSpec.max_parallel_tools",
        "calls_run_together_as_far_as_the_limit_says",
    ),
    ("LimitsSpec.max_result", "result_is_shown_up_to_its_limit"),
    ("LimitsSpec.max_turns", "turns_are_limited"),
    (
        "LimitsSpec.sequential",
        "calls_run_together_as_far_as_the_limit_says",
    ),
    ("LimitsSpec.timeout", "run_ends_at_its_time"),
    ("LimitsSpec.tool_timeout", "call_ends_at_its_time"),
    (
        "LimitsSpec.unattended",
        "unattended_run_refuses_instead_of_waiting",
    ),
    (
        "Manifest.a2a_push",
        "updates_are_pushed_over_a2a_where_the_manifest_says_so",
    ),
    (
        "Manifest.adjutant",
        "what_an_operator_is_shown_is_kept_as_it_was",
    ),
    (
        "Manifest.agents",
        "tasks_are_given_to_agents_of_the_manifest",
    ),
    (
        "Manifest.board",
        "board_of_the_manifest_is_shared_by_its_agents",
    ),
    (
        "Manifest.budget",
        "tokens_are_limited_for_an_agent_and_for_the_whole",
    ),
    (
        "Manifest.data",
        "data_files_are_told_with_their_places_and_descriptions",
    ),
    (
        "Manifest.description",
        "what_an_operator_is_shown_is_kept_as_it_was",
    ),
    ("Manifest.entry_agent", "prompts_go_to_the_entry_agent"),
    (
        "Manifest.environment",
        "program_has_the_environment_of_the_manifest_and_nothing_else",
    ),
    (
        "Manifest.labels",
        "what_an_operator_is_shown_is_kept_as_it_was",
    ),
    (
        "Manifest.mcp",
        "tool_of_a_server_waits_for_a_word_unless_the_server_is_believed",
    ),
    (
        "Manifest.memory",
        "facts_of_an_owner_are_recalled_for_that_owner_alone",
    ),
    (
        "Manifest.models",
        "model_of_the_manifest_is_known_by_what_it_says",
    ),
    (
        "Manifest.name",
        "what_an_operator_is_shown_is_kept_as_it_was",
    ),
    (
        "Manifest.notes",
        "notes_of_the_manifest_are_shared_by_its_agents",
    ),
    (
        "Manifest.on_restart",
        "run_that_a_crash_has_cut_off_goes_on_ends_or_waits_as_the_manifest_says",
    ),
    ("Manifest.peers", "agent_asks_another_one_by_its_name"),
    (
        "Manifest.process_tools",
        "program_is_shown_as_the_manifest_describes_it",
    ),
    (
        "Manifest.providers",
        "provider_of_the_manifest_is_asked_with_its_key",
    ),
    (
        "Manifest.sessions",
        "sessions_are_kept_in_a_database_of_the_workspace",
    ),
    (
        "Manifest.skill_folders",
        "skills_are_those_that_the_agent_names",
    ),
    (
        "McpSpec.servers",
        "server_gives_the_tools_that_are_named_under_their_prefix",
    ),
    (
        "MemorySpec.extract",
        "facts_are_drawn_from_runs_when_the_manifest_says_so",
    ),
    (
        "MemorySpec.limit",
        "so_many_facts_are_recalled_as_the_manifest_says",
    ),
    (
        "MemorySpec.owner",
        "facts_of_an_owner_are_recalled_for_that_owner_alone",
    ),
    (
        "ModelSpec.fallbacks",
        "fallback_answers_when_the_first_model_fails",
    ),
    (
        "ModelSpec.input_tokens_per_minute",
        "input_waits_for_its_turn",
    ),
    (
        "ModelSpec.name",
        "fallback_answers_when_the_first_model_fails",
    ),
    (
        "ModelSpec.requests_per_minute",
        "requests_wait_for_their_turn",
    ),
    (
        "ModelSpec.retries",
        "failed_call_is_tried_again_as_often_as_the_manifest_says",
    ),
    ("ModelSpec.timeout", "reply_that_takes_too_long_fails"),
    ("ModelSpec.timeouts", "times_of_a_manifest_are_read"),
    ("TimeoutsSpec.connect", "times_of_a_manifest_are_read"),
    ("TimeoutsSpec.first_byte", "times_of_a_manifest_are_read"),
    ("TimeoutsSpec.idle", "times_of_a_manifest_are_read"),
    ("TimeoutsSpec.silence", "times_of_a_manifest_are_read"),
    ("TimeoutsSpec.total", "times_of_a_manifest_are_read"),
    (
        "NamedContext.file",
        "context_files_are_told_in_their_order_under_their_names",
    ),
    (
        "NamedContext.name",
        "context_files_are_told_in_their_order_under_their_names",
    ),
    (
        "NamedContext.optional",
        "context_files_are_told_in_their_order_under_their_names",
    ),
    (
        "NotesSpec.name",
        "notes_of_the_manifest_are_shared_by_its_agents",
    ),
    (
        "OptionsSpec.extra",
        "options_of_the_manifest_are_those_of_the_request",
    ),
    (
        "OptionsSpec.headers",
        "options_of_the_manifest_are_those_of_the_request",
    ),
    (
        "OptionsSpec.max_output_tokens",
        "options_of_the_manifest_are_those_of_the_request",
    ),
    (
        "OptionsSpec.seed",
        "options_of_the_manifest_are_those_of_the_request",
    ),
    (
        "OptionsSpec.sequential_calls",
        "options_of_the_manifest_are_those_of_the_request",
    ),
    (
        "OptionsSpec.stop",
        "options_of_the_manifest_are_those_of_the_request",
    ),
    (
        "OptionsSpec.temperature",
        "options_of_the_manifest_are_those_of_the_request",
    ),
    (
        "OptionsSpec.thinking",
        "options_of_the_manifest_are_those_of_the_request",
    ),
    (
        "OptionsSpec.top_p",
        "options_of_the_manifest_are_those_of_the_request",
    ),
    (
        "OptionsSpec.web_search",
        "web_is_searched_by_the_provider_of_every_model_or_by_none",
    ),
    (
        "PeerSpec.a2a",
        "agent_anywhere_is_asked_over_a2a_and_its_questions_are_asked_here",
    ),
    (
        "PeerSpec.address",
        "agent_asks_another_one_at_its_address_with_its_token",
    ),
    ("PeerSpec.agent", "agent_asks_another_one_by_its_name"),
    ("PeerSpec.description", "agent_asks_another_one_by_its_name"),
    ("PeerSpec.name", "agent_asks_another_one_by_its_name"),
    (
        "PeerSpec.token_variable",
        "agent_asks_another_one_at_its_address_with_its_token",
    ),
    (
        "ProcessTool.approval",
        "call_waits_for_a_word_when_the_manifest_says_so",
    ),
    (
        "ProcessTool.args",
        "program_gets_arguments_in_its_command_line",
    ),
    ("ProcessTool.binary", "program_is_found_by_its_bare_name"),
    (
        "ProcessTool.description",
        "program_is_shown_as_the_manifest_describes_it",
    ),
    (
        "ProcessTool.environment",
        "program_has_the_environment_of_the_manifest_and_nothing_else",
    ),
    (
        "ProcessTool.max_output",
        "output_is_kept_up_to_its_size_and_the_rest_is_told",
    ),
    (
        "ProcessTool.name",
        "program_is_shown_as_the_manifest_describes_it",
    ),
    (
        "ProcessTool.parameters",
        "arguments_that_do_not_fit_the_schema_never_start_the_program",
    ),
    (
        "ProcessTool.repeatable",
        "call_may_be_made_again_when_the_manifest_says_so",
    ),
    (
        "ProcessTool.sandbox",
        "program_reaches_its_workspace_and_what_the_manifest_gives",
    ),
    (
        "ProcessTool.sha256",
        "program_must_be_the_one_that_was_pinned",
    ),
    (
        "ProcessTool.timeout",
        "program_that_takes_too_long_is_killed_with_its_children",
    ),
    (
        "ReflectionSpec.folder",
        "reflections_are_kept_in_their_folder",
    ),
    (
        "RulesSpec.allow",
        "calls_run_wait_or_are_denied_by_what_they_do",
    ),
    (
        "RulesSpec.ask",
        "calls_run_wait_or_are_denied_by_what_they_do",
    ),
    (
        "RulesSpec.deny",
        "calls_run_wait_or_are_denied_by_what_they_do",
    ),
    (
        "RulesSpec.mode",
        "calls_run_wait_or_are_denied_by_what_they_do",
    ),
    (
        "SandboxSpec.danger_without_any",
        "program_is_refused_with_the_cure_where_nothing_holds_it",
    ),
    (
        "SandboxSpec.network",
        "program_has_the_network_only_if_the_manifest_gives_it",
    ),
    (
        "SandboxSpec.read",
        "program_reaches_its_workspace_and_what_the_manifest_gives",
    ),
    (
        "SandboxSpec.write",
        "program_reaches_its_workspace_and_what_the_manifest_gives",
    ),
    ("ServerSpec.args", "server_is_reached_as_the_manifest_says"),
    ("ServerSpec.auth", "server_is_reached_as_the_manifest_says"),
    (
        "ServerSpec.command",
        "server_is_reached_as_the_manifest_says",
    ),
    ("ServerSpec.cwd", "server_is_reached_as_the_manifest_says"),
    ("ServerSpec.env", "server_is_reached_as_the_manifest_says"),
    (
        "ServerSpec.headers",
        "server_is_reached_as_the_manifest_says",
    ),
    (
        "ServerSpec.prefix",
        "server_is_reached_as_the_manifest_says",
    ),
    (
        "ServerSpec.revision",
        "server_is_reached_as_the_manifest_says",
    ),
    (
        "ServerSpec.sandbox",
        "server_is_reached_as_the_manifest_says",
    ),
    (
        "ServerSpec.sha256",
        "server_is_reached_as_the_manifest_says",
    ),
    (
        "ServerSpec.timeout",
        "server_is_reached_as_the_manifest_says",
    ),
    ("ServerSpec.tools", "server_is_reached_as_the_manifest_says"),
    (
        "ServerSpec.trusted",
        "server_is_reached_as_the_manifest_says",
    ),
    ("ServerSpec.url", "server_is_reached_as_the_manifest_says"),
    (
        "SessionSpec.default_session",
        "prompt_that_names_no_session_has_the_default_one",
    ),
    (
        "SessionSpec.durability",
        "records_survive_what_the_manifest_says",
    ),
    (
        "SessionSpec.store",
        "sessions_are_kept_as_lines_when_the_manifest_says_so",
    ),
    ("StoreSpec.kind", "nothing_lasts_in_memory"),
    (
        "StoreSpec.path",
        "sessions_are_kept_in_a_database_of_the_workspace",
    ),
    (
        "StoreSpec.url_variable",
        "address_of_a_server_comes_from_its_variable",
    ),
    (
        "TeamSpec.coordinator",
        "coordinator_keeps_the_tools_of_the_team_and_the_board",
    ),
    ("TeamSpec.member_budget", "team_member_has_its_budget"),
    ("TeamSpec.member_timeout", "team_member_has_its_time"),
    (
        "TeamSpec.members",
        "team_is_made_of_the_members_that_the_agent_names",
    ),
    ("TeamSpec.size", "team_has_its_size"),
    (
        "ToolboxSpec.except",
        "toolbox_lacks_the_tools_that_are_excepted",
    ),
    ("ToolboxSpec.max_output", "result_of_a_toolbox_has_its_size"),
    ("ToolboxSpec.name", "toolbox_is_the_one_that_is_named"),
    (
        "ToolboxSpec.only",
        "toolbox_has_only_the_tools_that_are_named",
    ),
    ("ToolboxSpec.prefix", "toolbox_has_its_prefix"),
    ("ToolboxSpec.root", "files_are_those_of_the_root"),
    ("ToolboxSpec.timeout", "call_of_a_toolbox_has_its_time"),
];

/// The fields that a schema and its alternatives have.
fn fields(name: &str, schema: &Value, into: &mut BTreeSet<String>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    into.extend(
        properties
            .into_iter()
            .flat_map(|it| it.keys())
            .map(|field| format!("{name}.{field}")),
    );
    for key in ["anyOf", "oneOf", "allOf"] {
        for alternative in schema
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            fields(name, alternative, into);
        }
    }
}

#[test]
fn every_field_has_a_test_of_its_effect() {
    let schema = schemars::schema_for!(Manifest).to_value();
    let mut all = BTreeSet::new();
    fields("Manifest", &schema, &mut all);
    for (name, definition) in schema["$defs"].as_object().expect("there are types") {
        fields(name, definition, &mut all);
    }
    let named: BTreeSet<String> = EFFECTS
        .iter()
        .map(|(field, _)| (*field).to_owned())
        .collect();
    assert_eq!(named.len(), EFFECTS.len(), "a field appears twice");
    let missing: Vec<&String> = all.difference(&named).collect();
    assert!(
        missing.is_empty(),
        "fields without a test of their effect: {missing:#?}"
    );
    let unknown: Vec<&String> = named.difference(&all).collect();
    assert!(unknown.is_empty(), "no fields: {unknown:#?}");
}

#[test]
fn every_test_that_is_named_is_there() {
    for (field, test) in EFFECTS {
        let line = format!("fn {test}(");
        assert!(
            SOURCES.iter().any(|source| source.contains(&line)),
            "{field}: there is no test {test}"
        );
    }
}
