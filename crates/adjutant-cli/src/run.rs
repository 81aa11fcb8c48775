//! `adjutant run`: one prompt, one agent, one run, with or without a stored session.

use std::{path::Path, sync::Arc};

use adjutant::{
    Cancel, Running,
    agent::{Agent, JournalErrorKind, LogId, LogInfo, Seq, SessionMeta, Sessions},
    runtime::manifest::Durability,
};

use crate::{
    args::Run,
    chosen_model::{ChosenModel, Tape},
    ending,
    exit::Exit,
    follow::{Followed, Saving, View, follow},
    interrupt,
    job::Job,
    named, plain,
    problem::Problem,
    prompt,
    repository::Repository,
    retention,
    run_manifest::RunManifest,
    screen::{Chatter, Screen},
    store::{self, Store, StoredRun},
    trouble, waits, when,
    work::work,
};

/// The maximum number of characters of a title.
const MAX_TITLE: usize = 60;

/// True if the session of a run is stored.
fn is_kept(args: &Run) -> bool {
    let is_named = args.session.is_some() || args.newest;
    is_named || (!args.ephemeral && args.replay.is_none() && Store::has_place(&args.how.at))
}

/// Runs an agent on a prompt.
pub(crate) fn run(args: &Run) -> Result<Exit, Problem> {
    let is_kept = is_kept(args);
    let unkept = [
        ("--ask", !args.how.ask.is_empty()),
        ("--take-over", args.how.take_over),
    ];
    let unkept = unkept
        .into_iter()
        .chain([("--durability", args.how.durability.is_some())]);
    if let Some((option, _)) = unkept.into_iter().find(|(_, is_said)| *is_said && !is_kept) {
        let problem = Problem::new(
            Exit::Usage,
            format!("{option} needs a session that is kept"),
        );
        return Err(problem.hint("leave --ephemeral and --replay out"));
    }
    let root = args.how.root.as_deref().unwrap_or(Path::new("."));
    let made = RunManifest::new(&args.how, root)?;
    let prompt = prompt::read(args.prompt.as_deref(), &args.files, args.no_stdin)?;
    work(perform(args, prompt, root, made))
}

async fn perform(
    args: &Run,
    prompt: String,
    root: &Path,
    mut made: RunManifest,
) -> Result<Exit, Problem> {
    let how = &args.how;
    let (cancel, chatter) = begin(how.quiet, how.json)?;
    let tape = Tape {
        record: args.record.as_deref(),
        played: args.replay.as_deref(),
    };
    let model = tokio::select! {
        model = ChosenModel::new(how, made.model(), tape) => model?,
        () = cancel.cancelled() => return Ok(Exit::Cancelled),
    };
    model.must_be_chosen()?;
    let mut screen = Screen::new(chatter);
    model.notices.iter().for_each(|line| screen.tell(line));
    made.tell(&screen);
    let is_named = args.session.is_some() || args.newest;
    let needs_store = is_named
        || how.memory.is_some()
        || how.agents.board.is_some()
        || (is_kept(args) && store::named(&how.at).is_some());
    let store = match needs_store || is_kept(args) {
        true => match Store::open(&how.at).await {
            Ok(store) => Some(store),
            Err(problem) if needs_store => return Err(problem),
            Err(problem) => {
                let why = problem.line();
                screen.tell(&format!("warning: the session is not stored: {why}"));
                None
            }
        },
        false => None,
    };
    if needs_store {
        let notices = store.iter().filter_map(Store::notice);
        notices.for_each(|line| screen.tell(&line));
    }
    let kept = match &store {
        Some(store) if is_kept(args) => {
            let choice = SessionChoice {
                args,
                root,
                store,
                prompt: &prompt,
            };
            Some(choice.open(&mut made, &screen).await?)
        }
        _ => None,
    };
    let job = Job::new(how, made, model, cancel, store.as_ref(), kept).await?;
    let running = job.run(prompt.into()).stream();
    let running = running.map_err(|error| Problem::from_error(Exit::Usage, &error))?;
    let ended = finish(running, &job, &mut screen).await;
    job.close().await;
    if let Some(store) = store.filter(|_| is_kept(args))
        && let Err(error) = retention::prune(&store).await
    {
        let problem = trouble::journal_problem(&error).line();
        screen.tell(&format!("warning: old sessions are not deleted: {problem}"));
    }
    ended
}

/// Handles Ctrl-C from now on, and prepares the messages on standard error.
pub(crate) fn begin(is_quiet: bool, is_json: bool) -> Result<(Cancel, Chatter), Problem> {
    let chatter = match (is_quiet, is_json) {
        (true, _) => Chatter::None,
        (false, true) => Chatter::Lines,
        (false, false) => Chatter::Spinner,
    };
    let cancel = Cancel::new();
    interrupt::listen(cancel.clone(), chatter)
        .map_err(|error| Problem::new(Exit::Failed, "cannot listen for Ctrl-C").cause(&error))?;
    Ok((cancel, chatter))
}

/// Follows a run to its end, and prints how it ended.
pub(crate) async fn finish(
    running: Running,
    job: &Job<'_>,
    screen: &mut Screen,
) -> Result<Exit, Problem> {
    let saving = if job.kept.is_some() {
        Saving::Soon
    } else {
        Saving::Never
    };
    let mut view = View::from_options(job.how, job.wants_output);
    let ended = follow(running, job.how, saving, &mut view, screen).await;
    screen.rest();
    view.tell_tree(screen);
    match ended? {
        Followed::Unread => Ok(Exit::Finished),
        Followed::ToEnd(running) => ending::end(*running, job, screen).await,
    }
}

/// The choice of a session for a run.
struct SessionChoice<'a> {
    args: &'a Run,
    root: &'a Path,
    store: &'a Store,
    prompt: &'a str,
}

