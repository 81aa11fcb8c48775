//! A stretch of a conversation: prompts to one agent in one session, until another one is selected.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use adjutant::{
    Event, EventKind, Outcome, Running,
    agent::{LogId, LogQuery, Seq},
    llm::UserMessage,
};
use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval_at},
};

use super::{
    Talk,
    ask::{Hearing, Question, Questions},
    attach,
    command::{self, Command},
    diff,
};
use crate::{
    ending,
    exit::Exit,
    follow::{Saver, Saving, View},
    job::Job,
    named,
    paper::input::{Input, Typed},
    plain,
    problem::Problem,
    run,
    screen::Screen,
    servers,
    sessions::{fork, list, undo},
    summary::Took,
    trouble, waits,
};

/// The interval of updates of the displayed duration.
const TICK: Duration = Duration::from_millis(500);
/// The number of sessions that are listed.
const MAX_LISTED: usize = 20;

/// The next step after a stretch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next {
    /// Leave the conversation.
    Leave,
    /// Continue with the same model, possibly in another session.
    Again,
    /// Continue with this model.
    Model(String),
}

/// A stretch of a conversation.
pub(crate) struct Stretch<'s, 'a, 'h> {
    talk: &'s mut Talk<'a>,
    job: &'s Job<'h>,
    asked: mpsc::UnboundedReceiver<Question>,
    /// Set to request compaction.
    wished: Arc<AtomicBool>,
    questions: Questions,
    input: &'s mut Input,
    screen: &'s mut Screen,
    /// True if the user has requested to leave.
    leaves: bool,
    /// The number of stop requests for this run.
    stops: u32,
}

impl<'s, 'a, 'h> Stretch<'s, 'a, 'h> {
    pub(crate) fn new(
        talk: &'s mut Talk<'a>,
        job: &'s Job<'h>,
        asked: mpsc::UnboundedReceiver<Question>,
        wished: Arc<AtomicBool>,
        input: &'s mut Input,
        screen: &'s mut Screen,
    ) -> Self {
        let questions = Questions::new(Arc::clone(&input.board));
        Self {
            talk,
            job,
            asked,
            wished,
            questions,
            input,
            screen,
            leaves: false,
            stops: 0,
        }
    }

    /// Runs the conversation until the next step is known.
    pub(crate) async fn go(mut self) -> Next {
        if self.talk.left.take().is_some_and(|run| run.is_open()) {
            self.screen
                .tell("the last run was left in its middle; it goes on");
            self.run(self.job.agent.resume(Vec::new()).stream()).await;
        }
        let mut interrupts = 0;
        while !self.leaves {
            let text = match self.input.next().await {
                Typed::End => break,
                Typed::Stop => continue,
                Typed::Interrupt if interrupts > 0 => break,
                Typed::Interrupt => {
                    interrupts += 1;
                    self.screen.tell("Ctrl-C again leaves, and so does Ctrl-D");
                    continue;
                }
                Typed::Line { text, .. } => text,
            };
            interrupts = 0;
            match Command::read(&text) {
                None if text.trim().is_empty() => {}
                None => {
                    if let Some(about) = &mut self.talk.about {
                        about.title = run::title(&text);
                    }
                    match attach::message(&text, self.talk.root(), |note| self.screen.tell(note)) {
                        Ok(message) => self.run(self.job.run(message.into()).stream()).await,
                        Err(problem) => self.tell(&problem),
                    }
                }
                Some(Err(why)) => self.screen.tell(&format!("error: {why}")),
                Some(Ok(command)) => match self.command(command).await {
                    Ok(None) => {}
                    Ok(Some(next)) => return next,
                    Err(problem) => self.tell(&problem),
                },
            }
        }
        Next::Leave
    }

    fn tell(&self, problem: &Problem) {
        self.screen.insist(problem.to_string().trim_end());
    }

