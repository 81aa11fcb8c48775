//! `adjutant replay`: replays a session from its log, or compares the log with current requests.

use std::path::PathBuf;

use adjutant::{
    Event, EventKind, Outcome,
    agent::{Agent, LogInfo, Run, Seq},
    llm::{Entry, Origin},
    providers::offline::OfflineModel,
};

use futures_util::StreamExt;

use crate::{
    args::Replay,
    exit::Exit,
    explain,
    follow::View,
    named, plain,
    problem::Problem,
    run_manifest::{self, RunManifest},
    screen::{self, Chatter, Screen},
    store::{Store, StoredRun},
    summary::Took,
    trouble, waits,
    work::work,
};

/// Replays a session, or compares it with the current agent.
pub(crate) fn replay(args: &mut Replay) -> Result<Exit, Problem> {
    work(perform(args))
}

async fn perform(args: &mut Replay) -> Result<Exit, Problem> {
    let store = Store::find(&args.how.at).await?;
    let sessions = store.sessions();
    let info = named::find(&sessions, &args.name).await?;
    let kept = StoredRun {
        store,
        name: info.log.clone(),
    };
    if args.check {
        let run = sessions
            .transcript(&info.log, until(args))
            .await
            .map_err(|error| trouble::journal_problem(&error))?;
        return check(args, &info, &run, kept).await;
    }
    let agent = Agent::new(OfflineModel::new())
        .name(run_manifest::NAME)
        .journal(kept.store.journal())
        .session(kept.name);
    let chatter = if args.how.quiet {
        Chatter::None
    } else {
        Chatter::Lines
    };
    let mut screen = Screen::new(chatter);
    let mut view = View::from_options(&args.how, args.how.schema.is_some());
    let mut events = agent.log().events_after(Seq(0));
    while let Some(event) = events.next().await {
        let event = event.map_err(|error| Problem::from_error(Exit::Failed, &error))?;
        if event.seq > until(args) {
            break;
        }
        if !screen::is_read(write(&event, args, &mut view, &mut screen))? {
            break;
        }
    }
    view.tell_tree(&screen);
    Ok(Exit::Finished)
}

fn until(args: &Replay) -> Seq {
    Seq(args.until.unwrap_or(u64::MAX))
}

/// Shows an event as `run` would have, and the prompt before it.
fn write(
    event: &Event,
    args: &Replay,
    view: &mut View,
    screen: &mut Screen,
) -> std::io::Result<()> {
    if args.how.json {
        return view.write_json(event, screen);
    }
    if event.who.depth == 0
        && let EventKind::EntryAdded { content } = &event.kind
        && let Entry::User(message) = &**content
        && !matches!(message.origin, Origin::Reminder { .. })
    {
        let texts: Vec<&str> = message
            .content
            .iter()
            .filter_map(|content| content.as_text())
            .collect();
        screen.tell(&format!("» {}", plain::line(&texts.join(" "))));
    }
    view.write_lines(event, screen)?;
    if event.who.depth > 0 {
        return Ok(());
    }
    match &event.kind {
        EventKind::RunPaused { result } => {
            if let Outcome::Paused { pauses } = &result.outcome {
                waits::tell(pauses, None, None, screen);
            }
        }
        EventKind::RunFinished { result } => screen.tell(&Took::from_result(result).to_string()),
        _ => {}
    }
    Ok(())
}

/// Lists the differences between current requests and the log's.
async fn check(
    args: &mut Replay,
    info: &LogInfo,
    run: &Run,
    kept: StoredRun,
) -> Result<Exit, Problem> {
    if args.how.models.is_empty() {
        args.how
            .models
            .extend(run.config().map(|config| config.model.to_string()));
    }
    let own = named::directory(info)?.map(PathBuf::from);
    let root = args.how.root.clone().or(own);
    let made = RunManifest::new(&args.how, &root.unwrap_or_else(|| PathBuf::from(".")))?;
    let job = explain::silent(&args.how, made, &kept).await?;
    let replayed = job
        .agent
        .log()
        .replay(Some(until(args)))
        .await
        .map_err(|error| Problem::from_error(Exit::Failed, &error))?;
    let mut text = String::new();
    for divergence in &replayed.divergences {
        for difference in divergence.differences.iter() {
            let at = format!("run {} turn {}", divergence.run, divergence.turn);
            text += &format!("{at}: {}\n", explain::line(difference));
        }
    }
    if !replayed.unrecorded.is_empty() {
        text += &format!(
            "{} turns were recorded without a fingerprint\n",
            replayed.unrecorded.len()
        );
    }
    if text.is_empty() {
        text = format!(
            "records: {}, runs: {}, nothing differs\n",
            replayed.records,
            replayed.run.run()
        );
    }
    screen::write(&text)?;
    Ok(if replayed.divergences.is_empty() {
        Exit::Finished
    } else {
        Exit::Failed
    })
}
