//! Children of sessions on workers over the journal in memory, in virtual time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use adjutant_agent::{
    Agent, Caps, ChildLink, ChildOrder, ChildRole, DueWork, Journal, Lane, LogId, LogInfo,
    LogQuery, MAX_LOST_OWNERS, MemoryJournal, Outcome, Owner, Placement, Post, Record, Seq,
    Sessions, Work,
};
use adjutant_fleet::{Fleet, FleetPlacement, FleetStatus};
use adjutant_llm::{
    CallResult, Entry, Error, ErrorKind, FixedWorld, Script, ScriptedModel, Usage, UserMessage,
};
use adjutant_orchestration::{Delegation, Profile, Registry};
use adjutant_tool::{Cancel, Replay, ToolError, ToolSpec, tool_fn};
use async_trait::async_trait;
use futures_util::StreamExt;
use serde_json::{Value, json};

/// A journal, and the agents that its workers are given: a lead, and those that it delegates to.
struct Stage {
    journal: MemoryJournal,
    world: Arc<FixedWorld>,
    lead: Arc<ScriptedModel>,
    coder: Arc<ScriptedModel>,
    /// Whether the tool of the coder hangs.
    hangs: Arc<AtomicBool>,
    /// The times that it was called.
    looks: Arc<AtomicU64>,
    caps: Caps,
    levels: u16,
}

/// A place that hangs once it has begun a child.
struct Hanging(FleetPlacement);

#[async_trait]
impl Placement for Hanging {
    async fn begin(&self, order: ChildOrder) -> Result<ChildLink, ToolError> {
        self.0.begin(order).await?;
        std::future::pending().await
    }

    async fn stop(&self, child: &LogId) -> Result<(), ToolError> {
        self.0.stop(child).await
    }
}

fn used(tokens: u64) -> Usage {
    Usage {
        output: tokens,
        ..Usage::default()
    }
}

fn done() -> Script {
    Script::new()
        .call(
            "task_complete",
            json!({ "status": "completed", "summary": "It is fixed." }),
        )
        .usage(used(1_000))
}

