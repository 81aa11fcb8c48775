//! The contract of a journal with due logs, tested like [`journal_suite`](mod@crate::journal_suite).

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use adjutant_agent::{
    Backlog, DueLog, DueWork, Flush, Lane, Log, LogId, MAX_LOST_OWNERS, Owner, Post, Record,
    SUSPECT_AFTER, SUSPECT_BARS, SUSPECT_RESTS, Seq, Stamped, Work,
};
use adjutant_llm::{Entry, FixedWorld, SystemWorld, ThreadId, UserMessage, World};
use async_trait::async_trait;

use self::DueLab as Lab;
pub use crate::suite::{Check, FnLab, Played, Report, Row};
use crate::suite::{Verdict, checks, equal, holds, join_task, ok, soon};

/// An environment to test a journal with due logs: separate storage without other users.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a laboratory for due work",
    note = "implement `open` and `pass`, or use `due_suite::lab_fn`"
)]
#[async_trait]
pub trait DueLab: Send + Sync {
    /// A new handle on the storage, as another process would have it.
    async fn open(&self) -> Arc<dyn DueWork>;

    /// Moves the clock of all handles forward.
    async fn pass(&self, time: Duration);

    /// The owner of a log dies without releasing it; when this returns, the log is free. By default, the value is
    /// dropped.
    async fn crash(&self, log: Box<dyn Log>) {
        drop(log);
    }

    /// Returns the reason why a check cannot be played here; by default, all can.
    fn skips(&self, check: &str) -> Option<String> {
        let _ = check;
        None
    }
}

/// A laboratory made of a function that opens the journal, under this clock.
pub fn lab_fn<J: DueWork + 'static>(
    world: &Arc<FixedWorld>,
    open: impl Fn() -> J + Send + Sync + 'static,
) -> FnLab<dyn DueWork> {
    let mut lab = FnLab::new(move || -> Arc<dyn DueWork> { Arc::new(open()) });
    lab.world = Arc::clone(world);
    lab
}

#[async_trait]
impl DueLab for FnLab<dyn DueWork> {
    async fn open(&self) -> Arc<dyn DueWork> {
        self.handle()
    }

    async fn pass(&self, time: Duration) {
        self.world
            .advance_ms(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    }

    fn skips(&self, check: &str) -> Option<String> {
        self.why(check)
    }
}

checks! {
    $ due_suite, "The expression makes a [`Lab`](crate::due_suite::DueLab) for each test, and may await.", DueStage;
    plays::open_is_due: "a log whose run is open is due when nobody owns it, and not before",
    plays::ended_is_not_due: "a log whose run has ended is not due",
    plays::parked_is_due_by_time_and_post: "a parked run is due when its time has come or somebody posts, and not before",
    plays::post_makes_due: "posts make a log due until they are heeded or passed over, also one without a record",
    plays::each_goes_to_one: "of many who ask at once each due log goes to one, whoever asks first gets no more than asked for",
    plays::aside_is_not_due: "a log that was set aside is not due until it is tried again, and says why",
    plays::lost_owners_count: "the owners that die in a row over an open run are counted, until it parks, gets further or is tried again",
    plays::suspects_rest: "a log that lost owners in a row is given after a rest that grows, and each loss counts once",
    plays::suspects_go_one_at_a_time: "of those each owner has one, until that gets further or has had its time",
    plays::backlog_counts: "the numbers are those of the logs",
    plays::news_wakes: "who waits is woken by a post",
}

/// A play of one check.
struct DueStage<'a> {
    lab: &'a dyn DueLab,
    prefix: String,
}

