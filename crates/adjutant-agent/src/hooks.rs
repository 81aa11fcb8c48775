//! Hooks: functions that intercept or observe one typed point. They return data; nothing is edited in place.

use std::{
    any::{Any, TypeId},
    fmt,
    panic::AssertUnwindSafe,
    sync::Arc,
};

use adjutant_core::{RunNo, TurnNo};
use adjutant_llm::{CallId, ToolName, Warning, WarningKind};
use adjutant_tool::{Cancel, Identity};
use async_trait::async_trait;
use futures_util::FutureExt;

/// The reason of a denied point without an explicit one.
const NO_REASON: &str = "denied by a hook";

/// A place where hooks intercept or observe; passed by value.
pub trait Point: fmt::Debug + Clone + Send + Sync + 'static {
    /// Its name, in snake case.
    const NAME: &'static str;
    /// The meaning of a hook's panic.
    const FAIL: Fail;

    /// The call that it is about, and its tool.
    fn call(&self) -> Option<(CallId, ToolName)> {
        None
    }
}

/// The meaning of a hook's panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fail {
    /// The point is denied.
    Closed,
    /// The hook is passed over.
    Open,
}

/// The decision of a hook.
#[derive(Debug, Clone)]
pub enum Verdict<P> {
    /// Accepts the point in this form.
    Pass(P),
    /// Denies the point, with a reason; an empty reason is replaced.
    Deny(Arc<str>),
}

/// The place where a point is reached.
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
    /// The cancellation token of the run.
    pub cancel: Cancel,
}

/// Intercepts or observes a point.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a hook of `{P}`",
    note = "a hook is an async function of a `HookContext` and a point that returns a `Verdict` of that point"
)]
pub trait Hook<P: Point>: Send + Sync {
    /// Decides about the point.
    ///
    /// Cancel: the point is not reached.
    async fn on(&self, cx: HookContext, point: P) -> Verdict<P>;

    /// Decides about the point, or fails; a function may return a `Result` of a verdict.
    ///
    /// Cancel: the point is not reached.
    ///
    /// # Errors
    /// The failure; handled like a panic for the point.
    async fn attempt(&self, cx: HookContext, point: P) -> Result<Verdict<P>, Arc<str>> {
        Ok(self.on(cx, point).await)
    }
}

/// The output of a function that is a hook: made of a verdict, or of a result of one.
#[derive(Debug, Clone)]
pub struct HookOutput<P>(Result<Verdict<P>, Arc<str>>);

/// The data for an observer of all points, after the hooks of the point.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Observed<'a> {
    /// The point's name.
    pub point: &'static str,
    /// The place where it was reached.
    pub cx: &'a HookContext,
    /// The call that it is about, and its tool.
    pub call: Option<(CallId, ToolName)>,
    /// The reason, if a hook denied it.
    pub denied: Option<Arc<str>>,
    /// The point, in the type of its name: the result of its hooks, or the input of the hook that denied it.
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
type SharedHook<P> = Arc<dyn Hook<P>>;

impl Hooks {
    /// Adds a hook; the type of its argument selects its point.
    #[must_use]
    pub fn on<P: Point>(mut self, hook: impl Hook<P> + 'static) -> Self {
        let hook: SharedHook<P> = Arc::new(hook);
        self.own.push((TypeId::of::<P>(), Arc::new(hook)));
        self
    }

    /// Adds all hooks of another set, after the existing ones.
    pub(crate) fn and(mut self, others: Hooks) -> Self {
        self.own.extend(others.own);
        self.observers.extend(others.observers);
        self.isolated |= others.isolated;
        self.outer = match (self.outer.take(), others.outer) {
            (Some(outer), Some(other)) => Some(Arc::new(
                Arc::unwrap_or_clone(outer).and(Arc::unwrap_or_clone(other)),
            )),
            (outer, other) => outer.or(other),
        };
        self
    }

