//! Who takes part in a session: the model, hooks, effects, middleware and whoever answers, as the plan wants them.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
};

use adjutant_agent::{
    Action, Agent, BoxDrive, Completion, DriveContext, Effect, EffectContext, EffectError, Failure,
    Hook, HookContext, Hooks, Lane, Limit, NextDrive, Outcome, Pause, Phase, Point, Verdict,
    effects, middleware_fn,
    points::{
        AfterAgent, AfterModel, AfterRun, AfterTool, AfterTurn, BeforeAgent, BeforeModel,
        BeforeRun, BeforeTool, MessagePlaced, MessageQueued, ModelError, NextTurn, PauseAnswered,
        Pausing, ToolError, UserMessage,
    },
};
use adjutant_llm::{
    Block, CallResult, Edit, Entry, Error, ErrorKind, FinishReason, Model, ModelInfo, Reply,
    Request, Script, ScriptedModel, Summary, Usage, model_fn,
};
use adjutant_tool::{Answer, Ask, AskKind};
use serde_json::json;

use super::{
    plan::{Around, Deed, Gear, Reaction, Say, Writing},
    tools::World,
};

/// How many tokens the models take.
const WINDOW: u64 = 900;

/// A list that is gone through again and again, by whoever comes next.
#[derive(Debug, Clone)]
struct Cycle<T> {
    list: Arc<[T]>,
    at: Arc<AtomicUsize>,
}

impl<T: Copy> Cycle<T> {
    fn new(list: &[T]) -> Self {
        Self {
            list: list.into(),
            at: Arc::default(),
        }
    }

    fn next(&self) -> T {
        self.list[self.at.fetch_add(1, Ordering::Relaxed) % self.list.len()]
    }
}

pub(crate) fn info() -> ModelInfo {
    ModelInfo {
        context_window: WINDOW,
        max_output_tokens: 100,
        ..ModelInfo::new("test/worker")
    }
}

/// An agent with all that the plan wants around its model.
pub(crate) fn equip(gear: &Gear, world: &World, agent: Agent) -> Agent {
    let mut agent = world
        .equip(agent)
        .drain(Lane::Steering, gear.drains.0)
        .drain(Lane::FollowUp, gear.drains.1);
    if !gear.says.is_empty() {
        agent = agent.hooks(hooks(&Cycle::new(&gear.says)));
    }
    if gear.masks {
        agent = agent.effect(effects::TrimResults {
            max_chars: 100,
            recent: 1,
            min_gain: 0.01,
        });
        agent = agent.effect(effects::ObservationMask {
            threshold: 0.2,
            recent: 2,
            min_gain: 0.01,
        });
        agent = agent.effect(effects::LoopDetect {
            threshold: 2,
            ..effects::LoopDetect::default()
        });
    }
    if !gear.deeds.is_empty() {
        let writer = writer(&Cycle::new(&[Writing::Good, Writing::Fails]), &world.helped);
        let does = Does {
            deeds: Cycle::new(&gear.deeds),
            writer,
            helped: Arc::clone(&world.helped),
        };
        agent = agent.effect(does);
    }
    if !gear.summaries.is_empty() {
        let model = writer(&Cycle::new(&gear.summaries), &world.helped);
        let compact = adjutant_context::Compact {
            threshold: 0.4,
            reserve_tokens: Some(100),
            keep_recent_tokens: 60,
            ..adjutant_context::Compact::default()
        };
        agent = agent.effect(adjutant_context::Compact {
            min_gain: 0.02,
            max_summary_tokens: 40,
            model: Some(Arc::new(model)),
            ..compact
        });
    }
    if !gear.around.is_empty() {
        let around = Cycle::new(&gear.around);
        agent = agent.middleware(middleware_fn("around", move |cx, next| {
            surround(around.next(), cx, next)
        }));
    }
    if !gear.reactions.is_empty() {
        let reactions = Cycle::new(&gear.reactions);
        agent = agent.responder(move |_, pause: Pause| {
            let reaction = reactions.next();
            async move { react(reaction, &pause.ask) }
        });
    }
    agent
}

fn react(reaction: Reaction, ask: &Ask) -> Option<Answer> {
    match reaction {
        Reaction::Nobody => None,
        Reaction::Fits(choice) => Some(answer(ask, choice)),
        Reaction::Misfits => Some(Answer::Extend {
            by: 0,
            message: None,
        }),
        Reaction::Panics => std::panic::resume_unwind(Box::new("on purpose")),
    }
}