impl<'a> DueStage<'a> {
    fn new(lab: &'a (dyn DueLab + 'static)) -> Self {
        Self {
            lab,
            prefix: format!("{:x}", SystemWorld.id()),
        }
    }

    fn log(&self, name: &str) -> LogId {
        format!("{}-{name}", self.prefix).into()
    }

    /// A log with a run that is open, and its owner.
    async fn start_run(
        &self,
        journal: &dyn DueWork,
        name: &str,
    ) -> Result<(LogId, Box<dyn Log>), String> {
        let id = self.log(name);
        let mut log = ok("owning", journal.own(&id, &Owner::default()).await)?;
        put(&mut *log, Some(Work::Open)).await?;
        Ok((id, log))
    }

    /// The due logs of this test, claimed; others are released.
    async fn due(&self, journal: &dyn DueWork) -> Result<Vec<DueLog>, String> {
        self.claim_for(journal, &Owner::default()).await
    }

    /// The same, taken by this owner.
    async fn claim_for(&self, journal: &dyn DueWork, owner: &Owner) -> Result<Vec<DueLog>, String> {
        let mut due = ok(
            "asking for due logs",
            journal.due(owner, usize::MAX >> 1).await,
        )?;
        due.retain(|it| it.info.log.0.starts_with(&self.prefix));
        Ok(due)
    }

    /// The same; there are so many.
    async fn together(
        &self,
        journal: &dyn DueWork,
        owner: &Owner,
        count: usize,
    ) -> Result<Vec<DueLog>, String> {
        let due = self.claim_for(journal, owner).await?;
        equal("the logs that are given together", &due.len(), &count)?;
        Ok(due)
    }

    /// A due log of this play, taken; there is one, or will be.
    async fn claim_due(&self, journal: &dyn DueWork) -> Result<DueLog, String> {
        soon("taking it", async {
            loop {
                if let Some(due) = self.due(journal).await?.pop() {
                    return Ok(due);
                }
                self.lab.pass(SUSPECT_RESTS).await;
            }
        })
        .await?
    }

    /// Loses so many owners of a due log of this play.
    async fn lose(&self, journal: &dyn DueWork, owners: u16) -> Verdict {
        for _ in 0..owners {
            self.lab.crash(self.claim_due(journal).await?.log).await;
        }
        Ok(())
    }

    /// Takes the due log of this play, which lost so many owners.
    async fn claim_after(&self, journal: &dyn DueWork, lost: u16) -> Result<Box<dyn Log>, String> {
        let due = self.claim_due(journal).await?;
        equal("the owners that it lost", &due.lost, &lost)?;
        Ok(due.log)
    }

    /// Checks which logs of this play are due, and gives them up again.
    async fn are_due(&self, journal: &dyn DueWork, want: &[&LogId]) -> Verdict {
        let found = soon("the due logs", async {
            loop {
                let due = self.due(journal).await?;
                let names: BTreeSet<LogId> = due.iter().map(|it| it.info.log.clone()).collect();
                drop(due);
                // A recently released log may be visible for a while.
                if names.len() >= want.len() {
                    return Ok::<_, String>(names);
                }
                tokio::task::yield_now().await;
            }
        });
        equal(
            "the due logs",
            &found.await??,
            &want.iter().map(|&log| log.clone()).collect(),
        )
    }
}

/// Appends a record, with the work that the log holds from then on.
async fn put(log: &mut dyn Log, work: Option<Work>) -> Verdict {
    if let Some(work) = work {
        log.mark(work);
    }
    let seq = Seq(log.head().seq.0 + 1);
    let record = Record::Withdrawn { item: 0 };
    let stamped = Arc::new(Stamped::new(
        seq,
        SystemWorld.now_ms(),
        ThreadId::from("main"),
        record,
    ));
    ok("appending", log.append(&[stamped], Flush::Lazy).await).map(drop)
}

fn post() -> Post {
    Post::Message {
        lane: Lane::FollowUp,
        content: Entry::User(UserMessage::text("go on")),
    }
}

fn build_parked(until_ms: Option<u64>) -> Option<Work> {
    Some(Work::Parked {
        on: "a word".into(),
        until_ms,
    })
}

/// The plays.
mod plays {
    use super::*;

    pub(super) async fn open_is_due(stage: &DueStage<'_>) -> Verdict {
        let journal = stage.lab.open().await;
        let (id, mut log) = stage.start_run(&*journal, "log").await?;
        stage.are_due(&*journal, &[]).await?;
        // A record more changes nothing of that.
        put(&mut *log, None).await?;
        equal(
            "its work",
            &ok("telling", journal.info(&id).await)?.work,
            &Some(Work::Open),
        )?;
        drop(log);
        stage.are_due(&*stage.lab.open().await, &[&id]).await?;
        let mut taken = stage.claim_due(&*journal).await?.log;
        equal("its end", &taken.head().seq, &Seq(2))?;
        put(&mut *taken, None).await?;
        stage.are_due(&*journal, &[]).await
    }

    pub(super) async fn ended_is_not_due(stage: &DueStage<'_>) -> Verdict {
        let journal = stage.lab.open().await;
        let (id, mut log) = stage.start_run(&*journal, "log").await?;
        put(&mut *log, Some(Work::Idle)).await?;
        drop(log);
        equal(
            "its work",
            &ok("telling", journal.info(&id).await)?.work,
            &Some(Work::Idle),
        )?;
        stage.are_due(&*journal, &[]).await
    }

