//! The registry: the possible agents for tasks, by name, and the creation of fresh instances.

mod name;
mod slot;

use std::{fmt, sync::Arc};

use adjutant_agent::{Agent, LogId};
use adjutant_llm::ThreadId;
use dashmap::{DashMap, DashSet};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::{Error, ErrorKind};

pub use slot::{Occupied, Slot};

/// Of how many conversations it is remembered that their names are known.
const MAX_KNOWN: usize = 10_000;

/// The description of an agent that can be given work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Profile {
    /// Its name for requests.
    pub name: Arc<str>,
    /// The purpose of the agent.
    #[serde(skip_serializing_if = "is_blank")]
    pub description: Arc<str>,
    /// The skills of the agent, one word each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<Arc<str>>,
    /// The cost of its work, in the application's own words.
    #[serde(skip_serializing_if = "is_blank")]
    pub estimated_cost: Arc<str>,
    /// The largest number of instances that work at the same time; any number without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
    /// The largest number of levels of agents under an instance; with 0 it cannot delegate.
    #[serde(skip)]
    pub max_depth: u16,
    /// The largest number of handoffs of a task that an instance delegates.
    #[serde(skip)]
    pub max_handoffs: u32,
}

/// Factories of agents by name; cheap to clone, and clones share the entries.
#[derive(Clone, Default)]
pub struct Registry {
    inner: Arc<RegistryShared>,
    /// The word in the names of its instances that keeps other programs from giving the same ones.
    worker: Arc<str>,
}

#[derive(Default)]
struct RegistryShared {
    entries: DashMap<Arc<str>, Arc<RegistryEntry>>,
    /// The newest number of each name.
    numbers: DashMap<Arc<str>, u64>,
    /// The number of levels of agents below each running agent, by its id, independent of its factory.
    bounds: DashMap<Arc<str>, u16>,
    /// The conversations whose names are known.
    known: DashSet<(LogId, ThreadId)>,
}

/// Holds the bound of an agent as long as it works.
pub(crate) struct Bound {
    inner: Arc<RegistryShared>,
    agent: Arc<str>,
}

struct RegistryEntry {
    profile: Arc<Profile>,
    factory: Box<dyn Fn() -> Agent + Send + Sync>,
    /// The free places among the instances that may work at the same time.
    free: Option<Arc<Semaphore>>,
}

/// A fresh instance of an entry.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Spawned {
    /// The profile of the entry.
    pub profile: Arc<Profile>,
    /// The instance, under its own name.
    pub agent: Agent,
    /// Its place in the concurrency limit of the entry, to be taken before it works.
    pub slot: Slot,
}

impl Profile {
    /// An agent of this name, which cannot delegate.
    pub fn new(name: impl Into<Arc<str>>, description: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            ..Self::default()
        }
    }

    /// Adds something that it can do.
    #[must_use]
    pub fn skill(mut self, skill: impl Into<Arc<str>>) -> Self {
        self.skills.push(skill.into());
        self
    }

    /// Sets what its work costs, in the application's own words.
    #[must_use]
    pub fn cost_estimate(mut self, cost: impl Into<Arc<str>>) -> Self {
        self.estimated_cost = cost.into();
        self
    }

    /// Sets how many instances may work at a time; 0 counts as 1.
    #[must_use]
    pub fn max_concurrency(mut self, instances: u32) -> Self {
        self.max_concurrency = Some(instances.max(1));
        self
    }

    /// Sets how many levels of agents an instance may have under itself.
    #[must_use]
    pub fn max_depth(mut self, levels: u16) -> Self {
        self.max_depth = levels;
        self
    }

    /// Sets the largest number of handoffs of a task that an instance delegates.
    #[must_use]
    pub fn max_handoffs(mut self, handoffs: u32) -> Self {
        self.max_handoffs = handoffs;
        self
    }
}

impl Registry {
    /// A registry without entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a word in the names of its instances. Needed if several programs delegate tasks of one board.
    ///
    /// A board takes two workers of one name for the same, and every program counts its instances from 1. Marks are
    /// left out of the word, and only its first 12 characters are used. Clones made before are not changed.
    #[must_use]
    pub fn worker(self, name: &str) -> Self {
        Self {
            worker: name::word(name).into(),
            ..self
        }
    }

