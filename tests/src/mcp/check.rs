//! What must be true when everything is over, whatever was killed when.

use std::collections::{BTreeMap, BTreeSet};

use adjutant::{
    agent::{LogId, Seq, Work},
    llm::{CallResult, Entry, Status},
};

use super::{
    DONE,
    field::{Field, told},
};

/// What came of a drill.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Survived {
    /// How many sessions there were.
    pub sessions: usize,
    /// How often the client was killed.
    pub kills: u64,
    /// How often the server was.
    pub falls: u64,
    /// How many calls were asked something before a kill, answered after it, and done.
    pub held: usize,
    /// How many calls were done and told so.
    pub done: usize,
    /// How many calls nobody knows the outcome of, and how many of them were done.
    pub unknown: (usize, usize),
}

/// An effect: its number, and the codes that it was given.
type Effects = BTreeMap<(String, usize), (String, String)>;

impl Survived {
    /// Holds the logs and the ledger to what was promised.
    ///
    /// # Errors
    /// The first promise that was broken, in words.
    pub(super) async fn check(mut self, field: &Field<'_>, ids: &[LogId]) -> Result<Self, String> {
        let effects = effects(field)?;
        for id in ids {
            let work = field.journal.info(id).await.map_err(told)?.work;
            let run = field
                .sessions
                .transcript(id, Seq(u64::MAX))
                .await
                .map_err(told)?;
            let (mut step, mut text) = (0, String::new());
            for stored in run.history().iter() {
                let Entry::Turn(turn) = &stored.entry else {
                    continue;
                };
                text = turn.reply().text();
                for result in turn.results() {
                    let effect = effects.get(&(id.0.to_string(), step));
                    self.result(result, effect)
                        .map_err(|why| format!("step {step} of {id} {why}"))?;
                    step += 1;
                }
            }
            if (step, &*text, work) != (field.drill.steps, DONE, Some(Work::Idle)) {
                return Err(format!("{id} has {step} steps and ended with {text:?}"));
            }
        }
        // What was done and not told as unknown was told as done.
        if self.done + self.unknown.1 != effects.len() {
            return Err(format!("{} effects, and {self:?}", effects.len()));
        }
        Ok(self)
    }

    fn result(
        &mut self,
        result: &CallResult,
        effect: Option<&(String, String)>,
    ) -> Result<(), String> {
        match (result.status, effect) {
            (Status::Ok, Some((number, _))) if *result.text() == format!("paid {number}") => {
                self.done += 1
            }
            (Status::OutcomeUnknown, effect) => {
                self.unknown.0 += 1;
                self.unknown.1 += usize::from(effect.is_some());
            }
            (status, effect) => {
                return Err(format!(
                    "is told as {status:?}, {:?}; effect: {effect:?}",
                    result.text()
                ));
            }
        }
        Ok(())
    }
}

/// What the ledger holds: each step at most once, by the first answers to its own questions, each of them once.
fn effects(field: &Field<'_>) -> Result<Effects, String> {
    let (mut effects, mut used) = (Effects::new(), BTreeSet::new());
    for words in field.ledger("did") {
        let [_, session, step, number, codes] = &words[..] else {
            return Err(format!("a line is broken: {words:?}"));
        };
        let no = step
            .parse()
            .map_err(|_| format!("a line is broken: {words:?}"))?;
        for (at, code) in codes.split('+').filter(|code| !code.is_empty()).enumerate() {
            let question = (
                LogId::from(session.as_str()),
                format!("code {at} of step {step}"),
            );
            if field.codes.get(&question).is_none_or(|first| first != code)
                || !used.insert(code.to_owned())
            {
                return Err(format!(
                    "the answer {code:?} was not that of {question:?}, or was used twice"
                ));
            }
        }
        if effects
            .insert((session.clone(), no), (number.clone(), codes.clone()))
            .is_some()
        {
            return Err(format!("step {step} of {session} was done twice"));
        }
    }
    Ok(effects)
}
