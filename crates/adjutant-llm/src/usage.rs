//! Tokens and money. Normalised: no class is counted inside another, except reasoning inside output.

use std::{
    fmt,
    ops::{Add, AddAssign},
};

use serde::{Deserialize, Serialize};

/// Tokens of one or several model calls.
///
/// Invariant: the input classes are disjoint; `reasoning` is part of `output`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input tokens that no cache served or stored.
    pub input_uncached: u64,
    /// Input tokens read from the provider's prompt cache.
    pub cache_read: u64,
    /// Input tokens written to the provider's prompt cache.
    pub cache_write: u64,
    /// Output tokens, reasoning included.
    pub output: u64,
    /// Output tokens spent on reasoning.
    pub reasoning: u64,
}

/// Money in billionths of a US dollar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NanoUsd(pub u64);

/// What a model costs, in billionths of a US dollar for a million tokens.
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
}

impl Usage {
    /// All input tokens.
    pub fn input(&self) -> u64 {
        self.input_uncached.saturating_add(self.cache_read).saturating_add(self.cache_write)
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
    /// A price from US dollars for a million tokens: input, output, cache read, cache write.
    pub fn dollars(input: f64, output: f64, cache_read: f64, cache_write: f64) -> Self {
        let nano = |dollars: f64| NanoUsd((dollars * 1e9).round() as u64);
        Self { input: nano(input), output: nano(output), cache_read: nano(cache_read), cache_write: nano(cache_write) }
    }

    /// What this usage costs, rounded down to a billionth of a dollar; saturates.
    pub fn cost(&self, usage: &Usage) -> NanoUsd {
        let class = |tokens: u64, price: NanoUsd| u128::from(tokens) * u128::from(price.0);
        let total = class(usage.input_uncached, self.input)
            + class(usage.output, self.output)
            + class(usage.cache_read, self.cache_read)
            + class(usage.cache_write, self.cache_write);
        NanoUsd(u64::try_from(total / 1_000_000).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for NanoUsd {
    /// Dollars with four decimals, for example `$0.0123`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths_of_milli = self.0 / 100_000;
        write!(f, "${}.{:04}", tenths_of_milli / 10_000, tenths_of_milli % 10_000)
    }
}

impl Add for NanoUsd {
    type Output = NanoUsd;

    fn add(self, other: NanoUsd) -> NanoUsd {
        NanoUsd(self.0.saturating_add(other.0))
    }
}
