//! The tree of agents as it works, folded from the one stream of events that shows all of them.

use std::{collections::BTreeMap, fmt, sync::Arc};

use adjutant_agent::{Event, EventKind, Outcome};
use adjutant_llm::{Content, Entry, Origin, ThreadId, Usage};
use adjutant_tool::Identity;

/// The largest number of agents that are listed one by one; the others are only counted.
const MAX_NODES: usize = 1_000;
/// The largest number of characters of a task or an activity.
const MAX_CHARS: usize = 80;

/// The tree of agents of a run, from its events.
///
/// As text it has a line for each agent, with subagents indented below it, in the order in which they were opened.
/// Counts are each agent's own; subagents have their own lines.
#[derive(Debug, Clone, Default)]
pub struct AgentTree {
    nodes: Vec<TreeNode>,
    /// The newest node of a thread.
    newest: BTreeMap<ThreadId, usize>,
    more: usize,
}

/// An agent in an [`AgentTree`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TreeNode {
    /// The identity of the agent.
    pub who: Arc<Identity>,
    /// The place of the agent above it; none for a first one.
    pub parent: Option<usize>,
    /// The state of the agent.
    pub state: NodeState,
    /// The task that it was given, in one line; empty if that is not known.
    pub task: String,
    /// The activity of the agent, in one line; empty if that is not known.
    pub activity: String,
    /// The number of replies that it has made.
    pub turns: u32,
    /// The number of its calls that have ended.
    pub calls: u32,
    /// The usage of its replies.
    pub usage: Usage,
    /// The time of its first event, in milliseconds since 1970-01-01 UTC.
    pub began_ms: u64,
    /// The time of its last event.
    pub heard_ms: u64,
}

/// The state of an agent of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NodeState {
    /// It was opened and has not started.
    Opened,
    /// It works.
    Working,
    /// It waits for the outside.
    Waiting,
    /// It has answered.
    Finished,
    /// It has reached a limit.
    Limited,
    /// It has failed.
    Failed,
    /// It was stopped.
    Cancelled,
}

impl AgentTree {
    /// An empty tree.
    pub fn new() -> Self {
        Self::default()
    }

    /// Processes an event; returns whether a line of the text changed by more than the agent's output.
    pub fn see(&mut self, event: &Event) -> bool {
        if let EventKind::ChildOpened { child, .. } = &event.kind {
            let parent = self.newest.get(&event.who.thread).copied();
            let is_shown = self.node(child, parent, event.at_ms).is_some();
            self.more += usize::from(!is_shown);
            return is_shown;
        }
        let above = event
            .who
            .parent
            .as_ref()
            .and_then(|parent| self.newest.get(parent))
            .copied();
        let Some(node) = self.node(&event.who, above, event.at_ms) else {
            return false;
        };
        node.heard_ms = event.at_ms;
        node.see(&event.kind)
    }

    /// The agents, in the order of their first events.
    pub fn nodes(&self) -> &[TreeNode] {
        &self.nodes
    }

    /// The places of the agents under one, or of the first ones.
    pub fn under(&self, parent: Option<usize>) -> impl Iterator<Item = usize> {
        self.nodes
            .iter()
            .enumerate()
            .filter(move |(_, node)| node.parent == parent)
            .map(|(at, _)| at)
    }

    /// Returns the number of agents that are not listed one by one.
    pub fn more(&self) -> usize {
        self.more
    }

    /// Returns the usage of all listed agents.
    pub fn usage(&self) -> Usage {
        self.nodes.iter().fold(Usage::default(), |mut sum, node| {
            sum += node.usage;
            sum
        })
    }

    /// The node of an agent: the one of its thread, or a new one if another agent has the thread now.
    fn node(
        &mut self,
        who: &Arc<Identity>,
        parent: Option<usize>,
        at_ms: u64,
    ) -> Option<&mut TreeNode> {
        let known = self.newest.get(&who.thread).copied();
        let known = known.filter(|at| {
            self.nodes
                .get(*at)
                .is_some_and(|node| node.who.name == who.name)
        });
        let at = match known {
            Some(at) => at,
            None if self.nodes.len() >= MAX_NODES => return None,
            None => {
                self.newest.insert(who.thread.clone(), self.nodes.len());
                self.nodes.push(TreeNode::new(who, parent, at_ms));
                self.nodes.len() - 1
            }
        };
        self.nodes.get_mut(at)
    }