impl Stage {
    /// A lead that gives so many tasks at a time, and a coder that says this.
    fn new(tasks: usize, coder: impl IntoIterator<Item = Script>) -> Self {
        let world = Arc::new(FixedWorld::at_ms(1_000));
        let clock = Arc::clone(&world);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                clock.advance_ms(1_000);
            }
        });
        let tasks = vec![json!({ "agent": "coder", "task": "Fix it.", "context": "" }); tasks];
        let lead = [
            Script::new().call("delegate", json!({ "tasks": tasks })),
            Script::new().text("All is done."),
        ];
        Self {
            journal: MemoryJournal::default().world(Arc::clone(&world)),
            world,
            lead: Arc::new(ScriptedModel::new(lead)),
            coder: Arc::new(ScriptedModel::new(coder)),
            hangs: Arc::default(),
            looks: Arc::default(),
            caps: Caps::default(),
            levels: 1,
        }
    }

    fn agents<P: Placement + 'static>(
        &self,
        placement: P,
    ) -> impl Fn(&LogInfo) -> Result<Agent, String> + Send + Sync + use<P> {
        let (registry, coder) = (Registry::new(), Arc::clone(&self.coder));
        let (hangs, looks) = (Arc::clone(&self.hangs), Arc::clone(&self.looks));
        registry.register(
            Profile::new("coder", "Writes code.").max_depth(1),
            move || {
                let spec = ToolSpec {
                    replay: Replay::Pure,
                    ..ToolSpec::new("look", "Looks.", json!({ "type": "object" }))
                };
                let (hangs, looks) = (Arc::clone(&hangs), Arc::clone(&looks));
                Agent::new(Arc::clone(&coder)).name("coder").tool(tool_fn(
                    spec,
                    move |_: Value, _| {
                        looks.fetch_add(1, Ordering::Relaxed);
                        let hangs = hangs.load(Ordering::Relaxed);
                        async move {
                            if hangs {
                                std::future::pending().await
                            } else {
                                Ok(CallResult::ok("seen"))
                            }
                        }
                    },
                ))
            },
        );
        registry.register(Profile::new("other", "Does nothing."), || {
            Agent::new(ScriptedModel::new([]))
        });
        let delegation = Delegation::new(registry)
            .max_depth(self.levels)
            .on(placement);
        let lead = Agent::new(Arc::clone(&self.lead))
            .name("lead")
            .world(Arc::clone(&self.world))
            .cap(self.caps);
        let lead = delegation.install(lead);
        move |info| match delegation.child(info) {
            Some(child) => child.map_err(|error| error.to_string()),
            None => Ok(lead.clone()),
        }
    }

    fn worker(&self) -> Fleet {
        Fleet::new(
            self.journal.clone(),
            self.agents(FleetPlacement::new(self.journal.clone())),
        )
    }

    async fn post(&self, log: &str, post: Post) {
        let log = LogId::from(log);
        if self.journal.info(&log).await.is_err() {
            drop(
                self.journal
                    .own(&log, &Owner::default())
                    .await
                    .expect("it is made"),
            );
        }
        self.journal.post(&log, post).await.expect("it is posted");
    }

    async fn prompt(&self) {
        let content = Entry::User(UserMessage::text("Get it fixed."));
        self.post(
            "lead",
            Post::Message {
                lane: Lane::FollowUp,
                content,
            },
        )
        .await;
    }

    /// Runs the lead until it waits, without any worker.
    async fn lead_waits(&self) {
        let info = LogInfo::new("lead".into(), 0);
        let lead =
            self.agents(FleetPlacement::new(self.journal.clone()))(&info).expect("it is made");
        let result = lead
            .journal(self.journal.clone())
            .session(info.log)
            .run("Get it fixed.")
            .await;
        assert_eq!(result.expect("it runs").pauses().len(), 1);
    }

    /// The sessions of children.
    async fn children(&self) -> Vec<LogInfo> {
        let mut logs = self
            .journal
            .list(&LogQuery::default())
            .await
            .expect("they are listed")
            .logs;
        logs.retain(|info| ChildRole::from_info(info).is_some());
        logs
    }

    async fn outcome(&self, log: &LogId) -> Outcome {
        let run = Sessions::new(Arc::new(self.journal.clone()))
            .transcript(log, Seq(u64::MAX))
            .await;
        run.expect("it folds")
            .outcome()
            .cloned()
            .expect("it has ended")
    }

    /// What the lead was told, once it has ended.
    fn told(&self) -> String {
        let requests = self.lead.requests();
        requests
            .last()
            .expect("it was asked")
            .entries
            .iter()
            .map(|it| format!("{:?}", it.entry))
            .collect()
    }
}

