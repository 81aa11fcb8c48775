//! What must be true when everything is over, whatever was killed when.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use adjutant::{
    agent::{Digest, Journal, LogId, Record, Run, Seq},
    llm::{Entry, Status},
};
use futures_util::StreamExt;
use serde_json::Value;

use super::{ANSWER, TURNS, course::calls};

/// Everything that was said in each attempt at a reply, as far as the log knows.
type Heard = BTreeMap<(u64, u64), Vec<String>>;

/// Holds the log and the files of a trial to what was promised; gives how many outcomes nobody knows.
///
/// # Errors
/// The first promise that was broken, in words.
pub(super) async fn inspect(
    journal: &Arc<dyn Journal>,
    session: &str,
    files: &Path,
) -> Result<usize, String> {
    let (run, heard, has_made_room) = fold(journal, session).await?;
    if !has_made_room {
        return Err("every request fits the window, and that was not the plan".to_owned());
    }
    let unknown = transcript(&run)?;
    effects(files)?;
    acknowledged(files, &heard)?;
    Ok(unknown)
}

async fn fold(journal: &Arc<dyn Journal>, session: &str) -> Result<(Run, Heard, bool), String> {
    let mut run = Run::default();
    let (mut heard, mut has_made_room) = (Heard::new(), false);
    let mut stored = journal.read_stored(&LogId::from(session), Seq(0));
    let mut link = Digest::GENESIS;
    while let Some(record) = stored.next().await {
        let record = record.map_err(|error| format!("the log cannot be read: {error}"))?;
        let next = record.link;
        let stamped = record
            .open(&link)
            .map_err(|error| format!("the log is damaged: {error}"))?;
        link = next;
        match &stamped.record {
            Record::Heard {
                turn,
                attempt,
                parts,
                ..
            } => {
                let said: String = parts.iter().map(|part| part.text.as_str()).collect();
                heard
                    .entry((turn.0, u64::from(*attempt)))
                    .or_default()
                    .push(said);
            }
            Record::Prepared { reports, .. } => {
                has_made_room |= reports.iter().any(|report| &*report.by == "floor")
            }
            Record::Replied { turn, reply, .. } => heard
                .entry((turn.0, u64::MAX))
                .or_default()
                .push(reply.text()),
            _ => {}
        }
        run.apply(&stamped)
            .map_err(|error| format!("the log does not fold: {error}"))?;
    }
    Ok((run, heard, has_made_room))
}

/// The conversation is whole: a prompt, thirty turns with a result for each call, the answer. The window was made room in.
fn transcript(run: &Run) -> Result<usize, String> {
    let entries: Vec<_> = run
        .history()
        .iter()
        .map(|stored| stored.entry.clone())
        .collect();
    let turns: Vec<_> = entries
        .iter()
        .filter_map(|entry| {
            if let Entry::Turn(turn) = entry {
                Some(turn)
            } else {
                None
            }
        })
        .collect();
    let is_announcement = |entry: &&Entry| format!("{entry:?}").contains("announced");
    let announced = entries.iter().filter(is_announcement).count();
    // The prompt, the steps, an answer that does not fit, what was said to that, and one that fits.
    if entries.len() - announced != TURNS + 4 || turns.len() != TURNS + 2 {
        return Err(format!(
            "the conversation has {} entries, {} of them turns",
            entries.len(),
            turns.len()
        ));
    }
    let mut unknown = 0;
    for (at, turn) in turns.iter().enumerate() {
        let names: Vec<&str> = turn
            .reply()
            .calls()
            .map(|call| call.name.as_str())
            .collect();
        let expected = calls(at + 1);
        if names != expected || turn.results().len() != expected.len() {
            return Err(format!(
                "turn {at} has the calls {names:?} and {} results",
                turn.results().len()
            ));
        }
        for (name, result) in names.iter().zip(turn.results()) {
            match (name, result.status) {
                (_, Status::Ok) => {}
                (&"pay", Status::OutcomeUnknown) => unknown += 1,
                (name, status) => {
                    return Err(format!(
                        "{name} of turn {at} ended as {status:?}: {}",
                        result.text()
                    ));
                }
            }
        }
    }
    let answer = turns
        .last()
        .map(|turn| turn.reply().text())
        .unwrap_or_default();
    if answer.contains(ANSWER) && !run.is_open() {
        Ok(unknown)
    } else {
        Err(format!("the answer is {answer:?}"))
    }
}

/// What may happen once happened once at most; what may happen again happened.
fn effects(files: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(files.join("effects")).map_err(|error| error.to_string())?;
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        let (Some(what), Some(step)) = (words.next(), words.next()) else {
            return Err(format!("no effect: {line:?}"));
        };
        *counts.entry((what, step)).or_default() += 1;
    }
    let count = |what, step: &str| counts.get(&(what, step)).copied().unwrap_or_default();
    for step in (1..=TURNS).map(|step| step.to_string()) {
        for what in ["pay", "out", "there", "back"] {
            if count(what, &step) > 1 {
                return Err(format!(
                    "{what} of step {step} happened {} times",
                    count(what, &step)
                ));
            }
        }
        for what in ["look", "set"] {
            if count(what, &step) == 0 {
                return Err(format!("{what} of step {step} never happened"));
            }
        }
    }
    Ok(())
}

/// What was acknowledged is in the log: as a part of the reply, or as heard of an attempt that came to nothing.
fn acknowledged(files: &Path, heard: &Heard) -> Result<(), String> {
    let text =
        std::fs::read_to_string(files.join("acknowledged")).map_err(|error| error.to_string())?;
    let mut missing = BTreeSet::new();
    for line in text.lines() {
        let line: Value =
            serde_json::from_str(line).map_err(|error| format!("a torn note: {error}"))?;
        let (turn, attempt) = (
            line["turn"].as_u64().unwrap_or(0),
            line["attempt"].as_u64().unwrap_or(0),
        );
        let text = line["text"].as_str().unwrap_or_default();
        let said = |key| {
            heard
                .get(&key)
                .map(|parts| parts.concat())
                .unwrap_or_default()
        };
        if !said((turn, u64::MAX)).starts_with(text) && !said((turn, attempt)).starts_with(text) {
            missing.insert(format!("turn {turn}, attempt {attempt}: {text:?}"));
        }
    }
    match missing.first() {
        None => Ok(()),
        Some(first) => Err(format!(
            "acknowledged and not in the log: {} texts, one of them {first}",
            missing.len()
        )),
    }
}
