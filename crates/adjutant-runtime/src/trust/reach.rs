//! The fields of a manifest with an effect outside of its own text. Each struct is destructured completely, so that
//! a new field that is not handled here does not compile.

use std::path::Path;

use serde_json::Value;

use crate::{
    Manifest,
    manifest::{
        AgentSpec, BoardSpec, ContextSpec, DataSpec, Instructions, McpSpec, MemorySpec,
        NamedContext, NotesSpec, OptionsSpec, PeerSpec, ProcessTool, ReflectionSpec, RulesSpec,
        ServerSpec, SessionSpec, StoreSpec, TeamSpec, ToolboxChoice, ToolboxSpec,
    },
};

/// An external effect of a manifest.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reach<'a> {
    /// A file or a directory that is copied into the workspace: context, skills, data.
    Copied(&'a Path),
    /// A path within the workspace: a store, notes about failures, the destination of data.
    Inside(&'a Path),
    /// The directory of a toolbox.
    Root(&'a Path),
    /// A program.
    Program(&'a ProcessTool),
    /// A server and its name.
    Server(&'a str, &'a ServerSpec),
    /// Any command that a model requests: the agent, and its rules.
    Commands(&'a str, Option<&'a RulesSpec>),
    /// Any public web page: the agent.
    Pages(&'a str),
    /// A provider, as JSON.
    Provider(&'a Value),
    /// Headers and additional fields of an agent's requests, which may identify the caller or select another provider.
    Options(&'a str, &'a OptionsSpec),
    /// An agent of another process.
    Peer(&'a PeerSpec),
    /// The variable with the address of a database.
    Database(&'a str),
}

/// Returns all external effects of a manifest.
pub(crate) fn reach(manifest: &Manifest) -> Vec<Reach<'_>> {
    let Manifest {
        adjutant: _,
        name: _,
        description: _,
        labels: _,
        entry_agent: _,
        agents,
        providers,
        models: _,
        process_tools,
        mcp: McpSpec { servers },
        peers,
        skill_folders,
        // Clients choose the addresses, and they have the agent's token.
        a2a_push: _,
        data,
        sessions:
            SessionSpec {
                store:
                    StoreSpec {
                        kind: _,
                        path,
                        url_variable,
                    },
                durability: _,
                default_session: _,
            },
        on_restart: _,
        memory,
        board,
        notes,
        // Listed with the programs that receive it.
        environment: _,
        budget: _,
    } = manifest;
    if let Some(MemorySpec {
        owner: _,
        extract: _,
        limit: _,
    }) = memory
    {}
    if let (Some(BoardSpec { name: _ }), Some(NotesSpec { name: _ })) = (board, notes) {}
    let mut all: Vec<Reach<'_>> = skill_folders
        .iter()
        .map(|folder| Reach::Copied(folder))
        .collect();
    for DataSpec {
        file,
        to,
        description: _,
    } in data
    {
        all.push(Reach::Copied(file));
        all.extend(to.as_deref().map(Reach::Inside));
    }
    all.extend(path.as_deref().map(Reach::Inside));
    all.extend(url_variable.as_deref().map(Reach::Database));
    all.extend(providers.iter().map(Reach::Provider));
    all.extend(process_tools.iter().map(Reach::Program));
    all.extend(servers.iter().map(|(name, spec)| Reach::Server(name, spec)));
    all.extend(peers.iter().map(Reach::Peer));
    agents.iter().for_each(|it| agent(it, &mut all));
    all
}

fn agent<'a>(agent: &'a AgentSpec, all: &mut Vec<Reach<'a>>) {
    let AgentSpec {
        name,
        description: _,
        // Names a provider, which is listed with its address and key.
        model: _,
        options,
        instructions,
        context,
        toolboxes,
        // Names programs of the manifest.
        tools: _,
        skills: _,
        effects: _,
        behavior: _,
        // Names parts of the application.
        middleware: _,
        compaction: _,
        floor: _,
        access: _,
        // Listed with the commands that they allow; otherwise rules only restrict.
        rules,
        limits: _,
        max_turns: _,
        budget: _,
        delegation: _,
        transfers: _,
        team,
        reflections,
        expertise: _,
        estimated_cost: _,
        max_concurrency: _,
        prefix: _,
    } = agent;
    if let Some(TeamSpec {
        members: _,
        size: _,
        member_timeout: _,
        coordinator: _,
        member_budget: _,
    }) = team
    {}
    if !options.headers.is_empty() || !options.extra.is_empty() {
        all.push(Reach::Options(name, options));
    }
    match instructions {
        Some(Instructions::File { file }) => all.push(Reach::Copied(file)),
        Some(Instructions::Text(_)) | None => {}
    }
    for context in context {
        all.push(Reach::Copied(match context {
            ContextSpec::File(file)
            | ContextSpec::Named(NamedContext {
                file,
                name: _,
                optional: _,
            }) => file,
        }));
    }
    for toolbox in toolboxes {
        match &**toolbox.name() {
            "shell" => all.push(Reach::Commands(name, rules.as_ref())),
            "fetch" => all.push(Reach::Pages(name)),
            _ => {}
        }
        match toolbox {
            ToolboxChoice::Name(_) => {}
            ToolboxChoice::Spec(spec) => {
                let ToolboxSpec {
                    name: _,
                    only: _,
                    except: _,
                    prefix: _,
                    timeout: _,
                    max_output: _,
                    root,
                } = spec;
                all.extend(root.as_deref().map(Reach::Root));
            }
        }
    }
    if let Some(ReflectionSpec { folder }) = reflections {
        all.extend(folder.as_deref().map(Reach::Inside));
    }
}
