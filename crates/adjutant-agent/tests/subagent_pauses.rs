//! What agents under agents wait for: it reaches the first one, and the answers find their way back.

#[expect(dead_code, reason = "several targets share it, each uses its part")]
#[path = "subagents/desk.rs"]
mod desk;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use adjutant_agent::{
    Agent, Answered, AtLimit, Flush, Journal, Limits, LogId, MemoryJournal, Outcome, Owner, Record,
    RunResult, Stamped,
};
use adjutant_llm::{CallResult, FixedWorld, Model, ScriptedModel, Status};
use adjutant_tool::{Answer, Replay};
use desk::{calls, open, record, records, results, said, says, tool};

/// An agent that needs two requests and may make one: it asks for more.
fn needy(model: impl Model + 'static) -> Agent {
    let step = tool("step", Replay::Pure, |_| async {
        Ok(CallResult::ok("stepped"))
    });
    Agent::new(model).name("needy").tool(step).limits(Limits {
        max_turns: Some(1),
        at_limit: AtLimit::Ask,
        ..Limits::default()
    })
}

/// The models and the counts of one session, over several programs.
struct Case {
    journal: MemoryJournal,
    boss: Arc<ScriptedModel>,
    below: Vec<Arc<ScriptedModel>>,
    entered: Arc<AtomicUsize>,
}

impl Case {
    fn new(children: usize) -> Self {
        let below = |_| Arc::new(ScriptedModel::new([calls(&["step"]), says("Stepped on.")]));
        Self {
            journal: MemoryJournal::default(),
            boss: Arc::new(ScriptedModel::new([calls(&["work"]), says("Done.")])),
            below: (0..children).map(below).collect(),
            entered: Arc::default(),
        }
    }

    /// The agent of a new program: it has opened one quick child and the needy ones when it waits.
    fn agent(&self, replay: Replay) -> Agent {
        let (below, entered) = (self.below.clone(), Arc::clone(&self.entered));
        let work = tool("work", replay, move |cx| {
            let (below, entered) = (below.clone(), Arc::clone(&entered));
            async move {
                entered.fetch_add(1, Ordering::Relaxed);
                // Answered once; a second request would have no script.
                let quick = Arc::new(ScriptedModel::new([says("Quick.")]));
                let quick = open(&cx, "quick", Agent::new(quick))
                    .await?
                    .run("Well?")
                    .await?;
                let mut runs = Vec::new();
                for (number, model) in below.into_iter().enumerate() {
                    runs.push(
                        open(&cx, &format!("k{number}"), needy(model))
                            .await?
                            .stream("Step.")?,
                    );
                }
                let mut texts = vec![quick.text()];
                for run in runs {
                    texts.push(run.finish().await?.text());
                }
                Ok(CallResult::ok(texts.join(" ")))
            }
        });
        let agent = Agent::new(Arc::clone(&self.boss))
            .name("boss")
            .tool(work)
            .world(FixedWorld::at_ms(1_000));
        agent
            .journal(self.journal.clone())
            .session(LogId("log".into()))
            .take_over()
    }

    async fn log(&self) -> Vec<Arc<Stamped>> {
        records(&self.journal, &LogId("log".into())).await
    }
}

fn extend(result: &RunResult) -> Vec<Answered> {
    let Outcome::Paused { pauses } = &result.outcome else {
        unreachable!("not paused: {:?}", result.outcome)
    };
    pauses
        .iter()
        .map(|pause| {
            pause.with_answer(Answer::Extend {
                by: 5,
                message: None,
            })
        })
        .collect()
}

async fn goes_on(case: &Case, agent: &Agent, answers: Vec<Answered>) {
    let children = case.below.len();
    let result = agent.resume(answers).await.expect("the run finishes");
    assert_eq!(
        results(&result),
        [format!("Quick.{}", " Stepped on.".repeat(children))]
    );
    assert_eq!(
        (result.text().as_str(), case.entered.load(Ordering::Relaxed)),
        ("Done.", 2)
    );
    assert_eq!(
        result.total_usage.total() as usize,
        110 * (2 + 1 + 2 * children),
        "everything once"
    );
    case.boss.assert_done();
    case.below.iter().for_each(|model| model.assert_done());
    let log = case.log().await;
    let of = |name: &str| log.iter().filter(|it| record(&it.record) == name).count();
    assert_eq!(
        (of("child_opened"), of("child_ended"), of("suspended")),
        (children + 1, children + 1, 1)
    );
    assert_eq!(
        (of("began"), of("ended"), of("resumed")),
        (children + 2, children + 2, children + 1)
    );
}

