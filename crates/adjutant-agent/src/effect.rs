//! Effects: inspect the context before each request, and return the changes as data.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use adjutant_core::{Ledger, Limit, RunNo, Spend, TurnNo};
use adjutant_llm::{
    Cause, Edit, Entry, EntryId, ErrorKind, Estimate, Model, NanoUsd, Origin, Overflow, Reply,
    Request, Stored, ToolName, Transcript, Usage, UserMessage, View, World,
};
use adjutant_tool::{Identity, Toolset};
use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::budget::{Budget, aside};

/// Inspects the context before each request, and returns the changes.
///
/// An effect has no state of its own: it returns everything that it must remember as a memo, which is recorded, so
/// that a resumed run, a replay and every engine see the same.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an effect",
    note = "`effects::effect_fn` makes an effect of a function"
)]
pub trait Effect: Send + Sync {
    /// Returns the kind of effect, in snake case; the key of its memo.
    fn kind(&self) -> &str;

    /// Returns the changes before the request.
    ///
    /// Cancel: it has no effect.
    ///
    /// # Errors
    /// The error of the effect; the run fails with it, after its turn is closed.
    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError>;

    /// Returns the tools that restore the content it removed, if there are any.
    ///
    /// A step of the [`Floor`](crate::Floor) acts in few turns; these tools are offered in all later turns.
    fn needs(&self) -> Option<Toolset> {
        None
    }
}

#[async_trait]
impl<E: Effect + ?Sized> Effect for Arc<E> {
    fn kind(&self) -> &str {
        (**self).kind()
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        (**self).act(cx).await
    }

    fn needs(&self) -> Option<Toolset> {
        (**self).needs()
    }
}

/// An action that an effect wants.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Action {
    /// A change of the view.
    Edit(Edit),
    /// A reminder for the model, after the conversation.
    Remind(Arc<str>),
    /// Tools that are neither declared nor run in this turn.
    Hide(Vec<ToolName>),
    /// Tools that are declared and run in this turn, after the others.
    Offer(Toolset),
    /// The value to remember; `null` to forget.
    Remember(Value),
    /// The value for observers.
    Report(Value),
    /// The usage of models outside [`EffectContext::complete`].
    Charge(Usage),
    /// The run should end with this limit, instead of another request.
    Stop(Limit),
}

/// The time when an effect acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Before a request.
    Request,
    /// The provider reported that the request does not fit: something must be removed, or the run fails.
    Overflow(Overflow),
    /// A preview of the next request; models must not be called.
    Preview,
}

/// The data that an effect sees.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct EffectContext<'a> {
    /// The phase in which the effect acts.
    pub phase: Phase,
    /// The number of the run.
    pub run: RunNo,
    /// The number of the turn that is prepared.
    pub turn: TurnNo,
    /// The view that the request would show, with the changes of the effects before this one.
    pub view: &'a View,
    /// The complete conversation.
    pub history: &'a Transcript,
    pub(crate) fresh: EntryId,
    /// The number of tokens that the request would hold now, system prompt and tools included: the most that an estimate
    /// and the provider's newest count allow.
    pub tokens: u64,
    /// The number of tokens that the request may hold: the window less what the reply may take, half of it at most;
    /// `u64::MAX` if the window is unknown.
    pub room: u64,
    pub(crate) window: u64,
    /// True if others make room after this effect, without a model: it may leave that to them.
    pub falls_back: bool,
    /// True if this is only a preview of the next request; models must not be called.
    pub(crate) looks: bool,
    pub(crate) memo: &'a Value,
    /// The amounts that the run has used, and that it may use.
    pub ledger: &'a Ledger,
    pub(crate) system: &'a str,
    /// The tools of this turn.
    pub tools: &'a Toolset,
    pub(crate) hidden: &'a [ToolName],
    pub(crate) only: Option<&'a [ToolName]>,
    /// The agent.
    pub who: &'a Identity,
    /// The model of this turn.
    pub model: &'a Arc<dyn Model>,
    pub(crate) world: &'a Arc<dyn World>,
    pub(crate) bill: &'a Bill,
    pub(crate) budget: Option<&'a Budget>,
}

/// The amount that effects spent on models in one turn.
#[derive(Debug, Default)]
pub(crate) struct Bill {
    spent: Mutex<(Usage, Option<NanoUsd>)>,
}

/// The reason why an effect could not decide.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct EffectError {
    message: Arc<str>,
    source: Option<Cause>,
}

