//! Validates one agent.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use adjutant_agent::effects::EffectSpec;
use serde_json::Value;

use super::{Check, form, model};
use crate::manifest::{
    Access, AgentSpec, Approval, Compaction, ContextSpec, Instructions, LimitsSpec, Manifest,
    NamedContext, PREFIXED, TOOLBOXES, ToolboxChoice, ToolboxSpec,
    node::At,
    path::Kind,
    problem::{Problem, quoted},
};

/// The maximum number of agents.
const MAX_AGENTS: usize = 256;
/// The known middleware.
const MIDDLEWARE: [&str; 2] = ["logger", "recovery"];
/// The maximum number of rules of an agent.
const MAX_RULES: usize = 1_000;
/// The maximum size of a result for a model, in bytes.
const MAX_RESULT: u64 = 16 << 20;

pub(super) fn check(check: &mut Check<'_>, manifest: &mut Manifest, at: At<'_>) {
    let agents = at.key("agents");
    check.must(
        manifest.agents.len() <= MAX_AGENTS,
        agents,
        format!("there are more than {MAX_AGENTS} agents"),
    );
    let mut list = std::mem::take(&mut manifest.agents);
    for (n, agent) in list.iter_mut().enumerate() {
        one(check, agent, manifest, agents.item(n));
    }
    manifest.agents = list;
}

fn one(check: &mut Check<'_>, agent: &mut AgentSpec, manifest: &Manifest, at: At<'_>) {
    // The name of a single agent is the manifest's, which is checked there.
    if !(agent.name.is_empty() && manifest.name.is_empty()) {
        check.name(&agent.name, at, "name");
    }
    if let Some(choice) = &agent.model {
        model::choice(check, choice, at.key("model"));
    }
    model::options(check, &agent.options, at.key("options"));
    told(check, agent, at);
    toolboxes(check, agent, manifest, at);
    tools(check, agent, manifest, at);
    effects(check, agent, at.key("effects"));
    compaction(check, agent, at.key("compaction"));
    let surroundings = agent.middleware.iter().enumerate();
    check.differ(
        surroundings.map(|(n, name)| (&**name, at.key("middleware").item(n))),
        "a middleware of this agent",
    );
    let known = &check.around.parts;
    for (n, name) in agent.middleware.iter().enumerate() {
        check.known(
            name,
            MIDDLEWARE.into_iter().chain(names_of(&known.middleware)),
            at.key("middleware").item(n),
            "middleware",
        );
    }
    access(check, &agent.access, at.key("access"));
    rules(check, agent, at.key("rules"));
    limits(check, agent, at);
    model::budget(check, &agent.budget, at.key("budget"));
    if let Some(folder) = agent
        .reflections
        .as_ref()
        .and_then(|it| it.folder.as_deref())
    {
        check.within(folder, at.key("reflections").key("folder"));
    }
    for (n, word) in agent.expertise.iter().enumerate() {
        check.must(
            form::is_line(word, 64),
            at.key("expertise").item(n),
            "an expertise is one line of 64 characters at most",
        );
    }
    for (field, text, most) in [
        ("estimated_cost", &agent.estimated_cost, 64),
        ("prefix", &agent.prefix, 16),
    ] {
        let is_line = text.as_deref().is_none_or(|text| form::is_line(text, most));
        check.must(
            is_line,
            at.key(field),
            format!("`{field}` is one line of {most} characters at most"),
        );
    }
    model::at_least_one(
        check,
        agent.max_concurrency.map(u64::from),
        at,
        "max_concurrency",
    );
}

/// Checks instructions and context.
fn told(check: &mut Check<'_>, agent: &mut AgentSpec, at: At<'_>) {
    match &mut agent.instructions {
        Some(Instructions::File { file }) => {
            check.contained(file, at.key("instructions").key("file"), Kind::Text)
        }
        Some(Instructions::Text(text)) => {
            check.must(
                !text.trim().is_empty(),
                at.key("instructions"),
                "the instructions are empty",
            );
        }
        None => {}
    }
    for (n, context) in agent.context.iter_mut().enumerate() {
        let at = at.key("context").item(n);
        match context {
            ContextSpec::File(file) => {
                let name = file
                    .file_name()
                    .map(|name| name.to_string_lossy().into_owned());
                check.contained(file, at, Kind::Text);
                // The name from the manifest is kept even if the file is a link.
                if file
                    .file_name()
                    .map(|name| name.to_string_lossy().into_owned())
                    != name
                {
                    let (file, name) = (std::mem::take(file), name.map(Into::into));
                    *context = ContextSpec::Named(NamedContext {
                        file,
                        name,
                        optional: false,
                    });
                }
            }
            ContextSpec::Named(named) => named_context(check, named, at),
        }
    }
}

