//! The run that is cut: an agent and one under it, with tools of all four classes, and questions to whoever is there.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use adjutant::{
    Agent, CallContext, Replay, ToolError,
    agent::{AtLimit, Limits, LogId, Spawn},
    llm::{
        CallResult, ChunkStream, Entry, FixedWorld, Model, ModelInfo, Request, Script,
        ScriptedModel, Usage, model_fn,
    },
    tools::{Approval, ToolSpec, external_tool, tool_fn},
};
use futures_util::StreamExt;
use serde_json::{Value, json};

use super::cutting::{Cutting, Fuel};

/// The name of the log.
pub(crate) const LOG: &str = "whole";

/// A deed: by which agent, in which turn and at which place of it, and which one.
type Deed = (Arc<str>, u64, u32, &'static str);

/// What was done to the world, which no crash undoes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Deeds(Arc<Mutex<BTreeMap<Deed, u32>>>);

impl Deeds {
    fn note(&self, cx: &CallContext, deed: &'static str) {
        let call = cx.who.call.expect("a call of a run");
        let deed = (Arc::clone(&cx.who.name), call.turn, call.block, deed);
        *self
            .0
            .lock()
            .expect("nobody panics inside")
            .entry(deed)
            .or_default() += 1;
    }

    /// Nothing else was done than without a cut; what may be done once was, and what may be repeated was at least once.
    pub(crate) fn check(&self, whole: &Self, fuel: &Fuel) {
        let (here, whole) = (
            self.0.lock().expect("nobody panics"),
            whole.0.lock().expect("nobody panics"),
        );
        for (deed, times) in &*here {
            assert!(
                whole.contains_key(deed),
                "{deed:?} is done only when it is cut at {fuel:?}"
            );
            let again = matches!(deed.3, "look" | "put");
            assert!(
                again || *times == 1,
                "{deed:?} was done {times} times, cut at {fuel:?}"
            );
        }
        let missing = whole
            .keys()
            .find(|deed| matches!(deed.3, "look" | "put") && !here.contains_key(*deed));
        assert_eq!(missing, None, "cut at {fuel:?}");
    }
}

/// Makes the agents of one program.
#[derive(Debug, Clone)]
pub(crate) struct Desk {
    deeds: Deeds,
    fuel: Fuel,
}

impl Desk {
    pub(crate) fn new(deeds: &Deeds, fuel: &Fuel) -> Self {
        Self {
            deeds: deeds.clone(),
            fuel: fuel.clone(),
        }
    }

    /// The agent of a new program on the log.
    pub(crate) fn agent(&self, journal: Cutting) -> Agent {
        let desk = self.clone();
        let work = tool_fn(
            spec("work", Replay::Resumable),
            move |_: Value, cx: CallContext| {
                let desk = desk.clone();
                async move {
                    let spawn = cx.get::<dyn Spawn>().expect("a call of a run");
                    let child = spawn.open("below", desk.child().into()).await?;
                    Ok(CallResult::ok(child.run("Help.").await?.text()))
                }
            },
        );
        let agent = self
            .with_tools(Agent::new(self.model(&["work", "away"], "Done.")))
            .name("boss");
        let agent = agent
            .tool(work)
            .tool(external_tool(spec("away", Replay::Once)));
        agent
            .world(FixedWorld::at_ms(1_000))
            .journal(journal)
            .session(LogId(LOG.into()))
            .take_over()
    }

    /// It may ask its model once, and asks for more.
    fn child(&self) -> Agent {
        let agent = Agent::new(self.model(&["look", "write"], "Helped.")).name("child");
        self.with_tools(agent).limits(Limits {
            max_turns: Some(1),
            at_limit: AtLimit::Ask,
            ..Limits::default()
        })
    }

    fn with_tools(&self, agent: Agent) -> Agent {
        let deed = |name: &'static str, replay, change: fn(ToolSpec) -> ToolSpec| {
            let desk = self.clone();
            tool_fn(
                change(spec(name, replay)),
                move |_: Value, cx: CallContext| {
                    let desk = desk.clone();
                    async move {
                        desk.act(&cx, name).await;
                        Ok(CallResult::ok(name))
                    }
                },
            )
        };
        let agent = agent.tool(deed("look", Replay::Pure, |spec| spec));
        let agent = agent.tool(deed("put", Replay::Idempotent, |spec| spec));
        let agent = agent.tool(deed("write", Replay::Once, |spec| ToolSpec {
            approval: Approval::Always,
            ..spec
        }));
        let desk = self.clone();
        let steps = spec("steps", Replay::Resumable);
        agent.tool(tool_fn(steps, move |_: Value, cx: CallContext| {
            desk.clone().steps(cx)
        }))
    }

    async fn act(&self, cx: &CallContext, name: &'static str) {
        self.fuel.step().await;
        self.deeds.note(cx, name);
        self.fuel.step().await;
    }

    /// Two steps with a question between them.
    async fn steps(self, cx: CallContext) -> Result<CallResult, ToolError> {
        cx.once("first", || async {
            self.act(&cx, "first").await;
            Ok(())
        })
        .await?;
        let answer = cx.ask("between", "Go on?").await?;
        cx.once("second", || async {
            self.act(&cx, "second").await;
            Ok(())
        })
        .await?;
        Ok(CallResult::ok(answer.to_string()))
    }

    /// Calls the four tools, then these, and then says the last word; it remembers nothing from request to request.
    fn model(&self, then: &'static [&'static str], last: &'static str) -> impl Model + use<> {
        let fuel = self.fuel.clone();
        model_fn(
            ModelInfo::new("test/model"),
            move |request: Request| -> ChunkStream {
                let turns = request
                    .entries
                    .iter()
                    .filter(|stored| matches!(stored.entry, Entry::Turn(_)))
                    .count();
                let script = Script::new().usage(Usage {
                    input_uncached: 100,
                    output: 10,
                    ..Usage::default()
                });
                let call = |script: Script, name: &&'static str| script.call(*name, json!({}));
                let script = match turns {
                    0 => ["look", "put", "write", "steps"]
                        .iter()
                        .fold(script.text("Let me see."), call),
                    1 => then.iter().fold(script, call),
                    _ => script.text(last),
                };
                let fuel = fuel.clone();
                Box::pin(
                    ScriptedModel::new([script])
                        .stream(request)
                        .then(move |chunk| {
                            let fuel = fuel.clone();
                            async move {
                                fuel.step().await;
                                chunk
                            }
                        }),
                )
            },
        )
    }
}

fn spec(name: &'static str, replay: Replay) -> ToolSpec {
    ToolSpec {
        replay,
        ..ToolSpec::new(name, "A tool.", json!({"type": "object"}))
    }
}
