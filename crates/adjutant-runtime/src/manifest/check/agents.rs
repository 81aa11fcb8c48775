//! Validates the relations between the agents of a manifest.

use std::{collections::BTreeSet, sync::Arc};

use super::{Check, model};
use crate::manifest::{AgentSpec, DelegationPlace, Manifest, node::At, problem::quoted};

pub(super) fn check(check: &mut Check<'_>, manifest: &Manifest, at: At<'_>) {
    let agents = at.key("agents");
    check.differ(
        manifest
            .agents
            .iter()
            .enumerate()
            .map(|(n, it)| (&*it.name, agents.item(n).key("name"))),
        "an agent",
    );
    entry(check, manifest, at);
    for (n, agent) in manifest.agents.iter().enumerate() {
        one(check, agent, manifest, agents.item(n));
    }
    described(check, manifest, agents);
    idle(check, manifest, agents);
}

fn entry(check: &mut Check<'_>, manifest: &Manifest, at: At<'_>) {
    if at.is_spoiled("entry_agent") || manifest.agents.is_empty() {
        return;
    }
    if !manifest.entry_agent.is_empty() {
        let names = manifest.agents.iter().map(|agent| &*agent.name);
        check.known(&manifest.entry_agent, names, at.key("entry_agent"), "agent");
    } else if manifest.agents.len() > 1 {
        let hint = "it names the agent that prompts go to".to_owned();
        check.tell_hint(
            at.key("agents"),
            "`entry_agent` is missing: there are several agents",
            hint,
        );
    }
}

fn one(check: &mut Check<'_>, agent: &AgentSpec, manifest: &Manifest, at: At<'_>) {
    let (delegation, place) = (&agent.delegation, at.key("delegation"));
    if let Some(agents) = &delegation.agents {
        others(check, agents, agent, manifest, place.key("agents"));
    }
    if delegation.depth == 0 {
        let message = "it may give no tasks: `depth` is 0";
        check.must(
            delegation.agents.as_ref().is_none_or(Vec::is_empty),
            place.key("agents"),
            message,
        );
        check.must(delegation.handoffs == 0, place.key("handoffs"), message);
        check.must(
            delegation.on == DelegationPlace::Here,
            place.key("on"),
            message,
        );
    } else if given(agent, manifest).is_empty() {
        check.tell(
            place.key("depth"),
            "there is no other agent that it could give tasks to",
        );
    }
    let stays = delegation.on == DelegationPlace::Here || delegation.handoffs == 0;
    check.must(
        stays,
        place.key("handoffs"),
        "tasks on a fleet are not handed on: `on` is `fleet`",
    );
    others(
        check,
        &agent.transfers,
        agent,
        manifest,
        at.key("transfers"),
    );
    let Some(team) = &agent.team else { return };
    let place = at.key("team");
    others(check, &team.members, agent, manifest, place.key("members"));
    check.must(
        !team.members.is_empty() || place.is_spoiled("members"),
        place,
        "`members` is missing: a team has some",
    );
    model::at_least_one(check, team.size.map(u64::from), place, "size");
    model::time(check, team.member_timeout, place, "member_timeout");
    model::budget(check, &team.member_budget, place.key("member_budget"));
}

/// Checks names of agents other than this one, each once.
fn others(
    check: &mut Check<'_>,
    names: &[Arc<str>],
    agent: &AgentSpec,
    manifest: &Manifest,
    at: At<'_>,
) {
    for (n, name) in names.iter().enumerate() {
        if *name == agent.name {
            check.tell(at.item(n), format!("{} is the agent itself", quoted(name)));
        } else {
            let known = manifest
                .agents
                .iter()
                .map(|it| &*it.name)
                .filter(|it| **it != *agent.name);
            check.known(name, known, at.item(n), "agent");
        }
    }
    check.differ(
        names
            .iter()
            .enumerate()
            .map(|(n, name)| (&**name, at.item(n))),
        "in this list",
    );
}

/// Returns the names of the agents that an agent can delegate to.
fn given<'m>(agent: &'m AgentSpec, manifest: &'m Manifest) -> Vec<&'m str> {
    match &agent.delegation.agents {
        _ if agent.delegation.depth == 0 => Vec::new(),
        Some(names) => names.iter().map(|name| &**name).collect(),
        None => manifest
            .agents
            .iter()
            .map(|it| &*it.name)
            .filter(|name| **name != *agent.name)
            .collect(),
    }
}

/// Returns the names of the agents that an agent can reach.
fn next<'m>(agent: &'m AgentSpec, manifest: &'m Manifest) -> impl Iterator<Item = &'m str> {
    let members = agent
        .team
        .iter()
        .flat_map(|team| &team.members)
        .chain(&agent.transfers)
        .map(|name| &**name);
    given(agent, manifest).into_iter().chain(members)
}

/// Checks that each agent that others can choose has a description.
fn described(check: &mut Check<'_>, manifest: &Manifest, at: At<'_>) {
    // By default all others can be delegated to; the entry agent is rarely meant.
    let is_meant = |agent: &AgentSpec, name: &str| {
        agent.delegation.agents.is_some() || *name != *manifest.entry_agent
    };
    let chosen = |agent: &'_ AgentSpec| {
        next(agent, manifest)
            .filter(|name| is_meant(agent, name))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let chosen: BTreeSet<String> = manifest.agents.iter().flat_map(chosen).collect();
    for (n, agent) in manifest.agents.iter().enumerate() {
        if chosen.contains(&*agent.name)
            && agent.description.trim().is_empty()
            && !at.item(n).is_spoiled("description")
        {
            check.tell(
                at.item(n),
                "`description` is missing: others choose the agent by it",
            );
        }
    }
}

/// Reports agents that no prompt and no task can reach.
fn idle(check: &mut Check<'_>, manifest: &Manifest, at: At<'_>) {
    let (mut seen, mut left) = (BTreeSet::new(), vec![&*manifest.entry_agent]);
    while let Some(name) = left.pop() {
        if let Some(agent) = manifest
            .agents
            .iter()
            .find(|it| *it.name == *name)
            .filter(|_| seen.insert(name))
        {
            left.extend(next(agent, manifest));
        }
    }
    for (n, agent) in manifest.agents.iter().enumerate() {
        if !seen.is_empty() && !seen.contains(&*agent.name) {
            let message = format!(
                "nobody can give {} a task, and prompts do not go to it",
                quoted(&agent.name)
            );
            check.warn(at.item(n).mark, message);
        }
    }
}
