//! `adjutant resume`: continues a run that waits or was interrupted, or starts one for messages in the inbox.

pub(crate) mod answers;

use std::{path::PathBuf, sync::Arc, time::SystemTime};

use adjutant::{
    CancelBy, Continue,
    agent::{JournalErrorKind, LogInfo, Pause, PauseId, Post, Posted, Run, Seq},
};

use crate::{
    args::Resume,
    chosen_model::{ChosenModel, Tape},
    ending,
    exit::Exit,
    explain,
    job::Job,
    named, plain,
    problem::Problem,
    run,
    run_manifest::RunManifest,
    screen::Screen,
    store::{Store, StoredRun},
    trouble, waits,
    work::work,
};

/// Continues a run.
pub(crate) fn resume(args: &mut Resume) -> Result<Exit, Problem> {
    work(perform(args))
}

/// A session, and the state of its latest run.
struct LeftRun {
    info: LogInfo,
    run: Run,
    kept: StoredRun,
}

async fn perform(args: &mut Resume) -> Result<Exit, Problem> {
    let left = look(args).await?;
    adopt(args, &left)?;
    let is_own = named::directory(&left.info)?.is_some();
    let root = args.how.root.clone().unwrap_or_else(|| PathBuf::from("."));
    let made =
        RunManifest::new(&args.how, &root)?.asking(named::asked(&left.info).map(str::to_owned))?;
    made.hands
        .rules
        .set_mode(named::strict(args.how.mode, Some(&left.info)));
    if args.explain {
        return explain::explain(&args.how, made, &left.kept, &left.run).await;
    }
    let posted = left
        .kept
        .store
        .journal()
        .read_posts(&left.info.log, left.run.last_consumed())
        .await;
    let posted = posted.map_err(|error| trouble::journal_problem(&error))?;
    let is_open = left.run.is_open();
    if !is_open && (args.given.is_some() || !is_said(&left.run, &posted)) {
        return Err(closed(&left.kept));
    }
    let pauses: Vec<Arc<Pause>> = left.run.pauses().cloned().collect();
    let given = answers::answers(&args.given, &pauses)?;
    let heard = heard(&left.run, posted);
    let is_answered = |pause: &Arc<Pause>| {
        let given = given.iter().any(|it| it.pause == pause.id);
        given || heard.contains(&pause.id) || pause.is_late(now_ms())
    };
    let open: Vec<&Arc<Pause>> = pauses.iter().filter(|pause| !is_answered(pause)).collect();
    let goes_on = open.is_empty() || !given.is_empty() || !heard.is_empty();
    if goes_on {
        // Before Ctrl-C is handled, so that Ctrl-C ends the question and the command.
        answers::show(&args.given.approve, Some(&root), &pauses, &given)?;
    }
    let (cancel, chatter) = run::begin(args.how.quiet, args.how.json)?;
    let mut screen = Screen::new(chatter);
    made.tell(&screen);
    if !goes_on {
        waits::tell(open, Some(&root), Some(&left.kept), &screen);
        return Ok(Exit::Waits);
    }
    let tape = Tape {
        record: None,
        played: None,
    };
    let model = tokio::select! {
        model = ChosenModel::new(&args.how, made.model(), tape) => model?,
        () = cancel.cancelled() => return Ok(Exit::Cancelled),
    };
    let store = left.kept.store.clone();
    if !left.info.is_owned || args.how.take_over {
        run::ask(&store.sessions(), &left.info, &made).await?;
    }
    if !is_open {
        screen.tell("a run begins on what was posted");
    }
    let mut job = Job::new(
        &args.how,
        made,
        model,
        cancel,
        Some(&store),
        Some(left.kept),
    )
    .await?;
    // A resumed run keeps its output schema.
    job.wants_output = is_open && left.run.output().is_some();
    take(&job, &screen).await?;
    let resumed = if is_open {
        job.agent.resume(given)
    } else {
        job.agent.run(Continue)
    };
    // The author of an imported session must not control the agent.
    let resumed = if is_own || !is_open {
        resumed
    } else {
        resumed.instruct_anew()
    };
    let running = resumed
        .stream()
        .map_err(|error| Problem::from_error(Exit::Usage, &error))?;
    // The options of a run apply to new runs only; a resumed one is stopped by its handle.
    let (stopper, cancel, until) = (running.stopper(), job.cancel.clone(), job.until);
    tokio::spawn(async move {
        tokio::select! {
            () = cancel.cancelled() => stopper.stop(CancelBy::User),
            () = ending::overdue(until) => stopper.stop(CancelBy::Deadline),
        }
    });
    let ended = run::finish(running, &job, &mut screen).await;
    job.close().await;
    ended
}

