//! Starts, stops and removes agents: through the operator of their directory, or directly if no operator runs.

use std::time::Duration;

use adjutant::runtime::{Desired, Entry, Error, ErrorKind, Goal, Home, Instance, Status, Wants};
use futures_util::future::join_all;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    place::AgentFolder,
    standing::{self, AgentStanding},
};
use crate::{
    args::agent::These,
    consent::{self, Consent},
    exit::Exit,
    plain,
    problem::Problem,
    screen::{tell, write},
    trouble::runtime_problem,
};

/// The maximum time for an operator to carry out an order.
const WITHIN: Duration = Duration::from_secs(90);
/// The interval between two checks whether it has.
const LOOK: Duration = Duration::from_millis(50);

/// The requested state of agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    Start,
    Stop,
    Restart,
    Remove,
}

/// An agent, and its progress to the requested state.
struct Way {
    entry: Entry,
    desired: Desired,
    ended: Option<Result<ReachEnd, Problem>>,
}

/// The state that was reached.
#[derive(Debug, Clone, PartialEq)]
enum ReachEnd {
    At(Status),
    /// It is queued until another agent stops.
    Waits,
}

/// Brings agents to a state, and prints their statuses.
pub(super) async fn reach(args: &These, wish: Wish) -> Result<Exit, Problem> {
    let place = AgentFolder::new(&args.homed, std::path::Path::new("."));
    let entries = place.chosen(&args.names, args.all)?;
    if matches!(wish, Wish::Start | Wish::Restart) {
        let command = place.command("trust");
        let consent = Consent {
            store: &place.trusted,
            given: &[],
            command,
            option: "--yes",
        };
        for entry in &entries {
            consent.ask(
                &Wants::from_agent(&entry.workspace).map_err(|error| runtime_problem(&error))?,
            )?;
            consent::warn(&entry.resolved.manifest);
        }
    }
    report(&bring(&place, entries, wish).await?, args.json)
}

/// Brings one agent to a state, and prints its status.
pub(super) async fn restart(place: &AgentFolder, entry: Entry) -> Result<String, Problem> {
    let way = bring(place, vec![entry], Wish::Restart).await?.pop();
    match way.and_then(|way| way.ended) {
        Some(Ok(ended)) => Ok(ended.words()),
        Some(Err(problem)) => Err(problem),
        None => Err(Problem::new(Exit::Failed, "nothing became of it")),
    }
}

async fn bring(place: &AgentFolder, entries: Vec<Entry>, wish: Wish) -> Result<Vec<Way>, Problem> {
    awake(place)?;
    let mut ways = Vec::with_capacity(entries.len());
    for entry in entries {
        if entry.workspace.is_hosted().unwrap_or(false)
            && let Err(frozen) = standing::awake(&entry)
        {
            tell(&format!("warning: {}", plain::line(&frozen.line())));
        }
        let desired = order(&place.home, &entry, wish)
            .or_else(|error| unwritten(&place.home, &entry, wish, error))
            .map_err(|error| runtime_problem(&error))?;
        ways.push(Way {
            entry,
            desired,
            ended: None,
        });
    }
    let until = Instant::now() + WITHIN;
    while ways.iter().any(|way| way.ended.is_none()) {
        if act_alone(place, &mut ways, wish).await? {
            break;
        }
        for way in ways.iter_mut().filter(|way| way.ended.is_none()) {
            way.ended = look(&place.home, way, wish).await;
            if way.ended.is_none() && Instant::now() > until {
                way.ended = Some(Err(late(&place.home, way).await));
            }
        }
        sleep(LOOK).await;
    }
    Ok(ways)
}

/// Fails if the operator was stopped by a signal, because it would never answer.
pub(super) fn awake(place: &AgentFolder) -> Result<(), Problem> {
    place.home.frozen().map_or(Ok(()), |pid| {
        let text =
            format!("the operator is frozen: its process {pid} was stopped by a signal, and nothing was asked of it");
        Err(Problem::new(Exit::Failed, text).hint(format!("`kill -CONT {pid}` continues it")))
    })
}

impl ReachEnd {
    fn words(&self) -> String {
        match self {
            Self::At(status) => status.to_string(),
            Self::Waits => "waits for a place, since so many agents run".to_owned(),
        }
    }
}

fn order(home: &Home, entry: &Entry, wish: Wish) -> Result<Desired, Error> {
    match wish {
        Wish::Start => home.desire(entry.id, Goal::Running),
        Wish::Stop => home.desire(entry.id, Goal::Stopped),
        Wish::Restart => home.desire_restart(entry.id),
        Wish::Remove => home.desire(entry.id, Goal::Removed),
    }
}

/// Returns the order that applies if a new one cannot be written. On a full disk, an agent can still be stopped and
/// removed if no operator runs.
fn unwritten(home: &Home, entry: &Entry, wish: Wish, error: Error) -> Result<Desired, Error> {
    let is_possible =
        matches!(wish, Wish::Stop | Wish::Remove) && error.kind() == ErrorKind::Storage;
    if !is_possible || home.is_operated()? {
        return Err(error);
    }
    let error = plain::line(&error.to_string());
    tell(&format!(
        "warning: {error}: it is done now, and not remembered"
    ));
    Ok(home.desired(entry.id).unwrap_or(Desired::NOTHING))
}

