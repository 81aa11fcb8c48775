//! The middleware `memory`: reads the part of the conversation that a run has added, at the end of the run.

use std::sync::Arc;

use adjutant_agent::{DriveContext, Failure, Middleware, NextDrive, Outcome, RunResult};
use adjutant_llm::{Warning, WarningKind};
use async_trait::async_trait;

use super::{background::ConversationJob, extract::Learned, memories::Memories, meter::Meter};

/// The name of the middleware, which is also the name that is billed.
const NAME: &str = "memory";

/// The time at which a conversation is read for facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Extraction {
    /// Before the run counts as ended; its cost is charged to the run.
    Awaited,
    /// Later, while the program continues; see [`Memories::flush`]. Its cost is only in [`Memories::spent`].
    Background,
}

/// Middleware that reads the part of the conversation that a run has added.
///
/// Runs that failed, were cancelled or are paused are skipped; their messages are read after the next successful run.
/// A failure is a warning and never ends the run.
#[derive(Debug, Clone)]
pub struct Learning {
    memories: Memories,
    when: Extraction,
}

impl Memories {
    /// The middleware that extracts facts from runs and stores them.
    pub fn extract(&self, when: Extraction) -> Learning {
        Learning {
            memories: self.clone(),
            when,
        }
    }
}

#[async_trait]
impl Middleware for Learning {
    fn name(&self) -> &str {
        NAME
    }

    async fn drive(&self, cx: DriveContext, next: NextDrive<'_>) -> Result<RunResult, Failure> {
        let given = next.run(cx.clone()).await;
        if let Ok(RunResult {
            outcome: Outcome::Finished { .. } | Outcome::Limit { .. },
            ..
        }) = &given
        {
            let source = source(&cx);
            match self.when {
                Extraction::Awaited => self.read(&cx, &source).await,
                Extraction::Background => self.read_later(&cx, source),
            }
        }
        given
    }
}

impl Learning {
    async fn read(&self, cx: &DriveContext, source: &str) {
        let meter = Meter::under(&self.memories.meter);
        let (history, mut learned) = (cx.history(), Learned::default());
        let why = tokio::select! {
            biased;
            read = self.memories.learn_on(source, &history, cx.model(), &meter, &mut learned) => {
                read.err().map(|error| adjutant_agent::chain(&error))
            }
            () = cx.cancel.cancelled() => Some("someone wished to stop".to_owned()),
        };
        let warnings = learned.warnings.into_iter();
        let failed = why.map(|why| {
            format!("the session was not read, and is after its next run: {why}").into()
        });
        warnings.chain(failed).for_each(|warning| tell(cx, warning));
        let spent = meter.spent();
        if spent.usage.total() > 0 {
            cx.bill(NAME, spent.usage, spent.cost);
        }
    }

    fn read_later(&self, cx: &DriveContext, source: Arc<str>) {
        let job = ConversationJob {
            source,
            history: cx.history(),
            model: Arc::clone(cx.model()),
        };
        if !self.memories.read_later(job) {
            tell(
                cx,
                "too many sessions wait to be read; this one is after its next run".into(),
            );
        }
    }
}

fn tell(cx: &DriveContext, message: Arc<str>) {
    tracing::warn!(session = &*cx.log.0, "{message}");
    cx.warn(Warning {
        kind: WarningKind::HookFailed,
        message,
    });
}

/// The name of the conversation: its session, plus the thread of a subagent.
fn source(cx: &DriveContext) -> Arc<str> {
    match cx.who.depth {
        0 => Arc::clone(&cx.log.0),
        _ => format!("{}#{}", cx.log.0, cx.who.thread).into(),
    }
}