    pub(super) async fn parked_is_due_by_time_and_post(stage: &DueStage<'_>) -> Verdict {
        let journal = stage.lab.open().await;
        let mut ids = Vec::new();
        for (name, until_ms) in [
            ("past", Some(1)),
            ("future", Some(u64::MAX >> 2)),
            ("never", None),
        ] {
            let (id, mut log) = stage.start_run(&*journal, name).await?;
            put(&mut *log, build_parked(until_ms)).await?;
            drop(log);
            let info = ok("telling", journal.info(&id).await)?;
            equal(
                "its work, and when it is due",
                &(info.work, info.due_ms),
                &(build_parked(until_ms), until_ms),
            )?;
            ids.push(id);
        }
        stage.are_due(&*journal, &[&ids[0]]).await?;
        ok("posting", journal.post(&ids[1], post()).await)?;
        ok("posting", journal.post(&ids[2], post()).await)?;
        equal(
            "when it is due",
            &ok("telling", journal.info(&ids[2]).await)?.due_ms,
            &Some(0),
        )?;
        stage.are_due(&*journal, &[&ids[0], &ids[1], &ids[2]]).await
    }

    pub(super) async fn post_makes_due(stage: &DueStage<'_>) -> Verdict {
        let (journal, id) = (stage.lab.open().await, stage.log("log"));
        drop(ok("owning", journal.own(&id, &Owner::default()).await)?);
        stage.are_due(&*journal, &[]).await?;
        let no = ok("posting", journal.post(&id, post()).await)?;
        stage.are_due(&*journal, &[&id]).await?;
        ok("passing over", journal.pass_over(&id, no).await)?;
        stage.are_due(&*journal, &[]).await?;
        let no = ok("posting", journal.post(&id, post()).await)?;
        equal(
            "the newest post",
            &stage.claim_due(&*journal).await?.newest_post,
            &no,
        )?;
        let mut log = crate::journal_suite::own(&*journal, &id, &Owner::default()).await?;
        ok("heeding", log.mark_consumed(no).await)?;
        drop(log);
        stage.are_due(&*journal, &[]).await
    }

    pub(super) async fn each_goes_to_one(stage: &DueStage<'_>) -> Verdict {
        let journal = stage.lab.open().await;
        let mut ids = BTreeSet::new();
        for name in 0..12 {
            ids.insert(stage.start_run(&*journal, &name.to_string()).await?.0);
        }
        let mut tasks = Vec::new();
        for _ in 0..4 {
            let (journal, wanted) = (stage.lab.open().await, ids.clone());
            tasks.push(tokio::spawn(async move {
                let (mut mine, owner) = (Vec::new(), Owner::default());
                soon("all logs are taken", async {
                    while mine.len() < 3 {
                        let due = ok("asking", journal.due(&owner, 3 - mine.len()).await)?;
                        holds(
                            "nobody gets more than asked for",
                            due.len() <= 3 - mine.len(),
                        )?;
                        mine.extend(due.into_iter().filter(|it| wanted.contains(&it.info.log)));
                    }
                    Ok::<_, String>(mine)
                })
                .await?
            }));
        }
        let (mut taken, mut kept) = (BTreeSet::new(), Vec::new());
        for task in tasks {
            for due in join_task("a worker", task).await? {
                holds("each is given once", taken.insert(due.info.log.clone()))?;
                kept.push(due.log);
            }
        }
        equal("the logs that were taken", &taken, &ids)
    }

    pub(super) async fn aside_is_not_due(stage: &DueStage<'_>) -> Verdict {
        let journal = stage.lab.open().await;
        let (id, log) = stage.start_run(&*journal, "log").await?;
        drop(log);
        ok(
            "setting aside",
            journal.set_aside(&id, "its agent cannot be made").await,
        )?;
        let aside = Work::Aside {
            why: "its agent cannot be made".into(),
        };
        equal(
            "its work",
            &ok("telling", journal.info(&id).await)?.work,
            &Some(aside),
        )?;
        stage.are_due(&*journal, &[]).await?;
        holds(
            "it was set aside",
            ok("trying again", journal.retry(&id).await)?,
        )?;
        holds(
            "it is set aside no more",
            !ok("trying again", journal.retry(&id).await)?,
        )?;
        stage.are_due(&*journal, &[&id]).await
    }

    pub(super) async fn lost_owners_count(stage: &DueStage<'_>) -> Verdict {
        let journal = stage.lab.open().await;
        let (id, log) = stage.start_run(&*journal, "log").await?;
        stage.lab.crash(log).await;
        stage.lose(&*journal, 2).await?;
        // An owner that parks in between does not count as lost.
        let mut log = stage.claim_after(&*journal, 3).await?;
        put(&mut *log, build_parked(None)).await?;
        put(&mut *log, Some(Work::Open)).await?;
        stage.lab.crash(log).await;
        stage.lose(&*journal, 2).await?;
        let mut log = stage.claim_after(&*journal, 3).await?;
        // Resuming the open run does the same: that is no progress.
        put(&mut *log, Some(Work::Open)).await?;
        stage.lab.crash(log).await;
        let mut log = stage.claim_after(&*journal, 4).await?;
        log.mark_progress();
        put(&mut *log, None).await?;
        stage.lab.crash(log).await;
        stage.lose(&*journal, 1).await?;
        drop(stage.claim_after(&*journal, 2).await?);
        // Releasing a log may take a while.
        soon("it is free", async {
            while ok("telling", journal.info(&id).await)?.is_owned {
                tokio::task::yield_now().await;
            }
            Ok::<_, String>(())
        })
        .await??;
        ok("trying again", journal.retry(&id).await)?;
        stage.claim_after(&*journal, 0).await.map(drop)
    }

