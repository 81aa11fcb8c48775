//! Tokens and money. Normalised: no class is counted inside another, except reasoning inside output.

use std::{
    fmt,
    ops::{Add, AddAssign},
};

use serde::{Deserialize, Serialize};

/// Tokens of one or several model calls.
///
/// Invariant: the input classes are disjoint; `cache_write_1h` is part of `cache_write`, `reasoning` of `output`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input tokens that no cache served or stored.
    pub input_uncached: u64,
    /// Input tokens read from the provider's prompt cache.
    pub cache_read: u64,
    /// Input tokens written to the provider's prompt cache.
    pub cache_write: u64,
    /// Of these, the tokens that are kept for an hour rather than for minutes.
    pub cache_write_1h: u64,
    /// Output tokens, reasoning included.
    pub output: u64,
    /// Output tokens spent on reasoning.
    pub reasoning: u64,
}

/// Money in billionths of a US dollar.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct NanoUsd(pub u64);

impl NanoUsd {
    /// Returns the sum of the known costs; `None` if neither is known.
    pub fn sum_known(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(one + other),
            (known, None) | (None, known) => known,
        }
    }
}

/// The price of a model, in billionths of a US dollar for a million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// Uncached input.
    pub input: NanoUsd,
    /// Output, reasoning included.
    pub output: NanoUsd,
    /// Input read from the cache.
    pub cache_read: NanoUsd,
    /// Input written to the cache.
    pub cache_write: NanoUsd,
    /// Input written to the cache for an hour.
    #[serde(default)]
    pub cache_write_1h: NanoUsd,
    /// The price of a call with a long input, if the provider charges more for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long: Option<LongPrice>,
}

/// A surcharge on calls with a long input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongPrice {
    /// Calls with more input tokens than this cost more, all of their tokens.
    pub above: u64,
    /// The price of every class of input then, in percent of the usual price.
    pub input_percent: u32,
    /// The price of output then, in percent of the usual price.
    pub output_percent: u32,
}

impl Usage {
    /// All input tokens.
    pub fn input(&self) -> u64 {
        self.input_uncached
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }

    /// All tokens.
    pub fn total(&self) -> u64 {
        self.input().saturating_add(self.output)
    }
}

impl Add for Usage {
    type Output = Usage;

    fn add(self, other: Usage) -> Usage {
        Usage {
            input_uncached: self.input_uncached.saturating_add(other.input_uncached),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            cache_write_1h: self.cache_write_1h.saturating_add(other.cache_write_1h),
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        *self = *self + other;
    }
}

impl Price {
    /// A price from US dollars for a million tokens: input, output, cache read, cache write for any time.
    pub fn dollars(input: f64, output: f64, cache_read: f64, cache_write: f64) -> Self {
        Self {
            input: NanoUsd::usd(input),
            output: NanoUsd::usd(output),
            cache_read: NanoUsd::usd(cache_read),
            cache_write: NanoUsd::usd(cache_write),
            cache_write_1h: NanoUsd::usd(cache_write),
            long: None,
        }
    }

    /// Returns the cost of one call's usage, rounded down to a billionth of a dollar; saturates.
    pub fn cost(&self, usage: &Usage) -> NanoUsd {
        let class =
            |tokens: u64, price: NanoUsd| u128::from(tokens).saturating_mul(u128::from(price.0));
        let hour = usage.cache_write_1h.min(usage.cache_write);
        let input = class(usage.input_uncached, self.input)
            .saturating_add(class(usage.cache_read, self.cache_read))
            .saturating_add(class(usage.cache_write - hour, self.cache_write))
            .saturating_add(class(hour, self.cache_write_1h));
        let output = class(usage.output, self.output);
        let (by_input, by_output) = match self.long.filter(|long| usage.input() > long.above) {
            Some(long) => (long.input_percent, long.output_percent),
            None => (100, 100),
        };
        let total = input
            .saturating_mul(by_input.into())
            .saturating_add(output.saturating_mul(by_output.into()));
        NanoUsd(u64::try_from(total / 100_000_000).unwrap_or(u64::MAX))
    }
}

impl NanoUsd {
    /// This many US dollars, to the nearest billionth; 0 for less than nothing.
    pub fn usd(dollars: f64) -> Self {
        Self((dollars * 1e9).round() as u64)
    }
}

impl fmt::Display for NanoUsd {
    /// Dollars with four decimals, for example `$0.0123`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths_of_milli = self.0 / 100_000;
        write!(
            f,
            "${}.{:04}",
            tenths_of_milli / 10_000,
            tenths_of_milli % 10_000
        )
    }
}

impl Add for NanoUsd {
    type Output = NanoUsd;

    fn add(self, other: NanoUsd) -> NanoUsd {
        NanoUsd(self.0.saturating_add(other.0))
    }
}
