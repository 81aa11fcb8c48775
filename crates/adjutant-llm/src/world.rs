//! Clock, ids and randomness, injected: a test fixes them, and a program uses the system's.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use jiff::{Timestamp, tz::TimeZone};
use uuid::Uuid;

/// The source of time, ids and chance.
pub trait World: Send + Sync + fmt::Debug {
    /// Milliseconds since 1970-01-01 UTC.
    fn now_ms(&self) -> u64;

    /// An id that was never given before.
    fn id(&self) -> u128;

    /// A number from 0.0 up to but without 1.0.
    fn unit(&self) -> f64;
}

/// A day and a time of day, in UTC.
///
/// Shape: `2026-03-01T09:30:00Z`, in RFC 3339.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Utc {
    /// The year.
    pub year: u64,
    /// The month, from 1.
    pub month: u64,
    /// The day of the month, from 1.
    pub day: u64,
    /// The hour, from 0.
    pub hour: u64,
    /// The minute, from 0.
    pub minute: u64,
    /// The second, from 0.
    pub second: u64,
}

/// The system's clock, and the system's randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemWorld;

/// A world whose clock is moved explicitly; ids count from 1, and randomness follows a fixed sequence.
#[derive(Debug, Default)]
pub struct FixedWorld {
    now_ms: AtomicU64,
    ids: AtomicU64,
    draws: AtomicU64,
}

/// One world that several own.
impl<W: World + ?Sized> World for Arc<W> {
    fn now_ms(&self) -> u64 {
        (**self).now_ms()
    }

    fn id(&self) -> u128 {
        (**self).id()
    }

    fn unit(&self) -> f64 {
        (**self).unit()
    }
}

impl World for SystemWorld {
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
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
        Self {
            now_ms: AtomicU64::new(now_ms),
            ..Self::default()
        }
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

impl Utc {
    /// The second in which a time lies that is given in milliseconds since 1970-01-01 UTC; no later one than the last of 9999.
    pub fn from_ms(ms: u64) -> Self {
        let then = i64::try_from(ms)
            .ok()
            .and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let civil = TimeZone::UTC.to_datetime(then.unwrap_or(Timestamp::MAX));
        let [month, day, hour, minute, second] = [
            civil.month(),
            civil.day(),
            civil.hour(),
            civil.minute(),
            civil.second(),
        ]
        .map(|it| it.unsigned_abs().into());
        Self {
            year: civil.year().unsigned_abs().into(),
            month,
            day,
            hour,
            minute,
            second,
        }
    }
}

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            year,
            month,
            day,
            hour,
            minute,
            second,
        } = self;
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Utc;

    #[test]
    fn utc_is_right_when_days_are_leap_days_or_not() {
        assert_eq!(Utc::from_ms(0).to_string(), "1970-01-01T00:00:00Z");
        assert_eq!(
            Utc::from_ms(951_782_399_999).to_string(),
            "2000-02-28T23:59:59Z"
        );
        assert_eq!(
            Utc::from_ms(951_782_400_999).to_string(),
            "2000-02-29T00:00:00Z"
        );
        assert_eq!(
            Utc::from_ms(1_709_251_199_000).to_string(),
            "2024-02-29T23:59:59Z"
        );
        assert_eq!(Utc::from_ms(u64::MAX).to_string(), "9999-12-30T22:00:00Z");
    }
}
