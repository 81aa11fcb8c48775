//! `adjutant` without a command: a conversation on a terminal, in a stored session.

pub(crate) mod ask;
mod attach;
mod command;
mod diff;
mod fold;
mod stretch;

use std::{
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use adjutant::{
    Cancel, EventKind,
    agent::{Agent, LogId, LogInfo, Run, Seq, SessionMeta},
    llm::Entry,
    providers::offline::OfflineModel,
    toolkit::AccessMode,
};
use futures_util::StreamExt;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{mpsc, oneshot},
};

use self::{
    ask::Question,
    fold::Fold,
    stretch::{Next, Stretch},
};
use crate::{
    args,
    chosen_model::{ChosenModel, Tape},
    exit::Exit,
    interrupt::Presses,
    job::Job,
    named,
    paper::{
        Paper,
        input::{Input, Typed},
        style::Style,
    },
    plain,
    problem::Problem,
    run,
    run_manifest::{self, RunManifest},
    screen::Screen,
    store::{self, Store, StoredRun},
    summary::Took,
    trouble,
    work::work,
};

/// The maximum number of characters of earlier messages that are printed again.
const MAX_RECALLED: usize = 2_000;

/// Runs the conversation until the user leaves.
pub(crate) fn talk(args: &args::Talk) -> Result<Exit, Problem> {
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        let problem = Problem::new(Exit::Usage, "a conversation needs a terminal");
        return Err(
            problem.hint("`adjutant run PROMPT` needs none; `adjutant --help` shows all commands")
        );
    }
    work(converse(args))
}

/// The parts of a conversation that stay the same while models and sessions change.
struct Talk<'a> {
    args: &'a args::Talk,
    root: PathBuf,
    store: Store,
    name: LogId,
    models: Vec<String>,
    /// The mode that the user set during the conversation.
    mode: Option<AccessMode>,
    /// The tools that need an approval in the session.
    asked: Vec<String>,
    /// The previous state of the session; `None` if it is new, or once it was continued.
    left: Option<Run>,
    /// The record to which files were restored since the last run.
    undone: Option<Seq>,
    /// The metadata of the session that begins with the first prompt.
    about: Option<SessionMeta>,
    is_greeted: bool,
    /// The usage of its runs in this process.
    took: Option<Took>,
    /// The session that is continued, and its last record before.
    earlier: Option<(LogId, Seq)>,
    /// A notice about the choice of the session.
    notice: Option<String>,
}

async fn converse(args: &args::Talk) -> Result<Exit, Problem> {
    let root = args.root.clone().unwrap_or_else(|| PathBuf::from("."));
    let store = if args.ephemeral {
        Store::in_memory()
    } else {
        Store::open(&args.at).await?
    };
    let mut talk = Talk::new(args, root, store).await?;
    // Before the terminal changes: errors of the command line are printed as usual.
    let mut how = args.how(&talk.models);
    let mut made = Some(talk.make(&how).await?);
    let history = if args.ephemeral {
        None
    } else {
        store::usual()
            .ok()
            .map(|file| file.with_file_name("history"))
    };
    let style = Style::from_env();
    let mut input = Input::new(style, history, &command::NAMES, command::is_end)?;
    listen(&input)?;
    let mut screen = Screen::with_paper(Paper::new(
        style,
        input.pen.clone(),
        Arc::clone(&input.board),
    ));
    let mut next = Next::Again;
    let ended = loop {
        if let Next::Model(names) = &next {
            how = args.how(
                &names
                    .split(',')
                    .map(|name| name.trim().to_owned())
                    .collect::<Vec<_>>(),
            );
        }
        let stretch = match made.take() {
            Some(made) => Ok(made),
            None => talk.make(&how).await,
        };
        let job = match stretch {
            Ok((made, model)) => talk.job(&how, made, model, &screen).await,
            Err(problem) => Err(problem),
        };
        match job {
            Ok((job, asked, wished)) => {
                talk.models.clone_from(&how.models);
                input.begin();
                next = Stretch::new(&mut talk, &job, asked, wished, &mut input, &mut screen)
                    .go()
                    .await;
                job.close().await;
                if matches!(next, Next::Leave) {
                    break Ok(Exit::Finished);
                }
            }
            // The named model is not available: the previous one continues.
            Err(problem) if matches!(next, Next::Model(_)) => {
                screen.insist(problem.to_string().trim_end());
                (next, how) = (Next::Again, args.how(&talk.models));
            }
            // The terminal is restored below, and the problem printed after that.
            Err(problem) => break Err(problem),
        }
    };
    if args.ephemeral {
        talk.store.forget_changes();
    }
    input.finish();
    if talk.took.is_some()
        && let Some(took) = talk.total().await
    {
        let again = if args.ephemeral {
            String::new()
        } else {
            let root = talk.root.to_string_lossy();
            // The conversation may have moved to a copy of the files.
            let is_here = args.root.as_deref().unwrap_or(Path::new(".")) == talk.root;
            let root = if is_here {
                String::new()
            } else {
                format!(" --root {}", plain::word(&plain::whole(&root)))
            };
            format!(
                "; `adjutant -c{root}` goes on with {}",
                plain::line(&talk.name.0)
            )
        };
        // Overwrites the input line: its thread would print this too late.
        let _ = writeln!(io::stdout().lock(), "\r\x1b[Kin all: {took}{again}");
    }
    ended
}

