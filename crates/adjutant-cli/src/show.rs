//! Converts events to text for people, without side effects. `screen.rs` writes the output.

use std::{collections::BTreeMap, time::Duration};

use adjutant::{
    Completion, EventKind,
    agent::{Outcome, RunResult},
    llm::{Block, BlockKind, CallId, CallResult, Content, Reply, Warning, WarningKind},
    tools::Progress,
};

use crate::plain;

/// The status text while no call runs.
const MODEL: &str = "waiting for the model";

/// An output line or chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DisplayLine {
    /// A chunk of the answer.
    Said(String),
    /// A complete line next to the answer.
    Told(String),
    /// The current wait.
    Busy(String),
    /// The running agents, one line each.
    Agents(Vec<String>),
    /// The printed text of this reply is void.
    Void,
}

impl DisplayLine {
    /// Returns the line in the form for a sub-agent, if it is displayed at all.
    pub(crate) fn within(self, name: &str) -> Option<Self> {
        match self {
            DisplayLine::Told(text) => Some(DisplayLine::Told(format!("{name} {text}"))),
            DisplayLine::Said(_)
            | DisplayLine::Busy(_)
            | DisplayLine::Agents(_)
            | DisplayLine::Void => None,
        }
    }
}

/// The displayed part of the model's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum TextDisplay {
    /// Everything, as it arrives.
    #[default]
    Live,
    /// The last reply, when the run has finished.
    Last,
    /// Nothing.
    Nothing,
}

/// The state of the display.
#[derive(Debug, Default)]
pub(crate) struct Show {
    said: TextDisplay,
    thinking: bool,
    /// True if the answer is in the middle of a line.
    midline: bool,
    /// The number of printed bytes of each open text block.
    texts: BTreeMap<u32, usize>,
    /// True if a reply arrives in chunks; a reply from a log is complete.
    coming: bool,
    /// The unfinished line of thinking.
    thought: String,
    running: Vec<RunningCall>,
}

/// A running call.
#[derive(Debug)]
struct RunningCall {
    call: CallId,
    name: String,
    args: String,
    /// True if another call of the same tool ran at the same time, so that the name is ambiguous.
    has_twin: bool,
}

impl Show {
    /// Displays text in this way, without thinking.
    pub(crate) fn new(said: TextDisplay) -> Self {
        Self {
            said,
            ..Self::default()
        }
    }

    /// Shows thinking too.
    #[must_use]
    pub(crate) fn with_thinking(mut self) -> Self {
        self.thinking = true;
        self
    }

    /// True if the answer is in the middle of a line.
    pub(crate) fn is_midline(&self) -> bool {
        self.midline
    }

    /// Returns the lines for an event.
    pub(crate) fn event(&mut self, event: &EventKind) -> Vec<DisplayLine> {
        match event {
            EventKind::TurnStarted => vec![DisplayLine::Busy(MODEL.into())],
            EventKind::Warning { warning } => vec![DisplayLine::Told(format_warning(warning))],
            EventKind::ReplyStarted { .. } => {
                self.texts.clear();
                self.coming = true;
                Vec::new()
            }
            EventKind::ReplyPending { silent } => {
                let seconds = silent.as_secs();
                vec![DisplayLine::Busy(format!(
                    "{MODEL}: its server is alive, and silent for {seconds} s"
                ))]
            }
            EventKind::BlockStarted {
                block,
                kind: BlockKind::Text,
            } => {
                self.texts.insert(*block, 0);
                Vec::new()
            }
            EventKind::TextDelta { block, text } => self.say(*block, text),
            EventKind::ThinkingDelta { text, .. } => self.think(text),
            EventKind::BlockFinished { block, content } => self.close(*block, content),
            EventKind::ReplyRetracted { cause, .. } => self.take_back(cause.message()),
            EventKind::ReplyFinished { reply, .. } => self.end_reply(reply),
            EventKind::RunPaused { .. } => self.end_line(),
            EventKind::ToolStarted {
                call, name, args, ..
            } => self.start(*call, name.as_str(), args),
            EventKind::ToolProgress { call, progress } => self.progress(*call, progress),
            EventKind::ToolFinished {
                call,
                name,
                result,
                duration,
            } => self.finish(*call, name.as_str(), result, *duration),
            EventKind::OutputRefused { left: 1.., .. } => {
                vec![DisplayLine::Told(
                    "the answer does not fit the schema, and is asked for again".to_owned(),
                )]
            }
            EventKind::RunFinished { result } => self.end(result),
            _ => Vec::new(),
        }
    }

