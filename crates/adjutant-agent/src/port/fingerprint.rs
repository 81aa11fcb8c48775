//! Fingerprints of requests: what stays the same is digested once, and compared by where it is kept.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use adjutant_llm::{ModelId, Options, Request, ToolDecl, ToolName, Warning, WarningKind};
use serde_json::Value;

use super::{Feed, LocalPort, Place, Setup, prepare::Shown};
use crate::{ActId, Config, Digest, Record, Run};

/// The newest fingerprint of agents that come from one: a new drive mostly finds its own here.
#[derive(Debug, Default)]
pub(crate) struct Prints {
    newest: Mutex<Option<Arc<Print>>>,
}

/// A fingerprint and what it was made of, which is kept, so that the same place is the same thing.
#[derive(Debug)]
struct Print {
    model: ModelId,
    system: (Arc<str>, Digest),
    tools: (Arc<[ToolDecl]>, BTreeMap<ToolName, Digest>),
    options: (Arc<Options>, Value),
    config: Arc<Config>,
}

/// What a request is made with.
#[derive(Clone, Copy)]
struct Parts<'a> {
    model: &'a ModelId,
    system: &'a Arc<str>,
    tools: &'a Arc<[ToolDecl]>,
    options: &'a Arc<Options>,
}

/// What the log knows of the requests of a thread, and what was said last.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// What the log says.
    recorded: Option<Arc<Config>>,
    print: Option<Arc<Print>>,
    /// What the log says and what was made last, if they were found to be the same.
    agreed: Option<(Arc<Config>, Arc<Config>)>,
    /// Of the turn that is being prepared: how it will be asked.
    next: Option<Next>,
}

/// What is known of a request before its turn is prepared.
#[derive(Debug)]
struct Next {
    options: Arc<Options>,
    only: Option<Vec<ToolName>>,
    /// Whether the turn is asked whatever stops it.
    last: bool,
}

/// Holds a request against what an earlier program recorded of it.
pub(super) struct Recorded {
    config: Option<Arc<Config>>,
    model: ModelId,
    options: Arc<Options>,
}

impl Setup {
    /// The fingerprint of a request.
    pub(crate) fn config_of(&self, model: &ModelId, request: &Request) -> Arc<Config> {
        let (system, tools, options) = (&request.system, &request.tools, &request.options);
        let parts = Parts { model, system, tools, options };
        Arc::clone(&self.prints.of(parts).config)
    }
}

impl LocalPort {
    /// A turn is about to be prepared: keeps what its request will be made with.
    pub(super) fn expect(&mut self, run: &Run) {
        let known = &mut self.known;
        known.recorded = run.config().cloned();
        let only = run.chosen_tools().map(<[ToolName]>::to_vec);
        known.next = Some(Next { options: self.setup.options_of(run), only, last: run.is_last() });
    }

    /// Puts the fingerprint of the request before the preparation of its turn, if it is not what the log knows.
    pub(super) fn configure(&mut self, act: ActId, records: &mut Vec<Record>) {
        let (ActId::Prepare(_), Some(next)) = (act, &self.known.next) else { return };
        let prepared = |(at, record): (usize, &Record)| match record {
            Record::Prepared { model, hidden, stop, .. } if next.last || stop.is_none() => {
                Some((at, model.clone(), hidden.clone()))
            }
            _ => None,
        };
        let Some((at, model, hidden)) = records.iter().enumerate().find_map(prepared) else { return };
        let (Some(tools), Some(next)) = (&self.tools, self.known.next.take()) else { return };
        let tools = Shown::decls(&mut self.shown, tools.decls(), &hidden, next.only.as_deref());
        let parts = Parts { model: &model, system: &self.setup.system, tools: &tools, options: &next.options };
        if let Some(config) = self.known.changed(parts, &self.setup.prints) {
            records.insert(at, Record::Configured { config });
        }
    }

    /// How a request of a turn that an earlier drive prepared is held against what was recorded of it.
    pub(super) fn recorded(&self, run: &Run) -> Recorded {
        let (model, _) = self.setup.chosen(run.chosen_model());
        let (config, model) = (run.config().cloned(), model.info().id.clone());
        Recorded { config, model, options: self.setup.options_of(run) }
    }
}

