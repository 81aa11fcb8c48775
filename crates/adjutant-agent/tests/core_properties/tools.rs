//! The tools of a session, and what they do to the world: how often, and how many at a time.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use adjutant_agent::Agent;
use adjutant_llm::{CallId, CallResult, Terminate, Usage};
use adjutant_tool::{
    Approval, Ask, CallContext, Progress, Replay, ToolError, ToolSpec, external_tool, tool_fn,
};
use serde_json::{Value, json};

/// How a spec is changed.
type Change = fn(ToolSpec) -> ToolSpec;

/// What a program that ends does not take with it.
#[derive(Debug, Clone, Default)]
pub(crate) struct World {
    /// How often the bodies of calls, and steps of them, were run.
    pub(crate) ran: Arc<Mutex<BTreeMap<(CallId, &'static str), u32>>>,
    /// What helpers of the model used, and what tools charged.
    pub(crate) helped: Arc<Mutex<Usage>>,
    at_work: Arc<AtomicUsize>,
    peak: Arc<AtomicUsize>,
}

/// A body at work.
struct AtWork(Arc<AtomicUsize>);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl World {
    /// The most bodies that were at work together since this was asked last.
    pub(crate) fn peak(&self) -> usize {
        self.peak
            .swap(self.at_work.load(Ordering::SeqCst), Ordering::SeqCst)
    }

    fn note(&self, call: Option<CallId>, step: &'static str) {
        let call = call.expect("a tool is called by a run");
        *self
            .ran
            .lock()
            .expect("nobody panics inside")
            .entry((call, step))
            .or_default() += 1;
    }

    fn enter(&self) -> AtWork {
        let now = self.at_work.fetch_add(1, Ordering::SeqCst) + 1;
        self.peak.fetch_max(now, Ordering::SeqCst);
        AtWork(Arc::clone(&self.at_work))
    }

    /// An agent with all tools.
    pub(crate) fn equip(&self, agent: Agent) -> Agent {
        let long = Duration::from_secs(30);
        let change: [(&'static str, Change); 15] = [
            ("echo", |spec| spec),
            ("write", |spec| ToolSpec {
                approval: Approval::Always,
                ..spec
            }),
            ("body", |spec| ToolSpec {
                replay: Replay::Resumable,
                ..spec
            }),
            ("own", |spec| spec),
            ("pair", |spec| ToolSpec {
                replay: Replay::Resumable,
                ..spec
            }),
            ("pure", |spec| ToolSpec {
                replay: Replay::Pure,
                ..spec
            }),
            ("panics", |spec| spec),
            ("fails", |spec| spec),
            ("solo", |spec| ToolSpec {
                sequential: true,
                ..spec
            }),
            ("hangs", |spec| spec),
            ("polite", |spec| spec),
            ("maybe", |spec| spec),
            ("enough", |spec| spec),
            ("idem", |spec| ToolSpec {
                replay: Replay::Idempotent,
                ..spec
            }),
            ("large", |spec| ToolSpec {
                max_output: Some(200),
                ..spec
            }),
        ];
        let agent = agent
            .tool(external_tool(spec("away")))
            .calls(|calls| calls.timeout = Some(long));
        change.into_iter().fold(agent, |agent, (name, change)| {
            let world = self.clone();
            agent.tool(tool_fn(
                change(spec(name)),
                move |_: Value, cx: CallContext| {
                    let world = world.clone();
                    async move { world.body(name, cx).await }
                },
            ))
        })
    }

    async fn body(self, name: &'static str, cx: CallContext) -> Result<CallResult, ToolError> {
        let _at_work = self.enter();
        let entered = if matches!(name, "body" | "pair" | "pure" | "idem") {
            "again"
        } else {
            "once"
        };
        self.note(cx.who.call, entered);
        tokio::task::yield_now().await;
        let done = CallResult::ok(name);
        match name {
            "panics" => std::panic::resume_unwind(Box::new("on purpose")),
            "fails" => return Err(ToolError::failed("it did not work")),
            "hangs" => std::future::pending().await,
            "polite" => {
                let cancelled =
                    tokio::time::timeout(Duration::from_secs(5), cx.cancel.cancelled()).await;
                cancelled.map_err(|_| ToolError::failed("nobody came"))?;
            }
            "maybe" => {
                return Ok(CallResult {
                    terminate: Terminate::IfAll,
                    ..done
                });
            }
            "enough" => {
                return Ok(CallResult {
                    terminate: Terminate::Now,
                    ..done
                });
            }
            "large" => return Ok(CallResult::ok("a long text ".repeat(60))),
            "idem" => {
                cx.progress(Progress::text("half of it"));
                tokio::task::yield_now().await;
                cx.progress(Progress::text("all of it"));
            }
            "own" => cx.confirm("sure", "Sure?").await?,
            "body" => return self.asks_in_turn(cx).await,
            "pair" => return self.asks_together(cx).await,
            _ => {}
        }
        Ok(done)
    }

    async fn step(&self, cx: &CallContext, key: &'static str) -> Result<u64, ToolError> {
        cx.once(key, || async {
            self.note(cx.who.call, key);
            tokio::task::yield_now().await;
            Ok(7)
        })
        .await
    }

    async fn asks_in_turn(&self, cx: CallContext) -> Result<CallResult, ToolError> {
        self.step(&cx, "first").await?;
        let answer = cx
            .pause(
                "what",
                Ask::question("What?").within(Duration::from_secs(60)),
            )
            .await?;
        self.step(&cx, "second").await?;
        let more = cx.ask("more", "And what else?").await?;
        Ok(CallResult::ok(format!("{answer:?} {more}")))
    }

    async fn asks_together(&self, cx: CallContext) -> Result<CallResult, ToolError> {
        let one = async {
            let said = cx.ask("one", "One?").await;
            self.step(&cx, "after one").await.map(|_| said)
        };
        let (one, two) = tokio::join!(one, cx.ask("two", "Two?"));
        Ok(CallResult::ok(format!(
            "{:?} {:?}",
            one?.is_ok(),
            two.is_ok()
        )))
    }
}

fn spec(name: &str) -> ToolSpec {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    ToolSpec::new(name, "A tool.", schema)
}