/// One of the answers that fit.
pub(crate) fn answer(ask: &Ask, choice: u8) -> Answer {
    let of = |answers: Vec<Answer>| answers[usize::from(choice) % answers.len()].clone();
    match ask.kind {
        AskKind::Approval => of(vec![
            Answer::approve(),
            Answer::approve_with(r#"{"n":3}"#),
            Answer::Approve {
                args: None,
                for_run: true,
            },
            Answer::deny("no"),
            Answer::approve_with("{}"),
            Answer::Expired,
        ]),
        AskKind::Question => of(vec![
            Answer::give(1),
            Answer::give("this"),
            Answer::Decline { message: None },
            Answer::Expired,
        ]),
        AskKind::External => of(vec![
            Answer::Return {
                result: CallResult::ok("there").into(),
            },
            Answer::Decline { message: None },
            Answer::Expired,
        ]),
        AskKind::Limit => of(vec![
            Answer::Extend {
                by: 1,
                message: None,
            },
            Answer::Extend {
                by: 2,
                message: Some("Hurry up.".into()),
            },
            Answer::Decline { message: None },
            Answer::Expired,
        ]),
        _ => Answer::Expired,
    }
}

/// A summariser; what it used is counted.
fn writer(writings: &Cycle<Writing>, helped: &Arc<Mutex<Usage>>) -> Arc<dyn Model> {
    let (writings, helped) = (writings.clone(), Arc::clone(helped));
    Arc::new(model_fn(
        ModelInfo {
            context_window: WINDOW,
            ..ModelInfo::new("test/writer")
        },
        move |request: Request| {
            let usage = Usage {
                input_uncached: 11,
                output: 5,
                ..Usage::default()
            };
            let script = match writings.next() {
                Writing::Good => Script::new().text("what was said before, in short"),
                Writing::Empty => Script::new().text(" "),
                Writing::Fails => {
                    Script::new().fail(Error::new(ErrorKind::Network, "the connection broke"))
                }
                Writing::Calls => Script::new().call("echo", json!({"n": 1})),
            };
            *helped.lock().expect("nobody panics inside") += usage;
            ScriptedModel::new([script.usage(usage)]).stream(request)
        },
    ))
}

/// An effect that does one deed after the other.
struct Does {
    deeds: Cycle<Deed>,
    writer: Arc<dyn Model>,
    helped: Arc<Mutex<Usage>>,
}

#[async_trait::async_trait]
impl Effect for Does {
    fn kind(&self) -> &str {
        "does"
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        let deed = self.deeds.next();
        let shown = cx.view.items();
        Ok(match deed {
            Deed::Nothing => Vec::new(),
            Deed::Remind => vec![Action::Remind("Mind the time.".into())],
            Deed::Hide => vec![Action::Hide(vec![
                "echo".into(),
                "write".into(),
                "nobody".into(),
            ])],
            Deed::Mask => {
                let user = shown
                    .iter()
                    .find(|stored| matches!(stored.entry, Entry::User(_)));
                let masked = user.map(|stored| Edit::Replace {
                    at: stored.id,
                    with: Entry::User("[masked]".into()),
                });
                masked.into_iter().map(Action::Edit).collect()
            }
            Deed::Fold => {
                let half = shown.len() / 2;
                let upto = shown
                    .iter()
                    .nth(half.saturating_sub(1))
                    .filter(|_| half > 0);
                let into = Summary {
                    text: "so far".into(),
                    covers: half as u64,
                };
                let fold = upto.map(|stored| Edit::Fold {
                    upto: stored.id,
                    keep: Vec::new(),
                    into,
                });
                fold.into_iter().map(Action::Edit).collect()
            }
            Deed::Misfit => {
                vec![Action::Edit(Edit::Replace {
                    at: cx.history.next_id(),
                    with: Entry::User("nowhere".into()),
                })]
            }
            Deed::Remember => {
                let before = cx.memo::<u64>().unwrap_or_default();
                vec![Action::Remember(if before > 2 {
                    json!(null)
                } else {
                    json!(before + 1)
                })]
            }
            Deed::Report => vec![Action::Report(json!({"tokens": cx.tokens}))],
            Deed::Charge if cx.phase != Phase::Preview => {
                let usage = Usage {
                    output: 2,
                    ..Usage::default()
                };
                *self.helped.lock().expect("nobody panics inside") += usage;
                vec![Action::Charge(usage)]
            }
            Deed::Charge => Vec::new(),
            Deed::Ask => {
                // What it says, and whether it says anything, is of no interest here.
                let _ = cx.complete(&self.writer, Request::new()).await;
                Vec::new()
            }
            Deed::Stop => vec![Action::Stop(Limit::Named("enough".into()))],
            Deed::Fail => return Err(EffectError::new("it did not work")),
            Deed::Panic => std::panic::resume_unwind(Box::new("on purpose")),
        })
    }
}

fn surround<'a>(around: Around, mut cx: DriveContext, next: NextDrive<'a>) -> BoxDrive<'a> {
    let failure = || Failure::Middleware {
        message: "on purpose".into(),
    };
    Box::pin(async move {
        match around {
            Around::Through => next.run(cx).await,
            Around::Judges => {
                let mut result = next.run(cx).await?;
                result.outcome = Outcome::Finished {
                    reply: reply("judged"),
                    why: Completion::Stopped,
                };
                Ok(result)
            }
            Around::Fails => next.run(cx).await.and(Err(failure())),
            Around::Skips => Err(failure()),
            Around::PanicsBefore => std::panic::resume_unwind(Box::new("on purpose")),
            Around::PanicsAfter => {
                let _ended = next.run(cx).await;
                std::panic::resume_unwind(Box::new("on purpose"))
            }
            Around::Leaves(polls) => {
                let (mut driven, mut left) = (pin!(next.run(cx)), polls);
                poll_fn(|cx| {
                    if left == 0 {
                        return Poll::Ready(Err(failure()));
                    }
                    left -= 1;
                    driven.as_mut().poll(cx)
                })
                .await
            }
            Around::Prompts => {
                cx.prompts = Arc::from([Entry::User("Something else.".into())]);
                next.run(cx).await
            }
        }
    })
}

