//! Hooks: functions that intercept or observe one typed point. They return data; nothing is edited in place.

use std::{
    any::{Any, TypeId},
    fmt,
    panic::AssertUnwindSafe,
    sync::Arc,
};

use adjutant_llm::{CallId, ToolName};
use adjutant_tool::{Cancel, Identity};
use async_trait::async_trait;
use futures_util::FutureExt;

use crate::{RunNo, TurnNo};

/// Why a point was denied, if no hook said.
const NO_REASON: &str = "denied by a hook";

/// A place where hooks intercept or observe; passed by value.
pub trait Point: fmt::Debug + Clone + Send + Sync + 'static {
    /// Its name, in snake case.
    const NAME: &'static str;
    /// What a hook's panic means.
    const FAIL: Fail;

    /// The call that it is about, and its tool.
    fn call(&self) -> Option<(CallId, ToolName)> {
        None
    }
}

/// What a hook's panic means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fail {
    /// The point is denied.
    Closed,
    /// The hook is passed over.
    Open,
}

/// What a hook says.
#[derive(Debug, Clone)]
pub enum Verdict<P> {
    /// It may be, as it stands here.
    Pass(P),
    /// It may not be; the reason is shown, an empty one is replaced.
    Deny(Arc<str>),
}

/// Where a point is reached.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HookContext {
    /// The agent.
    pub who: Arc<Identity>,
    /// The run; 0 outside one.
    pub run: RunNo,
    /// The turn; 0 outside one.
    pub turn: TurnNo,
    /// The time, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The wish to stop the run.
    pub cancel: Cancel,
}

/// Intercepts or observes a point.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a hook of `{P}`",
    note = "a hook is an async function of a `HookContext` and a point that gives a `Verdict` of that point"
)]
pub trait Hook<P: Point>: Send + Sync {
    /// Says what becomes of the point.
    ///
    /// Cancel: the point is not reached.
    async fn on(&self, cx: HookContext, point: P) -> Verdict<P>;
}

/// What an observer of all points is shown, after the hooks of the point.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Observed<'a> {
    /// The point's name.
    pub point: &'static str,
    /// Where it was reached.
    pub cx: &'a HookContext,
    /// The call that it is about, and its tool.
    pub call: Option<(CallId, ToolName)>,
    /// The reason, if a hook denied it.
    pub denied: Option<Arc<str>>,
    /// The point, as it came out of the hooks.
    pub value: &'a (dyn Any + Send + Sync),
}

/// Hooks, in the order in which they were added; cheap to clone.
#[derive(Clone, Default)]
pub struct Hooks {
    own: Vec<(TypeId, Arc<dyn Any + Send + Sync>)>,
    observers: Vec<Arc<Observer>>,
    outer: Option<Arc<Hooks>>,
    isolated: bool,
}

type Observer = dyn for<'a> Fn(Observed<'a>) + Send + Sync;
type Shared<P> = Arc<dyn Hook<P>>;

impl Hooks {
    /// No hooks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a hook; the type of its point says where it stands.
    #[must_use]
    pub fn on<P: Point>(mut self, hook: impl Hook<P> + 'static) -> Self {
        let hook: Shared<P> = Arc::new(hook);
        self.own.push((TypeId::of::<P>(), Arc::new(hook)));
        self
    }

    /// Adds an observer of every point; it cannot change anything, and its panic changes nothing.
    #[must_use]
    pub fn observe(mut self, observer: impl for<'a> Fn(Observed<'a>) + Send + Sync + 'static) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// Keeps hooks of whoever opens this agent outside.
    #[must_use]
    pub fn isolated(mut self) -> Self {
        self.isolated = true;
        self
    }

    /// These hooks inside those of whoever opens this agent, unless they are isolated.
    #[must_use]
    pub fn within(mut self, outer: &Hooks) -> Self {
        if !self.isolated && !outer.is_empty() {
            self.outer = Some(Arc::new(match self.outer.take() {
                Some(own) => Hooks::clone(&own).within(outer),
                None => outer.clone(),
            }));
        }
        self
    }

    /// Whether there are neither hooks nor observers.
    pub fn is_empty(&self) -> bool {
        self.own.is_empty() && self.observers.is_empty() && self.outer.as_ref().is_none_or(|outer| outer.is_empty())
    }

    /// Whether anyone hears of this point.
    pub fn hears<P: Point>(&self) -> bool {
        !self.observers.is_empty()
            || self.own.iter().any(|(point, _)| *point == TypeId::of::<P>())
            || self.outer.as_ref().is_some_and(|outer| outer.hears::<P>())
    }

    /// Passes a point through its hooks: those outside first, each list in the order of registration.
    ///
    /// A deny stops the chain; changes feed forward. Observers see what came of it.
    ///
    /// Cancel: the point is not reached.
    pub async fn pass<P: Point>(&self, cx: &HookContext, point: P) -> Verdict<P> {
        let mut hooks = Vec::new();
        self.collect::<P>(&mut hooks);
        let mut point = point;
        for hook in hooks {
            let before = (P::FAIL == Fail::Open).then(|| point.clone());
            match AssertUnwindSafe(hook.on(cx.clone(), point)).catch_unwind().await {
                Ok(Verdict::Pass(passed)) => point = passed,
                Ok(Verdict::Deny(reason)) => {
                    let reason = if reason.trim().is_empty() { NO_REASON.into() } else { reason };
                    return self.denied(cx, reason);
                }
                Err(panic) => match before {
                    Some(before) => {
                        tracing::warn!(point = P::NAME, "a hook panicked and is passed over");
                        point = before;
                    }
                    None => {
                        let text = crate::port::panic_text(&*panic);
                        return self.denied(cx, format!("a hook of {} panicked: {text}", P::NAME).into());
                    }
                },
            }
        }
        self.tell(cx, P::NAME, point.call(), None, &point);
        Verdict::Pass(point)
    }

    fn denied<P: Point>(&self, cx: &HookContext, reason: Arc<str>) -> Verdict<P> {
        self.tell(cx, P::NAME, None, Some(&reason), &());
        Verdict::Deny(reason)
    }

    fn collect<P: Point>(&self, into: &mut Vec<Shared<P>>) {
        if let Some(outer) = &self.outer {
            outer.collect(into);
        }
        let own = self.own.iter().filter(|(point, _)| *point == TypeId::of::<P>());
        into.extend(own.filter_map(|(_, hook)| hook.downcast_ref::<Shared<P>>().cloned()));
    }

    fn tell(
        &self,
        cx: &HookContext,
        point: &'static str,
        call: Option<(CallId, ToolName)>,
        denied: Option<&Arc<str>>,
        value: &(dyn Any + Send + Sync),
    ) {
        if let Some(outer) = &self.outer {
            outer.tell(cx, point, call.clone(), denied, value);
        }
        for observer in &self.observers {
            let observed = Observed { point, cx, call: call.clone(), denied: denied.cloned(), value };
            if std::panic::catch_unwind(AssertUnwindSafe(|| observer(observed))).is_err() {
                tracing::warn!(point, "an observer panicked and is passed over");
            }
        }
    }
}

#[async_trait]
impl<P, F, Fut> Hook<P> for F
where
    P: Point,
    F: Fn(HookContext, P) -> Fut + Send + Sync,
    Fut: Future<Output = Verdict<P>> + Send,
{
    async fn on(&self, cx: HookContext, point: P) -> Verdict<P> {
        self(cx, point).await
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (own, observers) = (self.own.len(), self.observers.len());
        f.debug_struct("Hooks").field("own", &own).field("observers", &observers).finish_non_exhaustive()
    }
}