impl SessionChoice<'_> {
    /// Opens the session that the run continues, or creates one.
    async fn open(&self, made: &mut RunManifest, screen: &Screen) -> Result<StoredRun, Problem> {
        let Self {
            args,
            root,
            store,
            prompt,
        } = *self;
        let sessions = store.sessions();
        let is_named = args.session.is_some() || args.newest;
        let name = match &args.session {
            Some(name) => LogId::from(name.as_str()),
            None if args.newest => {
                let newest = named::newest(&sessions, root).await?;
                newest.notice.iter().for_each(|line| screen.tell(line));
                newest.info.map_or_else(|| new_name(root), |info| info.log)
            }
            None => new_name(root),
        };
        let kept = StoredRun {
            store: store.clone(),
            name,
        };
        let name = plain::line(&kept.name.0);
        match sessions.journal().info(&kept.name).await {
            Ok(info) => {
                if args.newest {
                    screen.tell(&format!("session: {name}"));
                }
                look(&sessions, &info, &kept, screen).await?;
                if args.session.is_some() && info.about.labels.contains(retention::LABEL) {
                    // A session that the user names is not deleted automatically.
                    let labeled = sessions.label(&kept.name, &[], &[retention::LABEL]).await;
                    labeled.map_err(|error| trouble::journal_problem(&error))?;
                }
                made.hands
                    .rules
                    .set_mode(named::strict(args.how.mode, Some(&info)));
                if !info.is_owned || args.how.take_over {
                    ask(&sessions, &info, made).await?;
                }
            }
            Err(error) if error.kind == JournalErrorKind::Missing => {
                let mut about = about(root, made)?;
                about.title = title(prompt);
                if args.session.is_none() {
                    about.labels.insert(retention::LABEL.into());
                    // A crash of the program loses nothing, a crash of the machine may lose the last records.
                    let durability = &mut made.manifest.sessions.durability;
                    durability.get_or_insert(Durability::Async);
                }
                sessions
                    .create(&kept.name, about)
                    .await
                    .map_err(|error| trouble::session_problem(&error, &name))?;
                if is_named {
                    screen.tell(&format!("session: {name} (new)"));
                }
            }
            Err(error) => return Err(trouble::journal_problem(&error)),
        }
        Ok(kept)
    }
}

/// Returns the metadata for a new session of a directory.
pub(crate) fn about(root: &Path, made: &RunManifest) -> Result<SessionMeta, Problem> {
    let mut about = SessionMeta {
        agent: Some(made.name().into()),
        ..SessionMeta::default()
    };
    about.labels.insert(named::label(root)?.into());
    let repository = Repository::find(root).and_then(|repository| repository.label());
    about.labels.extend(repository.map(Into::into));
    about
        .labels
        .extend(made.asked.iter().map(|tool| named::asking(tool).into()));
    Ok(about)
}

/// Returns the title of a session: the first line of its first prompt.
pub(crate) fn title(prompt: &str) -> Option<Arc<str>> {
    let line = prompt.lines().find(|line| !line.trim().is_empty())?;
    let line = plain::line(line.trim());
    let short: String = line.chars().take(MAX_TITLE).collect();
    let more = if short.len() < line.len() { "…" } else { "" };
    Some(format!("{short}{more}").into())
}

/// Checks the state of a session's latest run: a waiting run must not be skipped.
async fn look(
    sessions: &Sessions,
    info: &LogInfo,
    kept: &StoredRun,
    screen: &Screen,
) -> Result<(), Problem> {
    if info.is_owned {
        return Ok(());
    }
    let run = sessions
        .transcript(&kept.name, Seq(u64::MAX))
        .await
        .map_err(|error| trouble::journal_problem(&error))?;
    if !run.is_open() {
        return Ok(());
    }
    if run.pauses().next().is_none() {
        screen.tell("notice: the last run of the session was left in its middle, and is closed");
        return Ok(());
    }
    waits::tell(
        run.pauses(),
        named::directory(info)?.map(Path::new),
        None,
        screen,
    );
    Err(waits::waiting(kept))
}

/// Stores with the session which tools' calls wait for approval from now on.
pub(crate) async fn ask(
    sessions: &Sessions,
    info: &LogInfo,
    made: &RunManifest,
) -> Result<(), Problem> {
    let (old, new) = (named::asked(info).map(str::to_owned), &made.asked);
    let old: Vec<String> = old
        .filter(|tool| !new.contains(tool))
        .map(|tool| named::asking(&tool))
        .collect();
    let new: Vec<String> = new.iter().map(|tool| named::asking(tool)).collect();
    if old.is_empty()
        && new
            .iter()
            .all(|label| info.about.labels.contains(label.as_str()))
    {
        return Ok(());
    }
    let [new, old] =
        [&new, &old].map(|labels| labels.iter().map(String::as_str).collect::<Vec<_>>());
    sessions
        .label(&info.log, &new, &old)
        .await
        .map_err(|error| trouble::journal_problem(&error))
}

/// Returns a name for a new session of a directory.
pub(crate) fn new_name(root: &Path) -> LogId {
    let root = root.canonicalize().unwrap_or_default();
    let folder = root
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let is_plain = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let folder: String = folder.chars().filter(is_plain).take(40).collect();
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    let day = when::day(u64::try_from(now.as_millis()).unwrap_or_default());
    // Agent ids are unique, but ids of the same minute have the same prefix.
    let id = Agent::new(adjutant::providers::offline::OfflineModel::new())
        .session_id()
        .clone();
    let own = id.0.len().checked_sub(8).and_then(|at| id.0.get(at..));
    LogId::from(format!("{folder}-{day}-{}", own.unwrap_or(&id.0)))
}
