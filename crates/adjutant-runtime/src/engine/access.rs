//! The calls that an agent may make by itself: a hook that denies, and a rule that asks.

use std::sync::Arc;

use adjutant_agent::{Agent, HookContext, Verdict, points::BeforeTool};
use adjutant_tool::Ask;

use super::pattern::any_fits;
use crate::manifest::{Access, Approval};

/// The tool by which an agent says that its task is done: what is said of all tools does not mean it.
const COMPLETE: &str = "task_complete";

/// Returns the decision on the calls of a tool, and the text that goes with it.
fn of<'a>(access: &'a Access, tool: &str) -> (Approval, Option<&'a Arc<str>>) {
    let rule = access.rules.iter().find(|rule| any_fits(&rule.tools, tool));
    match rule {
        Some(rule) if tool != COMPLETE || rule.tools.iter().any(|name| &**name == COMPLETE) => {
            (rule.then, rule.say.as_ref())
        }
        _ if tool == COMPLETE => (Approval::Allow, None),
        _ => (access.default.unwrap_or(Approval::Allow), None),
    }
}

/// The agent, with these rules for its own calls. Agents under it have theirs.
pub(super) fn install(agent: Agent, name: &Arc<str>, access: &Access) -> Agent {
    let is_open = access.rules.is_empty() && matches!(access.default, None | Some(Approval::Allow));
    if is_open {
        return agent;
    }
    let (denies, asks) = (Arc::new(access.clone()), access.clone());
    let own = Arc::clone(name);
    agent
        .on(move |cx: HookContext, point: BeforeTool| {
            // Hooks hold for agents below too, which have rules of their own.
            let verdict = match of(&denies, &point.call.name.0) {
                (Approval::Deny, say) if cx.who.config_name == own => Verdict::Deny(denied(&point, say)),
                _ => Verdict::Pass(point),
            };
            async move { verdict }
        })
        .approve_when(move |spec, _| match of(&asks, &spec.name().0) {
            (Approval::Ask, Some(say)) => Some(Ask::approval(Arc::clone(say))),
            (Approval::Ask, None) => {
                Some(Ask::approval(format!("May {:?} run with these arguments?", spec.name().as_str())))
            }
            _ => None,
        })
}

fn denied(point: &BeforeTool, say: Option<&Arc<str>>) -> Arc<str> {
    match say {
        Some(say) => Arc::clone(say),
        None => format!("this agent may not call {:?}", point.call.name.as_str()).into(),
    }
}
