//! One drill from its manifests to the last look for what is left.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use adjutant::runtime::{Entry, Goal, Status};

use super::{
    field::{Field, Operator, host, revision},
    killer::{self, end_now},
    people::People,
    roll::{Listed, Roll, Survived},
    trace,
};
use crate::kill::Rng;

/// How many people there are at a time.
const PEOPLE: u64 = 4;
/// How often what waits in an agent is answered in the end, at most.
const MOST_ANSWERS: usize = 50;
/// How long agents may take to stand where they should: pauses of 30 s are among it.
const SETTLE_WITHIN: Duration = Duration::from_secs(120);
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// What is needed for a drill.
#[derive(Debug)]
pub struct Drill {
    /// The program that supervises and runs agents.
    pub program: PathBuf,
    /// A directory of its own.
    pub directory: PathBuf,
    /// How many agents there are.
    pub agents: usize,
    /// How long they are killed, in seconds.
    pub seconds: u64,
}

impl Drill {
    /// Runs the drill.
    ///
    /// # Errors
    /// The first promise that was broken, in words.
    pub async fn run(&self, rng: &mut Rng) -> Result<Survived, String> {
        let field = Arc::new(Field::new(&self.program, &self.directory, self.agents)?);
        let done = self.survive(&field, rng).await;
        if done.is_err() {
            // The operator is gone by now, and its agents live on.
            for (pid, _) in trace::processes(&field.directory, &BTreeSet::new(), &BTreeSet::new()) {
                end_now(pid);
            }
        }
        done.map_err(|why| format!("{why}\nthe operators wrote:\n{}", field.last_lines()))
    }

    async fn survive(&self, field: &Arc<Field>, rng: &mut Rng) -> Result<Survived, String> {
        let (operator, roll) = (field.operate()?, Arc::new(Roll::default()));
        self.wait_for_all(field, &roll).await?;
        let people = Arc::new(People::new(Arc::clone(field), Arc::clone(&roll)));
        let mut next = || Rng::new(rng.below(u64::MAX));
        let all: Vec<_> = (0..PEOPLE)
            .map(|_| tokio::spawn(Arc::clone(&people).go_on(next())))
            .collect();
        let movers = [
            tokio::spawn(Arc::clone(&people).update_on(next())),
            tokio::spawn(Arc::clone(&people).carry_on(next())),
        ];
        let killed =
            tokio::task::block_in_place(|| killer::kill(field, &roll, operator, rng, self.seconds));
        people.is_over.store(true, Ordering::Relaxed);
        for person in all {
            person.await.map_err(|error| error.to_string())?;
        }
        for mover in movers {
            mover.await.map_err(|error| error.to_string())??;
        }
        let (operator, mut groups) = killed?;
        let began = Instant::now();
        settle(field, &roll).await?;
        let settled_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let operator = calm(&people, operator, rng).await?;
        let marks = field.marks();
        roll.check_marks(&marks)?;
        for listed in roll.all() {
            listed.check(&marks, true).await?;
        }
        groups.extend(roll.entries().iter().filter_map(host).map(|host| host.pid));
        tokio::task::block_in_place(|| operator.end())?;
        left(field, &roll, &groups)?;
        Ok(Survived {
            settled_ms,
            calls: marks.len(),
            ..roll.counts()
        })
    }

    /// Lists all agents once they are made, and waits until they are ready.
    async fn wait_for_all(&self, field: &Field, roll: &Roll) -> Result<(), String> {
        let until = Instant::now() + SETTLE_WITHIN;
        while field.entries()?.len() < self.agents {
            if Instant::now() > until {
                return Err(format!(
                    "{} of {} agents are made",
                    field.entries()?.len(),
                    self.agents
                ));
            }
            tokio::time::sleep(LOOK).await;
        }
        let number = |name: &str| name.strip_prefix("agent-")?.parse().ok();
        field
            .entries()?
            .into_iter()
            .for_each(|it| roll.list(it.clone(), number(&it.name), 0, None));
        settle(field, roll).await
    }
}

/// Once nobody kills any more, all must be done that is asked for: every agent runs, is updated by the next operator, is
/// answered, and has a last call of its own; one is updated by a command, one is carried within the folder, and one out of it.
async fn calm(people: &People, operator: Operator, rng: &mut Rng) -> Result<Operator, String> {
    let (field, roll) = (&people.field, &people.roll);
    for listed in roll.all() {
        // What was answered by those that are stopped now must be there too.
        field.desire(listed.entry.id, Goal::Running)?;
        if let Some((file, revision)) = roll.revise(listed.entry.id) {
            field.lay(file, revision)?;
            roll.acknowledge(listed.entry.id, revision);
        }
    }
    operator.kill()?;
    let operator = field.operate()?;
    settle(field, roll).await?;
    let mut told = vec![people.update(rng).await?];
    for (number, is_here) in [(u64::MAX, true), (u64::MAX - 1, false)] {
        told.push(people.carry(number, is_here, rng).await?);
    }
    if let Some(told) = told.into_iter().flatten().next() {
        return Err(format!("nobody kills any more, and yet: {}", told.text));
    }
    settle(field, roll).await?;
    for listed in roll.all() {
        end(people, &listed, rng)
            .await
            .map_err(|why| format!("{}: {why}", listed.entry.name))?;
    }
    Ok(operator)
}

