//! A journal that lives as long as the program.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use adjutant_llm::{SystemWorld, World};
use async_trait::async_trait;
use futures_util::stream;
use tokio::sync::{Notify, watch};

use super::{
    Backlog, DueLog, DueWork, Epoch, Flush, Folded, Head, Journal, JournalError, JournalErrorKind,
    Log, LogId, LogInfo, LogPage, LogQuery, MAX_LOST_OWNERS, Owner, Post, PostNo, PostStream,
    Posted, RecordStream, SUSPECT_AFTER, SUSPECT_BARS, SUSPECT_RESTS, SessionMeta, Work,
};
use crate::{journal::Stamped, number::Seq};

/// The largest number of posts that may wait in one log.
const MAX_POSTS: usize = 10_000;

/// A journal that lives as long as the program; clones share it. Nothing is written as bytes.
#[derive(Debug, Clone)]
pub struct MemoryJournal {
    logs: Arc<Logs>,
    world: Arc<dyn World>,
}

#[derive(Debug, Default)]
struct Logs {
    all: Mutex<BTreeMap<LogId, Arc<Mutex<StoredLog>>>>,
    /// Notified when a log may have become queued.
    due: Notify,
}

#[derive(Debug)]
struct StoredLog {
    epoch: Epoch,
    owner: Option<MemoryHolder>,
    records: Vec<Arc<Stamped>>,
    created_ms: u64,
    updated_ms: u64,
    about: SessionMeta,
    folded: Option<Folded>,
    posts: VecDeque<Posted>,
    newest_post: watch::Sender<PostNo>,
    work: Work,
    /// The reason of the quarantine, if the log is quarantined.
    aside: Option<Arc<str>>,
    /// The newest post that does not make the log due.
    passed: PostNo,
    /// The owners in a row that left the log while its run was open, and brought it no further.
    lost: u16,
    /// The time when the log was given, or until which it rests.
    rest_ms: u64,
}

/// The holder of a log, as long as the value lives.
#[derive(Debug)]
struct MemoryHolder {
    owner: Arc<str>,
    held: Weak<()>,
}

#[derive(Debug)]
struct MemoryLog {
    id: LogId,
    epoch: Epoch,
    seq: Seq,
    kept: Arc<Mutex<StoredLog>>,
    mark: Option<Work>,
    has_progressed: bool,
    logs: Arc<Logs>,
    held: Option<Arc<()>>,
}

impl MemoryJournal {
    /// Sets the clock for creation times.
    #[must_use]
    pub fn world(self, world: impl World + 'static) -> Self {
        Self {
            world: Arc::new(world),
            ..self
        }
    }

    /// Assigns a log to an owner, if permitted.
    fn take(
        &self,
        log: &LogId,
        of: &mut StoredLog,
        kept: Arc<Mutex<StoredLog>>,
        owner: &Owner,
    ) -> Box<dyn Log> {
        let held = Arc::new(());
        of.epoch.0 += 1;
        of.owner = Some(MemoryHolder {
            owner: Arc::clone(&owner.id),
            held: Arc::downgrade(&held),
        });
        let (epoch, seq) = (of.epoch, Seq(of.records.len() as u64));
        Box::new(MemoryLog {
            id: log.clone(),
            epoch,
            seq,
            kept,
            mark: None,
            has_progressed: false,
            logs: Arc::clone(&self.logs),
            held: Some(held),
        })
    }

    fn log(&self, log: &LogId) -> Result<Arc<Mutex<StoredLog>>, JournalError> {
        lock(&self.logs.all)
            .get(log)
            .cloned()
            .ok_or_else(|| JournalError::for_log(JournalErrorKind::Missing, log))
    }
}

impl Default for MemoryJournal {
    fn default() -> Self {
        Self {
            logs: Arc::default(),
            world: Arc::new(SystemWorld),
        }
    }
}

impl StoredLog {
    fn new(now_ms: u64) -> Self {
        Self {
            epoch: Epoch(0),
            owner: None,
            records: Vec::new(),
            created_ms: now_ms,
            updated_ms: now_ms,
            about: SessionMeta::default(),
            folded: None,
            posts: VecDeque::new(),
            newest_post: watch::Sender::default(),
            work: Work::Idle,
            aside: None,
            passed: PostNo(0),
            lost: 0,
            rest_ms: 0,
        }
    }

    /// Returns the current owner of the log.
    fn owner(&self) -> Option<&Arc<str>> {
        self.owner
            .as_ref()
            .filter(|holder| holder.held.strong_count() > 0)
            .map(|holder| &holder.owner)
    }

