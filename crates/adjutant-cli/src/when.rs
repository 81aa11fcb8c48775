//! Formats times for people, in UTC.

use adjutant::llm::Utc;

/// Formats milliseconds since 1970-01-01 UTC as `2026-03-01 09:30`.
pub(crate) fn minute(ms: u64) -> String {
    let Utc {
        year,
        month,
        day,
        hour,
        minute,
        ..
    } = Utc::from_ms(ms);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}")
}

/// Formats the day as `20260301`.
pub(crate) fn day(ms: u64) -> String {
    let Utc {
        year, month, day, ..
    } = Utc::from_ms(ms);
    format!("{year:04}{month:02}{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minute_is_right_when_years_are_leap_years_or_not() {
        assert_eq!(minute(0), "1970-01-01 00:00");
        assert_eq!(minute(951_782_399_999), "2000-02-28 23:59");
        assert_eq!(minute(951_782_400_000), "2000-02-29 00:00");
        assert_eq!(minute(1_772_357_400_000), "2026-03-01 09:30");
        assert_eq!(day(4_107_542_400_000), "21000301");
    }
}
