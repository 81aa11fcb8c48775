//! The trials with a team: a lead with members and background tasks, whose process is killed; nobody is forgotten.

use std::{collections::BTreeMap, error::Error, fs::File, path::Path, sync::Arc};

use adjutant::{
    Agent, Outcome, Replay,
    agent::{Journal, LogId, Record, Run, Seq},
    llm::{Entry, ModelInfo, Request, Script},
    orchestration::{AtEnd, Background, BackgroundOptions, team::Team},
    providers::Anthropic,
};
use futures_util::StreamExt;
use serde_json::json;

use super::{
    ANSWER, Place,
    victim::{append_to, ended, open, tool},
};

/// The members of the team, by number; the tasks after them work in the background.
const MEMBERS: std::ops::RangeInclusive<usize> = 1..=3;
/// Everyone who works under the lead.
const WORKERS: std::ops::RangeInclusive<usize> = 1..=5;
/// How often each of them pays.
const PAYMENTS: usize = 4;

/// Runs the lead to its end, or as far as it comes, and gives its answer.
///
/// # Errors
/// Whatever keeps it from its answer.
pub async fn lead(
    place: &Place,
    session: &str,
    address: &str,
    files: &Path,
) -> Result<String, Box<dyn Error + Send + Sync>> {
    let effects = Arc::new(append_to(&files.join("effects"))?);
    let agent = agent(address, &effects)
        .journal(place.open().await?)
        .session(LogId::from(session));
    open(&agent).await?;
    let result = if agent.log().transcript().is_empty() && !agent.log().has_open_run() {
        agent.run("Let everyone pay.").await?
    } else if let Some(answer) = ended(&agent) {
        return Ok(answer);
    } else {
        agent.resume(Vec::new()).await?
    };
    match &result.outcome {
        Outcome::Finished { .. } => Ok(result.text()),
        outcome => Err(format!("the run ended otherwise: {outcome:?}").into()),
    }
}

fn agent(address: &str, effects: &Arc<File>) -> Agent {
    let model = || {
        Anthropic::new(
            ModelInfo::new("anthropic/claude-sonnet-4-5"),
            "not-a-real-key",
        )
        .base_url(address)
    };
    let worker = || Agent::new(model()).tool(tool("pay", Replay::Once, effects));
    let options = BackgroundOptions::new().at_end(AtEnd::Wait);
    let background = Background::new(options).agent("helper", "Pays.", worker());
    let team = MEMBERS.fold(Team::new("payers"), |team, number| {
        team.template(format!("member-{number}"), worker())
    });
    team.install(background.install(Agent::new(model()).name("lead")))
}

/// What the model says to an agent of the team; `None` if it is another agent.
pub(super) fn said(request: &Request) -> Option<Script> {
    let has = |name: &str| request.tools.iter().any(|tool| tool.name.as_str() == name);
    let turns = request
        .entries
        .iter()
        .filter(|it| matches!(it.entry, Entry::Turn(_)))
        .count();
    if has("look") {
        return None;
    }
    if !has("spawn_teammate") {
        let number = request
            .entries
            .iter()
            .find_map(|stored| number(&stored.entry))
            .unwrap_or_default();
        return Some(match turns < PAYMENTS {
            true => Script::new().call("pay", json!({"step": number * 10 + turns})),
            false => Script::new().text(format!("Result of {number}.")),
        });
    }
    if turns == 0 {
        let member = |number| json!({"name": format!("member-{number}"), "task": format!("Pay as {number}")});
        let task = |number| json!({"agent": "helper", "task": format!("Pay as {number}")});
        return Some(WORKERS.fold(
            Script::new(),
            |script, number| match MEMBERS.contains(&number) {
                true => script.call("spawn_teammate", member(number)),
                false => script.call("launch_task", task(number)),
            },
        ));
    }
    let all: Vec<String> = request
        .entries
        .iter()
        .map(|stored| json!(stored.entry).to_string())
        .collect();
    let knows = |number: usize| {
        all.iter()
            .any(|entry| entry.contains(&format!("Result of {number}.")))
    };
    Some(if !MEMBERS.into_iter().all(knows) {
        Script::new()
            .call("wait_for_team", json!({"timeout_s": 5}))
            .call("read_messages", json!({}))
    } else if WORKERS.into_iter().all(knows) {
        Script::new().text(ANSWER)
    } else {
        Script::new().text("I wait for the others.")
    })
}

/// The number that a prompt ends with.
fn number(entry: &Entry) -> Option<usize> {
    let Entry::User(message) = entry else {
        return None;
    };
    let text = message
        .content
        .iter()
        .find_map(|content| content.as_text())?;
    text.rsplit(' ').next()?.parse().ok()
}

/// Holds the log and the files of a trial to what was promised; gives how many outcomes nobody knows.
///
/// # Errors
/// The first promise that was broken, in words.
pub(super) async fn inspect(
    journal: &Arc<dyn Journal>,
    session: &str,
    files: &Path,
) -> Result<usize, String> {
    let (mut runs, mut unknown) = (BTreeMap::new(), 0);
    let mut records = journal.read(&LogId::from(session), Seq(0));
    while let Some(stamped) = records.next().await {
        let stamped = stamped.map_err(|error| format!("the log cannot be read: {error}"))?;
        if let Record::Returned { result, .. } = &stamped.record {
            unknown += usize::from(result.status == adjutant::llm::Status::OutcomeUnknown);
        }
        let run: &mut Run = runs.entry(stamped.thread.clone()).or_default();
        run.apply(&stamped)
            .map_err(|error| format!("the log does not fold: {error}"))?;
    }
    if let Some((thread, _)) = runs.iter().find(|(_, run)| run.is_open()) {
        return Err(format!("{thread} has not ended"));
    }
    if runs.len() != 1 + WORKERS.count() {
        return Err(format!(
            "there are {} agents: {:?}",
            runs.len(),
            runs.keys()
        ));
    }
    let text = std::fs::read_to_string(files.join("effects")).map_err(|error| error.to_string())?;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    text.lines()
        .filter_map(|line| line.split(' ').nth(1))
        .for_each(|step| *counts.entry(step).or_default() += 1);
    match counts.iter().find(|(_, count)| **count > 1) {
        Some((step, count)) => Err(format!("step {step} was paid for {count} times")),
        None if counts.len() + unknown < WORKERS.count() * PAYMENTS => Err(format!(
            "only {} payments were made, and {unknown} are in doubt",
            counts.len()
        )),
        None => Ok(unknown),
    }
}
