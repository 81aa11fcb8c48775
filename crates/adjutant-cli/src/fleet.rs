//! `adjutant worker` and `adjutant fleet`: sessions that any number of workers run.

use std::sync::Arc;

use adjutant::{
    Cancel,
    agent::{DueWork, Lane, LogInfo, LogQuery, Pause, Post, Seq, Waker, Work},
    fleet::{Fleet as Workers, FleetPlacement},
    llm::{Entry, UserMessage},
    runtime::{
        Credentials, Engine, Lead, Overrides, Prompter as _, TrustStore,
        prompt::{Control, check_name},
    },
};
use serde_json::json;

use crate::{
    agent::create,
    args::{AnswerDue, Fleet, PostDue, Retry, StatusOfFleet, Worker},
    consent::Consent,
    exit::Exit,
    interrupt, named, plain,
    problem::Problem,
    resume::answers,
    screen::{Chatter, tell, write},
    store::Store,
    trouble::{journal_problem, runtime_problem},
    up, waits,
    work::work,
};

/// The maximum number of sessions in a list of running, waiting or quarantined ones.
const MAX_SHOWN: usize = 100;

/// Runs queued sessions.
pub(crate) fn worker(args: &Worker) -> Result<Exit, Problem> {
    work(perform(args))
}

/// Runs the subcommand.
pub(crate) fn fleet(command: Fleet) -> Result<Exit, Problem> {
    match command {
        Fleet::Status(args) => work(status(&args)),
        Fleet::Post(args) => work(post(&args)),
        Fleet::Answer(args) => work(answer(&args)),
        Fleet::Retry(args) => work(retry(&args)),
    }
}

async fn perform(args: &Worker) -> Result<Exit, Problem> {
    let resolved = create::resolve(&args.manifest, Overrides::default())?;
    let trusted = TrustStore::for_user();
    let command = format!(
        "adjutant worker --manifest {}",
        plain::word(&args.manifest.to_string_lossy())
    );
    let consent = Consent {
        store: &trusted,
        given: &args.trust,
        command,
        option: "--trust",
    };
    consent.ask(&create::wants(&resolved)?)?;
    let store = Store::open(&args.at).await?;
    let due = due_work(&store)?;
    let credentials = Credentials::from_lookup(&resolved, |name| std::env::var(name).ok());
    let engine = Engine::builder(resolved)
        .credentials(credentials)
        .store(store.opened().clone());
    let engine = engine.placement(FleetPlacement::new(Arc::clone(&due)));
    let engine = engine
        .trusted()
        .build()
        .await
        .map_err(|error| runtime_problem(&error))?;
    let lead = move |info: &LogInfo| match engine.child(info) {
        Some(child) => child.map(Lead::Agent),
        None => engine.lead(&info.log.0),
    };
    let agents = move |info: &LogInfo| match lead(info) {
        Ok(Lead::Agent(agent)) => Ok(agent),
        Ok(_) => {
            Err("agents that hand a conversation on do not work in sessions of workers".to_owned())
        }
        Err(error) => Err(error.to_string()),
    };
    let concurrency = usize::try_from(args.concurrency).unwrap_or(usize::MAX);
    let workers = Workers::new(due, agents)
        .concurrency(concurrency)
        .grace(args.grace);
    let stop = Cancel::new();
    interrupt::listen(stop.clone(), Chatter::Lines)
        .map_err(|error| Problem::new(Exit::Failed, "cannot listen for Ctrl-C").cause(&error))?;
    let asked = up::asked_to_end(stop.clone())?;
    if let Some(notice) = store.notice() {
        tell(&notice);
    }
    tell(&format!(
        "drives sessions that are due; Ctrl-C ends it; `adjutant fleet status{}` shows them",
        store.option()
    ));
    let done = workers.status();
    workers
        .run(stop)
        .await
        .map_err(|error| journal_problem(&error))?;
    tell(&format!(
        "drove {} runs to their ends, {} until they wait",
        done.finish_count(),
        done.park_count()
    ));
    Ok(if *asked.borrow() {
        Exit::Finished
    } else {
        Exit::Cancelled
    })
}

