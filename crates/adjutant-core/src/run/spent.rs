//! The amounts that runs have used, in the sums that are kept of them.

use std::ops::{Add, AddAssign, Sub};

use adjutant_llm::{NanoUsd, Usage};
use serde::{Deserialize, Serialize};

use crate::{
    options::Caps,
    record::{Admission, Record},
};

/// An amount that is spent, or held to be spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spend {
    /// Tokens, input and output together.
    pub tokens: u64,
    /// Money.
    pub cost: NanoUsd,
    /// Requests to models.
    pub requests: u64,
    /// Calls of tools.
    pub tool_calls: u64,
}

/// The amounts that a run has used so far, and that it may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ledger {
    /// The usage of the agent's own requests in this run.
    pub usage: Usage,
    /// The usage of calls, children and effects in this run.
    pub spent: Usage,
    /// Its total cost, where prices are known.
    pub cost: Option<NanoUsd>,
    /// The number of requests that this run has made.
    pub turns: u32,
    /// The number of calls of this run that have ended.
    pub calls: u32,
    /// The time that this run has been performed, in milliseconds.
    pub wall_ms: u64,
    /// The limits on its spending.
    pub caps: Caps,
}

/// The amounts that an agent and everything under it used in one run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Tokens.
    pub usage: Usage,
    /// Its cost, where prices are known.
    pub cost: Option<NanoUsd>,
    /// Requests to models.
    pub requests: u64,
    /// Calls of tools.
    pub tool_calls: u64,
}

/// Both together; saturates.
impl Add for Spend {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            cost: self.cost + other.cost,
            requests: self.requests.saturating_add(other.requests),
            tool_calls: self.tool_calls.saturating_add(other.tool_calls),
        }
    }
}

/// This without the other; never below nothing.
impl Sub for Spend {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(other.tokens),
            cost: NanoUsd(self.cost.0.saturating_sub(other.cost.0)),
            requests: self.requests.saturating_sub(other.requests),
            tool_calls: self.tool_calls.saturating_sub(other.tool_calls),
        }
    }
}

impl From<Tally> for Spend {
    fn from(tally: Tally) -> Self {
        let Tally {
            usage,
            cost,
            requests,
            tool_calls,
        } = tally;
        Self {
            tokens: usage.total(),
            cost: cost.unwrap_or_default(),
            requests,
            tool_calls,
        }
    }
}

/// Adds what another one counted.
impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.add(other.usage, other.cost);
        self.requests = self.requests.saturating_add(other.requests);
        self.tool_calls = self.tool_calls.saturating_add(other.tool_calls);
    }
}

impl Tally {
    /// Adds the usage in a record.
    pub fn count(&mut self, record: &Record) {
        match record {
            Record::Began { .. } => *self = Self::default(),
            Record::Retracted { usage, cost, .. } => self.add(*usage, *cost),
            Record::Replied {
                reply,
                cost,
                original,
                ..
            } => {
                self.requests += 1;
                self.add(original.as_ref().unwrap_or(reply).usage, *cost);
            }
            Record::Prepared { spent, cost, .. } => self.add(*spent, *cost),
            Record::Admitted {
                admission: Admission::Allow { .. },
                ..
            } => self.tool_calls += 1,
            Record::Spent {
                usage,
                cost,
                requests,
                tool_calls,
                ..
            }
            | Record::ChildEnded {
                usage,
                cost,
                requests,
                tool_calls,
                ..
            } => {
                self.requests = self.requests.saturating_add(*requests);
                self.tool_calls = self.tool_calls.saturating_add(*tool_calls);
                self.add(*usage, *cost);
            }
            _ => {}
        }
    }

    fn add(&mut self, usage: Usage, cost: Option<NanoUsd>) {
        self.usage += usage;
        self.cost = NanoUsd::sum_known(self.cost, cost);
    }
}