    fn say(&mut self, block: u32, text: &str) -> Vec<DisplayLine> {
        *self.texts.entry(block).or_default() += text.len();
        if text.is_empty() || self.said != TextDisplay::Live {
            return Vec::new();
        }
        self.midline = !text.ends_with('\n');
        vec![DisplayLine::Said(text.to_owned())]
    }

    fn think(&mut self, text: &str) -> Vec<DisplayLine> {
        if !self.thinking {
            return Vec::new();
        }
        self.thought.push_str(text);
        let whole = self.thought.rfind('\n').map_or(0, |at| at + 1);
        let rest = self.thought.split_off(whole);
        let lines = std::mem::replace(&mut self.thought, rest);
        lines.lines().map(format_thought).collect()
    }

    /// Ends a block: text that arrived without a delta is printed now.
    fn close(&mut self, block: u32, content: &Block) -> Vec<DisplayLine> {
        match content {
            Block::Text(said) => {
                let text = &said.text;
                let shown = self.texts.get(&block).copied().unwrap_or_default();
                self.say(block, text.get(shown..).unwrap_or_default())
            }
            Block::Thinking(_) => self.end_thought(),
            _ => Vec::new(),
        }
    }

    fn end_reply(&mut self, reply: &Reply) -> Vec<DisplayLine> {
        let mut lines = Vec::new();
        if !std::mem::take(&mut self.coming) {
            self.texts.clear();
            for (block, content) in (0..).zip(&reply.blocks) {
                if let Block::Thinking(thinking) = &**content {
                    lines.extend(self.think(&thinking.text));
                }
                lines.extend(self.close(block, content));
            }
        }
        lines.extend(self.end_line());
        lines
    }

    fn end_thought(&mut self) -> Vec<DisplayLine> {
        let rest = std::mem::take(&mut self.thought);
        if rest.is_empty() {
            Vec::new()
        } else {
            vec![format_thought(&rest)]
        }
    }

    fn end_line(&mut self) -> Vec<DisplayLine> {
        let mut lines = self.end_thought();
        if std::mem::take(&mut self.midline) {
            lines.push(DisplayLine::Said("\n".into()));
        }
        lines
    }

    fn take_back(&mut self, cause: &str) -> Vec<DisplayLine> {
        let seen = self.said == TextDisplay::Live && self.texts.values().any(|bytes| *bytes > 0);
        self.texts.clear();
        let mut lines = self.end_line();
        lines.extend(seen.then_some(DisplayLine::Void));
        let what = if seen {
            "the answer so far is void"
        } else {
            "the model broke off"
        };
        lines.push(DisplayLine::Told(format!(
            "{what}, another attempt follows: {}",
            plain::line(cause)
        )));
        lines.push(DisplayLine::Busy(MODEL.into()));
        lines
    }

    fn start(&mut self, call: CallId, name: &str, args: &str) -> Vec<DisplayLine> {
        let (name, args) = (plain::line(name), plain::line(args));
        let told = format!("→ {name} {args}");
        let mut has_twin = false;
        for other in self.running.iter_mut().filter(|other| other.name == name) {
            (other.has_twin, has_twin) = (true, true);
        }
        self.running.push(RunningCall {
            call,
            name,
            args,
            has_twin,
        });
        vec![DisplayLine::Told(told), self.busy()]
    }