    /// Adds an observer of every point; it cannot change anything, and its panic changes nothing.
    #[must_use]
    pub fn observe(
        mut self,
        observer: impl for<'a> Fn(Observed<'a>) + Send + Sync + 'static,
    ) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// Excludes hooks of the agent that opens this one.
    #[must_use]
    pub fn without_inherited(mut self) -> Self {
        self.isolated = true;
        self
    }

    /// Adds these hooks inside the hooks of the opening agent, unless they are isolated.
    #[must_use]
    pub(crate) fn within(mut self, outer: &Hooks) -> Self {
        if !self.isolated && !outer.is_empty() {
            self.outer = Some(Arc::new(match self.outer.take() {
                Some(own) => Hooks::clone(&own).within(outer),
                None => outer.clone(),
            }));
        }
        self
    }

    /// True if there are neither hooks nor observers.
    pub(crate) fn is_empty(&self) -> bool {
        self.own.is_empty()
            && self.observers.is_empty()
            && self.outer.as_ref().is_none_or(|outer| outer.is_empty())
    }

    /// True if the point has a hook or an observer.
    pub(crate) fn hears<P: Point>(&self) -> bool {
        !self.observers.is_empty()
            || self
                .own
                .iter()
                .any(|(point, _)| *point == TypeId::of::<P>())
            || self.outer.as_ref().is_some_and(|outer| outer.hears::<P>())
    }

    /// Passes a point through its hooks: those outside first, each list in the order of registration.
    ///
    /// A denial stops the chain; changes are passed on. Observers receive the result.
    ///
    /// Cancel: the point is not reached.
    pub async fn pass<P: Point>(&self, cx: &HookContext, point: P) -> Verdict<P> {
        let warn = |warning: Warning| tracing::warn!(point = P::NAME, "{warning}");
        self.pass_with(cx, point, warn).await
    }

    /// Passes a point through its hooks, and returns the failures that were ignored.
    ///
    /// Cancel: the point is not reached.
    pub(crate) async fn pass_with<P: Point>(
        &self,
        cx: &HookContext,
        mut point: P,
        mut warn: impl FnMut(Warning) + Send,
    ) -> Verdict<P> {
        let mut hooks = Vec::new();
        self.collect::<P>(&mut hooks);
        let is_kept = P::FAIL == Fail::Open || self.is_observed();
        for hook in hooks {
            let before = is_kept.then(|| point.clone());
            let call = point.call();
            let why = match AssertUnwindSafe(hook.attempt(cx.clone(), point))
                .catch_unwind()
                .await
            {
                Ok(Ok(Verdict::Pass(passed))) => {
                    point = passed;
                    continue;
                }
                Ok(Ok(Verdict::Deny(reason))) => {
                    return self.deny(cx, call, reason, before, &mut warn);
                }
                Ok(Err(why)) => why,
                Err(panic) => format!(
                    "a hook of {} panicked: {}",
                    P::NAME,
                    adjutant_core::panic_text(&*panic)
                )
                .into(),
            };
            match before {
                Some(before) if P::FAIL == Fail::Open => {
                    let message = format!("a hook of {} failed and is passed over: {why}", P::NAME);
                    warn(Warning {
                        kind: WarningKind::HookFailed,
                        message: message.into(),
                    });
                    point = before;
                }
                before => return self.deny(cx, call, why, before, &mut warn),
            }
        }
        self.tell(
            &Observed {
                point: P::NAME,
                cx,
                call: point.call(),
                denied: None,
                value: &point,
            },
            &mut warn,
        );
        Verdict::Pass(point)
    }

    fn deny<P: Point>(
        &self,
        cx: &HookContext,
        call: Option<(CallId, ToolName)>,
        reason: Arc<str>,
        point: Option<P>,
        warn: &mut (dyn FnMut(Warning) + Send),
    ) -> Verdict<P> {
        let reason = if reason.trim().is_empty() {
            NO_REASON.into()
        } else {
            reason
        };
        if let Some(point) = point {
            let denied = Some(Arc::clone(&reason));
            self.tell(
                &Observed {
                    point: P::NAME,
                    cx,
                    call,
                    denied,
                    value: &point,
                },
                warn,
            );
        }
        Verdict::Deny(reason)
    }

    /// True if a point has an observer.
    fn is_observed(&self) -> bool {
        !self.observers.is_empty() || self.outer.as_ref().is_some_and(|outer| outer.is_observed())
    }

    fn collect<P: Point>(&self, into: &mut Vec<SharedHook<P>>) {
        if let Some(outer) = &self.outer {
            outer.collect(into);
        }
        let own = self
            .own
            .iter()
            .filter(|(point, _)| *point == TypeId::of::<P>());
        into.extend(own.filter_map(|(_, hook)| hook.downcast_ref::<SharedHook<P>>().cloned()));
    }

    fn tell(&self, observed: &Observed<'_>, warn: &mut (dyn FnMut(Warning) + Send)) {
        if let Some(outer) = &self.outer {
            outer.tell(observed, warn);
        }
        for observer in &self.observers {
            if std::panic::catch_unwind(AssertUnwindSafe(|| observer(observed.clone()))).is_err() {
                let message = format!(
                    "an observer of {} panicked and is passed over",
                    observed.point
                );
                warn(Warning {
                    kind: WarningKind::HookFailed,
                    message: message.into(),
                });
            }
        }
    }
}

#[async_trait]
impl<P, F, Fut> Hook<P> for F
where
    P: Point,
    F: Fn(HookContext, P) -> Fut + Send + Sync,
    Fut: Future + Send,
    Fut::Output: Into<HookOutput<P>> + Send,
{
    async fn on(&self, cx: HookContext, point: P) -> Verdict<P> {
        self.attempt(cx, point).await.unwrap_or_else(Verdict::Deny)
    }

    async fn attempt(&self, cx: HookContext, point: P) -> Result<Verdict<P>, Arc<str>> {
        self(cx, point).await.into().0
    }
}

impl<P> From<Verdict<P>> for HookOutput<P> {
    fn from(verdict: Verdict<P>) -> Self {
        Self(Ok(verdict))
    }
}

impl<P, E: fmt::Display> From<Result<Verdict<P>, E>> for HookOutput<P> {
    fn from(verdict: Result<Verdict<P>, E>) -> Self {
        Self(verdict.map_err(|error| error.to_string().into()))
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (own, observers) = (self.own.len(), self.observers.len());
        f.debug_struct("Hooks")
            .field("own", &own)
            .field("observers", &observers)
            .finish_non_exhaustive()
    }
}
