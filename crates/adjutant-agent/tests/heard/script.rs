//! A conversation that is the same however often it is begun: the model answers by what it is shown.

use std::sync::Arc;

use adjutant_agent::{Agent, MemoryJournal};
use adjutant_llm::{
    CallResult, Entry, Error, ErrorKind, FinishReason, FixedWorld, Model, ModelInfo, Request,
    Script, ScriptedModel, Thinking, model_fn,
};
use serde_json::json;

use super::stage;

#[path = "../property/dripping.rs"]
mod dripping;

/// What the model says in each turn, and how fast.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) turns: u32,
    pub(crate) chars: usize,
    /// Whether the first attempt at a turn is void.
    pub(crate) stumbles: bool,
    pub(crate) thinks: bool,
}

/// The text of a turn.
pub(crate) fn text(turn: u32) -> String {
    format!("Turn {turn} says this. ")
}

/// How many whole turns the model is shown.
fn shown(request: &Request) -> u32 {
    let whole = |entry: &Entry| match entry {
        Entry::Turn(turn) => turn.reply().stop != FinishReason::Interrupted,
        _ => false,
    };
    u32::try_from(
        request
            .entries
            .iter()
            .filter(|stored| whole(&stored.entry))
            .count(),
    )
    .expect("few turns")
}

impl Plan {
    fn script(&self, turn: u32) -> Script {
        let script = if self.thinks {
            Script::new().thinking(Thinking::new("Hm, hm."))
        } else {
            Script::new()
        };
        let script = script.text(text(turn)).delta_chars(self.chars);
        if turn + 1 < self.turns {
            script.call("echo", json!({ "turn": turn }))
        } else {
            script
        }
    }

    fn say(&self, request: &Request) -> Script {
        let turn = shown(request);
        let script = self.script(turn);
        if !self.stumbles {
            return script;
        }
        let void = Script::new().text("Void words. ").delta_chars(self.chars);
        script.after_retracted(void, Error::new(ErrorKind::Overloaded, "busy"))
    }

    /// An agent over a journal, in its log `log`.
    pub(crate) fn agent(&self, journal: &MemoryJournal) -> Agent {
        let plan = self.clone();
        let model = model_fn(ModelInfo::new("test/planned"), move |request: Request| {
            let scripted = Arc::new(ScriptedModel::new([plan.say(&request)]));
            dripping::Dripping(scripted).stream(request)
        });
        let echo = stage::tool("echo", |args, _| async move {
            Ok(CallResult::ok(args.to_string()))
        });
        // Whoever opens the log is called the same.
        let agent = Agent::new(model)
            .tool(echo)
            .max_turns(self.turns)
            .world(FixedWorld::at_ms(7));
        agent.journal(journal.clone()).session("log".into())
    }
}