#[tokio::test]
async fn child_waits_with_its_parent_when_nobody_answers() {
    let case = Case::new(1);
    let agent = case.agent(Replay::Resumable);
    let paused = agent.run("Go.").await.expect("the run waits");
    let answers = extend(&paused);
    assert_eq!(answers.len(), 1);
    assert!(
        answers[0].pause.0.starts_with("main/c1_0_0/k0/limit/"),
        "{:?}",
        answers[0]
    );
    goes_on(&case, &agent, answers).await;
}

#[tokio::test]
async fn pauses_come_together_when_several_children_wait() {
    let case = Case::new(3);
    let agent = case.agent(Replay::Resumable);
    let paused = agent.run("Go.").await.expect("the run waits");
    assert_eq!(extend(&paused).len(), 3);
    goes_on(&case, &agent, extend(&paused)).await;
}

#[tokio::test]
async fn child_goes_on_in_another_program_when_the_log_is_opened() {
    let case = Case::new(2);
    let paused = case
        .agent(Replay::Resumable)
        .run("Go.")
        .await
        .expect("the run waits");
    goes_on(&case, &case.agent(Replay::Resumable), extend(&paused)).await;
}

#[tokio::test]
async fn answer_of_a_child_changes_nothing_above_when_it_extends_a_limit() {
    let case = Case::new(1);
    let agent = case.agent(Replay::Resumable).limits(Limits {
        max_turns: Some(2),
        ..Limits::default()
    });
    let paused = agent.run("Go.").await.expect("the run waits");
    let declined = extend(&paused)
        .into_iter()
        .map(|it| Answered {
            answer: Answer::Decline { message: None },
            ..it
        })
        .collect();
    let result = agent.resume(declined).await.expect("the run finishes");
    assert!(result.is_finished(), "{:?}", result.outcome);
    // A last turn without tools, then the end: the child answered with what it had.
    assert_eq!(results(&result), ["Quick. Stepped on."]);
}

#[tokio::test]
async fn child_is_given_up_when_its_call_cannot_wait() {
    let case = Case::new(1);
    let agent = case.agent(Replay::Once);
    let result = agent.run("Go.").await.expect("the run finishes");
    let call = &result.calls[0].result;
    let text = "nobody can be asked what the agent waits for: main/c1_0_0/k0/limit/1/1/0";
    assert_eq!((call.status, call.text().as_str()), (Status::Failed, text));
    let log = case.log().await;
    let ended = log
        .iter()
        .filter(|it| matches!(&it.record, Record::Ended { .. }))
        .count();
    assert_eq!(ended, 3, "its run is closed too");
}

#[tokio::test]
async fn deep_pauses_reach_the_first_agent_when_nobody_between_can_answer() {
    let journal = MemoryJournal::default();
    let leaf = Arc::new(ScriptedModel::new([calls(&["step"]), says("Deep.")]));
    let middle = Arc::new(ScriptedModel::new([calls(&["work"]), says("Middle.")]));
    let (leaf_in, middle_in) = (Arc::clone(&leaf), Arc::clone(&middle));
    let work = tool("work", Replay::Resumable, move |cx| {
        let (leaf, middle) = (Arc::clone(&leaf_in), Arc::clone(&middle_in));
        async move {
            let work = tool("work", Replay::Resumable, move |cx| {
                let leaf = Arc::clone(&leaf);
                async move {
                    Ok(said(
                        &open(&cx, "leaf", needy(leaf)).await?.run("Step.").await?,
                    ))
                }
            });
            Ok(said(
                &open(&cx, "middle", Agent::new(middle).tool(work))
                    .await?
                    .run("Go.")
                    .await?,
            ))
        }
    });
    let agent = Agent::new(ScriptedModel::new([calls(&["work"]), says("Done.")]))
        .tool(work)
        .journal(journal);
    let paused = agent.run("Go.").await.expect("the run waits");
    assert!(
        extend(&paused)[0]
            .pause
            .0
            .starts_with("main/c1_0_0/middle/c1_0_0/leaf/limit")
    );
    let result = agent
        .resume(extend(&paused))
        .await
        .expect("the run finishes");
    assert_eq!(
        (results(&result), result.text()),
        (vec!["Middle.".to_owned()], "Done.".to_owned())
    );
    leaf.assert_done();
    middle.assert_done();
}

/// A journal that holds a copy of the first records of a log.
async fn cut(log: &[Arc<Stamped>], at: usize) -> MemoryJournal {
    let journal = MemoryJournal::default();
    let mut owned = journal
        .own(
            &LogId("log".into()),
            &Owner {
                takes_over: true,
                ..Owner::default()
            },
        )
        .await
        .expect("memory does not fail");
    owned
        .append(&log[..at], Flush::Now)
        .await
        .expect("memory does not fail");
    journal
}

