//! `adjutant board`: manages a board of tasks.

use std::fmt::Write;

use adjutant::orchestration::board::{Blocker, Board, ListedTask, TaskId, TaskQuery, TaskStatus};
use serde_json::json;

use crate::{
    args::{self, ListTasks, ShowTask, TheseTasks, Which},
    exit::Exit,
    plain,
    problem::Problem,
    screen::{tell, write, write_or_tell},
    store::Store,
    trouble, when,
    work::work,
};

/// The headers of the columns.
const HEADS: [&str; 5] = ["ID", "CHANGED (UTC)", "STATUS", "PRIORITY", "ABOUT"];

/// Runs the subcommand.
pub(crate) fn board(command: args::Board) -> Result<Exit, Problem> {
    match command {
        args::Board::List(args) => work(list(args)),
        args::Board::Show(args) => work(show(args)),
        args::Board::Retry(args) => work(change(args, TaskAction::Retry)),
        args::Board::Cancel(args) => work(change(args, TaskAction::Cancel)),
    }
}

/// The action on each of some tasks.
#[derive(Debug, Clone, Copy)]
enum TaskAction {
    Retry,
    Cancel,
}

async fn open(which: &Which) -> Result<(Board, Store), Problem> {
    let store = Store::find(&which.at).await?;
    Ok((Board::new(store.board(&which.board)?), store))
}

/// Lists tasks, and prints how to get the next page.
async fn list(args: ListTasks) -> Result<Exit, Problem> {
    let (board, store) = open(&args.which).await?;
    let mut query = TaskQuery::new().limit(args.limit as usize);
    query.status = TaskStatus::ALL
        .into_iter()
        .find(|status| args.status.as_deref() == Some(status.name()));
    query.assignee = args.assignee.as_deref().map(Into::into);
    query.is_blocked = args.blocked.then_some(true);
    query.after = args.after.as_deref().map(TaskId::from);
    let page = board
        .list(&query)
        .await
        .map_err(|error| trouble::board_problem(&error))?;
    let text = if args.json {
        page.tasks.iter().map(object).collect()
    } else {
        table(&page.tasks)
    };
    if write_or_tell(&text, "there is no such task")?
        && let Some(next) = page.next
    {
        tell(&format!(
            "more: adjutant board list{}{} --after {next}",
            options(&args),
            store.option()
        ));
    }
    Ok(Exit::Finished)
}

/// The options that the next page needs too.
fn options(args: &ListTasks) -> String {
    let board = Some(&args.which.board).filter(|board| *board != "board");
    let mut options = String::new();
    for (name, value) in [
        ("board", board),
        ("status", args.status.as_ref()),
        ("assignee", args.assignee.as_ref()),
    ] {
        options += &value
            .map(|value| format!(" --{name} {}", plain::word(value)))
            .unwrap_or_default();
    }
    if args.limit != 50 {
        options += &format!(" --limit {}", args.limit);
    }
    for (name, is_set) in [("blocked", args.blocked), ("json", args.json)] {
        options += &if is_set {
            format!(" --{name}")
        } else {
            String::new()
        };
    }
    options
}

/// Shows a task.
async fn show(args: ShowTask) -> Result<Exit, Problem> {
    let (board, _) = open(&args.which).await?;
    let listed = board
        .show(&TaskId::from(args.id.as_str()))
        .await
        .map_err(|error| trouble::board_problem(&error))?;
    write(&if args.json {
        object(&listed)
    } else {
        whole(&listed)
    })?;
    Ok(Exit::Finished)
}

/// Changes tasks one after the other, up to the first failure.
async fn change(args: TheseTasks, change: TaskAction) -> Result<Exit, Problem> {
    let (board, _) = open(&args.which).await?;
    for id in &args.ids {
        let id = TaskId::from(id.as_str());
        let (done, changed) = match change {
            TaskAction::Retry => ("retried", board.retry(&id).await),
            TaskAction::Cancel => ("cancelled", board.cancel(&id).await),
        };
        let task = changed.map_err(|error| trouble::board_problem(&error))?;
        write(&if args.json {
            plain::json_line(json!(task))
        } else {
            format!("{done} {id}\n")
        })?;
    }
    Ok(Exit::Finished)
}