/// Finds the session to resume, and reads its state.
async fn look(args: &Resume) -> Result<LeftRun, Problem> {
    let store = Store::find(&args.how.at).await?;
    let sessions = store.sessions();
    let info = match &args.name {
        Some(name) => named::find(&sessions, name).await?,
        None => {
            let root = args.how.root.clone().unwrap_or_else(|| PathBuf::from("."));
            let none = || {
                Problem::new(Exit::Usage, "this directory has no session")
                    .hint("`adjutant sessions list`")
            };
            named::newest(&sessions, &root)
                .await?
                .info
                .ok_or_else(none)?
        }
    };
    let run = sessions
        .transcript(&info.log, Seq(u64::MAX))
        .await
        .map_err(|error| trouble::journal_problem(&error))?;
    let kept = StoredRun {
        store,
        name: info.log.clone(),
    };
    Ok(LeftRun { info, run, kept })
}

/// Takes missing options from the session: the directory and the model.
///
/// # Errors
/// `Usage` if the session has no directory because it was imported, and not both are given: otherwise the author of the
/// file would choose the files to read and the model that receives them.
fn adopt(args: &mut Resume, left: &LeftRun) -> Result<(), Problem> {
    let (own, how) = (named::directory(&left.info)?, &mut args.how);
    let model = left.run.config().map(|config| config.model.to_string());
    if own.is_none() && (how.root.is_none() || how.models.is_empty()) {
        let text = format!(
            "the session has no directory, so the directory and the model must be named: {}",
            left.info.log
        );
        let (name, store) = (plain::word(&left.info.log.0), left.kept.store.option());
        let model = model.map_or_else(
            || "MODEL".to_owned(),
            |model| plain::word(&plain::whole(&model)),
        );
        let hint = format!("adjutant resume {name}{store} --root DIR --model {model}");
        return Err(Problem::new(Exit::Usage, text).hint(hint));
    }
    how.root = how.root.take().or_else(|| own.map(PathBuf::from));
    if how.models.is_empty() {
        how.models.extend(model);
    }
    Ok(())
}

/// True if there is an unprocessed message: in the inbox, or in the log.
fn is_said(run: &Run, posted: &[Posted]) -> bool {
    run.waiting().pending_messages().next().is_some()
        || posted
            .iter()
            .any(|it| matches!(it.post, Post::Message { .. }))
}

/// Returns the pauses that other processes have answered since; all of them after a stop request.
fn heard(run: &Run, posted: Vec<Posted>) -> Vec<PauseId> {
    if posted
        .iter()
        .any(|posted| matches!(posted.post, Post::Cancel))
    {
        return run.pauses().map(|pause| pause.id.clone()).collect();
    }
    let answered = |post| match post {
        Post::Answer { pause, .. } => Some(pause),
        _ => None,
    };
    posted
        .into_iter()
        .filter_map(|posted| answered(posted.post))
        .collect()
}

/// Acquires the session. Waits once for the lease of a dead process to expire, if there is no other way to detect that
/// it is dead.
async fn take(job: &Job<'_>, screen: &Screen) -> Result<(), Problem> {
    let Err(error) = job.agent.log().open().await else {
        return Ok(());
    };
    let owned = error
        .journal_error()
        .filter(|error| error.kind == JournalErrorKind::Owned);
    let Some(wait) = owned.and_then(|error| error.retry_after()) else {
        return Err(ending::failed(job, &error));
    };
    screen.tell(&format!(
        "another process has the session; waiting {:.1} s for it to let go",
        wait.as_secs_f64()
    ));
    tokio::select! {
        () = tokio::time::sleep(wait) => {}
        () = job.cancel.cancelled() => return Err(ending::failed(job, &error)),
    }
    job.agent
        .log()
        .open()
        .await
        .map_err(|error| ending::failed(job, &error))
}

fn closed(kept: &StoredRun) -> Problem {
    let problem = Problem::new(
        Exit::Usage,
        format!(
            "no run of the session is open, and nothing was posted to it: {}",
            kept.name
        ),
    );
    problem.hint(format!(
        "adjutant run --session {}{} PROMPT",
        plain::word(&kept.name.0),
        kept.store.option()
    ))
}

fn now_ms() -> u64 {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