    fn write(
        &self,
        f: &mut fmt::Formatter<'_>,
        parent: Option<usize>,
        before: &str,
    ) -> fmt::Result {
        let mut under = self.under(parent).peekable();
        while let Some(at) = under.next() {
            let is_last = under.peek().is_none();
            let (branch, rest) = match (parent, is_last) {
                (None, _) => ("", ""),
                (Some(_), true) => ("└─ ", "   "),
                (Some(_), false) => ("├─ ", "│  "),
            };
            if let Some(node) = self.nodes.get(at) {
                writeln!(f, "{before}{branch}{node}")?;
                self.write(f, Some(at), &format!("{before}{rest}"))?;
            }
        }
        Ok(())
    }
}

impl TreeNode {
    fn new(who: &Arc<Identity>, parent: Option<usize>, at_ms: u64) -> Self {
        Self {
            who: Arc::clone(who),
            parent,
            state: NodeState::Opened,
            task: who.task.as_deref().map(line).unwrap_or_default(),
            activity: String::new(),
            turns: 0,
            calls: 0,
            usage: Usage::default(),
            began_ms: at_ms,
            heard_ms: at_ms,
        }
    }

    fn see(&mut self, kind: &EventKind) -> bool {
        match kind {
            EventKind::RunStarted | EventKind::RunResumed => self.state = NodeState::Working,
            // Its first text may contain more than the task.
            EventKind::EntryAdded { content }
                if self.who.task.is_none() && (self.task.is_empty() || self.turns == 0) =>
            {
                self.hear(content);
            }
            EventKind::ReplyFinished { reply, .. } => {
                self.turns += 1;
                self.usage += reply.usage;
                self.activity = line(&reply.text());
            }
            EventKind::ToolStarted { name, title, .. } => {
                self.activity = title.as_deref().unwrap_or(name.as_str()).to_owned();
            }
            EventKind::ToolFinished { .. } => self.calls += 1,
            EventKind::Paused { pause } => {
                (self.state, self.activity) = (NodeState::Waiting, line(&pause.ask.prompt));
            }
            EventKind::Answered { .. } => self.state = NodeState::Working,
            EventKind::RunPaused { .. } => self.state = NodeState::Waiting,
            EventKind::RunFinished { result } => {
                self.state = NodeState::from_outcome(&result.outcome);
                self.activity.clear();
            }
            EventKind::TextDelta { text, .. } => {
                let tail: String = format!("{}{text}", self.activity).replace(['\n', '\r'], " ");
                let skip = tail.chars().count().saturating_sub(MAX_CHARS);
                self.activity = tail.chars().skip(skip).collect();
                return false;
            }
            _ => return false,
        }
        true
    }

    /// Stores its request: the newest of its initial messages.
    fn hear(&mut self, entry: &Entry) {
        if let Entry::User(message) = entry
            && matches!(
                message.origin,
                Origin::Person | Origin::Task { .. } | Origin::Peer { .. }
            )
        {
            let text = message.content.iter().find_map(|content| match content {
                Content::Text { text } => Some(&**text),
                _ => None,
            });
            self.task = text.map(line).unwrap_or_default();
        }
    }
}

impl NodeState {
    fn from_outcome(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Finished { .. } => Self::Finished,
            Outcome::Limit { .. } => Self::Limited,
            Outcome::Failed { .. } => Self::Failed,
            Outcome::Cancelled { .. } => Self::Cancelled,
            Outcome::Paused { .. } => Self::Waiting,
        }
    }

    /// The state in one word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Working => "working",
            Self::Waiting => "waiting",
            Self::Finished => "finished",
            Self::Limited => "limit reached",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The first line of a text, truncated.
fn line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default().trim_end();
    let mut cut: String = line
        .chars()
        .filter(|c| !c.is_control())
        .take(MAX_CHARS)
        .collect();
    if line.chars().nth(MAX_CHARS).is_some() {
        cut.push('…');
    }
    cut
}

/// A number and its noun.
fn many(number: impl Into<u64>, noun: &str) -> String {
    let number = number.into();
    if number == 1 {
        format!("1 {noun}")
    } else {
        format!("{number} {noun}s")
    }
}

impl fmt::Display for TreeNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, state) = (&self.who.name, self.state.word());
        write!(
            f,
            "{name}: {state}, {}, {}",
            many(self.turns, "turn"),
            many(self.usage.total(), "token")
        )?;
        if self.calls > 0 {
            write!(f, ", {}", many(self.calls, "call"))?;
        }
        if self.task.is_empty() {
            Ok(())
        } else {
            write!(f, " ({})", self.task)
        }
    }
}

impl fmt::Display for AgentTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, None, "")?;
        if self.more > 0 {
            writeln!(f, "and {} more", self.more)
        } else {
            Ok(())
        }
    }
}