impl Known {
    /// The fingerprint, if the log knows another one or none.
    fn changed(&mut self, parts: Parts<'_>, prints: &Prints) -> Option<Arc<Config>> {
        let print = match &self.print {
            Some(print) if print.is_of(parts) => Arc::clone(print),
            _ => prints.of(parts),
        };
        let config = Arc::clone(&print.config);
        self.print = Some(print);
        let Some(recorded) = &self.recorded else { return Some(config) };
        let agreed =
            |(one, other): &(Arc<Config>, Arc<Config>)| Arc::ptr_eq(one, recorded) && Arc::ptr_eq(other, &config);
        if Arc::ptr_eq(recorded, &config) || self.agreed.as_ref().is_some_and(agreed) {
            return None;
        }
        if **recorded != *config {
            return Some(config);
        }
        self.agreed = Some((Arc::clone(recorded), config));
        None
    }
}

impl Recorded {
    /// What is to be recorded before this request is made; a warning tells what differs from what was recorded.
    pub(super) fn check(self, request: &Request, feed: &Feed, place: Place) -> Option<Record> {
        let (system, tools) = (&request.system, &request.tools);
        let parts = Parts { model: &self.model, system, tools, options: &self.options };
        let config = Arc::clone(&feed.setup.prints.of(parts).config);
        let differences = match &self.config {
            Some(recorded) => recorded.differences(&config),
            // What was recorded before there were fingerprints cannot be held against anything.
            None => return Some(Record::Configured { config }),
        };
        if differences.is_empty() {
            return None;
        }
        let fields: Vec<&str> = differences.iter().map(|it| &*it.field).collect();
        let message =
            format!("turn {} is asked with other parts than it was prepared with: {}", place.turn, fields.join(", "));
        feed.warn(place, feed.setup.world.now_ms(), &Warning::new(WarningKind::Diverged, message));
        Some(Record::Configured { config })
    }
}

impl Prints {
    fn of(&self, parts: Parts<'_>) -> Arc<Print> {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        match &*newest {
            Some(print) if print.is_of(parts) => Arc::clone(print),
            before => {
                let print = Arc::new(Print::made(parts, before.as_deref()));
                *newest = Some(Arc::clone(&print));
                print
            }
        }
    }
}

impl Print {
    fn is_of(&self, parts: Parts<'_>) -> bool {
        self.model == *parts.model
            && Arc::ptr_eq(&self.system.0, parts.system)
            && is_same(&self.tools.0, parts.tools)
            && (Arc::ptr_eq(&self.options.0, parts.options) || *self.options.0 == **parts.options)
    }

    /// The fingerprint of these parts; what an earlier one has of them is not digested again.
    fn made(parts: Parts<'_>, before: Option<&Print>) -> Self {
        let system = match before {
            Some(it) if Arc::ptr_eq(&it.system.0, parts.system) => it.system.clone(),
            _ => (Arc::clone(parts.system), Digest::of(parts.system.as_bytes())),
        };
        let tools = match before {
            Some(it) if is_same(&it.tools.0, parts.tools) => it.tools.clone(),
            _ => (Arc::clone(parts.tools), parts.tools.iter().map(digest).collect()),
        };
        let options = match before {
            Some(it) if *it.options.0 == **parts.options => it.options.clone(),
            _ => (Arc::clone(parts.options), serde_json::to_value(&**parts.options).unwrap_or_default()),
        };
        let config = Config::new(parts.model.clone(), system.1, tools.1.clone(), options.1.clone());
        Self { model: parts.model.clone(), system, tools, options, config: Arc::new(config) }
    }
}

/// Whether these are the same declarations by their place; none are none anywhere.
fn is_same(one: &Arc<[ToolDecl]>, other: &Arc<[ToolDecl]>) -> bool {
    Arc::ptr_eq(one, other) || (one.is_empty() && other.is_empty())
}

/// The digest of a tool: of what the model is shown of it.
fn digest(tool: &ToolDecl) -> (ToolName, Digest) {
    // Texts and JSON values are always JSON.
    let shown = serde_json::to_vec(&(&tool.name, &tool.description, &tool.schema)).unwrap_or_default();
    (tool.name.clone(), Digest::of(&shown))
}