impl<'a> EffectContext<'a> {
    /// Returns the items of the view that no turn before this one has prepared.
    pub fn fresh(&self) -> impl Iterator<Item = &'a Arc<Stored>> + use<'a> {
        let first = self.fresh;
        let newest: Vec<_> = self
            .view
            .items()
            .iter()
            .rev()
            .take_while(|stored| stored.id >= first)
            .collect();
        newest.into_iter().rev()
    }

    /// Returns the number of those tokens that the system prompt and the tools take, by estimate.
    pub fn overhead(&self) -> u64 {
        Estimate
            .count(self.system)
            .saturating_add(self.tools.tokens())
    }

    /// Returns the number of tokens that the model takes, request and reply together; 0 if it is unknown.
    ///
    /// It is smaller than in the model's data once the provider has shown that it accepts less.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Returns the value that the effect remembers, if it fits the type.
    pub fn memo<T: DeserializeOwned>(&self) -> Option<T> {
        T::deserialize(self.memo).ok()
    }

    /// True if the model may call a tool of this turn: nothing before this effect has hidden it.
    pub(crate) fn may_call(&self, name: &str) -> bool {
        let is = |known: &ToolName| known.as_str() == name;
        self.tools.get(name).is_some()
            && !self.hidden.iter().any(is)
            && self.only.is_none_or(|only| only.iter().any(is))
    }

    /// The time, in milliseconds since 1970-01-01 UTC.
    pub fn now_ms(&self) -> u64 {
        self.world.now_ms()
    }

    /// Sends a request to a model, and counts its usage as the run's.
    ///
    /// Cancel: the usage that the model has reported by then counts.
    ///
    /// # Errors
    /// The error of the model; `Cancelled` in a preview of the next request, and if the budget of the run leaves no
    /// room for the request.
    pub async fn complete(
        &self,
        model: &Arc<dyn Model>,
        request: Request,
    ) -> Result<Arc<Reply>, adjutant_llm::Error> {
        if self.looks {
            return Err(adjutant_llm::Error::new(
                ErrorKind::Cancelled,
                "no model is asked while the next request is looked at",
            ));
        }
        let mut request = request;
        let Some(budget) = self.budget else {
            return self.ask(model, request).await;
        };
        let need = aside::need(&**model, &request);
        let held = aside::hold(budget, need, &mut request)
            .await
            .map_err(|limit| {
                adjutant_llm::Error::new(
                    ErrorKind::Cancelled,
                    format!("the limit of {limit} leaves no room for it"),
                )
            })?;
        let asked = self.ask(model, request).await;
        // The usage is on the bill, and counts as spent when the turn is prepared.
        held.settle(Spend::default());
        asked
    }

    async fn ask(
        &self,
        model: &Arc<dyn Model>,
        request: Request,
    ) -> Result<Arc<Reply>, adjutant_llm::Error> {
        aside::ask(&**model, request, |usage, cost| self.charge(usage, cost)).await
    }

    /// Counts what the effect spent on models outside [`complete`](Self::complete) as the run's; `cost` is `None` where
    /// no price is known.
    pub fn charge(&self, usage: Usage, cost: Option<NanoUsd>) {
        self.bill.add(usage, cost);
    }

    /// True if the request fills this share of the model's window; never, if the window is not known or the share is 0.
    pub fn fills(&self, share: f64) -> bool {
        share > 0.0 && self.window() > 0 && self.tokens as f64 >= self.window() as f64 * share
    }
}

impl Bill {
    pub(crate) fn add(&self, usage: Usage, cost: Option<NanoUsd>) {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        spent.0 += usage;
        spent.1 = NanoUsd::sum_known(spent.1, cost);
    }

    pub(crate) fn total(&self) -> (Usage, Option<NanoUsd>) {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Action {
    /// Returns the reminder that an effect of a kind adds after the conversation.
    pub(crate) fn reminder(by: &str, text: Arc<str>) -> Edit {
        let message = UserMessage {
            origin: Origin::Reminder { by: by.into() },
            ..UserMessage::text(text)
        };
        Edit::Append {
            entry: Entry::User(message),
        }
    }
}

impl EffectError {
    /// Creates an error; `message` names the operation, in lower case, without a full stop.
    pub fn new(message: impl Into<Arc<str>>) -> Self {
        Self {
            message: message.into(),
            source: None,
        }
    }

    /// Sets what caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Cause>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl fmt::Debug for EffectContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EffectContext")
            .field("phase", &self.phase)
            .field("turn", &self.turn)
            .field("tokens", &self.tokens)
            .finish_non_exhaustive()
    }
}
