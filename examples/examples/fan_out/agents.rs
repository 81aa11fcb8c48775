//! A tree of the agents of a run, drawn from its events: who they were, how they ended, what they used.

use std::collections::BTreeMap;

use adjutant::{Event, EventKind};

/// The agents that were seen so far, by their threads.
#[derive(Default)]
pub struct Agents {
    seen: BTreeMap<String, Seen>,
}

/// One agent.
#[derive(Default)]
struct Seen {
    name: String,
    depth: usize,
    ended: &'static str,
    tokens: u64,
}

impl Agents {
    /// Notes what an event says about an agent.
    pub fn note(&mut self, event: &Event) {
        let thread = event.who.thread.to_string();
        match &event.kind {
            EventKind::RunStarted => {
                let seen = Seen { name: event.who.name.to_string(), depth: event.who.depth.into(), ..Seen::default() };
                self.seen.insert(thread, seen);
            }
            EventKind::RunFinished { result } => {
                if let Some(seen) = self.seen.get_mut(&thread) {
                    (seen.ended, seen.tokens) = (result.outcome.kind(), result.total_usage.total());
                }
            }
            _ => {}
        }
    }

    /// Prints one line for each agent, those under another one indented.
    pub fn print(&self) {
        for seen in self.seen.values() {
            println!("{}{} {}, {} tokens", "  ".repeat(seen.depth), seen.name, seen.ended, seen.tokens);
        }
    }
}
