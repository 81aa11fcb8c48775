//! Clock, ids and chance, injected: what a test fixes, and a program takes from the system.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use uuid::Uuid;

/// Where time, ids and chance come from.
pub trait World: Send + Sync + fmt::Debug {
    /// Milliseconds since 1970-01-01 UTC.
    fn now_ms(&self) -> u64;

    /// An id that was never given before.
    fn id(&self) -> u128;

    /// A number from 0.0 up to but without 1.0.
    fn unit(&self) -> f64;
}

/// The system's clock, and the system's randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemWorld;

/// A world that stands still until it is moved; ids count from 1, chance runs through a fixed sequence.
#[derive(Debug, Default)]
pub struct FixedWorld {
    now_ms: AtomicU64,
    ids: AtomicU64,
    draws: AtomicU64,
}

impl World for SystemWorld {
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn id(&self) -> u128 {
        Uuid::now_v7().as_u128()
    }

    fn unit(&self) -> f64 {
        let bits = Uuid::new_v4().as_u128() as u64 >> 11;
        to_unit(bits)
    }
}

impl FixedWorld {
    /// A world at this time, in milliseconds since 1970-01-01 UTC.
    pub fn at_ms(now_ms: u64) -> Self {
        Self { now_ms: AtomicU64::new(now_ms), ..Self::default() }
    }

    /// Moves the clock forward.
    pub fn advance_ms(&self, by: u64) {
        self.now_ms.fetch_add(by, Ordering::Relaxed);
    }
}

impl World for FixedWorld {
    fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }

    fn id(&self) -> u128 {
        u128::from(self.ids.fetch_add(1, Ordering::Relaxed)) + 1
    }

    fn unit(&self) -> f64 {
        let draw = self.draws.fetch_add(1, Ordering::Relaxed) + 1;
        to_unit(draw.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11)
    }
}

/// Maps 53 bits to 0.0 up to but without 1.0.
fn to_unit(bits: u64) -> f64 {
    bits as f64 / (1_u64 << 53) as f64
}
