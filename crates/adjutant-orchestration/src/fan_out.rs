//! Fan-out: several tasks over one template, each for a fresh agent, with a limit of concurrent ones; results in the
//! order of tasks.

mod permits;
mod report;
mod tool;

use adjutant_agent::{Agent, AgentFactory, EventKind, MemberRun, OpenedAgent, RunResult};
use adjutant_tool::{Cancel, ToolError, ToolErrorKind};
use futures_util::{StreamExt, stream::FuturesUnordered};

use permits::{Permits, Untried};
pub use tool::fan_out_tool;

use crate::{
    Error, ErrorKind,
    child_run::{AgentEnd, TaskState, with_task},
};

/// The default number of tasks that run at a time.
const DEFAULT_CONCURRENCY: usize = 8;
/// The default limit of tasks in one call.
const DEFAULT_MAX_TASKS: usize = 100;
/// The default limit of bytes of one answer for the model.
const DEFAULT_RESULT_BYTES: usize = 10_000;

/// The result of one task; an agent that did not finish is not an error here.
pub type TaskResult = Result<RunResult, ToolError>;

/// Gives each of several tasks to a fresh agent; cheap to clone.
#[derive(Debug, Clone)]
pub struct FanOut {
    template: Agent,
    options: FanOutOptions,
}

/// The options of a fan-out.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FanOutOptions {
    /// The number of agents that run at a time; at least one.
    pub max_concurrency: usize,
    /// The largest number of tasks.
    pub max_tasks: usize,
    /// The effect of a failed task on the others.
    pub at_failure: AtFailure,
    /// The largest number of bytes of one answer for the model; less if there are many.
    pub max_result_bytes: usize,
}

/// The effect of a failed task on the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum AtFailure {
    /// They continue.
    #[default]
    GoOn,
    /// Running ones are cancelled, the others never start.
    CancelOthers,
}

/// Stops a child if its result is no longer needed; a first agent then stops automatically.
struct Wanted<'a>(Option<&'a OpenedAgent>);

impl Default for FanOutOptions {
    fn default() -> Self {
        Self {
            max_concurrency: DEFAULT_CONCURRENCY,
            max_tasks: DEFAULT_MAX_TASKS,
            at_failure: AtFailure::default(),
            max_result_bytes: DEFAULT_RESULT_BYTES,
        }
    }
}

impl FanOutOptions {
    /// Eight at a time, a hundred tasks, and the others continue after a failure.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many agents work at a time; at least one does.
    #[must_use]
    pub fn max_concurrency(mut self, agents: usize) -> Self {
        self.max_concurrency = agents.max(1);
        self
    }

    /// Sets how many tasks there may be.
    #[must_use]
    pub fn max_tasks(mut self, tasks: usize) -> Self {
        self.max_tasks = tasks;
        self
    }

    /// Sets what becomes of the other tasks when one fails.
    #[must_use]
    pub fn at_failure(mut self, at_failure: AtFailure) -> Self {
        self.at_failure = at_failure;
        self
    }

    /// Sets the largest number of bytes of one answer for the model.
    #[must_use]
    pub fn max_result_bytes(mut self, bytes: usize) -> Self {
        self.max_result_bytes = bytes;
        self
    }
}

impl FanOut {
    /// Tasks for agents like this one; of the template, only the configuration counts.
    pub fn new(template: Agent) -> Self {
        Self {
            template,
            options: FanOutOptions::default(),
        }
    }

    /// Sets how tasks are fanned out.
    #[must_use]
    pub fn options(mut self, options: FanOutOptions) -> Self {
        self.options = options;
        self
    }

    /// Gives each task to a separate agent, and returns their results in the order of the tasks.
    ///
    /// The agents of a call are its children, with the numbers of the tasks as keys, counted from 1: when the call is
    /// entered again, the ones that have ended are not run again. If the limit of concurrent agents is reached, a
    /// task waits while another one of the call is running.
    ///
    /// Cancel: every running agent is cancelled.
    ///
    /// # Errors
    /// `Invalid` if there is no task, a blank one, or there are too many; nothing was started then.
    pub async fn run(
        &self,
        factory: &AgentFactory,
        tasks: &[String],
    ) -> Result<Vec<TaskResult>, Error> {
        self.run_with(factory, tasks, |_, _| {}).await
    }