fn named_context(check: &mut Check<'_>, named: &mut NamedContext, at: At<'_>) {
    let is_name = named
        .name
        .as_deref()
        .is_none_or(|name| form::is_line(name, 128));
    check.must(
        is_name,
        at.key("name"),
        "`name` is one line of 128 characters at most",
    );
    let folder = &at.key("file").mark.source.folder;
    let written = folder.join(&named.file);
    if named.optional && crate::manifest::path::within(&named.file).is_ok() && is_missing(&written)
    {
        named.file = written.components().collect();
    } else {
        check.contained(&mut named.file, at.key("file"), Kind::Text);
    }
}

fn is_missing(path: &Path) -> bool {
    path.symlink_metadata()
        .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

fn toolboxes(check: &mut Check<'_>, agent: &mut AgentSpec, manifest: &Manifest, at: At<'_>) {
    let boxes = at.key("toolboxes");
    let place = |n: usize| match boxes.item(n) {
        item if item.node().is_some_and(|node| node.as_map().is_some()) => item.key("name"),
        item => item,
    };
    let names: Vec<Arc<str>> = agent
        .toolboxes
        .iter()
        .map(|choice| Arc::clone(choice.name()))
        .collect();
    check.differ(
        names
            .iter()
            .enumerate()
            .map(|(n, name)| (&**name, place(n))),
        "a toolbox of this agent",
    );
    let has_reflections = agent.reflections.is_some();
    for (n, choice) in agent.toolboxes.iter_mut().enumerate() {
        let name = Arc::clone(choice.name());
        let known = &check.around.parts;
        let servers = manifest.mcp.servers.keys().map(|name| &**name);
        let names = TOOLBOXES
            .into_iter()
            .chain(names_of(&known.toolboxes))
            .chain(servers);
        check.known(&name, names, place(n), "toolbox");
        let lacks = match &*name {
            "board" if manifest.board.is_none() => "`board` of the manifest",
            name if known.toolboxes.contains(name) => "",
            "notes" if manifest.notes.is_none() => "`notes` of the manifest",
            "memory" if manifest.memory.is_none() => "`memory` of the manifest",
            "peers" if manifest.peers.is_empty() => "`peers` of the manifest",
            "reflections" if !has_reflections => "`reflections` of the agent",
            _ => "",
        };
        check.must(
            lacks.is_empty(),
            place(n),
            format!("the toolbox `{name}` needs {lacks}, which is missing"),
        );
        if let ToolboxChoice::Spec(spec) = choice {
            toolbox(check, spec, boxes.item(n));
        }
    }
}

fn names_of(names: &BTreeSet<String>) -> impl Iterator<Item = &str> {
    names.iter().map(String::as_str)
}

fn toolbox(check: &mut Check<'_>, spec: &mut ToolboxSpec, at: At<'_>) {
    check.must(
        spec.only.as_ref().is_none_or(|it| !it.is_empty()),
        at.key("only"),
        "a toolbox without tools is none",
    );
    for (field, list) in [
        ("only", spec.only.as_deref().unwrap_or_default()),
        ("except", &spec.except),
    ] {
        list.iter()
            .enumerate()
            .for_each(|(n, it)| pattern(check, it, at.key(field).item(n)));
    }
    if let Some(prefix) = &spec.prefix {
        let is_prefix = form::is_name(prefix) && prefix.len() <= 32;
        check.must(
            is_prefix,
            at.key("prefix"),
            "a prefix has 1 to 32 letters, digits, `_` and `-`",
        );
    }
    model::time(check, spec.timeout, at, "timeout");
    let is_size = spec
        .max_output
        .is_none_or(|size| (1..=MAX_RESULT).contains(&size.0));
    check.must(
        is_size,
        at.key("max_output"),
        "`max_output` is over 0 and 16MiB at most",
    );
    if let Some(root) = &mut spec.root {
        if &*spec.name == "files" {
            check.contained(root, at.key("root"), Kind::Folder);
        } else {
            check.tell(at.key("root"), "only the toolbox `files` has a `root`");
        }
    }
}

fn pattern(check: &mut Check<'_>, text: &str, at: At<'_>) {
    check.must(
        form::is_pattern(text),
        at,
        format!("no tool can be called {}", quoted(text)),
    );
}

fn tools(check: &mut Check<'_>, agent: &AgentSpec, manifest: &Manifest, at: At<'_>) {
    let tools = at.key("tools");
    for (n, name) in agent.tools.iter().enumerate() {
        check.known(
            name,
            manifest.process_tools.iter().map(|tool| &*tool.name),
            tools.item(n),
            "process tool",
        );
    }
    check.differ(
        agent
            .tools
            .iter()
            .enumerate()
            .map(|(n, it)| (&**it, tools.item(n))),
        "a tool of this agent",
    );
    let skills = at.key("skills");
    check.differ(
        agent
            .skills
            .iter()
            .enumerate()
            .map(|(n, it)| (&**it, skills.item(n))),
        "a skill of this agent",
    );
    if let Some(found) = check.skills.take() {
        for (n, name) in agent
            .skills
            .iter()
            .enumerate()
            .filter(|(_, name)| &***name != "*")
        {
            check.known(
                name,
                found.names.iter().map(String::as_str),
                skills.item(n),
                "skill",
            );
        }
        if agent.skills.iter().any(|name| &**name == "*") && manifest.skill_folders.is_empty() {
            check.tell(skills, "there are no skills: `skill_folders` is empty");
        }
        check.skills = Some(found);
    }
}

fn compaction(check: &mut Check<'_>, agent: &AgentSpec, at: At<'_>) {
    if let Some(Compaction::With(params)) = &agent.compaction {
        effect(
            check,
            &EffectSpec {
                kind: "compact".into(),
                params: Value::Object(params.clone()),
            },
            at,
        );
    }
}

fn effects(check: &mut Check<'_>, agent: &AgentSpec, at: At<'_>) {
    for (n, effect) in agent.effects.iter().enumerate() {
        let at = at.item(n);
        let own: Vec<String> = check.effects.kinds().map(str::to_owned).collect();
        let known = &check.around.parts;
        let kinds = own
            .iter()
            .map(String::as_str)
            .chain(names_of(&known.effects));
        let is_known = check.known(&effect.kind, kinds, at.key("kind"), "effect of kind");
        if !is_known || !own.iter().any(|kind| **kind == *effect.kind) {
            continue;
        }
        let spec = EffectSpec {
            kind: Arc::clone(&effect.kind),
            params: effect.params.clone(),
        };
        self::effect(check, &spec, at.key("params"));
    }
}

/// Checks the parameters of an effect.
fn effect(check: &mut Check<'_>, spec: &EffectSpec, at: At<'_>) {
    let Err(error) = check.effects.make(spec) else {
        return;
    };
    let why =
        std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
    let Problem {
        file,
        line,
        column,
        message,
        hint,
    } = model::serde_problem(&why, at);
    let message = format!("effect `{}`: {message}", spec.kind);
    check.problems.push(Problem {
        file,
        line,
        column,
        message,
        hint,
    });
}

fn access(check: &mut Check<'_>, access: &Access, at: At<'_>) {
    for (n, rule) in access.rules.iter().enumerate() {
        let at = at.key("rules").item(n);
        check.must(
            !rule.tools.is_empty(),
            at.key("tools"),
            "a rule about no tool has no effect",
        );
        rule.tools
            .iter()
            .enumerate()
            .for_each(|(n, it)| pattern(check, it, at.key("tools").item(n)));
        let is_told = rule.say.is_none() || rule.then != Approval::Allow;
        check.must(
            is_told,
            at.key("say"),
            "`say` is told when a call is asked about or denied: this rule allows it",
        );
        let earlier = access
            .rules
            .iter()
            .take(n)
            .any(|it| it.tools.iter().any(|tool| &**tool == "*"));
        if earlier {
            check.warn(
                at.mark,
                "this rule has no effect: one before it is about every tool",
            );
        }
    }
}

fn rules(check: &mut Check<'_>, agent: &AgentSpec, at: At<'_>) {
    let Some(rules) = &agent.rules else { return };
    let mut count = 0;
    for (field, n, rule) in rules.each() {
        count += 1;
        if let Err(error) = rule {
            let text = error.to_string();
            let (message, hint) = text.split_once("; hint: ").unwrap_or((&text, ""));
            let hint = Some(hint.to_owned()).filter(|hint| !hint.is_empty());
            check.tell_hint(at.key(field).item(n), message, hint);
        }
    }
    check.must(
        count <= MAX_RULES,
        at,
        format!("there may be {MAX_RULES} rules at most"),
    );
    check.must(!agent.hides_from_rules(), at, PREFIXED);
}

fn limits(check: &mut Check<'_>, agent: &AgentSpec, at: At<'_>) {
    let (limits, inner) = (&agent.limits, at.key("limits"));
    if agent.max_turns.is_some() && limits.max_turns.is_some() {
        check.tell(
            at.key("max_turns"),
            "`max_turns` and `limits.max_turns` are the same: one of them is enough",
        );
    }
    model::at_least_one(check, agent.max_turns.map(u64::from), at, "max_turns");
    model::at_least_one(check, limits.max_turns.map(u64::from), inner, "max_turns");
    model::at_least_one(
        check,
        limits.max_parallel_tools.map(u64::from),
        inner,
        "max_parallel_tools",
    );
    let LimitsSpec {
        timeout,
        tool_timeout,
        grace,
        ..
    } = limits;
    for (field, value) in [
        ("timeout", timeout),
        ("tool_timeout", tool_timeout),
        ("grace", grace),
    ] {
        model::time(check, *value, inner, field);
    }
    let is_size = limits
        .max_result
        .is_none_or(|size| (1..=MAX_RESULT).contains(&size.0));
    check.must(
        is_size,
        inner.key("max_result"),
        "`max_result` is over 0 and 16MiB at most",
    );
    let agree = !(limits.sequential && limits.max_parallel_tools.is_some_and(|most| most > 1));
    check.must(
        agree,
        inner.key("max_parallel_tools"),
        "calls run one after the other: `sequential` is true",
    );
}