fn object(listed: &ListedTask) -> String {
    plain::json_line(json!(listed))
}

fn table(tasks: &[ListedTask]) -> String {
    if tasks.is_empty() {
        return String::new();
    }
    let row = |it: &ListedTask| {
        let (task, priority) = (&it.task, it.task.priority.to_string());
        [
            task.id.to_string(),
            when::minute(task.updated_ms),
            status(it),
            priority,
            about(it),
        ]
    };
    let rows: Vec<[String; 5]> = [HEADS.map(str::to_owned)]
        .into_iter()
        .chain(tasks.iter().map(row))
        .collect();
    let line = |[id, changed, status, priority, about]: &[String; 5]| {
        let line = format!("{id:32}  {changed:16}  {status:11}  {priority:>8}  {about}");
        format!("{}\n", line.trim_end())
    };
    rows.iter().map(line).collect()
}

/// Formats the status of a task.
fn status(listed: &ListedTask) -> String {
    let is_blocked = !listed.blocked_by.is_empty();
    if is_blocked {
        "blocked".to_owned()
    } else {
        listed.task.status.name().replace('_', " ")
    }
}

/// Describes a task in one line.
fn about(listed: &ListedTask) -> String {
    let mut about = plain::line(&listed.task.title);
    if let Some(agent) = &listed.task.assignee {
        let _ = write!(about, " ({})", plain::line(agent));
    }
    if !listed.blocked_by.is_empty() {
        let by: Vec<String> = listed.blocked_by.iter().map(blocker).collect();
        let _ = write!(about, " ← {}", by.join(", "));
    }
    about
}

fn blocker(blocker: &Blocker) -> String {
    format!(
        "{} ({})",
        blocker.id,
        blocker.status.name().replace('_', " ")
    )
}

/// Formats all fields of a task, one per line.
fn whole(listed: &ListedTask) -> String {
    let task = &listed.task;
    let mut text = format!("{}\n", plain::line(&task.title));
    let mut put = |name: &str, value: String| {
        if !value.is_empty() {
            let _ = writeln!(text, "{name:14}{value}");
        }
    };
    put("id", task.id.to_string());
    put("status", task.status.name().replace('_', " "));
    put(
        "blocked by",
        listed
            .blocked_by
            .iter()
            .map(blocker)
            .collect::<Vec<_>>()
            .join(", "),
    );
    put("priority", task.priority.to_string());
    put(
        "assignee",
        task.assignee
            .as_deref()
            .map(plain::line)
            .unwrap_or_default(),
    );
    put(
        "lease until",
        task.lease
            .as_ref()
            .map(|lease| when::minute(lease.until_ms))
            .unwrap_or_default(),
    );
    put("attempts", task.attempts.to_string());
    put(
        "depends on",
        task.dependencies
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", "),
    );
    put(
        "created",
        format!(
            "{} {}",
            when::minute(task.created_ms),
            plain::line(&task.created_by)
        )
        .trim_end()
        .to_owned(),
    );
    put("changed", when::minute(task.updated_ms));
    put(
        "result",
        task.result.as_deref().map(plain::line).unwrap_or_default(),
    );
    put(
        "caveats",
        task.caveats.as_deref().map(plain::line).unwrap_or_default(),
    );
    put(
        "last failure",
        task.last_failure
            .as_deref()
            .map(plain::line)
            .unwrap_or_default(),
    );
    for criterion in &task.acceptance_criteria {
        let shown = task.evidence.iter().find(|it| it.criterion == *criterion);
        let proof = shown
            .map(|it| format!(": {}", plain::line(&it.proof)))
            .unwrap_or_default();
        put("criterion", plain::line(criterion) + &proof);
    }
    if !task.metadata.is_empty() {
        put("metadata", plain::line(&json!(task.metadata).to_string()));
    }
    if !task.description.is_empty() {
        let _ = write!(text, "\n{}\n", plain::stream(task.description.trim_end()));
    }
    text
}
