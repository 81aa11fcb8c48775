//! The agents that should be there, and what each of them has acknowledged: it is looked for in their logs afterwards.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use adjutant::{
    EventKind,
    llm::{CallId, Content, Entry},
    runtime::{self, Prompter},
    tools::Answer,
};
use futures_util::StreamExt;
use uuid::Uuid;

use super::{
    field::{Mark, client, mark},
    people::STEER,
};
use crate::kill::Rng;

/// What came of a drill: how often something was done and acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Survived {
    /// How often an agent was killed.
    pub agent_kills: u32,
    /// How often the operator was.
    pub operator_kills: u32,
    /// How often an agent was ordered to run or to stop.
    pub orders: u32,
    /// How many prompts were answered, or wait for an approval.
    pub prompts: u32,
    /// How many words of somebody were heard about what waits.
    pub answers: u32,
    /// How many messages were heard by a run, or wait for the next one.
    pub steers: u32,
    /// How many agents were updated.
    pub updates: u32,
    /// How many were exported.
    pub exports: u32,
    /// How many were imported.
    pub imports: u32,
    /// How many of those were removed again, under the operator.
    pub removals: u32,
    /// How much of all that was not acknowledged: the agent was killed or did not run.
    pub refused: u32,
    /// How many calls ran.
    pub calls: usize,
    /// How long it took until every agent stood where it should, in milliseconds.
    pub settled_ms: u64,
}

/// The agents, and what was done.
#[derive(Debug, Default)]
pub(super) struct Roll {
    agents: Mutex<BTreeMap<Uuid, Listed>>,
    /// The calls that somebody tried to approve, whatever came of it.
    tried: Mutex<BTreeSet<String>>,
    counts: Mutex<Survived>,
}

/// An agent that should be there.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    pub(super) entry: runtime::Entry,
    /// The number of its file; none if it was imported.
    pub(super) file: Option<usize>,
    /// The revision of its manifest that was acknowledged last, and the newest that was tried.
    pub(super) revisions: (u32, u32),
    pub(super) said: Vec<Said>,
}

/// What an agent has acknowledged.
#[derive(Debug, Clone)]
pub(super) struct Said {
    pub(super) session: String,
    pub(super) text: String,
    pub(super) kind: SaidKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SaidKind {
    /// A prompt that was answered.
    Prompt,
    /// A prompt whose call waits for a word.
    Ask,
    Steer,
    /// A word about a call, whose text it is, said to this agent: it runs, or it does not.
    Answer(Uuid, bool),
}

impl Roll {
    pub(super) fn list(
        &self,
        entry: runtime::Entry,
        file: Option<usize>,
        revision: u32,
        from: Option<Listed>,
    ) {
        let said = from.map(|it| it.said).unwrap_or_default();
        locked(&self.agents).insert(
            entry.id,
            Listed {
                entry,
                file,
                revisions: (revision, revision),
                said,
            },
        );
    }

    pub(super) fn strike(&self, id: Uuid) {
        locked(&self.agents).remove(&id);
    }

    pub(super) fn all(&self) -> Vec<Listed> {
        locked(&self.agents).values().cloned().collect()
    }

    pub(super) fn entries(&self) -> Vec<runtime::Entry> {
        locked(&self.agents)
            .values()
            .map(|it| it.entry.clone())
            .collect()
    }

    pub(super) fn get(&self, id: Uuid) -> Option<Listed> {
        locked(&self.agents).get(&id).cloned()
    }

    /// One of those that are meant, at random.
    pub(super) fn pick(
        &self,
        rng: &mut Rng,
        is_meant: impl Fn(&Listed) -> bool,
    ) -> Option<runtime::Entry> {
        let agents = locked(&self.agents);
        let meant: Vec<&Listed> = agents.values().filter(|it| is_meant(it)).collect();
        pick(&meant, rng).map(|it| it.entry.clone())
    }

    /// The file of an agent, and the number of its next revision.
    pub(super) fn revise(&self, id: Uuid) -> Option<(usize, u32)> {
        let mut agents = locked(&self.agents);
        let listed = agents.get_mut(&id)?;
        let file = listed.file?;
        listed.revisions.1 += 1;
        Some((file, listed.revisions.1))
    }

    pub(super) fn acknowledge(&self, id: Uuid, revision: u32) {
        locked(&self.agents)
            .entry(id)
            .and_modify(|it| it.revisions.0 = revision);
    }

    pub(super) fn note(&self, id: Uuid, said: Said) {
        locked(&self.agents)
            .entry(id)
            .and_modify(|it| it.said.push(said));
    }

    pub(super) fn note_try(&self, text: &str) {
        locked(&self.tried).insert(text.to_owned());
    }

    pub(super) fn count(&self, count: impl FnOnce(&mut Survived)) {
        count(&mut locked(&self.counts));
    }

    pub(super) fn counts(&self) -> Survived {
        *locked(&self.counts)
    }

