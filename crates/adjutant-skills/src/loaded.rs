//! The skills in a conversation, checked before each request, so that a skill that was compacted away can be loaded
//! again.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use adjutant_agent::{Hook, HookContext, LogId, Spawn, Verdict, points::BeforeModel};
use adjutant_llm::{CallResult, Entry, Status, ThreadId, Transcript};
use adjutant_tool::{CallContext, Identity};
use async_trait::async_trait;

/// The field of a result's details that names the skill it shows.
pub(crate) const SHOWS: &str = "skill";
/// The largest number of tracked conversations; dropped ones are examined again.
const MAX_CONVERSATIONS: usize = 4_096;

type LoadedKey = (Arc<str>, ThreadId);

/// The skills that conversations show.
#[derive(Debug, Clone, Default)]
pub(crate) struct Loaded {
    of: Arc<Mutex<HashMap<LoadedKey, BTreeSet<Arc<str>>>>>,
    /// The skills that the newest turn with such a call has loaded, by session and thread.
    turns: Arc<Mutex<HashMap<(LogId, ThreadId), InTurn>>>,
}

/// The skills that the calls of one turn load.
type InTurn = (u64, BTreeSet<Arc<str>>);

impl Loaded {
    /// Marks a skill as loaded; false if it already is.
    pub(crate) fn add(&self, cx: &CallContext, name: &Arc<str>) -> bool {
        let is_new = self.with(|of| of.entry(key(&cx.who)).or_default().insert(Arc::clone(name)));
        // An agent has one id in all of its sessions: skills that another one loaded at the same time do not count
        // here.
        let is_first = self.is_first_of_turn(cx, name);
        is_new || (is_first && !stands(cx, name))
    }

    /// Notes that a call loads a skill; false if another one of its turn did.
    fn is_first_of_turn(&self, cx: &CallContext, name: &Arc<str>) -> bool {
        let (Some(call), Some(log)) = (cx.who.call, cx.get::<LogId>()) else {
            return false;
        };
        let turn = call.turn;
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if turns.len() >= MAX_CONVERSATIONS {
            turns.clear();
        }
        let (known, names) = turns
            .entry((LogId::clone(&log), cx.who.thread.clone()))
            .or_default();
        if *known != turn {
            (*known, *names) = (turn, BTreeSet::new());
        }
        names.insert(Arc::clone(name))
    }

    /// Examines the content of the next request.
    fn look(&self, who: &Identity, view: &Transcript) {
        let key = key(who);
        // Only a call adds a skill, and it updates this set: an empty set stays empty.
        if self.with(|of| of.get(&key).is_some_and(BTreeSet::is_empty)) {
            return;
        }
        let shown = shown(view);
        self.with(|of| {
            if of.len() >= MAX_CONVERSATIONS && !of.contains_key(&key) {
                of.clear();
            }
            of.insert(key, shown)
        });
    }

    fn with<T>(&self, work: impl FnOnce(&mut HashMap<LoadedKey, BTreeSet<Arc<str>>>) -> T) -> T {
        work(&mut self.of.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl Hook<BeforeModel> for Loaded {
    async fn on(&self, cx: HookContext, point: BeforeModel) -> Verdict<BeforeModel> {
        self.look(&cx.who, &point.view);
        Verdict::Pass(point)
    }
}

fn key(who: &Identity) -> LoadedKey {
    (Arc::clone(&who.agent_id), who.thread.clone())
}

/// True if the conversation of a call contained a skill before its turn.
fn stands(cx: &CallContext, name: &Arc<str>) -> bool {
    cx.get::<dyn Spawn>()
        .is_none_or(|spawn| shown(&spawn.parent().history).contains(name))
}

/// The skills that a view shows.
fn shown(view: &Transcript) -> BTreeSet<Arc<str>> {
    let turns = view.iter().filter_map(|stored| match &stored.entry {
        Entry::Turn(turn) => Some(turn),
        _ => None,
    });
    turns
        .flat_map(|turn| turn.results())
        .filter_map(|result| shows(result))
        .collect()
}

fn shows(result: &CallResult) -> Option<Arc<str>> {
    let is_whole = result.pinned && result.status == Status::Ok;
    result
        .details
        .get(SHOWS)
        .and_then(|name| name.as_str())
        .filter(|_| is_whole)
        .map(Arc::from)
}