    /// Follows a run to its end, and prints how it ended.
    async fn run(&mut self, running: Result<Running, adjutant::Error>) {
        (self.talk.undone, self.stops) = (None, 0);
        if let Some(about) = self.talk.about.take() {
            let created = self
                .talk
                .store
                .sessions()
                .create(&self.talk.name, about)
                .await;
            if let Err(error) = created {
                return self.tell(&trouble::session_problem(&error, &self.talk.name.0));
            }
        }
        self.input.board.set_busy(true);
        let ended = match running {
            Ok(running) => self.follow(running).await,
            Err(error) => Err(error),
        };
        self.questions.clear();
        self.job.hands.rest();
        self.input.board.set_busy(false);
        self.screen.rest();
        let result = match &ended {
            Ok(result) => Some(result),
            Err(error) => {
                self.tell(&ending::failed(self.job, error));
                error.result()
            }
        };
        let Some(result) = result else { return };
        match &result.outcome {
            Outcome::Cancelled { .. } => self.screen.tell("interrupted"),
            Outcome::Limit { limit } => self
                .screen
                .tell(&format!("the run stopped at its limit: {limit}")),
            Outcome::Paused { pauses } => {
                waits::tell(pauses, None, self.job.kept.as_ref(), self.screen)
            }
            _ => {}
        }
        let took = Took::from_result(result);
        self.screen.tell(&took.to_string());
        self.talk.took = Some(self.talk.took.map_or(took, |all| all.and(took)));
    }