fn reply(text: &str) -> Arc<Reply> {
    let mut reply = Reply::new("test/hook".into(), FinishReason::End);
    reply.blocks = vec![Arc::new(Block::text(text))];
    Arc::new(reply)
}

/// A hook of every point.
fn hooks(says: &Cycle<Say>) -> Hooks {
    let hooks = Hooks::default().on(hook::<BeforeRun>(says, |_| {}));
    let hooks = hooks.on(hook::<UserMessage>(says, |point| {
        point.message = "Changed.".into()
    }));
    let hooks = hooks.on(hook::<BeforeAgent>(says, |point| {
        point.answer = Some(reply("answered"))
    }));
    let hooks = hooks.on(hook::<BeforeModel>(says, |point| {
        point.hidden = vec!["pure".into()];
        point.edits = vec![Edit::Append {
            entry: Entry::User("By a hook.".into()),
        }];
        point.once = vec![Edit::Append {
            entry: Entry::User("Only now.".into()),
        }];
    }));
    let hooks = hooks.on(hook::<AfterModel>(says, |point| {
        let reply = Arc::make_mut(&mut point.reply);
        reply
            .blocks
            .retain(|block| matches!(**block, Block::Call(_)));
    }));
    let hooks = hooks.on(hook::<ModelError>(says, |point| {
        point.reply = Some(reply("recovered"))
    }));
    let hooks = hooks.on(hook::<BeforeTool>(says, |point| {
        point.args = json!({"n": 9})
    }));
    let hooks = hooks.on(hook::<ToolError>(says, |point| {
        point.result = CallResult::ok("never mind")
    }));
    let hooks = hooks.on(hook::<AfterTool>(says, |point| {
        point.result = CallResult::ok("other")
    }));
    let hooks = hooks.on(hook::<NextTurn>(says, |point| {
        point.change.edits = vec![Edit::Append {
            entry: Entry::User("By the way.".into()),
        }];
        point.change.tools = Some(vec!["echo".into(), "body".into(), "write".into()]);
    }));
    let hooks = hooks.on(hook::<AfterTurn>(says, |point| point.stop = true));
    let hooks = hooks.on(hook::<AfterAgent>(says, |point| {
        point.reply = Some(reply("at last"))
    }));
    let hooks = hooks.on(hook::<AfterRun>(says, |_| {}));
    let hooks = hooks.on(hook::<MessageQueued>(says, |_| {}));
    let hooks = hooks.on(hook::<MessagePlaced>(says, |point| {
        point.content = Entry::User("Placed.".into())
    }));
    let hooks = hooks.on(hook::<Pausing>(says, |_| {}));
    hooks.on(hook::<PauseAnswered>(says, |point| {
        point.answer = Answer::Expired
    }))
}

fn hook<P: Point>(says: &Cycle<Say>, change: fn(&mut P)) -> impl Hook<P> + 'static {
    let says = says.clone();
    move |_: HookContext, mut point: P| {
        let said = says.next();
        async move {
            match said {
                Say::Pass => {}
                Say::Change => change(&mut point),
                Say::Deny => return Ok(Verdict::Deny("no".into())),
                Say::Fail => return Err("it failed"),
                Say::Panic => std::panic::resume_unwind(Box::new("on purpose")),
            }
            tokio::task::yield_now().await;
            Ok(Verdict::Pass(point))
        }
    }
}