async fn status(args: &StatusOfFleet) -> Result<Exit, Problem> {
    let store = Store::find(&args.at).await?;
    let due = due_work(&store)?;
    let told = due
        .backlog()
        .await
        .map_err(|error| journal_problem(&error))?;
    let shown = shown(&*due).await?;
    if args.json {
        let sessions: Vec<_> = shown
            .iter()
            .map(|info| json!({"name": info.log, "work": info.work, "owner": info.owner}))
            .collect();
        write(&plain::json_line(
            json!({"backlog": told, "sessions": sessions}),
        ))?;
        return Ok(Exit::Finished);
    }
    let oldest = told
        .oldest
        .map(|it| format!(" (for {} s at most)", it.as_secs()))
        .unwrap_or_default();
    let mut text = format!(
        "due {}{oldest}  at work {}  waiting {}  set aside {}\n",
        told.due, told.at_work, told.parked, told.aside
    );
    for info in &shown {
        let line = match &info.work {
            Some(Work::Open) => {
                // Its process and machine come first.
                let owner = info
                    .owner
                    .as_deref()
                    .unwrap_or_default()
                    .split(',')
                    .next()
                    .unwrap_or_default();
                format!(
                    "works   {}  {}",
                    plain::word(&info.log.0),
                    plain::line(owner)
                )
            }
            Some(Work::Parked { on, .. }) => {
                format!("waits   {}  {}", plain::word(&info.log.0), plain::line(on))
            }
            Some(Work::Aside { why }) => {
                format!("aside   {}  {}", plain::word(&info.log.0), plain::line(why))
            }
            _ => continue,
        };
        text += &line;
        text.push('\n');
    }
    write(&text)?;
    Ok(Exit::Finished)
}

/// Returns the latest sessions that are running, waiting or quarantined.
async fn shown(due: &dyn DueWork) -> Result<Vec<LogInfo>, Problem> {
    let (mut shown, mut query) = (
        Vec::new(),
        LogQuery {
            limit: 1_000,
            ..LogQuery::default()
        },
    );
    loop {
        let page = due
            .list(&query)
            .await
            .map_err(|error| journal_problem(&error))?;
        let stands = |info: &LogInfo| match info.work {
            Some(Work::Open) => info.is_owned,
            Some(Work::Parked { .. } | Work::Aside { .. }) => true,
            _ => false,
        };
        shown.extend(page.logs.into_iter().filter(stands));
        if shown.len() >= MAX_SHOWN || page.next.is_none() {
            shown.truncate(MAX_SHOWN);
            return Ok(shown);
        }
        query.after = page.next;
    }
}

async fn post(args: &PostDue) -> Result<Exit, Problem> {
    if args.text.trim().is_empty() {
        return Err(Problem::new(Exit::Usage, "the message is empty"));
    }
    let log = check_name(&args.name).map_err(|error| runtime_problem(&error))?;
    let store = Store::open(&args.at).await?;
    let due = due_work(&store)?;
    let content = Entry::from(UserMessage::text(args.text.as_str()));
    due.say(
        &log,
        Post::Message {
            lane: Lane::FollowUp,
            content,
        },
    )
    .await
    .map_err(|error| journal_problem(&error))?;
    store.settle(&log).await;
    let (name, option) = (plain::word(&args.name), store.option());
    let info = due
        .info(&log)
        .await
        .map_err(|error| journal_problem(&error))?;
    tell(&match &info.work {
        Some(Work::Aside { why }) => format!(
            "the session is set aside, so no worker hears it yet: {}; `adjutant fleet retry {name}{option}` has it driven again",
            plain::line(why)
        ),
        _ => format!("a worker hears it: `adjutant sessions show {name}{option}`"),
    });
    Ok(Exit::Finished)
}

async fn answer(args: &AnswerDue) -> Result<Exit, Problem> {
    let store = Store::find(&args.at).await?;
    let sessions = store.sessions();
    let info = named::find(&sessions, &args.name).await?;
    let run = sessions
        .transcript(&info.log, Seq(u64::MAX))
        .await
        .map_err(|error| journal_problem(&error))?;
    let pauses: Vec<Arc<Pause>> = run.pauses().cloned().collect();
    let given = answers::answers(&args.given, &pauses)?;
    if given.is_empty() {
        let waits: Vec<String> = pauses
            .iter()
            .map(|pause| waits::shown(pause, None).0)
            .collect();
        let text = if waits.is_empty() {
            "nothing waits here".to_owned()
        } else {
            format!("waits: {}", waits.join("; "))
        };
        return Err(
            Problem::new(Exit::Waits, text).hint("--approve, --deny or --answer ID=TEXT answers")
        );
    }
    answers::show(&args.given.approve, None, &pauses, &given)?;
    let given = Control::Answer { answers: given };
    up::view::prompter(&store)
        .control(Some(&info.log.0), given)
        .await
        .map_err(|error| runtime_problem(&error))?;
    tell("a worker hears it");
    Ok(Exit::Finished)
}

async fn retry(args: &Retry) -> Result<Exit, Problem> {
    let store = Store::find(&args.at).await?;
    let info = named::find(&store.sessions(), &args.name).await?;
    let was_aside = due_work(&store)?
        .retry(&info.log)
        .await
        .map_err(|error| journal_problem(&error))?;
    tell(if was_aside {
        "a worker drives it again"
    } else {
        "it was not set aside"
    });
    Ok(Exit::Finished)
}

fn due_work(store: &Store) -> Result<Arc<dyn DueWork>, Problem> {
    store
        .opened()
        .due_work()
        .map_err(|error| runtime_problem(&error))
}
