//! Posts that came to a session before a drive of it began: they enter the log with the drive's first records.

use adjutant_core::{
    Answered, JournalError, JournalErrorKind, PauseId, Post, PostNo, Posted, Record, Run, chain,
};
use adjutant_llm::{Warning, WarningKind};

use super::{Core, Start, drive_setup::DriveSetup};
use crate::{
    begin::Begin,
    executor::posts::{is_under, unheard},
    queue::unfit,
    scope::SessionWriter,
};

/// The posts that came to a session before a drive of it began.
#[derive(Debug, Default)]
pub(super) struct Mail {
    /// The newest post of it, if there is any.
    pub(super) upto: Option<PostNo>,
    /// The answers of the drive: the given ones, and the posted ones.
    pub(super) answers: Vec<Answered>,
    /// True if the run that is open should end.
    pub(super) cancels: bool,
    /// The warnings about posts that could not be consumed.
    pub(super) warnings: Vec<Warning>,
    /// The reason why the posts could not be read, if they could not.
    pub(super) unread: Option<Box<JournalError>>,
}

impl Core {
    /// Reads the posts since the last consumed one; messages are in the queues by then.
    pub(super) async fn mail(&self, start: &Start) -> Mail {
        let mut mail = Mail::default();
        if let Begin::Resume { answers, .. } = &start.begin {
            mail.answers.clone_from(answers);
        }
        if start.setup.within.is_some() {
            // The log is only lent: its owner receives the posts.
            return mail;
        }
        match start
            .session
            .journal()
            .read_posts(start.session.id(), self.run.last_consumed())
            .await
        {
            Ok(posted) => mail.take(start, &self.run, posted),
            Err(error) if error.kind == JournalErrorKind::Missing => {}
            Err(error) => {
                mail.warn(format!(
                    "posts to the session cannot be read: {}",
                    chain(&error)
                ));
                mail.unread = Some(Box::new(error));
            }
        }
        mail
    }

    /// Lets the journal delete the consumed posts, once the log contains their results.
    pub(super) async fn forget(&mut self, writer: &SessionWriter) {
        let heeded = self.run.last_consumed();
        if heeded <= self.forgotten {
            return;
        }
        match writer.mark_consumed(heeded).await {
            Ok(()) => self.forgotten = heeded,
            Err(error) => tracing::warn!(%error, "the journal keeps posts that were heeded"),
        }
    }
}

impl Mail {
    fn take(&mut self, start: &Start, run: &Run, posted: Vec<Posted>) {
        let cancels = posted.iter().any(|posted| posted.post == Post::Cancel);
        // Without an open run, a cancellation has no target.
        self.cancels = cancels && matches!(start.begin, Begin::Resume { .. }) && run.is_open();
        let mut is_held = false;
        for Posted { no, post } in posted {
            match post {
                // The pauses of the run are answered anyway.
                Post::Answer {
                    pause,
                    answer,
                    shown,
                } if is_held => {
                    self.answer(
                        start,
                        run,
                        Answered {
                            pause,
                            answer,
                            shown,
                        },
                    );
                    continue;
                }
                _ if is_held => continue,
                // Its call is entered again, and may request it then: the executor processes this post and later
                // ones.
                Post::Answer { pause, .. } if !self.cancels && is_early(start, run, &pause) => {
                    is_held = true;
                    continue;
                }
                Post::Message { lane, content } => match unfit(&content) {
                    Some(why) => self.warn(format!("post {no} is passed over: {why}")),
                    None if start
                        .session
                        .queues()
                        .push_posted(no, lane, &content, cancels) => {}
                    // The lane is full: the rest is processed later.
                    None => return,
                },
                Post::Answer {
                    pause,
                    answer,
                    shown,
                } => self.answer(
                    start,
                    run,
                    Answered {
                        pause,
                        answer,
                        shown,
                    },
                ),
                Post::Cancel => {}
                Post::To { .. } if cancels => {}
                // No sub-agent is running yet: the executor processes this post and later ones.
                Post::To { .. } => {
                    is_held = true;
                    continue;
                }
            }
            self.upto = Some(no);
        }
    }

    /// An answer counts if the run waits for it, and no other one was given.
    fn answer(&mut self, start: &Start, run: &Run, answered: Answered) {
        if matches!(start.begin, Begin::Cancel) || self.cancels {
            return;
        }
        let pause = run.pauses().find(|pause| pause.id == answered.pause);
        let is_given = self
            .answers
            .iter()
            .any(|given| given.pause == answered.pause);
        match pause.filter(|_| matches!(start.begin, Begin::Resume { .. }) && !is_given) {
            None => self.warn(unheard(&answered.pause)),
            Some(pause) => match (
                answered.answer.fits(&pause.ask),
                pause.differs(answered.shown),
            ) {
                (Ok(()), None) => self.answers.push(answered),
                (Err(error), _) => self.warn(format!(
                    "a posted answer to {} is passed over: {error}",
                    pause.id
                )),
                (_, Some(why)) => self.warn(format!("a posted answer is passed over: {why}")),
            },
        }
    }

    fn warn(&mut self, message: String) {
        self.warnings.push(Warning {
            kind: WarningKind::Degraded,
            message: message.into(),
        });
    }
}

/// True if a continued run does not wait for this answer, but one of its running calls still could.
fn is_early(start: &Start, run: &Run, pause: &PauseId) -> bool {
    let thread = &start.setup.who.thread;
    matches!(start.begin, Begin::Resume { .. })
        && run.pauses().all(|it| it.id != *pause)
        && run
            .calls()
            .at_work()
            .into_iter()
            .any(|call| is_under(pause, thread, call))
}

impl DriveSetup<'_> {
    /// Returns the first records of the drive with the posts, and the record that they were consumed.
    pub(super) fn with_mail(&self, mut records: Vec<Record>) -> Vec<Record> {
        if let Some(post) = self.mail.upto {
            records.extend(self.start.session.queues().hear());
            records.push(Record::Heeded { post });
        }
        records
    }

    /// Lets the executor receive later posts.
    pub(super) fn attend(&mut self) {
        if self.start.setup.within.is_some() {
            return;
        }
        let session = &self.start.session;
        let heeded = self
            .core
            .run
            .last_consumed()
            .max(self.mail.upto.unwrap_or_default());
        if let Some(executor) = &mut self.executor {
            executor.attend(session.journal(), session.id(), heeded, &self.core.run);
        }
    }
}