    /// Prints events, and processes typed lines in the meantime.
    async fn follow(
        &mut self,
        mut running: Running,
    ) -> Result<adjutant::RunResult, adjutant::Error> {
        let (mut view, mut saver) = (View::live(), Saver::new(Saving::Soon));
        let mut ticks = interval_at(Instant::now() + TICK, TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                event = saver.next(&mut running) => match event {
                    Some(event) => {
                        self.show(&event, &mut view);
                        if event.who.depth == 0 {
                            saver.shown(&event.kind);
                        }
                    }
                    None => break,
                },
                Some(question) = self.asked.recv() => {
                    if let Some(paper) = self.screen.paper() {
                        self.questions.push(question, paper);
                    }
                }
                typed = self.input.next() => self.typed(typed, &running),
                _ = ticks.tick() => if let Some(paper) = self.screen.paper() {
                    paper.tick();
                },
            }
            if let Some(paper) = self.screen.paper() {
                self.questions.sweep(paper);
            }
        }
        view.tell_tree(self.screen);
        running.finish().await
    }

    fn show(&mut self, event: &Event, view: &mut View) {
        // Printing above the line cannot fail.
        let _ = view.write_lines(event, self.screen);
        let Some(paper) = self.screen.paper() else {
            return;
        };
        match &event.kind {
            EventKind::ReplyFinished { .. } if event.who.depth == 0 => paper.end(),
            // A call with a question was displayed already.
            EventKind::ToolFinished { call, result, .. } if !self.questions.was_asked(*call) => {
                if let Some(lines) = diff::result_diff(result) {
                    paper.print(diff::shown(&lines, false, paper.style));
                }
            }
            _ => {}
        }
    }

    /// Processes a line that is typed during a run: an answer, a message to it, or a stop request.
    fn typed(&mut self, typed: Typed, running: &Running) {
        let (text, answers, edited) = match typed {
            Typed::Line {
                text,
                answers,
                edited,
            } => (text, answers, edited),
            Typed::Stop | Typed::Interrupt | Typed::End => {
                self.stops += u32::from(typed != Typed::Stop);
                self.leaves |= typed == Typed::End || self.stops > 1;
                match self.stops {
                    0 | 1 => {}
                    2 => self
                        .screen
                        .tell("leaving as soon as it has stopped; Ctrl-C again ends at once"),
                    _ => {
                        self.input.finish();
                        std::process::exit(Exit::Cancelled as i32);
                    }
                }
                if let Some(paper) = self.screen.paper() {
                    paper.wait("stopping");
                }
                return running.cancel();
            }
        };
        let heard = match self.screen.paper() {
            Some(paper) => self
                .questions
                .hear(&text, (answers, edited), &self.job.hands, paper),
            None => Hearing::Other,
        };
        match heard {
            Hearing::Answered(told) => told.iter().for_each(|line| self.screen.tell(line)),
            Hearing::Unfit(why) => self.screen.tell(&format!("error: {why}")),
            Hearing::Other if edited => self
                .screen
                .tell("error: nothing waits for these arguments any more"),
            Hearing::Other if text.trim().is_empty() => {}
            Hearing::Other => match Command::read(&text) {
                Some(Ok(Command::Mode(mode))) => self.mode(&mode),
                Some(Ok(Command::Rules)) => self.rules(),
                Some(Ok(Command::Help)) => self.screen.tell(&command::help()),
                Some(Ok(_)) => self
                    .screen
                    .tell("error: not while it works; Esc interrupts it"),
                Some(Err(why)) => self.screen.tell(&format!("error: {why}")),
                None => self.steer(&text, running),
            },
        }
    }

    fn steer(&self, text: &str, running: &Running) {
        match attach::message(text, self.talk.root(), |note| self.screen.tell(note)) {
            Ok(message) => match running.queue().steer(message) {
                Ok(_) if self.questions.is_empty() => {
                    self.screen.tell("it is read with the next request")
                }
                Ok(_) => self
                    .screen
                    .tell("it is read with the next request; the question is still open"),
                Err(error) => self.tell(&ending::failed(self.job, &error)),
            },
            Err(problem) => self.tell(&problem),
        }
    }

    /// Executes a command, and returns the next step, if it ends the stretch.
    async fn command(&mut self, command: Command) -> Result<Option<Next>, Problem> {
        match command {
            Command::Help => self.screen.tell(&command::help()),
            Command::Cost => match self.talk.total().await {
                Some(took) => self.screen.tell(&took.to_string()),
                None => self.screen.tell("nothing so far"),
            },
            Command::Undo => self.undo().await?,
            Command::Mode(mode) => self.mode(&mode),
            Command::Rules => self.rules(),
            Command::Mcp => self.servers().await,
            Command::Prompt {
                server,
                prompt,
                arguments,
            } => self.say(&server, &prompt, arguments).await?,
            Command::Model(name) if name.is_empty() => {
                self.screen
                    .tell(&format!("model: {}", self.job.model.model.info().id));
            }
            Command::Model(name) => return Ok(Some(Next::Model(name))),
            Command::Compact => {
                self.wished.store(true, Relaxed);
                self.screen
                    .tell("what was said is folded before the next request");
            }
            Command::Sessions => self.sessions().await?,
            Command::Fork { name, files } => {
                return self.fork(name, files.as_deref()).await.map(Some);
            }
        }
        Ok(None)
    }

    /// Continues in a copy of the session, with a copy of its files if requested.
    async fn fork(&mut self, name: String, files: Option<&Path>) -> Result<Next, Problem> {
        let to = if name.is_empty() {
            run::new_name(self.talk.root())
        } else {
            LogId::from(name)
        };
        let sessions = self.talk.store.sessions();
        let from = named::find(&sessions, &self.talk.name.0).await?;
        let forked = match files {
            None => fork::copy(&sessions, &from, None, &to).await?,
            Some(folder) => {
                let (forked, lines) =
                    fork::with_files(&self.talk.store, &from, None, &to, folder).await?;
                lines.iter().for_each(|line| self.screen.tell(line));
                self.talk.root = folder.to_owned();
                forked
            }
        };
        self.screen.tell(&format!(
            "goes on in {}, a copy of {}",
            plain::line(&forked.log.0),
            from.log
        ));
        self.talk.name = to;
        Ok(Next::Again)
    }

    /// Undoes the changes since the last prompt that is not undone yet, and notifies the model.
    async fn undo(&mut self) -> Result<(), Problem> {
        let (store, files) = (&self.talk.store, &self.job.hands.files);
        let history = undo::history(&*store.journal(), &self.talk.name).await?;
        let Some(at) = history.before(self.talk.undone) else {
            self.screen.tell("nothing is to be put back");
            let uncovered = history
                .uncovered(Seq(0))
                .filter(|_| self.talk.undone.is_none());
            uncovered.iter().for_each(|line| self.screen.tell(line));
            return Ok(());
        };
        let restored = undo::restore(&history, store, files, at)?;
        self.talk.undone = Some(at);
        history
            .uncovered(at)
            .iter()
            .for_each(|line| self.screen.tell(line));
        if restored.is_empty() {
            self.screen.tell("everything is already as it was");
            return Ok(());
        }
        self.screen
            .tell(&format!("put back: {}", restored.join(", ")));
        let told = format!(
            "[The user has put these files back as they were before: {}]",
            restored.join(", ")
        );
        let told = self
            .job
            .agent
            .log()
            .append(vec![UserMessage::text(told).into()])
            .await;
        told.map_err(|error| ending::failed(self.job, &error))
    }

    /// Shows the mode, or sets it, from the next call on.
    fn mode(&mut self, mode: &str) {
        let rules = &self.job.hands.rules;
        match mode.parse() {
            _ if mode.is_empty() => self.screen.tell(&format!("mode: {}", rules.current_mode())),
            Ok(mode) => {
                rules.set_mode(mode);
                self.talk.mode = Some(mode);
                self.screen.tell(&format!("mode: {mode}"));
            }
            Err(error) => self.tell(&Problem::from_error(Exit::Usage, &error)),
        }
    }

    /// Prints the rules with their sources, and the protections of the sandbox.
    fn rules(&self) {
        let rules = &self.job.hands.rules;
        self.screen.tell(&format!("mode: {}", rules.current_mode()));
        for rule in rules.rules() {
            let [rule, from] = [&*rule.to_string(), &*rule.from].map(plain::whole);
            self.screen.tell(&format!("{rule}  ({from})"));
        }
        self.screen
            .tell(self.job.hands.sandbox.report().to_string().trim_end());
    }

    /// Prints the servers, with their tools, prompts and resources.
    async fn servers(&self) {
        let servers = &self.job.hands.servers;
        if servers.all.is_empty() {
            self.screen.tell("no servers; `adjutant mcp add` adds one");
        }
        for it in &servers.all {
            let Some(server) = &it.server else {
                let why = it.why.as_deref().unwrap_or_default();
                self.screen.tell(&format!(
                    "{}  not used: {}",
                    plain::line(&it.name),
                    plain::line(why)
                ));
                continue;
            };
            let seen = servers::look(server).await;
            let (state, revision, count) = (seen.state(), seen.revision(), seen.count());
            self.screen.tell(&format!(
                "{}  {state}  {revision}  {count} tools",
                plain::line(&it.name)
            ));
            for prompt in server.prompts().await.unwrap_or_default() {
                self.screen.tell(&format!(
                    "  {}",
                    plain::line(&servers::usage(&it.name, &prompt))
                ));
            }
        }
    }

    /// Sends a prompt of a server.
    async fn say(
        &mut self,
        server: &str,
        prompt: &str,
        arguments: BTreeMap<String, String>,
    ) -> Result<(), Problem> {
        let (_, server) = self.job.hands.servers.one(server)?;
        let said = server
            .prompt(prompt, arguments)
            .await
            .map_err(|error| Problem::from_error(Exit::Failed, &error))?;
        for part in &said {
            if let Some(text) = part.as_text() {
                self.screen.tell(&plain::stream(text));
            }
        }
        self.run(self.job.run(UserMessage::from(said).into()).stream())
            .await;
        Ok(())
    }

    /// Lists the sessions of the directory.
    async fn sessions(&self) -> Result<(), Problem> {
        let mut query = LogQuery::default();
        (query.limit, query.label) = (MAX_LISTED, Some(named::label(self.talk.root())?.into()));
        let sessions = self.talk.store.sessions();
        let page = sessions
            .list(&query)
            .await
            .map_err(|error| trouble::journal_problem(&error))?;
        let table = list::table(&list::look(&sessions, page.logs).await);
        self.screen.tell(if table.is_empty() {
            "none"
        } else {
            table.trim_end()
        });
        Ok(())
    }
}
