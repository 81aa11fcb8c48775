//! The output of a supervisor, for people and programs: a live table on a terminal, lines otherwise, or JSON.

use adjutant::runtime::{
    Goal,
    supervisor::{AgentRow, Notice, Notices, Table},
};

use crate::{
    plain,
    problem::Problem,
    screen::{self, Screen},
    show::DisplayLine,
};

/// The maximum number of agents that are drawn at a time.
const MAX_DRAWN: usize = 20;

/// Prints notices until the supervisor has ended.
///
/// # Errors
/// If standard output is not writable.
pub(super) async fn show(
    mut notices: Notices,
    mut table: Table,
    is_json: bool,
    screen: &mut Screen,
) -> Result<(), Problem> {
    let is_live = screen.is_live() && !is_json;
    loop {
        tokio::select! {
            biased;
            notice = notices.next() => {
                let Some(notice) = notice else { return Ok(()) };
                if is_json {
                    let line = plain::json_line(serde_json::to_string(&notice).unwrap_or_default());
                    if !screen::is_read(screen.write(&line))? {
                        return Err(Problem::new(crate::exit::Exit::Finished, "no process reads the progress"));
                    }
                } else if let Some(line) = line(&notice, is_live) {
                    screen.tell(&line);
                }
            }
            changed = table.changed(), if is_live => {
                if !changed {
                    return Ok(());
                }
                // It writes nothing to standard output.
                let _ = screen.show(&DisplayLine::Agents(rows(&table.rows())));
            }
        }
    }
}

/// Returns the line for a notice; next to a table, only if it is not in the table.
fn line(notice: &Notice, is_live: bool) -> Option<String> {
    let text = match notice {
        Notice::Status { .. } | Notice::Waiting { .. } if is_live => return None,
        Notice::Status { agent, status, .. } => format!("{agent}: {status}"),
        Notice::Pause {
            agent,
            attempts,
            pause_ms,
            why,
            ..
        } => {
            format!(
                "{agent}: {why}; attempt {} in {} s",
                attempts + 1,
                pause_ms.div_ceil(1_000)
            )
        }
        Notice::GivenUp { agent, why, .. } => {
            format!("{agent}: given up: {why}; `adjutant agent start {agent}` begins anew")
        }
        Notice::Waiting {
            agent, max_running, ..
        } => format!("{agent}: waits for a place: {max_running} may run"),
        Notice::Problem {
            agent: Some(agent),
            message,
        } => format!("warning: {agent}: {message}"),
        Notice::Problem {
            agent: None,
            message,
        } => format!("warning: {message}"),
        Notice::Lost { count } => format!("warning: {count} notices were lost"),
        _ => return None,
    };
    Some(plain::line(&text))
}

/// The lines of the table: the number of running agents, then the most important ones.
fn rows(rows: &[AgentRow]) -> Vec<String> {
    let up = rows.iter().filter(|row| row.status.is_up()).count();
    let mut lines = vec![format!("{up} of {} agents ready; Ctrl-C ends", rows.len())];
    let mut drawn: Vec<&AgentRow> = rows.iter().collect();
    // Agents with errors or in transition come first.
    drawn.sort_by_key(|row| (row.status.is_up(), row.goal != Goal::Running));
    let width = drawn
        .iter()
        .take(MAX_DRAWN)
        .map(|row| row.agent.chars().count())
        .max()
        .unwrap_or_default();
    lines.extend(drawn.iter().take(MAX_DRAWN).map(|row| {
        plain::line(&format_row(row)).replacen(&*row.agent, &format!("{:width$}", row.agent), 1)
    }));
    if rows.len() > MAX_DRAWN {
        lines.push(format!("({} more)", rows.len() - MAX_DRAWN));
    }
    lines
}

fn format_row(row: &AgentRow) -> String {
    let restarts = if row.restarts == 0 {
        String::new()
    } else {
        format!(", started again {} times", row.restarts)
    };
    let note = match (&row.given_up, row.is_waiting, row.next_ms.is_some()) {
        (Some(_), ..) => ", given up",
        (None, true, _) => ", waits for a place",
        (None, false, true) => ", is started again",
        _ => "",
    };
    format!("{}  {}{note}{restarts}", row.agent, row.status)
}
