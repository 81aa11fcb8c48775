//! What stands around a turn and does nothing: effects that look, hooks that pass, middlewares that go on.

use std::hint::black_box;

use adjutant_agent::{
    Action, Agent, DriveContext, Effect, EffectContext, EffectError, Failure, HookContext,
    Middleware, NextDrive, RunResult, Verdict,
    points::{AfterTool, BeforeModel, BeforeTool},
};
use async_trait::async_trait;

/// An effect that looks and does nothing.
struct Idle(&'static str);

/// A middleware that only goes on.
struct Through;

/// The agent with 5 effects, 3 hooks and 2 middlewares that do nothing.
pub(crate) fn loaded(agent: Agent) -> Agent {
    let agent = ["one", "two", "three", "four", "five"]
        .into_iter()
        .fold(agent, |it, kind| it.effect(Idle(kind)));
    agent
        .on(|_: HookContext, point: BeforeModel| async { Verdict::Pass(point) })
        .on(|_: HookContext, point: BeforeTool| async { Verdict::Pass(point) })
        .on(|_: HookContext, point: AfterTool| async { Verdict::Pass(point) })
        .middleware(Through)
        .middleware(Through)
}

#[async_trait]
impl Effect for Idle {
    fn kind(&self) -> &str {
        self.0
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        black_box(cx.tokens);
        Ok(Vec::new())
    }
}

#[async_trait]
impl Middleware for Through {
    fn name(&self) -> &str {
        "through"
    }

    async fn drive(&self, cx: DriveContext, next: NextDrive<'_>) -> Result<RunResult, Failure> {
        next.run(cx).await
    }
}
