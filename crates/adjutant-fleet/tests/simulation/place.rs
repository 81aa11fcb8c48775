//! Where a simulation plays: one clock, one source of chance, and a fault or two.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use adjutant_llm::World;
use tokio::time::Instant;

/// The time at which every simulation begins, in milliseconds since 1970-01-01 UTC.
const BEGIN_MS: u64 = 1_800_000_000_000;

/// What all machines of a simulation share.
#[derive(Debug)]
pub(crate) struct Place {
    began: Instant,
    chance: Mutex<u64>,
    ids: AtomicU64,
    /// False once nothing fails any more.
    pub(crate) has_faults: AtomicBool,
    /// The time that has passed at once, by the clocks, in milliseconds.
    pub(crate) leapt_ms: AtomicU64,
    /// How many times slower than usual the storage is.
    pub(crate) slowness: AtomicU64,
}

/// A clock that is wrong by some milliseconds, beside the ids and the chance of the place.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    pub(crate) place: Arc<Place>,
    pub(crate) wrong_by_ms: i64,
}

impl Place {
    /// A place whose chance comes from a seed.
    pub(crate) fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self {
            began: Instant::now(),
            chance: Mutex::new(seed),
            ids: AtomicU64::new(1),
            has_faults: AtomicBool::new(true),
            leapt_ms: AtomicU64::new(0),
            slowness: AtomicU64::new(1),
        })
    }

    /// A number below `limit`, which is not 0 (SplitMix64).
    pub(crate) fn below(&self, limit: u64) -> u64 {
        let mut chance = lock(&self.chance);
        *chance = chance.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = *chance;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit
    }

    /// True so many times in a thousand, while there are faults.
    pub(crate) fn fails(&self, times: u64) -> bool {
        self.has_faults.load(Ordering::Relaxed) && self.below(1_000) < times
    }

    /// Takes a random time of up to so many milliseconds.
    pub(crate) async fn pause(&self, most_ms: u64) {
        tokio::time::sleep(Duration::from_millis(self.below(most_ms) + 1)).await;
    }

    /// The time since the simulation began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

impl World for Clock {
    fn now_ms(&self) -> u64 {
        let elapsed = u64::try_from(self.place.elapsed().as_millis()).unwrap_or(u64::MAX);
        let leapt = self.place.leapt_ms.load(Ordering::Relaxed);
        (BEGIN_MS + elapsed + leapt).saturating_add_signed(self.wrong_by_ms)
    }

    fn id(&self) -> u128 {
        self.place.ids.fetch_add(1, Ordering::Relaxed).into()
    }

    fn unit(&self) -> f64 {
        self.place.below(1 << 53) as f64 / (1_u64 << 53) as f64
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
