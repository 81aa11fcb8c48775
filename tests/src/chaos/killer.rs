//! Whoever kills: agents and their operator, at any moment; and orders that are given meanwhile.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    time::{Duration, Instant},
};

use adjutant::runtime::{Entry, Goal};
use rustix::process::{Pid, Signal, kill_process};

use super::{
    field::{Field, Operator, host},
    roll::Roll,
};
use crate::kill::Rng;

/// How long it is between two kills at most.
const BETWEEN_MS: u64 = 400;
/// How often an agent is killed before it is ordered to begin anew: one kill more would be too many for its supervisor.
const MOST_KILLS: u32 = 4;

/// Kills until the time is over; gives the operator that works then, and the groups of all hosts that were seen.
pub(super) fn kill(
    field: &Field,
    roll: &Roll,
    operator: Operator,
    rng: &mut Rng,
    seconds: u64,
) -> Result<(Operator, BTreeSet<u32>), String> {
    let until = Instant::now() + Duration::from_secs(seconds);
    let (mut operator, mut groups) = (operator, BTreeSet::new());
    let mut kills: BTreeMap<uuid::Uuid, u32> = BTreeMap::new();
    while Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1 + rng.below(BETWEEN_MS)));
        groups.extend(roll.entries().iter().filter_map(host).map(|host| host.pid));
        let Some(entry) = roll.pick(rng, |_| true) else {
            continue;
        };
        match rng.below(10) {
            0 => {
                operator.kill()?;
                roll.count(|it| it.operator_kills += 1);
                std::thread::sleep(Duration::from_millis(rng.below(BETWEEN_MS)));
                operator = field.operate()?;
            }
            1 => order(field, roll, &entry, Goal::Stopped)?,
            2 | 3 => {
                order(field, roll, &entry, Goal::Running)?;
                kills.remove(&entry.id);
            }
            _ => {
                let count = kills.entry(entry.id).or_default();
                if *count == MOST_KILLS {
                    order(field, roll, &entry, Goal::Running)?;
                    *count = 0;
                } else if kill_host(field, &entry) {
                    *count += 1;
                    roll.count(|it| it.agent_kills += 1);
                }
            }
        }
    }
    Ok((operator, groups))
}

fn order(field: &Field, roll: &Roll, entry: &Entry, goal: Goal) -> Result<(), String> {
    roll.count(|it| it.orders += 1);
    match field.desire(entry.id, goal) {
        // It is being removed.
        Err(_) if roll.get(entry.id).is_none() => Ok(()),
        done => done,
    }
}

/// Kills the process of an agent; whether there was one.
fn kill_host(field: &Field, entry: &Entry) -> bool {
    let Some(host) = host(entry) else {
        return false;
    };
    let command = fs::read(format!("/proc/{}/cmdline", host.pid)).unwrap_or_default();
    // The number may be that of another process by now.
    let is_ours = String::from_utf8_lossy(&command).contains(&*field.home.root().to_string_lossy());
    is_ours && end_now(host.pid)
}

/// Kills a process; whether it was there.
pub(super) fn end_now(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
}
