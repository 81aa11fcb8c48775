//! A lead with three members and two background tasks, whose process is killed ten times: no agent is lost, and
//! nothing is paid twice.
//!
//! `killed <folder>` starts child processes, each of which dies after some events; the last one completes the work.

use std::{
    fs::OpenOptions,
    io::{Read, Write},
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use adjutant::{
    Agent,
    llm::{Entry, Request, Script, ScriptedModel},
    orchestration::{AtEnd, Background, BackgroundOptions, team::Team},
    store::Sqlite,
    tool,
    tools::CallContext,
};
use serde_json::json;

/// The number of events that a process lives for.
const EVENTS: usize = 9;
const NAMES: [&str; 5] = ["Ann", "Ben", "Cem", "Dot", "Eve"];

/// Pays the one whose task this is. After a crash it may run again: the ledger takes each payment once.
#[tool(replay = "idempotent")]
fn pay(#[state] ledger: PathBuf, cx: CallContext) -> Result<String, std::io::Error> {
    let payment = format!("{}\n", cx.who.thread);
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .read(true)
        .open(ledger)?;
    let mut paid = String::new();
    file.read_to_string(&mut paid)?;
    if !paid.contains(&payment) {
        file.write_all(payment.as_bytes())?;
    }
    Ok("paid".to_owned())
}

/// The model of all agents: its replies depend only on the request, so the calling process does not matter.
fn model(
    answer: impl Fn(&Request) -> Script + Clone + Send + Sync + 'static,
) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::new(
        (0..100)
            .map(|_| Script::from_fn(answer.clone()))
            .collect::<Vec<_>>(),
    ))
}

fn turns(request: &Request) -> usize {
    request
        .entries
        .iter()
        .filter(|it| matches!(it.entry, Entry::Turn(_)))
        .count()
}

/// Pays, and reports the recipient.
fn worker(ledger: &Path) -> Agent {
    let model = model(|request| match turns(request) {
        0 => Script::new().call("pay", json!({})),
        _ => {
            let task = request
                .entries
                .get(0)
                .map(|it| it.entry.to_text())
                .unwrap_or_default();
            let name = NAMES
                .into_iter()
                .find(|name| task.ends_with(&format!("Pay {name}.")))
                .unwrap_or("nobody");
            Script::new().text(format!("{name} has the money"))
        }
    });
    Agent::new(model).tool(pay(ledger.to_owned()))
}

/// Gives work to all agents, and ends when it has all their reports.
fn lead(ledger: &Path) -> Agent {
    let model = model(|request| {
        let [a, b, c, x, y] = NAMES;
        if turns(request) == 0 {
            let spawn = |script: Script, name: &str| {
                script.call(
                    "spawn_teammate",
                    json!({"name": name, "task": format!("Pay {name}.")}),
                )
            };
            let launch = |script: Script, name: &str| {
                script.call(
                    "launch_task",
                    json!({"agent": "helper", "task": format!("Pay {name}.")}),
                )
            };
            return [x, y]
                .into_iter()
                .fold([a, b, c].into_iter().fold(Script::new(), spawn), launch);
        }
        let told = serde_json::to_string(&request.entries).unwrap_or_default();
        let is_paid = |name: &&str| told.contains(&format!("{name} has the money"));
        match [a, b, c].iter().all(is_paid) {
            false => Script::new()
                .call("wait_for_team", json!({"timeout_s": 60}))
                .call("read_messages", json!({})),
            true => Script::new().text(format!(
                "Paid: {}",
                NAMES.into_iter().filter(|it| is_paid(it)).count()
            )),
        }
    });
    let background = Background::new(BackgroundOptions::new().at_end(AtEnd::Wait));
    let background = background.agent("helper", "Pays.", worker(ledger));
    let team = NAMES[..3].iter().fold(Team::new("desk"), |team, name| {
        team.template(*name, worker(ledger))
    });
    team.install(background.install(Agent::new(model).name("lead")))
}

/// One process: continues the work, and dies after the given number of events.
async fn work(folder: &Path, events: usize) -> Result<(), Box<dyn std::error::Error>> {
    let store = Sqlite::open(folder.join("desk.db"))?;
    let agent = lead(&folder.join("paid"))
        .journal(store.journal())
        .session("desk".into())
        .take_over();
    agent.log().open().await?;
    let run = match (agent.log().transcript().last(), agent.log().has_open_run()) {
        (_, true) => agent.resume(Vec::new()),
        (None, false) => agent.run("Pay everyone."),
        (Some(last), false) => {
            println!("{}", last.entry.to_text());
            return Ok(());
        }
    };
    let mut running = run.stream()?;
    for _ in 0..events {
        if running.next().await.is_none() {
            println!(
                "{}",
                running
                    .result()
                    .ok_or("it has ended")?
                    .map_err(Clone::clone)?
                    .text()
            );
            return Ok(());
        }
    }
    std::process::abort();
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let folder = PathBuf::from(args.next().ok_or("which folder?")?);
    if let Some(events) = args.next() {
        return work(&folder, events.parse()?).await;
    }
    let program = std::env::current_exe()?;
    let run = |events: usize| {
        Command::new(&program)
            .arg(&folder)
            .arg(events.to_string())
            .output()
    };
    let killed = (0..10)
        .filter(|_| run(EVENTS).is_ok_and(|it| it.status.code().is_none()))
        .count();
    print!(
        "killed {killed} times. {}",
        String::from_utf8(run(usize::MAX)?.stdout)?
    );
    let paid = std::fs::read_to_string(folder.join("paid"))?;
    let mut threads: Vec<&str> = paid.lines().collect();
    threads.sort_unstable();
    threads.dedup();
    println!(
        "{} payments, by {} agents",
        paid.lines().count(),
        threads.len()
    );
    Ok(())
}
