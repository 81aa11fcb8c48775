//! Displays the agents of a run: the activities of sub-agents, line by line or as a live tree.
//!
//! Has no side effects: `screen.rs` writes the output.

use std::{collections::BTreeMap, time::Duration};

use adjutant::{
    Event, EventKind,
    llm::ThreadId,
    orchestration::{AgentTree, NodeState, TreeNode},
    tools::Identity,
};
use tokio::time::Instant;

use crate::{
    amount::grouped,
    plain,
    show::{DisplayLine, Show, TextDisplay},
};

/// The minimum interval between two drawings of the tree.
const DRAW_EVERY: Duration = Duration::from_millis(100);
/// The maximum number of subagents that are drawn at a time.
const MAX_DRAWN: usize = 6;

/// The agents of a run, as followed so far.
#[derive(Debug, Default)]
pub(crate) struct TreeView {
    tree: AgentTree,
    /// The display of each running subagent.
    shows: BTreeMap<ThreadId, Show>,
    /// The current activity of the first agent.
    busy: String,
    /// The time of the last drawing, and a flag that is set if the tree has changed since.
    drawn: Option<Instant>,
    is_changed: bool,
}

impl TreeView {
    /// Updates the tree with an event.
    pub(crate) fn see(&mut self, event: &Event) {
        self.tree.see(event);
        self.is_changed |= self.tree.nodes().len() > 1;
    }

    /// Returns the lines for an event of a subagent.
    pub(crate) fn told(&mut self, event: &Event) -> Vec<DisplayLine> {
        let who = &event.who;
        let name = label(who);
        let show = self
            .shows
            .entry(who.thread.clone())
            .or_insert_with(|| Show::new(TextDisplay::Nothing));
        let mut told: Vec<DisplayLine> = show
            .event(&event.kind)
            .into_iter()
            .filter_map(|line| line.within(&name))
            .collect();
        if let EventKind::RunFinished { .. } = &event.kind {
            self.shows.remove(&who.thread);
            let state = self
                .tree
                .nodes()
                .iter()
                .rev()
                .find(|node| node.who.thread == who.thread);
            let state = state.map_or(NodeState::Finished, |node| node.state);
            told.push(DisplayLine::Told(format!("■ {name}: {}", state.word())));
        }
        told
    }

    /// Sets the current activity of the first agent.
    pub(crate) fn at(&mut self, what: &str) {
        what.clone_into(&mut self.busy);
    }

    /// True if a sub-agent is running.
    pub(crate) fn is_busy(&self) -> bool {
        self.tree.nodes().iter().any(is_under_way)
    }

    /// Returns the time of the next drawing, if the tree has changed.
    pub(crate) fn due(&self, now: Instant) -> Option<Instant> {
        let next = || self.drawn.map_or(now, |drawn| drawn + DRAW_EVERY);
        self.is_changed.then(next)
    }

    /// Returns the lines to draw: the first agent, its running sub-agents, and the number of others.
    pub(crate) fn draw(&mut self, now: Instant) -> Vec<String> {
        (self.drawn, self.is_changed) = (Some(now), false);
        let nodes = self.tree.nodes();
        let mut lines: Vec<String> = nodes
            .first()
            .map(|first| row(first, &self.busy))
            .into_iter()
            .collect();
        let under_way: Vec<&TreeNode> = self
            .in_order()
            .into_iter()
            .filter(|node| is_under_way(node))
            .collect();
        for node in under_way.iter().take(MAX_DRAWN) {
            let indent = "  ".repeat(usize::from(node.who.depth.clamp(1, 8)) - 1);
            lines.push(format!("{indent}{}", row(node, &node.activity)));
        }
        let more = under_way.len().saturating_sub(MAX_DRAWN) + self.tree.more();
        let ended = nodes.len().saturating_sub(1 + under_way.len());
        let rest = [(more, "more"), (ended, "ended")]
            .into_iter()
            .filter(|(count, _)| *count > 0);
        let rest: Vec<String> = rest
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if !rest.is_empty() {
            lines.push(format!("({})", rest.join(", ")));
        }
        lines
    }

    /// Returns the complete tree, if there were sub-agents.
    pub(crate) fn text(&self) -> Option<String> {
        (self.tree.nodes().len() > 1)
            .then(|| plain::stream(self.tree.to_string().trim_end()).into_owned())
    }

    /// Returns the agents, each before its sub-agents.
    fn in_order(&self) -> Vec<&TreeNode> {
        let nodes = self.tree.nodes();
        let mut under: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
        nodes
            .iter()
            .enumerate()
            .for_each(|(at, node)| under.entry(node.parent).or_default().push(at));
        let mut order = Vec::with_capacity(nodes.len());
        let mut next: Vec<usize> = under.remove(&None).unwrap_or_default();
        next.reverse();
        while let Some(at) = next.pop() {
            order.extend(nodes.get(at));
            next.extend(
                under
                    .remove(&Some(at))
                    .unwrap_or_default()
                    .into_iter()
                    .rev(),
            );
        }
        order
    }
}

/// Returns the line for a new agent.
pub(crate) fn opened(child: &Identity) -> DisplayLine {
    let task = child
        .task
        .as_deref()
        .map(|task| format!(": {}", plain::line(task)))
        .unwrap_or_default();
    DisplayLine::Told(format!("▸ {}{task}", label(child)))
}

/// Returns the text before the lines of an agent.
fn label(who: &Identity) -> String {
    match who.prefix.trim() {
        "" => plain::line(&who.name),
        prefix if *prefix == *who.name => plain::line(prefix),
        prefix => plain::line(&format!("{prefix} {}", who.name)),
    }
}

/// True if the agent is a sub-agent that has not finished.
fn is_under_way(node: &TreeNode) -> bool {
    node.who.depth > 0
        && matches!(
            node.state,
            NodeState::Opened | NodeState::Working | NodeState::Waiting
        )
}

/// Formats an agent in one line: its name, its state, its usage, its activity.
fn row(node: &TreeNode, at: &str) -> String {
    let tokens = grouped(node.usage.total());
    let at = if at.is_empty() { &node.task } else { at };
    let line = format!("{}: {}, {tokens} tokens", node.who.name, node.state.word());
    plain::line(&if at.is_empty() {
        line
    } else {
        format!("{line} · {at}")
    })
}

#[cfg(test)]
mod tests;