/// Handles Ctrl-C while no line is read, and signals that request the end of the command.
fn listen(input: &Input) -> Result<(), Problem> {
    let wrong = |error| Problem::new(Exit::Failed, "cannot listen for Ctrl-C").cause(&error);
    let (mut presses, sender) = (Presses::new().map_err(wrong)?, input.sender.clone());
    let mut ends = signal(SignalKind::terminate()).map_err(wrong)?;
    let ending = sender.clone();
    tokio::spawn(async move {
        ends.recv().await;
        // There is no receiver if the conversation is already over.
        let _ = ending.send(Typed::End);
    });
    tokio::spawn(async move {
        loop {
            presses.next().await;
            if sender.send(Typed::Interrupt).is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// The parts of a stretch: its job, the questions of its runs, and the request to compact.
type Made<'h> = (Job<'h>, mpsc::UnboundedReceiver<Question>, Arc<AtomicBool>);

impl<'a> Talk<'a> {
    /// Finds the session to continue, or creates a new name.
    async fn new(args: &'a args::Talk, root: PathBuf, store: Store) -> Result<Self, Problem> {
        let sessions = store.sessions();
        let mut notice = None;
        let info = match &args.session {
            Some(name) => match sessions.journal().info(&LogId::from(name.as_str())).await {
                Ok(info) => Some(info),
                Err(error) if error.kind == adjutant::agent::JournalErrorKind::Missing => None,
                Err(error) => return Err(trouble::journal_problem(&error)),
            },
            None if args.newest => {
                let newest = named::newest(&sessions, &root).await?;
                notice = newest.notice;
                newest.info
            }
            None => None,
        };
        let name = match (&info, &args.session) {
            (Some(info), _) => info.log.clone(),
            (None, Some(name)) => LogId::from(name.as_str()),
            (None, None) => run::new_name(&root),
        };
        let (mut left, mut asked) = (None, Vec::new());
        if let Some(info) = &info {
            must_be_free(info)?;
            asked.extend(named::asked(info).map(str::to_owned));
            let run = sessions.transcript(&info.log, Seq(u64::MAX)).await;
            left = Some(run.map_err(|error| trouble::journal_problem(&error))?);
        }
        let mut models = args.models.clone();
        if models.is_empty() {
            models.extend(
                left.as_ref()
                    .and_then(Run::config)
                    .map(|config| config.model.to_string()),
            );
        }
        Ok(Self {
            args,
            root,
            store,
            name,
            models,
            mode: Some(named::strict(args.mode, info.as_ref())),
            asked,
            left,
            undone: None,
            about: None,
            is_greeted: false,
            took: None,
            earlier: info.map(|info| (info.log, info.head)),
            notice,
        })
    }

    /// Returns the usage of all runs of the session, including earlier processes.
    async fn total(&mut self) -> Option<Took> {
        if let Some((log, last)) = self.earlier.take() {
            let agent = Agent::new(OfflineModel::new())
                .name(run_manifest::NAME)
                .journal(self.store.journal())
                .session(log);
            let mut events = agent.log().events_after(Seq(0));
            // A log that cannot be read is reported by its next run.
            while let Some(Ok(event)) = events.next().await {
                if event.seq > last {
                    break;
                }
                if let EventKind::RunFinished { result } = &event.kind
                    && event.who.depth == 0
                {
                    let took = Took::from_result(result);
                    self.took = Some(self.took.map_or(took, |all| all.and(took)));
                }
            }
        }
        self.took
    }

    /// Builds the manifest and the model of a stretch.
    async fn make(&self, how: &args::How) -> Result<(RunManifest, ChosenModel), Problem> {
        let made = RunManifest::new(how, &self.root)?.asking(self.asked.iter().cloned())?;
        // The mode may have changed since the command line was read.
        made.hands.rules.set_mode(self.mode.unwrap_or_default());
        let model = ChosenModel::new(
            how,
            made.model(),
            Tape {
                record: None,
                played: None,
            },
        )
        .await?;
        Ok((made, model))
    }

    /// Creates the agent of a stretch, which asks on the terminal.
    async fn job<'h>(
        &mut self,
        how: &'h args::How,
        made: RunManifest,
        model: ChosenModel,
        screen: &Screen,
    ) -> Result<Made<'h>, Problem> {
        if !std::mem::replace(&mut self.is_greeted, true) {
            self.greet(&made, &model, screen);
        }
        if self.left.is_none() && self.store.journal().info(&self.name).await.is_err() {
            self.about = Some(run::about(&self.root, &made)?);
        }
        let kept = StoredRun {
            store: self.store.clone(),
            name: self.name.clone(),
        };
        let mut job = Job::new(
            how,
            made,
            model,
            Cancel::new(),
            Some(&self.store),
            Some(kept),
        )
        .await?;
        let (questions, asked) = mpsc::unbounded_channel();
        let wished = Arc::new(AtomicBool::new(false));
        job.agent = job
            .agent
            .effect(Fold::new(Arc::clone(&wished)))
            .responder(move |_, pause| {
                let (answer, answered) = oneshot::channel();
                let sent = questions.send(Question {
                    pause: Arc::new(pause),
                    answer,
                });
                async move {
                    sent.ok()?;
                    answered.await.ok()
                }
            });
        Ok((job, asked, wished))
    }

    /// Prints the model, the directory, and the earlier messages.
    fn greet(&self, made: &RunManifest, model: &ChosenModel, screen: &Screen) {
        self.notice.iter().for_each(|line| screen.tell(line));
        let place = self
            .root
            .canonicalize()
            .unwrap_or_else(|_| self.root.clone());
        let (id, place) = (
            &model.model.info().id,
            plain::line(&place.to_string_lossy()),
        );
        screen.tell(&format!(
            "adjutant {} · {id} · {place}",
            env!("CARGO_PKG_VERSION")
        ));
        let name = plain::line(&self.name.0);
        screen.tell(&match (&self.left, self.args.ephemeral) {
            (_, true) => "nothing is kept; /help shows the commands".to_owned(),
            (None, _) => format!("session: {name} (new); /help shows the commands"),
            (Some(_), _) => format!("session: {name}; /help shows the commands"),
        });
        model.notices.iter().for_each(|line| screen.tell(line));
        self.store
            .notice()
            .iter()
            .for_each(|line| screen.tell(line));
        made.tell(screen);
        let Some(left) = &self.left else { return };
        let newest = |found: fn(&Entry) -> bool| {
            left.history()
                .iter()
                .rev()
                .map(|stored| &stored.entry)
                .find(|entry| found(entry))
                .map(|entry| entry.to_text())
        };
        let user = newest(|entry| matches!(entry, Entry::User(_)));
        let reply =
            newest(|entry| matches!(entry, Entry::Turn(turn) if !turn.reply().text().is_empty()));
        for (who, text) in [("you", user), ("adjutant", reply)] {
            let Some(text) = text else { continue };
            let end = text
                .char_indices()
                .nth(MAX_RECALLED)
                .map_or(text.len(), |(at, _)| at);
            let cut = if end < text.len() { "…" } else { "" };
            screen.tell(&format!("{who}: {}{cut}", &text[..end]));
        }
    }

    /// Returns the directory of the conversation.
    fn root(&self) -> &Path {
        &self.root
    }
}

/// # Errors
/// `Usage` if another process uses the session, or if its directory is unknown.
pub(crate) fn must_be_free(info: &LogInfo) -> Result<(), Problem> {
    let name = plain::word(&info.log.0);
    if info.is_owned {
        let problem = Problem::new(
            Exit::Usage,
            format!("another process works in the session: {}", info.log),
        );
        return Err(problem.hint(format!("`adjutant sessions stop {name}` requests its end")));
    }
    if named::directory(info)?.is_none() {
        let problem = Problem::new(
            Exit::Usage,
            format!("the session has no directory: {}", info.log),
        );
        return Err(problem.hint(format!(
            "`adjutant resume {name} --root DIR --model MODEL` goes on with it"
        )));
    }
    Ok(())
}