    fn info(&self, log: &LogId) -> LogInfo {
        LogInfo {
            updated_ms: self.updated_ms,
            head: Seq(self.records.len() as u64),
            is_owned: self.owner().is_some(),
            owner: self.owner().cloned(),
            work: Some(
                self.aside
                    .clone()
                    .map_or_else(|| self.work.clone(), |why| Work::Aside { why }),
            ),
            due_ms: self.due_ms(),
            about: self.about.clone(),
            ..LogInfo::new(log.clone(), self.created_ms)
        }
    }
}

#[async_trait]
impl Journal for MemoryJournal {
    async fn own(&self, log: &LogId, owner: &Owner) -> Result<Box<dyn Log>, JournalError> {
        log.check()?;
        let made = || Arc::new(Mutex::new(StoredLog::new(self.world.now_ms())));
        let kept = Arc::clone(lock(&self.logs.all).entry(log.clone()).or_insert_with(made));
        let mut of = lock(&kept);
        let known = of
            .owner()
            .filter(|known| *known != &owner.id && !owner.takes_over);
        if let Some(known) = known {
            return Err(JournalError::already_owned(
                log,
                super::Holder {
                    owner: Arc::clone(known),
                    ..Default::default()
                },
            ));
        }
        Ok(self.take(log, &mut of, Arc::clone(&kept), owner))
    }

    fn read(&self, log: &LogId, after: Seq) -> RecordStream {
        let kept = match self.log(log) {
            Ok(kept) => kept,
            Err(error) => return Box::pin(stream::iter([Err(error)])),
        };
        let from = usize::try_from(after.0).unwrap_or(usize::MAX);
        let records: Vec<_> = lock(&kept)
            .records
            .iter()
            .skip(from)
            .cloned()
            .map(Ok)
            .collect();
        Box::pin(stream::iter(records))
    }

    async fn post(&self, log: &LogId, post: Post) -> Result<PostNo, JournalError> {
        let kept = self.log(log)?;
        let mut kept = lock(&kept);
        if kept.posts.len() >= MAX_POSTS {
            let message = format!("log {:?} takes no more posts: {MAX_POSTS} wait", log.0);
            return Err(JournalError::new(JournalErrorKind::Invalid, message));
        }
        let no = PostNo(kept.newest_post.borrow().0 + 1);
        kept.posts.push_back(Posted { no, post });
        kept.newest_post.send_replace(no);
        self.logs.due.notify_waiters();
        Ok(no)
    }

    fn posts(&self, log: &LogId, after: PostNo) -> Option<PostStream> {
        let kept = self.log(log).ok()?;
        let newest = lock(&kept).newest_post.subscribe();
        let next = |(kept, mut newest, mut after): (
            Arc<Mutex<StoredLog>>,
            watch::Receiver<PostNo>,
            PostNo,
        )| async move {
            loop {
                let seen = *newest.wait_for(|newest| *newest > after).await.ok()?;
                let found = lock(&kept)
                    .posts
                    .iter()
                    .find(|posted| posted.no > after)
                    .cloned();
                // If the post is gone, it was consumed in the meantime.
                after = found.as_ref().map_or(seen, |posted| posted.no);
                if let Some(posted) = found {
                    return Some((Ok(posted), (kept, newest, after)));
                }
            }
        };
        Some(Box::pin(stream::unfold((kept, newest, after), next)))
    }

    async fn read_posts(&self, log: &LogId, after: PostNo) -> Result<Vec<Posted>, JournalError> {
        let kept = self.log(log)?;
        let posted = lock(&kept)
            .posts
            .iter()
            .filter(|posted| posted.no > after)
            .cloned()
            .collect();
        Ok(posted)
    }

    async fn info(&self, log: &LogId) -> Result<LogInfo, JournalError> {
        let kept = self.log(log)?;
        let info = lock(&kept).info(log);
        Ok(info)
    }

    async fn list(&self, query: &LogQuery) -> Result<LogPage, JournalError> {
        let logs = lock(&self.logs.all).clone();
        Ok(query.page(logs.iter().map(|(log, kept)| lock(kept).info(log))))
    }

    async fn describe(&self, log: &LogId, about: SessionMeta) -> Result<(), JournalError> {
        lock(&*self.log(log)?).about = about;
        Ok(())
    }