    /// Puts an entry in, in place of one of the same name; instances of that one are not touched.
    ///
    /// The factory returns a new agent each time, without a delegation: its permitted delegation is in the profile.
    pub fn register(&self, profile: Profile, factory: impl Fn() -> Agent + Send + Sync + 'static) {
        let most = profile
            .max_concurrency
            .and_then(|most| usize::try_from(most).ok());
        let free = most.map(|most| Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS))));
        let entry = RegistryEntry {
            profile: Arc::new(profile),
            factory: Box::new(factory),
            free,
        };
        let name = Arc::clone(&entry.profile.name);
        self.inner.entries.insert(name, Arc::new(entry));
    }

    /// Returns the profile of the entry of this name.
    pub fn get(&self, name: &str) -> Option<Arc<Profile>> {
        self.entry(name).map(|entry| Arc::clone(&entry.profile))
    }

    /// Returns the profile of each entry, ordered by name.
    pub fn list(&self) -> Vec<Arc<Profile>> {
        let mut found: Vec<_> = self
            .inner
            .entries
            .iter()
            .map(|entry| Arc::clone(&entry.profile))
            .collect();
        found.sort_by(|one, other| one.name.cmp(&other.name));
        found
    }

    /// A fresh instance of the entry of this name, named after the task.
    ///
    /// # Errors
    /// `Missing` if there is no such entry.
    pub fn spawn(&self, name: &str, task: &str) -> Result<Spawned, Error> {
        self.spawn_as(name, &self.instance_name(name, task))
    }

    /// A fresh instance of the entry of this name, under a name that it was given before.
    ///
    /// # Errors
    /// `Missing` if there is no such entry.
    pub fn spawn_as(&self, name: &str, instance: &str) -> Result<Spawned, Error> {
        let entry = self.entry(name).ok_or_else(|| {
            let message = format!("there is no agent of this name: {name:?}");
            Error::new(ErrorKind::Missing, message)
        })?;
        self.record_instance(name, instance);
        self.was_there(instance);
        let agent = (entry.factory)().identify(|who| {
            who.path = instance.into();
            who.name = instance.into();
            who.config_name = Arc::clone(&entry.profile.name);
        });
        Ok(Spawned {
            profile: Arc::clone(&entry.profile),
            agent,
            slot: Slot::new(entry.free.clone()),
        })
    }

    /// A name that no instance had yet: `<name>-<word of the task>-<number>`.
    ///
    /// If a [`worker`](Registry::worker) is set, it precedes the number.
    pub fn instance_name(&self, name: &str, task: &str) -> String {
        let instance = name::instance(name, task, &self.worker, self.next_id(name));
        // Another entry with the same prefix could result in the same name.
        self.was_there(&instance);
        instance
    }

    /// The next number of a name, from 1; it never comes twice.
    pub fn next_id(&self, name: &str) -> u64 {
        let mut number = self.inner.numbers.entry(name.into()).or_default();
        *number = number.saturating_add(1);
        *number
    }

    /// A name was given in another program: its number does not come again.
    fn record_instance(&self, name: &str, instance: &str) {
        let Some(seen) = name::number(instance) else {
            return;
        };
        let mut number = self.inner.numbers.entry(name.into()).or_default();
        *number = seen.max(*number);
    }

    /// True if the names that were given in a conversation, maybe in another program, are still to be looked up.
    pub(crate) fn is_new(&self, log: &LogId, thread: &ThreadId) -> bool {
        let known = &self.inner.known;
        if known.len() >= MAX_KNOWN {
            // Looking twice costs time and nothing else.
            known.clear();
        }
        known.insert((log.clone(), thread.clone()))
    }

    /// An instance of this name was there before: its number does not come again for its entry.
    pub(crate) fn was_there(&self, instance: &str) {
        let is_of = |name: &str| {
            instance
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('-'))
        };
        for profile in self.list().iter().filter(|profile| is_of(&profile.name)) {
            self.record_instance(&profile.name, instance);
        }
    }

    /// Bounds how many levels of agents one may have under itself, until the bound is dropped.
    pub(crate) fn limit_levels(&self, agent: &Arc<str>, left: u16) -> Bound {
        self.inner.bounds.insert(Arc::clone(agent), left);
        Bound {
            inner: Arc::clone(&self.inner),
            agent: Arc::clone(agent),
        }
    }

    /// Returns the number of levels of agents that one may have under itself; `None` if it was not given a task from
    /// here.
    pub(crate) fn remaining_levels(&self, agent: &str) -> Option<u16> {
        self.inner.bounds.get(agent).map(|left| *left)
    }

    fn entry(&self, name: &str) -> Option<Arc<RegistryEntry>> {
        self.inner.entries.get(name).map(|entry| Arc::clone(&entry))
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        self.inner.bounds.remove(&self.agent);
    }
}

fn is_blank(text: &Arc<str>) -> bool {
    text.trim().is_empty()
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self
            .list()
            .iter()
            .map(|profile| Arc::clone(&profile.name))
            .collect();
        f.debug_struct("Registry").field("names", &names).finish()
    }
}
