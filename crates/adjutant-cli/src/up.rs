//! `adjutant up`: creates the agents of a directory, and keeps all agents in their desired state.

pub(crate) mod made;
mod shown;
pub(crate) mod view;

use adjutant::{
    Cancel,
    runtime::{
        ErrorKind,
        control::ControlPlane,
        supervisor::{Settings, Supervisor, SupervisorReport},
    },
};

use crate::{
    agent::place::AgentFolder,
    args::agent::Up,
    exit::Exit,
    interrupt, plain,
    problem::Problem,
    screen::{Chatter, Screen, write},
    trouble::runtime_problem,
    work::work,
};

/// Creates agents, and supervises all of them.
pub(crate) fn up(args: &Up) -> Result<Exit, Problem> {
    work(perform(args))
}

async fn perform(args: &Up) -> Result<Exit, Problem> {
    let place = AgentFolder::new(&args.homed, &args.directory);
    let files = made::manifests(&args.directory)?;
    if files.is_empty() && place.entries()?.all.is_empty() {
        let text = format!(
            "there is no manifest here, and no agent: {}",
            args.directory.display()
        );
        return Err(Problem::new(Exit::Usage, text)
            .hint("`adjutant init` writes a manifest that runs at once"));
    }
    let chatter = match (args.quiet, args.json) {
        (true, _) => Chatter::None,
        (false, true) => Chatter::Lines,
        (false, false) => Chatter::Spinner,
    };
    let end = Cancel::new();
    interrupt::listen(end.clone(), chatter)
        .map_err(|error| Problem::new(Exit::Failed, "cannot listen for Ctrl-C").cause(&error))?;
    let asked = asked_to_end(end.clone())?;
    let operator = place.home.operate().map_err(|error| match error.kind() {
        ErrorKind::Busy => runtime_problem(&error)
            .hint("one operator works on a folder of agents; `adjutant agent ps` shows them"),
        _ => runtime_problem(&error),
    })?;
    let backend = place.backend()?;
    let mut screen = Screen::new(chatter);
    made::make(args, &place, &*backend, &files, &screen).await?;
    let settings = match args.max {
        Some(most) => Settings::new().max_running(usize::try_from(most).unwrap_or(usize::MAX)),
        None => Settings::new(),
    };
    let supervisor = Supervisor::new(backend, operator, settings);
    let (notices, table) = (supervisor.notices(), supervisor.table());
    let plane = ControlPlane::bind(&place.home, table.clone())
        .await
        .map_err(|error| runtime_problem(&error))?;
    let plane = plane.page(adjutant_server::PAGE);
    screen.tell(&format!(
        "all agents are asked at http://{}/v1/agents; the token is in control.json",
        plane.address()
    ));
    screen.tell(&format!(
        "`{}` shows them on a page",
        place.command("view --agents")
    ));
    let closed = end.clone();
    let plane = tokio::spawn(plane.serve(async move { closed.cancelled().await }));
    // The second Ctrl-C ends the command.
    let work = tokio::spawn(supervisor.run(end.clone(), Cancel::new()));
    let shown = shown::show(notices, table, args.json, &mut screen).await;
    if shown.is_err() {
        // If the output has no reader, the command ends normally.
        end.cancel();
    }
    let report = work
        .await
        .map_err(|error| Problem::new(Exit::Failed, "the supervisor broke off").cause(&error))?;
    plane.abort();
    let report = report.map_err(|error| runtime_problem(&error))?;
    screen.rest();
    tell(&report, args.json, &screen)?;
    shown?;
    Ok(match (report.left.is_empty(), *asked.borrow()) {
        (false, _) => Exit::Failed,
        (true, true) => Exit::Finished,
        (true, false) => Exit::Cancelled,
    })
}

/// Ends the command on a termination signal, as for services; returns whether one arrived.
pub(crate) fn asked_to_end(end: Cancel) -> Result<tokio::sync::watch::Receiver<bool>, Problem> {
    let (told, asked) = tokio::sync::watch::channel(false);
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut signal = signal(SignalKind::terminate()).map_err(|error| {
            Problem::new(Exit::Failed, "cannot listen for signals").cause(&error)
        })?;
        tokio::spawn(async move {
            if signal.recv().await.is_some() {
                told.send_replace(true);
                end.cancel();
            }
        });
    }
    #[cfg(not(unix))]
    let _ = (told, end);
    Ok(asked)
}

/// Prints the outcome of each agent.
fn tell(report: &SupervisorReport, is_json: bool, screen: &Screen) -> Result<(), Problem> {
    if is_json {
        let left: Vec<_> = report
            .left
            .iter()
            .map(|(name, why)| serde_json::json!({"agent": name, "why": why}))
            .collect();
        let value = serde_json::json!({
            "notice": "ended", "stopped": report.stopped, "idle": report.idle, "left": left,
        });
        return write(&plain::json_line(value)).map(drop);
    }
    let names = |names: &[std::sync::Arc<str>]| names.join(", ");
    if !report.stopped.is_empty() {
        screen.tell(&format!(
            "stopped {}: {}",
            report.stopped.len(),
            names(&report.stopped)
        ));
    }
    if !report.idle.is_empty() {
        screen.tell(&format!(
            "did not run {}: {}",
            report.idle.len(),
            names(&report.idle)
        ));
    }
    for (name, why) in &report.left {
        Problem::new(
            Exit::Failed,
            format!("the agent {name} may still run: {why}"),
        )
        .report();
    }
    Ok(())
}