    async fn rename(&self, from: &LogId, to: &LogId) -> Result<(), JournalError> {
        to.check()?;
        let mut logs = lock(&self.logs.all);
        let kept = logs
            .get(from)
            .ok_or_else(|| JournalError::for_log(JournalErrorKind::Missing, from))?;
        if let Some(owner) = lock(kept).owner() {
            return Err(JournalError::already_owned(
                from,
                super::Holder {
                    owner: Arc::clone(owner),
                    ..Default::default()
                },
            ));
        }
        if logs.contains_key(to) {
            return Err(JournalError::for_log(JournalErrorKind::Exists, to));
        }
        let Some(kept) = logs.remove(from) else {
            return Err(JournalError::for_log(JournalErrorKind::Missing, from));
        };
        logs.insert(to.clone(), kept);
        for other in logs.values() {
            if let Some((parent, _)) = lock(other)
                .about
                .parent
                .as_mut()
                .filter(|(parent, _)| parent == from)
            {
                *parent = to.clone();
            }
        }
        Ok(())
    }

    async fn delete(&self, log: &LogId) -> Result<(), JournalError> {
        let mut logs = lock(&self.logs.all);
        let kept = logs
            .get(log)
            .ok_or_else(|| JournalError::for_log(JournalErrorKind::Missing, log))?;
        if let Some(owner) = lock(kept).owner() {
            return Err(JournalError::already_owned(
                log,
                super::Holder {
                    owner: Arc::clone(owner),
                    ..Default::default()
                },
            ));
        }
        logs.remove(log);
        Ok(())
    }

    async fn load_fold(&self, log: &LogId) -> Result<Option<Folded>, JournalError> {
        let kept = self.log(log).ok();
        Ok(kept.and_then(|kept| lock(&kept).folded.clone()))
    }
}

#[async_trait]
impl Log for MemoryLog {
    fn head(&self) -> Head {
        Head {
            seq: self.seq,
            epoch: self.epoch,
        }
    }

    async fn append(&mut self, batch: &[Arc<Stamped>], _: Flush) -> Result<Head, JournalError> {
        let (mark, has_progressed) = (self.mark.take(), std::mem::take(&mut self.has_progressed));
        let mut kept = self.lock_log()?;
        let follows = (self.seq.0 + 1..)
            .zip(batch)
            .all(|(seq, stamped)| stamped.seq.0 == seq);
        if !follows {
            let message = format!(
                "a batch does not follow record {} of log {:?}",
                self.seq, self.id.0
            );
            return Err(JournalError::new(JournalErrorKind::Corrupt, message));
        }
        kept.records.extend(batch.iter().cloned());
        if let Some(newest) = batch.last() {
            // A clock may go backwards.
            kept.updated_ms = kept.updated_ms.max(newest.at_ms);
        }
        if has_progressed || mark.as_ref().is_some_and(|work| *work != Work::Open) {
            kept.lost = 0;
        }
        if let Some(work) = mark {
            kept.work = work;
        }
        drop(kept);
        self.seq.0 += batch.len() as u64;
        Ok(self.head())
    }

    fn mark(&mut self, work: Work) {
        self.mark = Some(work);
    }

    fn mark_progress(&mut self) {
        self.has_progressed = true;
    }

    async fn keep(&mut self, folded: Folded) -> Result<(), JournalError> {
        self.lock_log()?.folded = Some(folded);
        Ok(())
    }

    async fn mark_consumed(&mut self, upto: PostNo) -> Result<(), JournalError> {
        let mut kept = self.lock_log()?;
        kept.posts.retain(|posted| posted.no > upto);
        kept.newest_post
            .send_if_modified(|newest| std::mem::replace(newest, upto.max(*newest)) < upto);
        Ok(())
    }
}

impl MemoryLog {
    /// Returns the stored log, unless another owner took over.
    fn lock_log(&self) -> Result<MutexGuard<'_, StoredLog>, JournalError> {
        let kept = lock(&self.kept);
        if kept.epoch == self.epoch {
            Ok(kept)
        } else {
            Err(JournalError::for_log(JournalErrorKind::Fenced, &self.id))
        }
    }
}

impl Drop for MemoryLog {
    fn drop(&mut self) {
        self.held = None;
        if lock(&self.kept).work == Work::Open {
            self.logs.due.notify_waiters();
        }
    }
}

impl StoredLog {
    /// The time from which the log is queued, regardless of its owner.
    fn due_ms(&self) -> Option<u64> {
        let is_posted = self
            .posts
            .back()
            .is_some_and(|newest| newest.no > self.passed);
        let due_ms = match &self.work {
            Work::Open => Some(0),
            Work::Parked { until_ms, .. } => *until_ms,
            Work::Idle | Work::Aside { .. } => None,
        };
        if is_posted { Some(0) } else { due_ms }.filter(|_| self.aside.is_none())
    }

