//! The `access` and `rules` of an agent: a hook that denies calls, and a rule that requires approvals.

use std::sync::Arc;

use adjutant_agent::{Agent, HookContext, Verdict, points::BeforeTool};
use adjutant_tool::{Ask, Guard, ToolSpec, Toolbox};
use adjutant_toolkit::{Decision, Rules};
use serde_json::json;

use super::{hands, pattern::any_fits, toolbox, tooling::Tooling};
use crate::{
    Error, ErrorKind, kept_rules,
    manifest::{Access, AgentSpec, Approval, PREFIXED},
};

/// Tools that rules for all tools do not affect: one reports that a task is done, the other only finds tools.
const MEANT: [&str; 2] = ["task_complete", "find_tools"];

/// Returns the decision on the calls of a tool, and its text.
fn find_approval<'a>(access: &'a Access, tool: &str) -> (Approval, Option<&'a Arc<str>>) {
    let rule = access.rules.iter().find(|rule| any_fits(&rule.tools, tool));
    match rule {
        Some(rule) if !MEANT.contains(&tool) || rule.tools.iter().any(|name| **name == *tool) => {
            (rule.then, rule.say.as_ref())
        }
        _ if MEANT.contains(&tool) => (Approval::Allow, None),
        _ => (access.default.unwrap_or(Approval::Allow), None),
    }
}

/// Applies these rules to the agent's own calls. Sub-agents have their own rules.
pub(super) fn install(agent: Agent, name: &Arc<str>, access: &Access) -> Agent {
    let is_open = access.rules.is_empty() && matches!(access.default, None | Some(Approval::Allow));
    if is_open {
        return agent;
    }
    let (denies, asks) = (Arc::new(access.clone()), access.clone());
    let own = Arc::clone(name);
    agent
        .on(move |cx: HookContext, point: BeforeTool| {
            // Hooks also see the calls of sub-agents, which have their own rules.
            let verdict = match find_approval(&denies, &point.call.name.0) {
                (Approval::Deny, say) if cx.who.config_name == own => {
                    Verdict::Deny(denied(&point, say))
                }
                _ => Verdict::Pass(point),
            };
            async move { verdict }
        })
        .approve_when(move |spec, _| asked(&asks, spec))
}

/// Returns the tools for a caller other than the agent: denied tools are omitted, the others keep their rules.
pub(super) fn over(
    tools: impl Toolbox + 'static,
    access: &Access,
    rules: Option<&Rules>,
) -> Arc<dyn Toolbox> {
    let (denies, asks) = (access.clone(), access.clone());
    let tools =
        tools.filter(move |_, spec| find_approval(&denies, &spec.name().0).0 != Approval::Deny);
    let tools = tools.confirm_when(move |spec, _| asked(&asks, spec));
    match rules {
        Some(rules) => Arc::new(rules.over(tools)),
        None => Arc::new(tools),
    }
}

fn asked(access: &Access, spec: &ToolSpec) -> Option<Ask> {
    match find_approval(access, &spec.name().0) {
        (Approval::Ask, Some(say)) => Some(Ask::approval(Arc::clone(say))),
        (Approval::Ask, None) => {
            let remarks = spec
                .remarks()
                .map(|remarks| format!(" ({remarks})"))
                .unwrap_or_default();
            Some(Ask::approval(format!(
                "May {:?}{remarks} run with these arguments?",
                spec.name().as_str()
            )))
        }
        _ => None,
    }
}

/// Returns the rules of an agent, for the directory of its files. An agent with acting tools and without rules gets
/// mode `ask`.
///
/// # Errors
/// `Config` if a rule is invalid, if the rules would not recognize some tools, or if the stored rules are not trusted.
pub(super) fn rules(spec: &AgentSpec, tooling: &Tooling) -> Result<Option<Rules>, Error> {
    let root = toolbox::root(tooling, spec);
    let rules = Rules::new(root.canonicalize().unwrap_or(root));
    #[cfg(all(feature = "shell", target_os = "linux"))]
    let rules = rules.in_sandbox(tooling.holder.clone().unwrap_or_default().0.holds());
    let Some(written) = &spec.rules else {
        let acts = hands::acts(tooling, spec);
        return acts
            .then(|| kept_rules::restore(&tooling.workspace, &spec.name, rules))
            .transpose();
    };
    let wrong = |why: String| {
        Error::new(
            ErrorKind::Config,
            format!("the rules of the agent {}: {why}", spec.name),
        )
    };
    if spec.hides_from_rules() {
        return Err(wrong(PREFIXED.to_owned()));
    }
    for (_, _, rule) in written.each() {
        let mut rule = rule.map_err(|error| wrong(error.to_string()))?;
        rule.from = "the manifest".into();
        rules
            .add([rule])
            .map_err(|error| wrong(error.to_string()))?;
    }
    let rules = rules.mode(written.mode.unwrap_or_default());
    kept_rules::restore(&tooling.workspace, &spec.name, rules).map(Some)
}

/// Applies rules to the agent's own calls. Sub-agents have their own rules.
pub(super) fn install_rules(agent: Agent, name: &Arc<str>, rules: &Rules) -> Agent {
    let (denies, asks, own) = (rules.clone(), rules.clone(), Arc::clone(name));
    let named = MEANT.map(|tool| {
        rules
            .rules()
            .iter()
            .any(|rule| rule.to_string().contains(&format!(" {tool}")))
    });
    // Rules for all tools do not affect these tools.
    let is_free = move |tool: &str| {
        MEANT
            .iter()
            .zip(named)
            .any(|(meant, is_named)| *meant == tool && !is_named)
    };
    agent
        .on(move |cx: HookContext, point: BeforeTool| {
            let spec = ToolSpec {
                replay: point.replay,
                ..ToolSpec::new(point.call.name.clone(), "", json!({}))
            };
            let is_own = cx.who.config_name == own && !is_free(point.call.name.as_str());
            let ruling = is_own.then(|| denies.decide(&spec, &point.args));
            let verdict = match ruling.filter(|ruling| ruling.decision == Decision::Deny) {
                Some(ruling) => Verdict::Deny(
                    format!("{}; hint: do without it, or ask the user", ruling.why).into(),
                ),
                None => Verdict::Pass(point),
            };
            async move { verdict }
        })
        .approve_when(move |spec, args| match is_free(spec.name().as_str()) {
            true => None,
            false => Guard::approval(&asks, spec, args),
        })
}

fn denied(point: &BeforeTool, say: Option<&Arc<str>>) -> Arc<str> {
    match say {
        Some(say) => Arc::clone(say),
        None => format!("this agent may not call {:?}", point.call.name.as_str()).into(),
    }
}