#[tokio::test]
async fn children_go_on_when_the_program_died_at_any_place() {
    // Written once by a model that knows all answers; a cut log needs only those that are not in it.
    let answer = |texts: &'static [&'static str]| {
        move |request: adjutant_llm::Request| {
            let said = request
                .entries
                .iter()
                .filter(|it| matches!(it.entry, adjutant_llm::Entry::Turn(_)))
                .count();
            let script = if texts[said].starts_with('!') {
                calls(&["work"])
            } else {
                says(texts[said])
            };
            ScriptedModel::new([script]).stream(request)
        }
    };
    let agent = |journal: MemoryJournal| {
        let info = || adjutant_llm::ModelInfo::new("scripted/model");
        let work = tool("work", Replay::Resumable, move |cx| async move {
            let one = open(
                &cx,
                "a",
                Agent::new(adjutant_llm::model_fn(info(), answer(&["One.", "Two."]))),
            )
            .await?;
            let first = one.run("First.").await?.text();
            Ok(CallResult::ok(format!(
                "{first} {}",
                one.run("Second.").await?.text()
            )))
        });
        let boss = adjutant_llm::model_fn(info(), answer(&["!", "Done."]));
        let agent = Agent::new(boss).tool(work).world(FixedWorld::at_ms(1_000));
        agent.journal(journal).session(LogId("log".into()))
    };
    let whole = MemoryJournal::default();
    agent(whole.clone())
        .run("Go.")
        .await
        .expect("the run finishes");
    let log = records(&whole, &LogId("log".into())).await;
    let launched = log
        .iter()
        .position(|it| matches!(it.record, Record::Launched { .. }))
        .expect("launched");
    assert!(log.len() > launched + 15, "{}", log.len());
    for at in launched + 1..log.len() {
        let result = agent(cut(&log, at).await)
            .resume(Vec::new())
            .await
            .unwrap_or_else(|error| panic!("{at}: {error:?}"));
        assert_eq!(
            (results(&result), result.text()),
            (vec!["One. Two.".to_owned()], "Done.".to_owned()),
            "cut at {at}"
        );
        assert_eq!(result.total_usage.total(), 110 * 4, "cut at {at}");
    }
}

#[tokio::test]
async fn what_a_child_used_is_not_lost_when_the_program_died_and_nobody_enters_its_call_again() {
    let whole = MemoryJournal::default();
    let agent = |journal: MemoryJournal| {
        let work = tool("work", Replay::Once, |cx| async move {
            let deep = tool("work", Replay::Once, |cx| async move {
                let step = tool("step", Replay::Pure, |_| async {
                    Ok(CallResult::ok("stepped"))
                });
                let leaf =
                    Agent::new(ScriptedModel::new([calls(&["step"]), says("Leaf.")])).tool(step);
                Ok(said(&open(&cx, "leaf", leaf).await?.run("Go.").await?))
            });
            let middle =
                Agent::new(ScriptedModel::new([calls(&["work"]), says("Middle.")])).tool(deep);
            Ok(said(&open(&cx, "middle", middle).await?.run("Go.").await?))
        });
        let boss = ScriptedModel::new([calls(&["work"]), says("Done.")]);
        Agent::new(boss)
            .tool(work)
            .world(FixedWorld::at_ms(1_000))
            .journal(journal)
            .session(LogId("log".into()))
            .take_over()
    };
    agent(whole.clone())
        .run("Go.")
        .await
        .expect("the run finishes");
    let log = records(&whole, &LogId("log".into())).await;
    let first_return = |it: &Arc<Stamped>| {
        matches!(&it.record, Record::Returned { .. }) && it.thread.as_str() == "main"
    };
    let returned = log.iter().position(first_return).expect("it returns");
    for at in 5..returned {
        let journal = cut(&log, at).await;
        let replies = |log: &[Arc<Stamped>]| {
            log.iter()
                .filter(|it| record(&it.record) == "replied")
                .count() as u64
        };
        let used = 110 * replies(&log[..at]);
        agent(journal.clone())
            .run("Again.")
            .await
            .expect("the run finishes");
        let mut run = adjutant_agent::Run::default();
        let mut total = None;
        for stamped in records(&journal, &LogId("log".into()))
            .await
            .iter()
            .filter(|it| it.thread.as_str() == "main")
        {
            run.apply(stamped).expect("it folds");
            if total.is_none() && matches!(stamped.record, Record::Ended { .. }) {
                total = run
                    .result(&Arc::new(agent(whole.clone()).identity().clone()))
                    .map(|it| it.total_usage.total());
            }
        }
        assert_eq!(total, Some(used), "cut at {at}");
    }
}
