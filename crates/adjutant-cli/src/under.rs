//! The agents of a session and their activities, from its log.

use std::sync::Arc;

use adjutant::{
    agent::{EventFold, LogId, Seq},
    llm::ThreadId,
    orchestration::{AgentTree, NodeState, TreeNode},
    tools::Identity,
};
use futures_util::StreamExt;
use serde_json::json;

use crate::{
    exit::Exit,
    named, plain,
    problem::Problem,
    screen::{tell, write_or_tell},
    store::Store,
    trouble,
};

/// The maximum number of agents in an error.
const MAX_NAMED: usize = 10;

/// Lists the agents of a session as a tree.
pub(crate) async fn list(store: &Store, name: &str, is_json: bool) -> Result<Exit, Problem> {
    let info = named::find(&store.sessions(), name).await?;
    let tree = tree(store, name, info.about.agent.as_deref().unwrap_or("agent")).await?;
    let text: String = if is_json {
        tree.nodes().iter().map(json_of).collect()
    } else {
        lines(&tree)
    };
    write_or_tell(&text, "no agent has worked in the session yet")?;
    if tree.more() > 0 {
        tell(&format!("and {} more", tree.more()));
    }
    if !info.is_owned && tree.nodes().iter().any(is_at_work) {
        let again = format!("adjutant resume {}", plain::word(name));
        tell(&format!(
            "nobody works in the session: its program was lost; `{again}` goes on"
        ));
    }
    Ok(Exit::Finished)
}

/// Finds the thread of a sub-agent by its name, path or thread; if several have the name, the running one.
///
/// # Errors
/// `Usage` if no agent or several agents match.
pub(crate) async fn thread(store: &Store, name: &str, agent: &str) -> Result<ThreadId, Problem> {
    let tree = tree(store, name, "").await?;
    let under: Vec<&TreeNode> = tree
        .nodes()
        .iter()
        .filter(|it| it.who.depth > 0 && is_at_work(it))
        .collect();
    let is_it = |it: &&&TreeNode| {
        it.who.thread.as_str() == agent || *it.who.path == *agent || *it.who.name == *agent
    };
    let found: Vec<_> = under.iter().filter(is_it).collect();
    match found.as_slice() {
        [one] => Ok(one.who.thread.clone()),
        _ => {
            let what = if found.is_empty() {
                "no agent of this name is at work"
            } else {
                "several agents have this name"
            };
            let problem = Problem::new(Exit::Usage, format!("{what}: {agent}"));
            let near = if found.is_empty() {
                under.iter().collect()
            } else {
                found
            };
            let threads: Vec<String> = near
                .iter()
                .take(MAX_NAMED)
                .map(|it| plain::word(it.who.thread.as_str()))
                .collect();
            Err(match threads.is_empty() {
                true => problem,
                false => problem.hint(format!("active threads: {}", threads.join(", "))),
            })
        }
    }
}

/// Reads the agents of a session.
async fn tree(store: &Store, name: &str, first: &str) -> Result<AgentTree, Problem> {
    let journal = store.journal();
    let mut records = journal.read(&LogId::from(name), Seq(0));
    let (mut tree, mut fold): (_, Option<EventFold>) = (AgentTree::new(), None);
    while let Some(stamped) = records.next().await {
        let stamped = stamped.map_err(|error| trouble::journal_problem(&error))?;
        let fold = fold.get_or_insert_with(|| {
            EventFold::new(
                Arc::new(Identity::root(stamped.thread.clone(), "", first)),
                Seq(0),
            )
        });
        fold.push(&stamped)
            .map_err(|error| Problem::from_error(Exit::Failed, &error))?;
        fold.ready.drain(..).for_each(|event| {
            tree.see(&event);
        });
    }
    if let Some(event) = fold.as_mut().and_then(|fold| fold.ended.take()) {
        tree.see(&event);
    }
    Ok(tree)
}

fn is_at_work(node: &TreeNode) -> bool {
    matches!(
        node.state,
        NodeState::Opened | NodeState::Working | NodeState::Waiting
    )
}

/// Format: `<state>  <thread>  <name>: <task> | <activity>`, indented by level.
fn lines(tree: &AgentTree) -> String {
    let width = tree
        .nodes()
        .iter()
        .map(|it| it.state.word().len())
        .max()
        .unwrap_or_default();
    let mut text = String::new();
    add(&mut text, tree, None, width);
    text
}

fn add(text: &mut String, tree: &AgentTree, above: Option<usize>, width: usize) {
    for at in tree.under(above) {
        let Some(node) = tree.nodes().get(at) else {
            continue;
        };
        let (state, margin) = (node.state.word(), "  ".repeat(usize::from(node.who.depth)));
        let mut doing = [&node.task, &node.activity]
            .into_iter()
            .filter(|it| !it.is_empty())
            .map(|it| plain::line(it));
        let doing = doing.by_ref().collect::<Vec<_>>().join(" | ");
        let (thread, name) = (
            plain::line(node.who.thread.as_str()),
            plain::line(&node.who.name),
        );
        text.push_str(format!("{state:width$}  {margin}{thread}  {name}: {doing}").trim_end());
        text.push('\n');
        add(text, tree, Some(at), width);
    }
}

/// Format: one JSON object per line.
fn json_of(node: &TreeNode) -> String {
    plain::json_line(json!({
        "agent": &*node.who.name,
        "path": &*node.who.path,
        "thread": node.who.thread,
        "state": node.state.word(),
        "task": node.task,
        "activity": node.activity,
        "turns": node.turns,
        "calls": node.calls,
        "tokens": node.usage.total(),
    }))
}