    /// True if the log is queued, regardless of its owner.
    fn is_due(&self, now_ms: u64) -> bool {
        self.due_ms().is_some_and(|due_ms| due_ms <= now_ms)
    }

    fn is_suspect(&self) -> bool {
        (SUSPECT_AFTER..MAX_LOST_OWNERS).contains(&self.lost)
    }

    /// True if the log is due, free and rested. If its owner is gone, that counts; a suspect rests from then on.
    fn is_ready(&mut self, log: &LogId, now_ms: u64) -> bool {
        if self.owner().is_some() || !self.is_due(now_ms) {
            return false;
        }
        if self.owner.take().is_some() && self.work == Work::Open {
            self.lost = self.lost.saturating_add(1);
            if self.is_suspect() {
                let rest = millis(SUSPECT_RESTS) << (self.lost - SUSPECT_AFTER);
                let hash = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
                self.rest_ms = now_ms + rest + log.0.bytes().fold(0, hash) % rest;
            }
        }
        !self.is_suspect() || self.rest_ms <= now_ms
    }
}

#[async_trait]
impl DueWork for MemoryJournal {
    async fn due(&self, owner: &Owner, mut most: usize) -> Result<Vec<DueLog>, JournalError> {
        let now_ms = self.world.now_ms();
        let mut found: Vec<_> = lock(&self.logs.all)
            .iter()
            .map(|(id, kept)| (id.clone(), Arc::clone(kept)))
            .collect();
        let is_barred = found.iter().any(|(_, kept)| {
            let of = lock(kept);
            of.is_suspect()
                && of.owner() == Some(&owner.id)
                && of.rest_ms + millis(SUSPECT_BARS) > now_ms
        });
        found.retain(|(id, kept)| lock(kept).is_ready(id, now_ms));
        // A suspect comes first, and alone.
        found.sort_by_key(|(_, kept)| {
            let of = lock(kept);
            (!of.is_suspect(), of.updated_ms)
        });
        let mut due = Vec::new();
        for (id, kept) in found {
            let mut of = lock(&kept);
            // Another owner may have acquired it since.
            if most <= due.len() || of.owner().is_some() || of.is_suspect() && is_barred {
                continue;
            }
            if of.is_suspect() {
                most = 1;
            }
            let (info, newest_post, lost) = (of.info(&id), *of.newest_post.borrow(), of.lost);
            of.rest_ms = now_ms;
            due.push(DueLog {
                info,
                newest_post,
                lost,
                log: self.take(&id, &mut of, Arc::clone(&kept), owner),
            });
        }
        Ok(due)
    }

    async fn until_due(&self) {
        self.logs.due.notified().await;
    }

    async fn pass_over(&self, log: &LogId, upto: PostNo) -> Result<(), JournalError> {
        let kept = self.log(log)?;
        let passed = &mut lock(&kept).passed;
        *passed = upto.max(*passed);
        Ok(())
    }

    async fn set_aside(&self, log: &LogId, why: &str) -> Result<(), JournalError> {
        lock(&*self.log(log)?).aside = Some(why.into());
        Ok(())
    }

    async fn retry(&self, log: &LogId) -> Result<bool, JournalError> {
        let kept = self.log(log)?;
        let mut kept = lock(&kept);
        kept.lost = 0;
        // An owner that released the log does not count as lost.
        if kept.owner().is_none() {
            kept.owner = None;
        }
        let was_aside = kept.aside.take().is_some();
        self.logs.due.notify_waiters();
        Ok(was_aside)
    }

    async fn backlog(&self) -> Result<Backlog, JournalError> {
        let (now_ms, mut told) = (self.world.now_ms(), Backlog::default());
        for kept in lock(&self.logs.all).values() {
            let kept = lock(kept);
            if kept.aside.is_some() {
                told.aside += 1;
            } else if !kept.is_due(now_ms) {
                told.parked += u64::from(matches!(kept.work, Work::Parked { .. }));
            } else if kept.owner().is_some() {
                told.at_work += 1;
            } else {
                let since = Duration::from_millis(now_ms.saturating_sub(kept.updated_ms));
                (told.due, told.oldest) = (told.due + 1, told.oldest.max(Some(since)));
            }
        }
        Ok(told)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