    /// Looks at everything that calls did: once at most, never without an approval, never after a word against it.
    pub(super) fn check_marks(&self, marks: &[Mark]) -> Result<(), String> {
        let (mut ran, tried) = (BTreeSet::new(), locked(&self.tried));
        for Mark { id, text, .. } in marks {
            if !ran.insert((id, text)) {
                return Err(format!("{id}: the call {text} ran twice"));
            }
            if !tried.contains(text) {
                return Err(format!("{id}: the call {text} ran, and nobody approved it"));
            }
        }
        Ok(())
    }
}

impl Listed {
    pub(super) fn sessions(&self) -> BTreeSet<&str> {
        self.said.iter().map(|it| it.session.as_str()).collect()
    }

    /// Looks for all that it has acknowledged, also in what it was imported from. `is_over` if no message waits to be placed.
    pub(super) async fn check(&self, marks: &[Mark], is_over: bool) -> Result<(), String> {
        let client =
            client(&self.entry).ok_or_else(|| format!("{} has no process", self.entry.name))?;
        for session in self.sessions() {
            let told = |why: String| format!("{}: {session}: {why}", self.entry.name);
            let log = Log::read(&client, session).await.map_err(told)?;
            for said in self.said.iter().filter(|it| it.session == session) {
                log.check(said, self, marks, is_over).map_err(told)?;
            }
        }
        Ok(())
    }
}

/// What a session holds: who said what (`user`, `assistant`), which calls were `approved` or `denied`, and which `ran` or `failed`.
#[derive(Default)]
struct Log(Vec<(&'static str, String)>);

impl Log {
    async fn read(client: &dyn Prompter, session: &str) -> Result<Self, String> {
        let told = |error: runtime::Error| error.to_string();
        let mut events = client.attach(Some(session), Some(0)).await.map_err(told)?;
        let (mut log, mut asked, mut calls) = (
            Self::default(),
            BTreeMap::new(),
            BTreeMap::<CallId, String>::new(),
        );
        while let Some(event) = events.next().await {
            log.0.extend(match event.map_err(told)?.kind {
                EventKind::EntryAdded { content } => match &*content {
                    Entry::User(it) => Some((
                        "user",
                        it.content.iter().filter_map(Content::as_text).collect(),
                    )),
                    _ => None,
                },
                EventKind::ReplyFinished { reply, .. } => {
                    Some(("assistant", reply.text())).filter(|it| !it.1.is_empty())
                }
                EventKind::Paused { pause } => {
                    let text = mark(&pause).unwrap_or_default();
                    calls.extend(pause.call_id().map(|id| (id, text.clone())));
                    asked.insert(pause.id.clone(), text);
                    None
                }
                EventKind::Answered { pause, answer } => {
                    let word = if matches!(*answer, Answer::Approve { .. }) {
                        "approved"
                    } else {
                        "denied"
                    };
                    asked.remove(&pause).map(|text| (word, text))
                }
                EventKind::ToolFinished { call, result, .. } => {
                    let word = if result.is_error() { "failed" } else { "ran" };
                    calls.remove(&call).map(|text| (word, text))
                }
                _ => None,
            });
        }
        Ok(log)
    }

    fn check(&self, said: &Said, of: &Listed, marks: &[Mark], is_over: bool) -> Result<(), String> {
        let Said { text, kind, .. } = said;
        let count = |what: &str| {
            self.0
                .iter()
                .filter(|(is, words)| *is == what && words.contains(text))
                .count()
        };
        match *kind {
            SaidKind::Steer if !is_over => Ok(()),
            SaidKind::Steer | SaidKind::Ask if count("user") == 1 => Ok(()),
            SaidKind::Prompt if count("user") == 1 => {
                // Its acknowledgement may be lost.
                let is_steered = |words: &str| words.contains(STEER);
                let mut after = self
                    .0
                    .iter()
                    .skip_while(|(_, words)| !words.contains(text))
                    .skip(1);
                match after.find(|(is, words)| {
                    *is == "assistant"
                        || *is == "user"
                            && !is_steered(words)
                            && !words.contains("<system-reminder>")
                }) {
                    Some(("assistant", _)) => Ok(()),
                    _ => Err(format!("it does not hold the answer to {text}")),
                }
            }
            SaidKind::Answer(by, is_approved) => {
                // What was approved before an export may have run in any of its copies.
                let is_its = |id: Uuid| {
                    id == of.entry.id
                        || if is_approved {
                            by != of.entry.id
                        } else {
                            id == by
                        }
                };
                let has_run = marks.iter().any(|it| is_its(it.id) && it.text == *text);
                let seen = (
                    count("approved"),
                    count("denied"),
                    count("ran"),
                    count("failed"),
                    has_run,
                );
                match (is_approved, seen) {
                    (true, (1, 0, 1, 0, true) | (1, 0, 0, 1, _)) | (false, (0, 1, 0, 1, false)) => {
                        Ok(())
                    }
                    // An export came between the answer and the end of the call: the copy asks first whether it goes on.
                    (true, (1, 0, 0, 0, _)) if !is_over && by != of.entry.id => Ok(()),
                    _ => Err(format!(
                        "{text} was answered with {is_approved}, and is in the log as {seen:?}"
                    )),
                }
            }
            _ => Err(format!(
                "it holds {text} {} times, which was acknowledged",
                count("user")
            )),
        }
    }
}

/// One of these, at random.
pub(super) fn pick<'a, T>(all: &'a [T], rng: &mut Rng) -> Option<&'a T> {
    all.get(usize::try_from(rng.below(all.len() as u64)).unwrap_or(0))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
