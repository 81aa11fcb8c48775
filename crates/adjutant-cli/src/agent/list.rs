//! The state of agents: all of them in a table, or one in detail.

use std::{path::Path, sync::Arc, time::Duration};

use adjutant::runtime::Status;
use futures_util::future::join_all;
use serde_json::json;
use tokio::time::sleep;

use super::{
    place::AgentFolder,
    reach::now_ms,
    standing::{AgentStanding, kept_rules, model},
};
use crate::{
    args::agent::{self, Ps},
    exit::Exit,
    plain,
    problem::Problem,
    screen::{tell, write, write_or_tell},
};

const HEADS: [&str; 6] = ["NAME", "STATUS", "MODEL", "ADDRESS", "RESTARTS", "AGE"];
/// The maximum number of characters of a status in the table; `status` prints all of it.
const MAX_STATUS: usize = 60;
/// The interval between two reads of a watched agent.
const LOOK: Duration = Duration::from_millis(100);

/// Lists agents.
pub(super) async fn ps(args: &Ps) -> Result<Exit, Problem> {
    let place = AgentFolder::new(&args.homed, Path::new("."));
    let entries = place.entries()?;
    let standings = join_all(
        entries
            .all
            .iter()
            .map(|entry| AgentStanding::read(&place.home, entry)),
    )
    .await;
    let now = now_ms();
    let (mut text, mut rows) = (String::new(), vec![HEADS.map(str::to_owned)]);
    for (entry, standing) in entries.all.iter().zip(standings) {
        // It was removed in the meantime.
        let Some(standing) = standing else { continue };
        if args.json {
            text += &plain::json_line(standing.json(entry));
            continue;
        }
        rows.push([
            plain::line(&entry.name),
            short(&plain::line(&standing.line(now))),
            model(entry).map_or("-".to_owned(), |model| plain::line(&model)),
            standing
                .address
                .map_or("-".to_owned(), |address| address.to_string()),
            standing.course.restarts.to_string(),
            age(now.saturating_sub(entry.created_ms)),
        ]);
    }
    // Headers without rows are not printed.
    let text = if rows.len() > 1 { table(&rows) } else { text };
    write_or_tell(
        &text,
        "there is no agent here; `adjutant agent create` makes one",
    )?;
    entries.problems.iter().for_each(|(id, error)| {
        tell(&format!(
            "warning: {id}: {}",
            plain::line(&error.to_string())
        ))
    });
    Ok(Exit::Finished)
}

/// Formats columns with the minimum width.
fn table(rows: &[[String; 6]]) -> String {
    let width = |at: usize| {
        rows.iter()
            .map(|row| row[at].chars().count())
            .max()
            .unwrap_or_default()
    };
    let widths: [usize; 6] = std::array::from_fn(width);
    let line = |row: &[String; 6]| {
        let cells: Vec<String> = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

fn short(status: &str) -> String {
    match status.char_indices().nth(MAX_STATUS) {
        Some((at, _)) => format!("{}…", &status[..at]),
        None => status.to_owned(),
    }
}

/// Formats a duration in its largest unit.
pub(crate) fn age(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Prints the status of one agent, and each change if requested.
pub(super) async fn status(args: &agent::StatusArgs) -> Result<Exit, Problem> {
    let place = AgentFolder::new(&args.this.homed, Path::new("."));
    let entry = place.find(&args.this.name)?;
    let mut told = None;
    loop {
        let Some(standing) = AgentStanding::read(&place.home, &entry).await else {
            let value = json!({"agent": &*entry.name, "id": entry.id, "status": "removed"});
            write(&if args.json {
                plain::json_line(value)
            } else {
                format!("{}\n", Status::Removed)
            })?;
            return Ok(Exit::Finished);
        };
        let line = if args.json {
            let mut value = standing.json(&entry);
            let rules = kept_rules(&entry);
            value["rules"] = rules
                .iter()
                .map(|(agent, rule)| json!({"agent": agent, "rule": rule}))
                .collect();
            plain::json_line(value)
        } else {
            format!("{}\n", plain::stream(&standing.line(now_ms())))
        };
        // The remaining time of a pause is not a change.
        let key = (
            standing.status.clone(),
            standing.course.clone(),
            standing.address,
        );
        if told.as_ref() != Some(&key) {
            told = Some(key);
            if !write(&line)? {
                return Ok(Exit::Finished);
            }
        }
        if !args.watch {
            if !args.json {
                let line = |(agent, rule): &(Arc<str>, String)| {
                    format!("for good: {}: {}\n", plain::line(agent), plain::line(rule))
                };
                write(&kept_rules(&entry).iter().map(line).collect::<String>())?;
            }
            return Ok(Exit::Finished);
        }
        sleep(LOOK).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_is_told_in_its_largest_unit() {
        let told = [
            0,
            59_999,
            60_000,
            3_599_999,
            3_600_000,
            86_400_000,
            864_000_000,
        ]
        .map(age);
        assert_eq!(
            told,
            ["0 s", "59 s", "1 min", "59 min", "1 h", "1 d", "10 d"]
        );
    }
}