/// Runs a worker until something holds; then it is lost with what it is at, as far as others can see.
async fn until(fleet: Fleet, holds: impl Fn(&FleetStatus) -> bool) {
    let (stop, status) = (Cancel::new(), fleet.status());
    let worker = tokio::spawn(fleet.grace(Duration::ZERO).run(stop.clone()));
    let held = tokio::time::timeout(Duration::from_secs(3_600), async {
        while !holds(&status) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    assert!(held.await.is_ok(), "it never held: {status:?}");
    stop.cancel();
    worker.await.expect("no panic").expect("it ends");
}

fn ended(count: u64) -> impl Fn(&FleetStatus) -> bool {
    move |status| status.finish_count() == count && status.at_work() == 0
}

#[tokio::test(start_paused = true)]
async fn lead_is_told_once_when_its_worker_and_that_of_the_child_are_lost() {
    let stage = Stage::new(1, [Script::new().call("look", json!({})), done()]);
    stage.prompt().await;
    stage.hangs.store(true, Ordering::Relaxed);
    // The lead waits and the child is at work when the worker goes.
    until(stage.worker(), |status| {
        status.park_count() == 1 && stage.looks.load(Ordering::Relaxed) == 1
    })
    .await;
    assert!(matches!(
        stage.journal.info(&"lead".into()).await.expect("it is there").work,
        Some(Work::Parked { on, .. }) if on.starts_with("coder-fix-1, at work in coder-fix-1-")
    ));
    stage.hangs.store(false, Ordering::Relaxed);
    until(stage.worker(), ended(2)).await;
    assert!(stage.told().contains("It is fixed."), "{}", stage.told());
    let children = stage.children().await;
    assert_eq!(
        (children.len(), stage.looks.load(Ordering::Relaxed)),
        (1, 2)
    );
    assert_eq!(children[0].work, Some(Work::Idle));
    stage.lead.assert_done();
    stage.coder.assert_done();
}

#[tokio::test(start_paused = true)]
async fn child_that_ends_before_its_parent_waits_is_the_only_one() {
    let stage = Stage::new(1, [done()]);
    stage.prompt().await;
    let placement = Hanging(FleetPlacement::new(stage.journal.clone()));
    let hanging = Fleet::new(stage.journal.clone(), stage.agents(placement)).concurrency(1);
    let stop = Cancel::new();
    let lost = tokio::spawn(hanging.grace(Duration::ZERO).run(stop.clone()));
    until(stage.worker(), ended(1)).await;
    stop.cancel();
    lost.await.expect("no panic").expect("it ends");
    until(stage.worker(), ended(1)).await;
    assert!(stage.told().contains("It is fixed."), "{}", stage.told());
    assert_eq!(stage.children().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn end_of_a_child_is_told_when_its_worker_is_lost_before_it_said_so() {
    let stage = Stage::new(1, [done()]);
    stage.lead_waits().await;
    let agents = stage.agents(FleetPlacement::new(stage.journal.clone()));
    // As a worker does it, but for the last step.
    let child = stage.children().await.remove(0);
    let agent = agents(&child)
        .expect("it is made")
        .journal(stage.journal.clone())
        .session(child.log.clone());
    agent.run("Fix it.").keep_queued().await.expect("it runs");
    drop(agent);
    assert_eq!(
        stage
            .journal
            .info(&child.log)
            .await
            .expect("it is there")
            .work,
        Some(Work::Open)
    );
    until(stage.worker(), |status| status.finish_count() == 1).await;
    assert!(stage.told().contains("It is fixed."), "{}", stage.told());
    assert_eq!(
        stage
            .journal
            .info(&child.log)
            .await
            .expect("it is there")
            .work,
        Some(Work::Idle)
    );
}

#[tokio::test(start_paused = true)]
async fn lead_is_told_when_each_worker_of_its_child_dies() {
    let stage = Stage::new(1, (0..9).map(|_| Script::new().call("look", json!({}))));
    stage.lead_waits().await;
    stage.hangs.store(true, Ordering::Relaxed);
    // Whoever began the child gave it up: in memory, that counts.
    for dead in 1..u64::from(MAX_LOST_OWNERS) {
        until(stage.worker(), |_| {
            stage.looks.load(Ordering::Relaxed) == dead
        })
        .await;
    }
    until(stage.worker(), ended(1)).await;
    assert!(
        stage.told().contains("5 owners in a row left its run open"),
        "{}",
        stage.told()
    );
    assert!(matches!(
        stage.children().await[0].work,
        Some(Work::Aside { .. })
    ));
}

#[tokio::test(start_paused = true)]
async fn children_stop_when_their_parent_does() {
    for is_begun in [true, false] {
        let stage = Stage::new(1, [Script::new().call("look", json!({})), done()]);
        stage.hangs.store(true, Ordering::Relaxed);
        stage.lead_waits().await;
        if is_begun {
            until(stage.worker(), |_| stage.looks.load(Ordering::Relaxed) == 1).await;
        }
        stage.post("lead", Post::Cancel).await;
        until(stage.worker(), ended(2)).await;
        let child = stage.children().await.remove(0).log;
        for log in [&child, &"lead".into()] {
            assert!(
                matches!(stage.outcome(log).await, Outcome::Cancelled { .. }),
                "{log} {is_begun}"
            );
        }
        assert_eq!(stage.coder.requests().len(), usize::from(is_begun));
        // One that rested tells a parent that has ended: that is passed over.
        let began = tokio::time::Instant::now();
        until(stage.worker(), |_| began.elapsed() > Duration::from_secs(5)).await;
        assert_eq!(stage.journal.backlog().await.expect("it counts").due, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn children_share_what_is_left_and_what_they_use_counts() {
    let mut stage = Stage::new(2, [done(), done()]);
    stage.caps = Caps {
        tokens: Some(100_000),
        requests: Some(9),
        depth: Some(1),
        ..Caps::default()
    };
    stage.prompt().await;
    until(stage.worker(), ended(3)).await;
    let children = stage.children().await;
    assert_eq!(children.len(), 2);
    for child in &children {
        let mut records = stage.journal.read(&child.log, Seq(0));
        let began = async {
            while let Some(stamped) = records.next().await {
                if let Record::Began { limits, .. } = &stamped.expect("it reads").record {
                    return limits.caps;
                }
            }
            Caps::default()
        };
        let caps = began.await;
        // The lead has used some by then.
        assert!(
            (49_000..50_000).contains(&caps.tokens.unwrap_or_default()),
            "{caps:?}"
        );
        assert_eq!((caps.requests, caps.depth), (Some(4), Some(0)));
    }
    let sessions = Sessions::new(Arc::new(stage.journal.clone()));
    let run = sessions
        .transcript(&"lead".into(), Seq(u64::MAX))
        .await
        .expect("it folds");
    let (tally, (own, total)) = (run.request().tally(), run.usage());
    assert_eq!(
        (total.output - own.output, tally.requests, tally.tool_calls),
        (2_000, 4, 3)
    );
}

#[tokio::test(start_paused = true)]
async fn what_children_were_lent_is_not_left_for_others_until_they_have_ended() {
    let mut stage = Stage::new(0, [done(), done()]);
    let task = json!({ "tasks": [{ "agent": "coder", "task": "Fix it.", "context": "" }] });
    // Two calls at a time: the first one is lent all that is left.
    let two = Script::new()
        .call("delegate", task.clone())
        .call("delegate", task);
    stage.lead = Arc::new(ScriptedModel::new([
        two,
        Script::new().text("All is done."),
    ]));
    stage.caps = Caps {
        requests: Some(9),
        ..Caps::default()
    };
    stage.prompt().await;
    until(stage.worker(), ended(2)).await;
    assert!(
        stage.told().contains("the limit of requests is reached"),
        "{}",
        stage.told()
    );
    assert_eq!(stage.children().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn child_delegates_as_deep_as_it_may() {
    let offered = |stage: &Stage| {
        let request = stage.coder.requests().remove(0);
        request
            .tools
            .iter()
            .any(|tool| tool.name.as_str() == "delegate")
    };
    let task = json!({ "tasks": [{ "agent": "other", "task": "Look.", "context": "" }] });
    for (levels, depth, may) in [(1, None, false), (2, None, true), (2, Some(1), true)] {
        let mut stage = Stage::new(1, [Script::new().call("delegate", task.clone()), done()]);
        (stage.levels, stage.caps.depth) = (levels, depth);
        stage.prompt().await;
        let is_nested = may && depth.is_none();
        until(stage.worker(), ended(2 + u64::from(is_nested))).await;
        assert_eq!(
            (offered(&stage), stage.children().await.len()),
            (may, 1 + usize::from(is_nested)),
            "{levels} {depth:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn call_has_a_result_when_its_child_fails() {
    let fail = || Error::new(ErrorKind::Auth, "no key");
    let stage = Stage::new(1, [Script::new().fail(fail())]);
    stage.prompt().await;
    until(stage.worker(), ended(2)).await;
    assert!(stage.told().contains("no key"), "{}", stage.told());

    // Its agent cannot be made.
    let stage = Stage::new(1, []);
    stage.prompt().await;
    let agents = stage.agents(FleetPlacement::new(stage.journal.clone()));
    let lead_only = move |info: &LogInfo| {
        if ChildRole::from_info(info).is_some() {
            Err("no coder".into())
        } else {
            agents(info)
        }
    };
    until(Fleet::new(stage.journal.clone(), lead_only), ended(1)).await;
    assert!(
        stage
            .told()
            .contains("set aside: its agent cannot be made: no coder"),
        "{}",
        stage.told()
    );

    // It is gone, and nobody tells: after a while it is looked for.
    let stage = Stage::new(1, []);
    stage.lead_waits().await;
    let child = stage.children().await.remove(0);
    stage
        .journal
        .delete(&child.log)
        .await
        .expect("it is deleted");
    stage.world.advance_ms(600_000);
    until(stage.worker(), ended(1)).await;
    assert!(
        stage.told().contains("its session is gone"),
        "{}",
        stage.told()
    );
}
