//! Budgets: a tree of spending limits. A request reserves from its own node and all nodes above before it is sent.

pub(crate) mod aside;
pub(crate) mod notice;
pub(crate) mod reservation;
mod tree;

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use adjutant_core::{Caps, Limit, Spend};
use adjutant_llm::{NanoUsd, ThreadId};

use tokio::time::Instant;

use tree::{BudgetTree, Decided, NodeId};

/// The need of a request: a fixed part, and output that may be cut to the rest of the budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReservationRequest {
    /// The amount that it spends in any case.
    pub fixed: Spend,
    /// The least number of output tokens that it needs.
    pub least_output: u64,
    /// The largest number of output tokens that it takes; `u64::MAX` if it has no limit. Such a request gets one only in a
    /// budget that limits its output.
    pub most_output: u64,
    /// The price of a million output tokens.
    pub output_price: NanoUsd,
    /// True if the caps of the node itself do not count, only those above: for a last word.
    pub overdraws: bool,
}

/// A node of a tree of budgets: a run, under the run that opened its agent. Cheap to clone.
///
/// Invariant: in every node, the spent and held amounts are at most its cap, as long as settled amounts are at most
/// the reserved ones. Dropping the last clone of a node removes it; its spending still counts above.
#[derive(Clone)]
pub struct Budget {
    node: Arc<NodeHandle>,
}

/// A node's place, returned when it is dropped.
struct NodeHandle {
    tree: Arc<Mutex<BudgetTree>>,
    id: NodeId,
    /// Keeps the places above.
    _up: Option<Budget>,
}

/// Something held for a request until it is settled; dropped without that, it counts as spent.
#[must_use = "what is not settled counts as spent"]
pub struct Reservation {
    budget: Budget,
    held: Spend,
    output: u64,
    settled: bool,
}

/// A place among the agents that may run at a time, until it is dropped.
#[must_use = "the place is given back when this is dropped"]
pub struct ConcurrencyPermit {
    budget: Budget,
}

/// The future of [`Budget::reserve`].
struct Reserving {
    budget: Budget,
    request: ReservationRequest,
    ticket: Option<u64>,
}

impl From<Spend> for ReservationRequest {
    fn from(fixed: Spend) -> Self {
        Self {
            fixed,
            ..Self::default()
        }
    }
}

impl Budget {
    /// The budget of a first run, of which something may be spent already.
    pub fn root(caps: Caps, spent: Spend) -> Self {
        let (tree, id) = BudgetTree::new(caps, spent);
        Self {
            node: Arc::new(NodeHandle {
                tree: Arc::new(Mutex::new(tree)),
                id,
                _up: None,
            }),
        }
    }

    /// Creates the budget of a run under this one; its earlier spending counts here and above too.
    #[must_use]
    pub fn child(&self, caps: Caps, spent: Spend) -> Self {
        let id = self.tree().add(self.node.id, caps, spent);
        Self {
            node: Arc::new(NodeHandle {
                tree: Arc::clone(&self.node.tree),
                id,
                _up: Some(self.clone()),
            }),
        }
    }

    /// Holds the amount that a request needs. Waits in line while others hold amounts that may be returned.
    ///
    /// Cancel: nothing is held.
    ///
    /// # Errors
    /// The limit that leaves too little, even if all reservations are returned.
    pub fn reserve<B: Into<ReservationRequest>>(
        &self,
        request: B,
    ) -> impl Future<Output = Result<Reservation, Limit>> + Send + use<B> {
        Reserving {
            budget: self.clone(),
            request: request.into(),
            ticket: None,
        }
    }

    /// Counts spending that was not held before.
    pub fn spend(&self, spent: Spend) {
        self.tree().spend(self.node.id, spent);
    }

    /// Counts one call of a tool, if it is allowed.
    ///
    /// # Errors
    /// `ToolCalls` if no more calls are permitted, here or above.
    pub fn take_call(&self) -> Result<(), Limit> {
        self.tree().take_call(self.node.id)
    }

    /// Takes one of the places for concurrent agents: the place reserved for the agent, if one exists.
    ///
    /// # Errors
    /// `Agents` if no place is free, here or above.
    pub(crate) fn take_permit(&self, thread: &ThreadId) -> Result<ConcurrencyPermit, Limit> {
        self.tree().take_permit(self.node.id, thread)?;
        Ok(ConcurrencyPermit {
            budget: self.clone(),
        })
    }

    /// Reserves the places of agents that were running when their log was left; they count here from now on.
    pub(crate) fn keep_places(&self, threads: Vec<ThreadId>) {
        if !threads.is_empty() {
            self.tree().keep(self.node.id, threads);
        }
    }

    /// Releases the places that are reserved for agents under a call or run, which will not start any more.
    pub(crate) fn give_up_places(&self, prefix: &dyn std::fmt::Display) {
        let mut tree = self.tree();
        if tree.keeps_any() {
            let prefix = prefix.to_string();
            tree.give_up(|thread, _| thread.as_str().starts_with(&prefix));
        }
    }