/// Carries out the order if no operator runs, and returns whether it did. Meanwhile, this command is the operator.
async fn act_alone(place: &AgentFolder, ways: &mut [Way], wish: Wish) -> Result<bool, Problem> {
    let home = &place.home;
    if home
        .is_operated()
        .map_err(|error| runtime_problem(&error))?
    {
        return Ok(false);
    }
    let _operator = match home.operate() {
        Ok(operator) => operator,
        // Another operator has started in the meantime.
        Err(error) if error.kind() == ErrorKind::Busy => return Ok(false),
        Err(error) => return Err(runtime_problem(&error)),
    };
    let loaded = place
        .backend()?
        .load()
        .await
        .map_err(|error| runtime_problem(&error))?;
    loaded
        .problems
        .iter()
        .for_each(|it| tell(&format!("warning: {}", plain::line(&it.to_string()))));
    let acts = ways
        .iter_mut()
        .filter(|way| way.ended.is_none())
        .map(|way| {
            let instance = loaded.instances.iter().find(|it| it.id() == way.entry.id);
            async move {
                let done = match instance {
                    Some(instance) => act(&**instance, wish).await,
                    // It was removed in the meantime, or cannot be loaded, which was then reported.
                    None if !way.entry.workspace.root().exists() => Ok(Status::Removed),
                    None => {
                        let text = format!("the agent {} cannot be used", way.entry.name);
                        way.ended = Some(Err(Problem::new(Exit::Failed, text)));
                        return;
                    }
                };
                if wish != Wish::Remove {
                    // The result is valid; an operator that starts later would only repeat the order.
                    let _ = home.carried_out(way.entry.id);
                }
                way.ended = Some(
                    done.map(ReachEnd::At)
                        .map_err(|error| runtime_problem(&error)),
                );
            }
        });
    join_all(acts).await;
    Ok(true)
}

async fn act(instance: &dyn Instance, wish: Wish) -> Result<Status, Error> {
    match wish {
        Wish::Start if instance.status().is_up() => {}
        Wish::Start => instance.start().await?,
        Wish::Stop => instance.stop().await?,
        Wish::Restart => {
            instance.stop().await?;
            instance.start().await?;
        }
        Wish::Remove => instance.remove().await?,
    }
    Ok(instance.status())
}

/// Returns the result once the operator has carried out the order or failed; `None` before.
async fn look(home: &Home, way: &Way, wish: Wish) -> Option<Result<ReachEnd, Problem>> {
    let Some(standing) = AgentStanding::read(home, &way.entry).await else {
        return Some(match wish {
            Wish::Remove => Ok(ReachEnd::At(Status::Removed)),
            _ => Err(Problem::new(
                Exit::Failed,
                format!("the agent {} was removed", way.entry.name),
            )),
        });
    };
    let AgentStanding { status, course, .. } = &standing;
    if course.order < way.desired.order {
        return None;
    }
    let failed = |why: &str, hint: &str| {
        let text = format!("the agent {} is not ready: {why}", way.entry.name);
        Some(Err(Problem::new(Exit::Failed, text).hint(hint)))
    };
    match wish {
        Wish::Remove => None,
        Wish::Stop => (!status.is_active()).then(|| Ok(ReachEnd::At(status.clone()))),
        Wish::Start | Wish::Restart if course.is_restarting() => None,
        Wish::Start | Wish::Restart if status.is_up() => Some(Ok(ReachEnd::At(status.clone()))),
        Wish::Start | Wish::Restart if course.is_waiting => Some(Ok(ReachEnd::Waits)),
        Wish::Start | Wish::Restart => match (&course.given_up, course.attempts) {
            (Some(why), _) => failed(why, "it is not tried again before it is started again"),
            (None, 0) => None,
            (None, _) => failed(
                &status.to_string(),
                "the operator tries again; `adjutant agent status` tells",
            ),
        },
    }
}

async fn late(home: &Home, way: &Way) -> Problem {
    let standing = AgentStanding::read(home, &way.entry).await;
    let stands = standing.map_or("removed".to_owned(), |it| it.line(now_ms()));
    let text = format!(
        "the operator did not do it within {} s; the agent {} is {stands}",
        WITHIN.as_secs(),
        way.entry.name
    );
    Problem::new(Exit::Failed, text)
}

pub(super) fn now_ms() -> u64 {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// Prints the status of each agent; the exit code is the last failure's.
fn report(ways: &[Way], is_json: bool) -> Result<Exit, Problem> {
    let mut exit = Exit::Finished;
    for way in ways {
        let (name, id) = (&*way.entry.name, way.entry.id);
        let mut value = json!({"agent": name, "id": id});
        match &way.ended {
            Some(Ok(ReachEnd::At(status))) if is_json => {
                let status = serde_json::to_value(status).unwrap_or_default();
                value
                    .as_object_mut()
                    .into_iter()
                    .for_each(|it| it.extend(status.as_object().cloned().unwrap_or_default()));
                write(&plain::json_line(value))?;
            }
            Some(Ok(ReachEnd::Waits)) if is_json => {
                value["waiting"] = true.into();
                write(&plain::json_line(value))?;
            }
            Some(Ok(ended)) => {
                write(&format!(
                    "{}: {}\n",
                    plain::line(name),
                    plain::line(&ended.words())
                ))?;
            }
            Some(Err(problem)) => {
                exit = problem.report();
                if is_json {
                    value["error"] = problem.line().into();
                    write(&plain::json_line(value))?;
                }
            }
            None => {}
        }
    }
    Ok(exit)
}
