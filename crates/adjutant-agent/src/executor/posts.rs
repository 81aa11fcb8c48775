//! Posts: messages from other processes to a session, received during a run.

use std::{
    collections::{BTreeSet, VecDeque},
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use adjutant_core::{
    ActivityId, Admission, CancelBy, Digest, Journal, JournalError, LogId, Pause, PauseId, Post,
    PostNo, PostStream, Posted, Record, Run, chain,
};
use adjutant_llm::{CallId, ThreadId, Warning, WarningKind};
use adjutant_tool::Answer;
use futures_util::{FutureExt, StreamExt, stream::SelectAll};
use tokio::time::Sleep;

use super::{LocalExecutor, Records, answer::Asking};
use crate::{inbox::Input, points::PauseAnswered, queue::unfit};

/// The maximum number of posts that wait here for running work; later ones wait in the journal.
const MAX_WAITING: usize = 10_000;
/// The time for which a journal is not read again after its posts could not be read.
const PATIENCE: Duration = Duration::from_secs(1);

/// The posts of other processes. They are consumed in order, so that one number marks the consumed ones.
pub(super) struct Posts {
    /// The source of the posts, before the first read.
    source: Option<(Arc<dyn Journal>, LogId)>,
    /// Polled only when it was woken.
    stream: SelectAll<PostStream>,
    /// Until when nothing is read, because the last time failed.
    resting: Option<Pin<Box<Sleep>>>,
    /// The last consumed post, here or earlier.
    heeded: PostNo,
    /// Read and not consumed, in order.
    waiting: VecDeque<Posted>,
    /// The hooks' decision on the first of them, while they work on it.
    deciding: Option<Pin<Box<dyn Future<Output = Vec<Record>> + Send>>>,
    open: Vec<OpenPause>,
    /// Questions that were overtaken by a post: their results are ignored.
    overtaken: BTreeSet<u32>,
}

/// An unanswered pause.
struct OpenPause {
    pause: Arc<Pause>,
    /// Its index among the pauses of the run, if its question was sent.
    at: Option<u32>,
    /// True if no one here can answer.
    parked: bool,
}

impl LocalExecutor {
    /// Receives posts after a place.
    pub(crate) fn attend(
        &mut self,
        journal: &Arc<dyn Journal>,
        log: &LogId,
        heeded: PostNo,
        run: &Run,
    ) {
        let open = |pause: &Arc<Pause>| OpenPause {
            pause: Arc::clone(pause),
            at: None,
            parked: false,
        };
        self.posts = Some(Box::new(Posts {
            source: Some((Arc::clone(journal), log.clone())),
            stream: SelectAll::new(),
            resting: None,
            heeded,
            waiting: VecDeque::new(),
            deciding: None,
            open: run.pauses().map(open).collect(),
            overtaken: BTreeSet::new(),
        }));
    }

    /// Adds the posts of others as records, with the record that they were consumed; returns whether any arrived.
    pub(super) fn hear_posts(&mut self, cx: &mut Context<'_>, records: &mut Vec<Record>) -> bool {
        let Some(mut posts) = self.posts.take() else {
            return false;
        };
        if let Some(error) = posts.read(cx) {
            self.warn_of_post(format!(
                "posts to the session cannot be read: {}",
                chain(&error)
            ));
        }
        let heeded = self.consume_inbox_items(&mut posts, cx, records);
        self.posts = Some(posts).filter(|posts| !posts.is_over());
        heeded
    }

    fn consume_inbox_items(
        &mut self,
        posts: &mut Posts,
        cx: &mut Context<'_>,
        all: &mut Vec<Record>,
    ) -> bool {
        // After a cancellation, posts no longer wait for running work.
        let cancelled = posts
            .waiting
            .iter()
            .any(|posted| posted.post == Post::Cancel);
        let (mut records, before) = (Vec::new(), posts.heeded);
        while let Some(Posted { no, post }) = posts.waiting.pop_front() {
            let heard = match &post {
                Post::Message { lane, content } => match unfit(content) {
                    Some(why) => {
                        self.warn_of_post(format!("post {no} is passed over: {why}"));
                        Some(Vec::new())
                    }
                    None => self
                        .queue
                        .queues()
                        .push_posted(no, *lane, content, cancelled)
                        .then(Vec::new),
                },
                Post::Answer {
                    pause,
                    answer,
                    shown,
                } => self.consume_answer(posts, (pause, answer, *shown), cancelled, cx),
                Post::Cancel => {
                    self.inbox.record_cancel(CancelBy::User);
                    Some(self.wish(CancelBy::User).into_iter().collect())
                }
                Post::To { thread, said } => self.pass_on(posts, no, (thread, said), cancelled, cx),
            };
            let Some(heard) = heard else {
                posts.waiting.push_front(Posted { no, post });
                break;
            };
            posts.heeded = no;
            records.extend(heard);
        }
        if posts.heeded == before {
            return false;
        }
        self.hear_queue(cx, all);
        all.extend(records);
        all.push(Record::Heeded { post: posts.heeded });
        true
    }

    /// The records of an answer; `None` as long as it must wait.
    fn consume_answer(
        &mut self,
        posts: &mut Posts,
        (id, answer, shown): (&PauseId, &Answer, Option<Digest>),
        cancelled: bool,
        cx: &mut Context<'_>,
    ) -> Option<Vec<Record>> {
        if cancelled {
            posts.deciding = None;
            return Some(Vec::new());
        }
        let Some(open) = posts.open.iter().find(|open| open.pause.id == *id) else {
            // A running call may still request it, or report the pauses of its sub-agents.
            if posts.deciding.is_none() && self.is_at_work(id) {
                return None;
            }
            posts.deciding = None;
            self.warn_of_post(unheard(id));
            return Some(Vec::new());
        };
        if open.parked && self.is_at_work(id) {
            // The call is about to be suspended for this pause, and would not see its answer.
            return None;
        }
        let (at, pause) = (open.at, Arc::clone(&open.pause));
        if let Some(why) = pause.differs(shown) {
            self.warn_of_post(format!("a posted answer is passed over: {why}"));
            return Some(Vec::new());
        }
        let asking = Asking::from_outside(Arc::clone(&self.feed), self.place, pause);
        let records = match &mut posts.deciding {
            Some(deciding) => match deciding.poll_unpin(cx) {
                Poll::Ready(records) => records,
                Poll::Pending => return None,
            },
            None if asking.is_late() => vec![Record::Answered {
                pause: id.clone(),
                answer: Answer::Expired,
            }],
            None if !asking.fits(answer) => return Some(Vec::new()),
            None if self.setup.hooks.hears::<PauseAnswered>() => {
                posts.deciding = Some(Box::pin(through_hooks(asking, answer.clone())));
                return self.consume_answer(posts, (id, answer, shown), cancelled, cx);
            }
            None => vec![Record::Answered {
                pause: id.clone(),
                answer: answer.clone(),
            }],
        };
        posts.deciding = None;
        if records
            .iter()
            .any(|record| matches!(record, Record::Answered { .. }))
        {
            posts.open.retain(|open| open.pause.id != *id);
            self.overtake(posts, at);
        }
        Some(records)
    }

    /// Forwards a post to a sub-agent; `None` until its own log contains it.
    fn pass_on(
        &mut self,
        posts: &mut Posts,
        no: PostNo,
        (thread, said): (&ThreadId, &Post),
        cancelled: bool,
        cx: &mut Context<'_>,
    ) -> Option<Vec<Record>> {
        if cancelled {
            posts.deciding = None;
            return Some(Vec::new());
        }
        let deciding = match &mut posts.deciding {
            Some(deciding) => deciding,
            None => {
                let unheard = |why: &str| {
                    self.warn_of_post(format!("post {no} to {thread} is passed over: {why}"))
                };
                let Some(at_work) = self.inbox.find(thread) else {
                    if self.writer.threads().is_expected(thread) {
                        return None;
                    }
                    unheard("no such agent is running");
                    return Some(Vec::new());
                };
                match said {
                    Post::Message { content, .. } if unfit(content).is_some() => {
                        unheard(unfit(content).unwrap_or_default());
                        return Some(Vec::new());
                    }
                    Post::Message { lane, content } => {
                        at_work.queues.push_passed(no, *lane, content);
                    }
                    Post::Cancel => at_work.inbox.push(Input::Cancel(CancelBy::User)),
                    Post::Answer { .. } | Post::To { .. } => {
                        unheard("an agent is told messages and wishes to stop");
                        return Some(Vec::new());
                    }
                }
                posts.deciding.insert(Box::pin(async move {
                    // If it has ended in the meantime, there is no receiver.
                    let _ = at_work.inbox.save().await;
                    Vec::new()
                }))
            }
        };
        match deciding.poll_unpin(cx) {
            Poll::Ready(_) => posts.deciding = None,
            Poll::Pending => return None,
        }
        Some(Vec::new())
    }

    /// True if a running call, or an agent under it, owns the pause.
    fn is_at_work(&self, pause: &PauseId) -> bool {
        let thread = &self.setup.who.thread;
        self.busy
            .iter()
            .any(|act| matches!(act, ActivityId::Call(call) if is_under(pause, thread, *call)))
    }

    /// Cancels the question of a pause that no longer needs an answer.
    fn overtake(&mut self, posts: &mut Posts, at: Option<u32>) {
        let Some(at) = at.filter(|at| self.busy.contains(&ActivityId::Answer(*at))) else {
            return;
        };
        posts.overtaken.insert(at);
        for asked in self.asking.extract_if(.., |asked| asked.at == at) {
            asked.stop.cancel();
        }
    }

    fn warn_of_post(&self, message: String) {
        let warning = Warning {
            kind: WarningKind::Degraded,
            message: message.into(),
        };
        self.feed
            .warn(self.place, self.setup.world.now_ms(), &warning);
    }
}

async fn through_hooks(asking: Asking, answer: Answer) -> Vec<Record> {
    let mut records = Records::new();
    if let Some(answer) = asking.through_hooks(answer, &mut records).await {
        records.push(Record::Answered {
            pause: asking.pause().id.clone(),
            answer,
        });
    }
    records.into_vec()
}

impl Posts {
    /// Reads the new posts, while there is room; returns an error if they cannot be read.
    fn read(&mut self, cx: &mut Context<'_>) -> Option<JournalError> {
        if let Some(resting) = &mut self.resting {
            if resting.as_mut().poll(cx).is_pending() {
                return None;
            }
            self.resting = None;
        }
        if let Some((journal, log)) = self.source.take() {
            self.stream.extend(journal.posts(&log, self.heeded));
        }
        while self.waiting.len() < MAX_WAITING {
            match self.stream.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(posted))) => self.waiting.push_back(posted),
                Poll::Ready(Some(Err(error))) => {
                    let mut resting = Box::pin(tokio::time::sleep(PATIENCE));
                    // It wakes the executor also if it is over at once.
                    if resting.as_mut().poll(cx).is_ready() {
                        cx.waker().wake_by_ref();
                    }
                    self.resting = Some(resting);
                    return Some(error);
                }
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        None
    }

    /// True if nothing more arrives.
    fn is_over(&self) -> bool {
        self.source.is_none() && self.stream.is_empty() && self.waiting.is_empty()
    }

    /// Records that the question of a pause was sent.
    pub(super) fn mark_asked(&mut self, at: u32, pause: &Pause) {
        if let Some(open) = self.open.iter_mut().find(|open| open.pause.id == pause.id) {
            open.at = Some(at);
        }
    }

    /// An activity has ended: the answer of an overtaken question is ignored.
    pub(super) fn end(&mut self, act: ActivityId, records: &mut Records) {
        if let ActivityId::Answer(at) = act
            && self.overtaken.remove(&at)
        {
            records.retain(|record| {
                !matches!(record, Record::Answered { .. } | Record::Unanswered { .. })
            });
        }
    }

    /// Follows which pauses are open.
    pub(super) fn follow(&mut self, thread: &ThreadId, record: &Record) {
        match record {
            Record::Admitted {
                admission: Admission::Ask { pause, .. },
                ..
            }
            | Record::Paused { pause } => {
                self.ask(pause, false);
            }
            Record::Suspended { pauses, .. } => {
                pauses.iter().for_each(|pause| self.ask(pause, true))
            }
            Record::Unanswered { pause } => self
                .open
                .iter_mut()
                .for_each(|it| it.parked |= it.pause.id == *pause),
            Record::Answered { pause, .. } => self.open.retain(|it| it.pause.id != *pause),
            Record::Resumed { answers, .. } => {
                self.open
                    .retain(|it| !answers.iter().any(|answered| answered.pause == it.pause.id));
                self.open.iter_mut().for_each(|it| it.parked = false);
            }
            Record::Returned { call, .. } => self
                .open
                .retain(|it| !is_under(&it.pause.id, thread, *call)),
            Record::Opened { .. } => self.open.clear(),
            _ => {}
        }
    }

    fn ask(&mut self, pause: &Arc<Pause>, parked: bool) {
        let known = self
            .open
            .iter()
            .find(|it| it.pause.id == pause.id)
            .and_then(|it| it.at);
        self.open.retain(|it| it.pause.id != pause.id);
        self.open.push(OpenPause {
            pause: Arc::clone(pause),
            at: known,
            parked,
        });
    }
}

/// Returns the reason why an unexpected answer is ignored.
pub(crate) fn unheard(pause: &PauseId) -> String {
    format!("a posted answer to {pause} is passed over: nobody waits for it")
}

/// True if a pause is of a call of this thread, or of something under it.
pub(crate) fn is_under(pause: &PauseId, thread: &ThreadId, call: CallId) -> bool {
    let rest = pause
        .0
        .strip_prefix(thread.as_str())
        .and_then(|rest| rest.strip_prefix('/'));
    rest.is_some_and(|rest| rest.split('/').next() == Some(&*call.to_string()))
}

impl fmt::Debug for Posts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Posts")
            .field("heeded", &self.heeded)
            .field("waiting", &self.waiting.len())
            .finish_non_exhaustive()
    }
}