    /// Like [`run`](FanOut::run), and reports each task, counted from 0, when it has ended.
    ///
    /// Cancel: every running agent is cancelled.
    ///
    /// # Errors
    /// Like [`run`](FanOut::run).
    pub async fn run_with(
        &self,
        factory: &AgentFactory,
        tasks: &[String],
        mut ended: impl FnMut(usize, &TaskResult) + Send,
    ) -> Result<Vec<TaskResult>, Error> {
        self.check(tasks)?;
        let (stop, permits) = (Cancel::new(), Permits::default());
        let (mut work, mut next) = (FuturesUnordered::new(), 0);
        let mut results: Vec<Option<TaskResult>> = tasks.iter().map(|_| None).collect();
        loop {
            while work.len() < self.options.max_concurrency.max(1)
                && let Some(task) = tasks.get(next)
            {
                work.push(self.one(factory, next, task, &stop, (&permits, permits.announce())));
                next += 1;
            }
            let Some((at, result)) = work.next().await else {
                break;
            };
            ended(at, &result);
            if self.options.at_failure == AtFailure::CancelOthers
                && AgentEnd::from_result(&result).state != TaskState::Completed
            {
                stop.cancel();
            }
            if let Some(place) = results.get_mut(at) {
                *place = Some(result);
            }
        }
        Ok(results
            .into_iter()
            .map(|result| result.unwrap_or_else(|| Err(not_begun())))
            .collect())
    }

    fn check(&self, tasks: &[String]) -> Result<(), Error> {
        if tasks.is_empty() {
            return Err(Error::new(
                ErrorKind::Invalid,
                "at least one task is required",
            ));
        }
        if tasks.len() > self.options.max_tasks {
            let message = format!(
                "{} tasks are too many at once: at most {}",
                tasks.len(),
                self.options.max_tasks
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        match tasks.iter().position(|task| task.trim().is_empty()) {
            Some(at) => Err(Error::new(
                ErrorKind::Invalid,
                format!("task {} is blank: say what to do", at + 1),
            )),
            None => Ok(()),
        }
    }

    async fn one(
        &self,
        factory: &AgentFactory,
        at: usize,
        task: &str,
        stop: &Cancel,
        permits: (&Permits, Untried<'_>),
    ) -> (usize, TaskResult) {
        (at, self.work(factory, at, task, stop, permits).await)
    }

    async fn work(
        &self,
        factory: &AgentFactory,
        at: usize,
        task: &str,
        stop: &Cancel,
        (permits, untried): (&Permits, Untried<'_>),
    ) -> TaskResult {
        if stop.is_cancelled() {
            return Err(not_begun());
        }
        let member = factory
            .create(
                &(at + 1).to_string(),
                with_task(self.template.clone(), task),
            )
            .await?;
        let Some(begun) = permits.begin(&member, task, stop, untried).await else {
            return Err(not_begun());
        };
        let (run, _seat) = begun?;
        let mut wanted = Wanted(Some(&member));
        let result = match self.options.at_failure {
            AtFailure::GoOn => run.finish().await,
            AtFailure::CancelOthers => finish(run, &member, stop).await,
        };
        wanted.0 = None;
        result
    }
}

/// Waits for an answer, or for the end of an agent that should stop; an agent that waits for external input is not
/// waited for.
async fn finish(mut run: MemberRun, member: &OpenedAgent, stop: &Cancel) -> TaskResult {
    let (mut waits, mut told) = (false, false);
    loop {
        tokio::select! {
            biased;
            event = run.next() => match event {
                None => return run.finish().await,
                Some(event) if event.who.thread != member.identity().thread => {}
                Some(event) => waits = matches!(event.kind, EventKind::RunPaused { .. }),
            },
            () = stop.cancelled(), if !told => {
                run.cancel();
                told = true;
            }
        }
        if waits && told {
            return Err(cancelled("cancelled while it waited: another task failed"));
        }
    }
}

fn not_begun() -> ToolError {
    cancelled("not begun: another task failed")
}

fn cancelled(message: &'static str) -> ToolError {
    ToolError::new(ToolErrorKind::Cancelled, message)
}

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        if let Some(OpenedAgent::Child(child)) = self.0 {
            child.cancel();
        }
    }
}
