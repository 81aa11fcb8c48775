//! The effect `catalogue`: tools that are too many to be listed are found by a tool, and stay once they were loaded.
//!
//! The search is in `catalogue/find.rs`.

mod find;

use std::sync::{Arc, Mutex, PoisonError};

use adjutant_llm::{Entry, Status, Stored, ToolName};
use adjutant_tool::{Bound, Composite, Toolbox, Toolset};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::effect::{Action, Effect, EffectContext, EffectError};

pub(crate) use find::FIND_TOOLS;
use find::{LOADED, finder};

/// The share of the model's window that tools may take before they are left out.
const SHARE: f64 = 0.1;
/// The assumed window of a model without a known one, in tokens.
const UNKNOWN_WINDOW: u64 = 128_000;
/// The fraction of the window for loaded tools: one of this number. Tools cannot be compacted like a conversation.
const LOADED_PART: u64 = 4;
/// The largest number of sets that are kept: agents that share a catalogue load different tools.
const MAX_MADE: usize = 16;

/// Toolboxes whose tools are listed while they are few, and found by the tool `find_tools` when they need more than a
/// share of the model's window, 10 % by default, or exceed the model's limit for a request.
///
/// Loaded tools stay to the end of the conversation, in the order of loading, so that the list only grows at its end.
/// The log records them, so that another program, a fork and a compacted conversation have them too. A call of a tool
/// that is not loaded is refused with a hint. Omitted tools stay omitted even if their number decreases.
#[derive(Debug)]
pub struct Catalogue {
    toolboxes: Composite,
    names: Vec<String>,
    share: f64,
    made: Mutex<Vec<(Shelf, Toolset)>>,
}

/// The tools that the thread has loaded, in that order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct CatalogueMemo {
    loaded: Vec<ToolName>,
}

/// All tools, and the loaded ones.
#[derive(Debug, Clone)]
struct Shelf {
    all: Toolset,
    loaded: Vec<ToolName>,
    /// The maximum number of tokens of loaded tools.
    most: u64,
    /// The number of tools that may be loaded.
    room: usize,
}

/// The result of a request to load a tool.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Load {
    Done,
    Before,
    Missing,
    Full,
}

impl Default for Catalogue {
    fn default() -> Self {
        let toolboxes = Composite::new("catalogue");
        Self {
            toolboxes,
            names: Vec::new(),
            share: SHARE,
            made: Mutex::default(),
        }
    }
}

impl Catalogue {
    /// Adds a toolbox at the end; of several tools with one name the first stays.
    #[must_use]
    pub fn toolbox(mut self, toolbox: impl Toolbox + 'static) -> Self {
        self.names.push(toolbox.name().to_owned());
        self.toolboxes = self.toolboxes.toolbox(toolbox);
        self
    }

    /// Sets the share of the model's window, 0.0 to 1.0, that the tools may take together before they are left out.
    #[must_use]
    pub fn share(mut self, share: f64) -> Self {
        self.share = share;
        self
    }

    /// The tools of a turn: the same as before if nothing has changed.
    fn toolset_for(&self, shelf: Shelf) -> Toolset {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, shown)) = made.iter().find(|(known, _)| known.is_same(&shelf)) {
            return shown.clone();
        }
        let finder = Bound::new(finder(shelf.clone(), &self.names));
        let listed = Toolset::new([finder].into_iter().chain(shelf.available_tools().cloned()));
        let shown = listed.beside(&shelf.all.hiding(&shelf.loaded));
        made.insert(0, (shelf, shown.clone()));
        made.truncate(MAX_MADE);
        shown
    }
}

#[async_trait]
impl Effect for Catalogue {
    fn kind(&self) -> &str {
        "catalogue"
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        let all = self.toolboxes.resolve(cx.who).await;
        let all = all.map_err(|error| {
            EffectError::new("the tools could not be listed").with_source(error)
        })?;
        let window = if cx.window() > 0 {
            cx.window()
        } else {
            UNKNOWN_WINDOW
        };
        let memo = cx.memo::<CatalogueMemo>();
        // The finder is a tool too.
        let others = cx.tools.decls().len() + 1;
        let max_tools = cx.model.info().max_tools.unwrap_or(usize::MAX);
        let room = max_tools.saturating_sub(others);
        let is_small = all.tokens() as f64 <= window as f64 * self.share;
        if memo.is_none() && is_small && all.decls().len() <= room {
            return Ok(vec![Action::Offer(all)]);
        }
        let is_known = memo.is_some();
        let first = cx
            .history
            .iter()
            .rev()
            .take_while(|stored| !is_known || stored.id >= cx.fresh)
            .count();
        let turns = cx.history.iter_from(cx.history.len() - first);
        let wishes = wishes(turns, !is_known, &all);
        let mut shelf = Shelf {
            all,
            loaded: memo.unwrap_or_default().loaded,
            most: window / LOADED_PART,
            room,
        };
        if !wishes.is_empty() {
            shelf.load(&wishes);
        }
        let memo = CatalogueMemo {
            loaded: shelf.loaded.clone(),
        };
        Ok(vec![
            Action::Remember(json!(memo)),
            Action::Offer(self.toolset_for(shelf)),
        ])
    }
}

impl Shelf {
    /// The loaded tools that still exist.
    fn available_tools(&self) -> impl Iterator<Item = &Bound> {
        self.loaded
            .iter()
            .filter_map(|name| self.all.get(name.as_str()))
    }

    /// Loads tools, as long as there is room for them.
    fn load(&mut self, names: &[ToolName]) -> Vec<Load> {
        let mut taken = Toolset::new(self.available_tools().cloned()).tokens();
        let load = |name: &ToolName| {
            let Some(tool) = self.all.get(name.as_str()) else {
                return Load::Missing;
            };
            if self.loaded.contains(name) {
                return Load::Before;
            }
            let size = Toolset::new([tool.clone()]).tokens();
            if taken.saturating_add(size) > self.most || self.loaded.len() >= self.room {
                return Load::Full;
            }
            taken += size;
            self.loaded.push(name.clone());
            Load::Done
        };
        names.iter().map(load).collect()
    }

    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(self.all.decls(), other.all.decls())
            && self.loaded == other.loaded
            && self.most == other.most
            && self.room == other.room
    }
}

/// The tools that the latest turns request to load, in order.
fn wishes<'a>(
    turns: impl Iterator<Item = &'a Arc<Stored>>,
    is_first: bool,
    all: &Toolset,
) -> Vec<ToolName> {
    let mut wishes = Vec::new();
    for stored in turns {
        let Entry::Turn(turn) = &stored.entry else {
            continue;
        };
        for (call, result) in turn.pairs() {
            if call.name.as_str() == FIND_TOOLS && result.status == Status::Ok {
                let names = result.details[LOADED].as_array().into_iter().flatten();
                wishes.extend(names.filter_map(|name| Some(ToolName::from(name.as_str()?))));
            } else if is_first && all.get(call.name.as_str()).is_some() {
                // All were listed so far: called tools stay.
                wishes.push(call.name.clone());
            }
        }
    }
    wishes
}
