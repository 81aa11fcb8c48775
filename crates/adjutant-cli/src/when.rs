//! Times for people, in UTC.

/// Milliseconds since 1970-01-01 UTC as `2026-03-01 09:30`.
pub(crate) fn minute(ms: u64) -> String {
    let minutes = ms / 60_000;
    let (year, month, day) = date(minutes / 1_440);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", minutes / 60 % 24, minutes % 60)
}

/// The day as `20260301`.
pub(crate) fn day(ms: u64) -> String {
    let (year, month, day) = date(ms / 86_400_000);
    format!("{year:04}{month:02}{day:02}")
}

/// Year, month and day of a day that is counted from 1970-01-01.
///
/// Source: Howard Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`.
fn date(days: u64) -> (u64, u64, u64) {
    // Years begin in March here, so that the day that is added in leap years is the last one.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
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