    /// Checks that agents may stand one level below this one.
    ///
    /// # Errors
    /// `Depth` if that is too deep, for this node or one above.
    pub(crate) fn may_nest(&self) -> Result<(), Limit> {
        self.tree().may_nest(self.node.id)
    }

    /// Changes the caps of this budget.
    pub fn set_caps(&self, caps: Caps) {
        self.tree().set_caps(self.node.id, caps);
    }

    /// Sets the moment at which the time of the node is over.
    pub(crate) fn set_end(&self, end: Option<Instant>) {
        self.tree().set_end(self.node.id, end);
    }

    /// Returns the remaining budget, here and above; held amounts count as spent.
    pub(crate) fn remaining(&self) -> Caps {
        self.tree().remaining(self.node.id)
    }

    /// Reserves everything that is left, here and above; returns the part for each of `shares` agents one level
    /// below.
    pub(crate) fn lend(&self, shares: u32) -> (Caps, Spend) {
        let mut tree = self.tree();
        let (left, shares) = (tree.remaining(self.node.id), u64::from(shares.max(1)));
        let lent = Caps {
            tokens: left.tokens.map(|it| it / shares),
            cost: left.cost.map(|it| NanoUsd(it.0 / shares)),
            requests: left.requests.map(|it| it / shares),
            tool_calls: left.tool_calls.map(|it| it / shares),
            depth: left.depth.map(|it| it.saturating_sub(1)),
            // The number of concurrent agents is counted separately in each process.
            agents: None,
            ..left
        };
        tree.hold(self.node.id, all_of(left));
        (lent, all_of(left))
    }

    /// Holds the budget of an agent in another session.
    pub(crate) fn hold(&self, lent: Caps) -> Spend {
        self.tree().hold(self.node.id, all_of(lent));
        all_of(lent)
    }

    /// Returns a held amount; its spent part is reported separately.
    pub(crate) fn give_back(&self, held: Spend) {
        self.tree().settle(self.node.id, held, Spend::default());
    }

    /// Returns the amount that was spent here and below.
    pub fn spent(&self) -> Spend {
        self.tree().spent(self.node.id)
    }

    /// Returns the amount that is held here and below.
    pub fn outstanding(&self) -> Spend {
        self.tree().outstanding(self.node.id)
    }

    /// The limit that leaves no further request, here or above.
    pub fn blocking_limit(&self) -> Option<Limit> {
        self.tree().blocking_limit(self.node.id)
    }

    /// Returns the most exhausted limit, here or above, with its usage and its cap.
    pub fn tightest(&self) -> Option<(Limit, u64, u64)> {
        self.tree().tightest(self.node.id)
    }

    /// True if money is limited, here or above.
    pub(crate) fn caps_money(&self) -> bool {
        self.tree().caps_money(self.node.id)
    }

    fn tree(&self) -> MutexGuard<'_, BudgetTree> {
        self.node
            .tree
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The most that may be spent within these caps.
fn all_of(caps: Caps) -> Spend {
    Spend {
        tokens: caps.tokens.unwrap_or_default(),
        cost: caps.cost.unwrap_or_default(),
        requests: caps.requests.unwrap_or_default(),
        tool_calls: caps.tool_calls.unwrap_or_default(),
    }
}

impl Reservation {
    /// Returns the number of output tokens that the request may use.
    pub fn output(&self) -> u64 {
        self.output
    }

    /// Returns the amount that is held.
    pub fn amount(&self) -> Spend {
        self.held
    }

    /// Returns the held amount, and counts the actual spending.
    pub fn settle(mut self, actual: Spend) {
        self.settled = true;
        self.budget
            .tree()
            .settle(self.budget.node.id, self.held, actual);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.settled {
            self.budget
                .tree()
                .settle(self.budget.node.id, self.held, self.held);
        }
    }
}

impl Drop for ConcurrencyPermit {
    fn drop(&mut self) {
        self.budget.tree().leave_seat(self.budget.node.id);
    }
}

impl Drop for NodeHandle {
    fn drop(&mut self) {
        self.tree
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(self.id);
    }
}

impl Future for Reserving {
    type Output = Result<Reservation, Limit>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let mut tree = this.budget.tree();
        let ticket = *this
            .ticket
            .get_or_insert_with(|| tree.enter(this.budget.node.id, this.request));
        let decided = match tree.look(ticket, cx.waker()) {
            Some(decided) => decided,
            None => return Poll::Pending,
        };
        drop(tree);
        this.ticket = None;
        Poll::Ready(match decided {
            Decided::Held { held, output } => Ok(Reservation {
                budget: this.budget.clone(),
                held,
                output,
                settled: false,
            }),
            Decided::Refused(limit) => Err(limit),
        })
    }
}

impl Drop for Reserving {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.budget.tree().leave(ticket);
        }
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("spent", &self.spent())
            .field("held", &self.outstanding())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation")
            .field("held", &self.held)
            .field("output", &self.output)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ConcurrencyPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat").finish_non_exhaustive()
    }
}