/// Answers what waits in an agent, prompts every session once more so that messages are placed, and has the agent make a call,
/// which tells the revision that runs.
async fn end(people: &People, listed: &Listed, rng: &mut Rng) -> Result<(), String> {
    let entry = &listed.entry;
    let mut answer = async || {
        for _ in 0..MOST_ANSWERS {
            let waiting = people
                .waiting(entry)
                .await
                .ok_or("it does not tell what waits")?;
            let Some(waiting) = waiting.first() else {
                return Ok(());
            };
            if !people
                .answer(entry, waiting, Rng::new(rng.below(u64::MAX)))
                .await
            {
                return Err(format!("an answer was not heard: {waiting:?}"));
            }
        }
        Err("it asks without end".to_owned())
    };
    answer().await?;
    for session in listed.sessions() {
        people
            .prompt(entry, session)
            .await
            .map_err(|why| format!("{session} was prompted: {why}"))?;
    }
    let before = people.field.marks().len();
    while people.field.marks().len() == before {
        people
            .ask(entry, "last")
            .await
            .map_err(|why| format!("it was asked for a call: {why}"))?;
        answer().await?;
    }
    let (marks, revision) = (people.field.marks(), listed.revisions.0);
    match marks.last() {
        Some(mark) if mark.id == entry.id && mark.revision == format!("r{revision}") => Ok(()),
        other => Err(format!(
            "revision {revision} was acknowledged, and this ran: {other:?}"
        )),
    }
}

/// Waits until every agent stands where it should, with the manifest that was acknowledged last, and nothing else is there; and
/// until that stays so for a moment.
async fn settle(field: &Field, roll: &Roll) -> Result<(), String> {
    let until = Instant::now() + SETTLE_WITHIN;
    let mut calm = 0;
    loop {
        let (entries, listed) = (field.entries()?, roll.all());
        let mut wrong: Vec<String> = entries
            .iter()
            .filter_map(|entry| wrong(field, entry))
            .collect();
        let is_listed = |entry: &Entry| listed.iter().any(|it| it.entry.id == entry.id);
        wrong.extend(
            entries
                .iter()
                .filter(|it| !is_listed(it))
                .map(|it| format!("{} should not be there", it.name)),
        );
        for Listed {
            entry,
            revisions: (acknowledged, tried),
            ..
        } in &listed
        {
            let now = entries.iter().find(|it| it.id == entry.id).map(revision);
            if field
                .home
                .desired(entry.id)
                .is_ok_and(|it| it.goal != Goal::Running)
            {
                // An update waits for its start.
                continue;
            }
            if !now
                .flatten()
                .is_some_and(|now| (*acknowledged..=*tried).any(|it| now == format!("r{it}")))
            {
                let (workspace, id) = (&entry.workspace, entry.id);
                let (told, on_trial) = (workspace.last_update(), workspace.is_on_trial());
                let waits = workspace.update().and_then(|it| it.agent().ok());
                let waits = waits.and_then(|it| {
                    Some(
                        it.resolved
                            .manifest
                            .process_tools
                            .first()?
                            .args
                            .get(2)?
                            .clone(),
                    )
                });
                let (asked, course) = (field.home.desired(id), field.home.course(id));
                wrong.push(format!(
                    "{} has {now:?}, and r{acknowledged} was acknowledged, r{tried} tried; {waits:?} waits for a start; on trial: \
                     {on_trial}; {told:?}; {asked:?}; {course:?}",
                    entry.name
                ));
            }
        }
        calm = if wrong.is_empty() { calm + 1 } else { 0 };
        if calm == 10 {
            return Ok(());
        }
        if Instant::now() > until {
            return Err(format!(
                "agents do not stand where they should: {}",
                wrong.join("; ")
            ));
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// How an agent differs from where it should stand, if it does.
fn wrong(field: &Field, entry: &Entry) -> Option<String> {
    let desired = field.home.desired(entry.id).ok()?;
    let is_taken = field
        .home
        .course(entry.id)
        .is_ok_and(|course| course.order == desired.order);
    let status = entry
        .workspace
        .status()
        .map_or(Status::Created, |written| written.status);
    let is_hosted = entry.workspace.is_hosted().unwrap_or(false);
    let is_right = match desired.goal {
        Goal::Running => status.is_up() && is_hosted,
        _ => !status.is_active() && !is_hosted,
    };
    let lives = if is_hosted { "lives" } else { "does not live" };
    let text = || {
        format!(
            "{} should be {:?}, is {status}, and its process {lives}",
            entry.name, desired.goal
        )
    };
    (!is_right || !is_taken).then(text)
}

/// Looks for processes that are left.
fn left(field: &Field, roll: &Roll, groups: &BTreeSet<u32>) -> Result<(), String> {
    let ids: BTreeSet<String> = roll.entries().iter().map(|it| it.id.to_string()).collect();
    match &trace::processes(&field.directory, &ids, groups)[..] {
        [] => Ok(()),
        left => Err(format!("processes are left: {left:?}")),
    }
}