    pub(super) async fn suspects_rest(stage: &DueStage<'_>) -> Verdict {
        let (journal, owner) = (stage.lab.open().await, Owner::default());
        let (_, log) = stage.start_run(&*journal, "log").await?;
        stage.lab.crash(log).await;
        stage.lose(&*journal, SUSPECT_AFTER - 1).await?;
        let mut rest = SUSPECT_RESTS;
        for lost in SUSPECT_AFTER..MAX_LOST_OWNERS {
            // A concurrent reader changes nothing.
            stage.together(&*journal, &owner, 0).await?;
            stage.lab.pass(rest / 2).await;
            stage.together(&*journal, &owner, 0).await?;
            let told = ok("counting", journal.backlog().await)?;
            equal(
                "what is due, rested or not",
                &(told.due, told.at_work),
                &(1, 0),
            )?;
            stage.lab.pass(rest * 3 / 2).await;
            for due in stage.together(&*journal, &owner, 1).await? {
                equal("the owners that it lost", &due.lost, &lost)?;
                stage.lab.crash(due.log).await;
            }
            rest *= 2;
        }
        // Its owner sets it aside.
        let last = stage.together(&*journal, &owner, 1).await?;
        equal("the owners that it lost", &last[0].lost, &MAX_LOST_OWNERS)
    }

    pub(super) async fn suspects_go_one_at_a_time(stage: &DueStage<'_>) -> Verdict {
        let (journal, owner, other) = (stage.lab.open().await, Owner::default(), Owner::default());
        for name in 0..4 {
            let (_, log) = stage.start_run(&*journal, &name.to_string()).await?;
            stage.lab.crash(log).await;
        }
        for due in stage.together(&*journal, &owner, 4).await? {
            stage.lab.crash(due.log).await;
        }
        stage.together(&*journal, &owner, 0).await?;
        stage.lab.pass(SUSPECT_RESTS * 2).await;
        let _first = stage.together(&*journal, &owner, 1).await?;
        stage.together(&*journal, &owner, 0).await?;
        let _second = stage.together(&*journal, &other, 1).await?;
        stage.lab.pass(SUSPECT_BARS / 2).await;
        stage.together(&*journal, &owner, 0).await?;
        stage.lab.pass(SUSPECT_BARS / 2).await;
        let mut third = stage.together(&*journal, &owner, 1).await?;
        stage.together(&*journal, &owner, 0).await?;
        third[0].log.mark_progress();
        put(&mut *third[0].log, None).await?;
        stage.together(&*journal, &owner, 1).await.map(drop)
    }

    pub(super) async fn backlog_counts(stage: &DueStage<'_>) -> Verdict {
        let journal = stage.lab.open().await;
        let before = ok("counting", journal.backlog().await)?;
        let (_, at_work) = stage.start_run(&*journal, "at work").await?;
        for (name, work) in [
            ("due", Work::Open),
            ("idle", Work::Idle),
            ("parked", build_parked(None).unwrap_or_default()),
        ] {
            let (_, mut log) = stage.start_run(&*journal, name).await?;
            put(&mut *log, Some(work)).await?;
        }
        let (aside, log) = stage.start_run(&*journal, "aside").await?;
        drop(log);
        ok("setting aside", journal.set_aside(&aside, "why").await)?;
        let mut want = Backlog::default();
        (want.due, want.at_work) = (before.due + 1, before.at_work + 1);
        (want.parked, want.aside) = (before.parked + 1, before.aside + 1);
        let got = soon("the numbers", async {
            loop {
                let got = ok("counting", journal.backlog().await)?;
                // A recently released log may be visible for a while.
                if got.at_work <= want.at_work {
                    return Ok::<_, String>(got);
                }
            }
        });
        let got = got.await??;
        holds("the oldest is told", got.oldest.is_some())?;
        want.oldest = got.oldest;
        drop(at_work);
        equal("the numbers", &got, &want)
    }

    pub(super) async fn news_wakes(stage: &DueStage<'_>) -> Verdict {
        let (journal, id) = (stage.lab.open().await, stage.log("log"));
        drop(ok("owning", journal.own(&id, &Owner::default()).await)?);
        let waiting = Arc::clone(&journal);
        let woken = crate::suite::waits(async move { waiting.until_due().await }).await?;
        ok("posting", stage.lab.open().await.post(&id, post()).await)?;
        soon("being woken", woken)
            .await?
            .map_err(|error| error.to_string())
    }
}