    fn finish(
        &mut self,
        call: CallId,
        name: &str,
        result: &CallResult,
        duration: Duration,
    ) -> Vec<DisplayLine> {
        let known = self
            .running
            .iter()
            .position(|it| it.call == call)
            .map(|at| self.running.remove(at));
        let args = known
            .filter(|it| it.has_twin)
            .map(|it| format!(" {}", it.args))
            .unwrap_or_default();
        let (name, millis) = (plain::line(name) + &args, duration.as_millis());
        let told = if result.is_error() {
            let text = result.text();
            let hint = hint(&text).map_or_else(String::new, |hint| format!("; {hint}"));
            let why = plain::line(&(reason(&text) + &hint));
            format!("✗ {name} {millis} ms: {why}")
        } else {
            format!("✓ {name} {millis} ms")
        };
        vec![DisplayLine::Told(told), self.busy()]
    }

    /// The output of a running call: its last line.
    fn progress(&self, call: CallId, progress: &Progress) -> Vec<DisplayLine> {
        let said = progress
            .content
            .iter()
            .filter_map(Content::as_text)
            .next_back();
        let line = said.and_then(|text| text.lines().rfind(|line| !line.trim().is_empty()));
        let known = self.running.iter().find(|it| it.call == call);
        known
            .zip(line)
            .map(|(it, line)| DisplayLine::Busy(format!("{}: {}", it.name, plain::line(line))))
            .into_iter()
            .collect()
    }

    /// Returns the status line: the running calls, or the model.
    fn busy(&self) -> DisplayLine {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        self.running
            .iter()
            .for_each(|it| *counts.entry(&it.name).or_default() += 1);
        if counts.is_empty() {
            return DisplayLine::Busy(MODEL.into());
        }
        let name = |(name, count): (&str, usize)| {
            if count == 1 {
                name.to_owned()
            } else {
                format!("{name} × {count}")
            }
        };
        DisplayLine::Busy(counts.into_iter().map(name).collect::<Vec<_>>().join(", "))
    }

    fn end(&mut self, result: &RunResult) -> Vec<DisplayLine> {
        let mut lines = self.end_line();
        if let (TextDisplay::Last, Outcome::Finished { reply, .. }) = (self.said, &result.outcome) {
            let text = reply.text();
            let end = if text.is_empty() || text.ends_with('\n') {
                ""
            } else {
                "\n"
            };
            lines.push(DisplayLine::Said(text + end));
        }
        if let Outcome::Finished {
            why: Completion::Length,
            ..
        } = result.outcome
        {
            lines.push(DisplayLine::Told(
                "warning: the answer was cut off at the model's output limit".into(),
            ));
        }
        lines
    }
}

/// Returns the line of a warning. A message of the offline model starts with its name instead of a severity.
pub(crate) fn format_warning(warning: &Warning) -> String {
    let text = plain::line(&warning.message);
    match warning.kind {
        WarningKind::Degraded if text.starts_with("offline") => text,
        WarningKind::FellBack => format!("warning: {text}; another model is asked"),
        _ => format!("warning: {text}"),
    }
}

fn format_thought(line: &str) -> DisplayLine {
    DisplayLine::Told(format!("· {}", plain::line(line)))
}

/// Returns the reason why a call failed: the first line, and the one after it if the first only announces it.
fn reason(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("it failed");
    match lines.next().filter(|_| first.ends_with(':')) {
        Some(next) => format!("{first} {next}"),
        None => first.to_owned(),
    }
}

/// Returns the hint of a note below the output of a command.
fn hint(text: &str) -> Option<&str> {
    let note = text.lines().next_back()?;
    let note = note.strip_prefix('[')?.strip_suffix(']')?;
    note.find("hint: ").map(|at| note.split_at(at).1)
}

#[cfg(test)]
mod tests;
