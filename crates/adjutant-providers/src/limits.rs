//! The content of an answer's headers: limits, the time to wait, the id of the request. Pure; now is the answer's date.

use std::{sync::Arc, time::Duration};

use adjutant_llm::RateLimits;
use http::{HeaderMap, HeaderName};
use jiff::{Timestamp, fmt::rfc2822::DateTimeParser};

/// The maximum wait. A longer wait is not plausible, and is capped here so that a retry does not happen immediately.
const MAX_WAIT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The provider's id of the request.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<Arc<str>> {
    text(headers, "request-id")
        .or_else(|| text(headers, "x-request-id"))
        .map(Into::into)
}

/// Returns the requested wait: milliseconds, seconds, or a date.
///
/// Source: both vendors' clients (`retry-after-ms`, then `retry-after`), 2026-08.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let millis = text(headers, "retry-after-ms").and_then(|it| it.trim().parse::<f64>().ok());
    if let Some(wait) = millis.and_then(|it| seconds(it / 1_000.0)) {
        return Some(wait);
    }
    let after = text(headers, "retry-after")?;
    match after.trim().parse::<f64>() {
        Ok(wait) => seconds(wait),
        Err(_) => until(headers, http_date(after)?),
    }
}

/// Returns the provider's header about retries, if it is present.
///
/// Source: `x-should-retry` in both vendors' clients, 2026-08.
pub(crate) fn should_retry(headers: &HeaderMap) -> Option<bool> {
    text(headers, "x-should-retry")?.trim().parse().ok()
}

/// The headers of an account's limits: the remaining amount of each, and its reset.
///
/// Source: OpenAI's rate limit guide (resets like `6m0s`), Anthropic's (RFC 3339), Cerebras's (seconds, by day and minute),
/// OpenRouter's `x-ratelimit-reset` (milliseconds since 1970), draft-ietf-httpapi-ratelimit-headers (seconds), 2026-11.
const LIMITS: [(&str, &str); 10] = [
    (
        "x-ratelimit-remaining-requests",
        "x-ratelimit-reset-requests",
    ),
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    (
        "anthropic-ratelimit-requests-remaining",
        "anthropic-ratelimit-requests-reset",
    ),
    (
        "anthropic-ratelimit-tokens-remaining",
        "anthropic-ratelimit-tokens-reset",
    ),
    (
        "anthropic-ratelimit-input-tokens-remaining",
        "anthropic-ratelimit-input-tokens-reset",
    ),
    (
        "anthropic-ratelimit-output-tokens-remaining",
        "anthropic-ratelimit-output-tokens-reset",
    ),
    (
        "x-ratelimit-remaining-requests-day",
        "x-ratelimit-reset-requests-day",
    ),
    (
        "x-ratelimit-remaining-tokens-minute",
        "x-ratelimit-reset-tokens-minute",
    ),
    ("x-ratelimit-remaining", "x-ratelimit-reset"),
    ("ratelimit-remaining", "ratelimit-reset"),
];

/// The limits of the account.
pub(crate) fn rate_limits(headers: &HeaderMap) -> RateLimits {
    const PREFIXES: [&str; 3] = ["x-ratelimit-", "anthropic-ratelimit-", "ratelimit-"];
    let is_limit = |name: &HeaderName| PREFIXES.iter().any(|it| name.as_str().starts_with(it));
    if headers.keys().any(is_limit) {
        parse_limits(headers)
    } else {
        RateLimits::default()
    }
}

#[cold]
fn parse_limits(headers: &HeaderMap) -> RateLimits {
    let left = |name| text(headers, name)?.trim().parse().ok();
    let mut limits = RateLimits::default();
    limits.requests_left = left(LIMITS[0].0).or_else(|| left(LIMITS[2].0));
    limits.tokens_left = left(LIMITS[1].0).or_else(|| left(LIMITS[3].0));
    // If the exhausted limit is unknown, the longest wait is safe.
    limits.reset_after = reset_of_reached(headers).or_else(|| resets(headers).max());
    limits
}

/// Returns the time until a refused request may be sent again, if the headers contain it: until the exhausted limits
/// are reset, or else until the first reset.
pub(crate) fn reset_after(headers: &HeaderMap) -> Option<Duration> {
    reset_of_reached(headers).or_else(|| resets(headers).min())
}

/// Only exhausted limits determine the wait.
fn reset_of_reached(headers: &HeaderMap) -> Option<Duration> {
    let is_reached = |name| text(headers, name).is_some_and(|it| it.trim() == "0");
    let reached = LIMITS.iter().filter(|(left, _)| is_reached(left));
    reached.filter_map(|(_, name)| reset(headers, name)).max()
}

fn resets(headers: &HeaderMap) -> impl Iterator<Item = Duration> {
    LIMITS.iter().filter_map(|(_, name)| reset(headers, name))
}

/// The time until a reset: a duration, seconds, seconds or milliseconds since 1970, or a date.
fn reset(headers: &HeaderMap, name: &str) -> Option<Duration> {
    let value = text(headers, name)?.trim();
    match value.parse::<f64>() {
        Ok(number) if number >= 1e11 => {
            until(headers, Timestamp::from_millisecond(number as i64).ok()?)
        }
        Ok(number) if number >= 1e9 => until(headers, Timestamp::from_second(number as i64).ok()?),
        Ok(number) => seconds(number),
        Err(_) => go_duration(value).or_else(|| {
            let date = value.parse::<Timestamp>().ok();
            until(headers, date.or_else(|| http_date(value))?)
        }),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Seconds, at most [`MAX_WAIT`]; nothing if they are less than none, or no number.
fn seconds(seconds: f64) -> Option<Duration> {
    (seconds >= 0.0)
        .then(|| Duration::try_from_secs_f64(seconds).map_or(MAX_WAIT, |wait| wait.min(MAX_WAIT)))
}

/// Returns the whole seconds from the answer's date until then; nothing if that is past.
fn until(headers: &HeaderMap, then: Timestamp) -> Option<Duration> {
    let now = http_date(text(headers, "date")?)?;
    let seconds = u64::try_from(then.as_second() - now.as_second()).ok()?;
    Some(Duration::from_secs(seconds).min(MAX_WAIT))
}

/// A duration like `1h2m3.5s` or `20ms`.
pub(crate) fn go_duration(text: &str) -> Option<Duration> {
    let (total, rest) = leading_seconds(text.trim())?;
    rest.is_empty().then(|| seconds(total)).flatten()
}

/// The words before a wait in a text.
///
/// Source: OpenAI's and Groq's rate limits ("Please try again in 6.5s"), Gemini's ("Please retry in 38.2s"), Azure's ("Please
/// retry after 26 seconds"), 2026-11.
const BEFORE_WAIT: [&str; 6] = [
    "try again in ",
    "try again after ",
    "retry in ",
    "retry after ",
    "wait ",
    "wait for ",
];

/// Returns the wait that a text contains.
pub(crate) fn wait_in(text: &str) -> Option<Duration> {
    let text = text.to_ascii_lowercase();
    BEFORE_WAIT.iter().find_map(|words| {
        let mut found = text.match_indices(words);
        found.find_map(|(at, _)| {
            let (total, _) = leading_seconds(&text[at + words.len()..])?;
            seconds(total)
        })
    })
}

/// The seconds of the duration at the start of a text, such as `6m0s`, `1.5 s` or `2 minutes`, and the rest of the text.
fn leading_seconds(text: &str) -> Option<(f64, &str)> {
    let (mut total, mut rest) = (None, text);
    loop {
        let number = rest
            .find(|it: char| !it.is_ascii_digit() && it != '.')
            .unwrap_or(rest.len());
        let tail = rest[number..].trim_start();
        let unit = tail
            .find(|it: char| !it.is_alphabetic())
            .unwrap_or(tail.len());
        let scale = match &tail[..unit] {
            "d" | "day" | "days" => 86_400.0,
            "h" | "hour" | "hours" => 3_600.0,
            "m" | "min" | "minute" | "minutes" => 60.0,
            "s" | "sec" | "second" | "seconds" => 1.0,
            "ms" | "milliseconds" => 1e-3,
            "us" | "µs" => 1e-6,
            _ => break,
        };
        let Ok(count) = rest[..number].parse::<f64>() else {
            break;
        };
        total = Some(total.unwrap_or(0.0) + count * scale);
        rest = &tail[unit..];
        let next = rest.trim_start();
        if next.starts_with(|it: char| it.is_ascii_digit()) {
            rest = next;
        }
    }
    total.map(|total| (total, rest))
}

/// A date like `Sun, 06 Nov 1994 08:49:37 GMT`.
fn http_date(text: &str) -> Option<Timestamp> {
    // Only the date counts: servers that get the day of the week wrong mean it all the same.
    DateTimeParser::new()
        .relaxed_weekday(true)
        .parse_timestamp(text.trim())
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (
                    http::HeaderName::from_static(name),
                    http::HeaderValue::from_static(value),
                )
            })
            .collect()
    }

    #[track_caller]
    fn check(pairs: &[(&'static str, &'static str)], expect: Option<u64>) {
        assert_eq!(
            retry_after(&headers(pairs)),
            expect.map(Duration::from_millis),
            "{pairs:?}"
        );
    }

    #[test]
    fn retry_after_reads_every_form_when_it_is_sane() {
        check(&[], None);
        check(
            &[("retry-after-ms", "1500.0"), ("retry-after", "9")],
            Some(1_500),
        );
        check(&[("retry-after", "2.5")], Some(2_500));
        check(&[("retry-after", "-1")], None);
        check(&[("retry-after", "NaN")], None);
        let year = Some(365 * 24 * 60 * 60 * 1_000);
        check(&[("retry-after", "99999999999")], year);
        check(
            &[("retry-after-ms", "99999999999999"), ("retry-after", "9")],
            year,
        );
        check(&[("retry-after", "1e300")], year);
        check(&[("retry-after", "inf")], year);
        check(&[("retry-after", "soon")], None);
        let date = ("date", "Tue, 29 Feb 2028 23:59:50 GMT");
        check(
            &[date, ("retry-after", "Wed, 01 Mar 2028 00:00:20 GMT")],
            Some(30_000),
        );
        check(
            &[date, ("retry-after", "Tue, 29 Feb 2028 23:59:00 GMT")],
            None,
        );
        check(
            &[date, ("retry-after", "Wed, 01 Mar 2928 00:00:20 GMT")],
            year,
        );
        check(&[("retry-after", "Wed, 01 Mar 2028 00:00:20 GMT")], None);
    }

    #[test]
    fn wait_is_read_when_a_text_asks_for_it() {
        for (text, expect) in [
            (
                "Limit 30000, Used 29000. Please try again in 6.5s. Visit https://a.example",
                Some(6_500),
            ),
            (
                "Rate limit reached for gpt-5. Please try again in 1m2.5s.",
                Some(62_500),
            ),
            ("Please try again in 120ms.", Some(120)),
            ("Please try again in 6m0s", Some(360_000)),
            ("Please retry in 38.209518s.", Some(38_210)),
            ("Please retry after 26 seconds.", Some(26_000)),
            (
                "Too many requests, wait for 2 minutes 5 seconds and try again",
                Some(125_000),
            ),
            ("Try again in 7h12m", Some(25_920_000)),
            ("please wait before you try again", None),
            ("try again in a moment", None),
            ("try again in 5", None),
            ("retry in ..s", None),
            (
                "try again in 9999999999999999999999d",
                Some(MAX_WAIT.as_millis() as u64),
            ),
        ] {
            let wait = wait_in(text).map(|it| (it.as_secs_f64() * 1_000.0).round() as u64);
            assert_eq!(wait, expect, "{text}");
        }
    }

    #[test]
    fn reset_is_read_in_every_form_when_no_retry_after_is_sent() {
        let date = ("date", "Sat, 28 Nov 2026 12:00:00 GMT");
        for (pairs, expect) in [
            (&[("x-ratelimit-reset-requests", "6m0s")][..], Some(360_000)),
            (&[("x-ratelimit-reset-tokens", "1.5s")], Some(1_500)),
            (&[("x-ratelimit-reset-tokens", "120ms")], Some(120)),
            (
                &[("x-ratelimit-reset-tokens-minute", "11.38")],
                Some(11_380),
            ),
            (&[date, ("x-ratelimit-reset", "1795867210")], Some(10_000)),
            (
                &[date, ("x-ratelimit-reset", "1795867210000")],
                Some(10_000),
            ),
            (
                &[
                    date,
                    ("anthropic-ratelimit-tokens-reset", "2026-11-28T12:00:23Z"),
                ],
                Some(23_000),
            ),
            (&[("ratelimit-reset", "20")], Some(20_000)),
            (
                &[
                    ("x-ratelimit-reset-requests", "8s"),
                    ("x-ratelimit-reset-tokens", "2s"),
                ],
                Some(2_000),
            ),
            (
                &[
                    ("x-ratelimit-reset-requests", "8s"),
                    ("x-ratelimit-remaining-requests", "0"),
                    ("x-ratelimit-reset-tokens", "2s"),
                ],
                Some(8_000),
            ),
            (&[("x-ratelimit-reset", "1795867210")], None),
            (&[("x-ratelimit-reset", "soon")], None),
            (&[], None),
        ] {
            let expect = expect.map(Duration::from_millis);
            assert_eq!(reset_after(&headers(pairs)), expect, "{pairs:?}");
        }
    }

    #[test]
    fn http_date_reads_dates_when_they_are_whole() {
        let seconds = |text| http_date(text).map(Timestamp::as_second);
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(seconds("Mon, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(seconds("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(seconds("06 Nov 1994"), None);
    }

    #[test]
    fn rate_limits_reads_both_families_when_they_are_sent() {
        let limits = rate_limits(&headers(&[
            ("x-ratelimit-remaining-requests", "59"),
            ("x-ratelimit-remaining-tokens", "149984"),
            ("x-ratelimit-reset-requests", "1s"),
            ("x-ratelimit-reset-tokens", "6m0.5s"),
        ]));
        assert_eq!(
            (limits.requests_left, limits.tokens_left, limits.reset_after),
            (
                Some(59),
                Some(149_984),
                Some(Duration::from_millis(360_500))
            )
        );
        let limits = rate_limits(&headers(&[
            ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("anthropic-ratelimit-requests-remaining", "3"),
            ("anthropic-ratelimit-tokens-remaining", "x"),
            (
                "anthropic-ratelimit-requests-reset",
                "1994-11-06T08:50:00.5Z",
            ),
        ]));
        assert_eq!(
            (limits.requests_left, limits.tokens_left, limits.reset_after),
            (Some(3), None, Some(Duration::from_secs(23)))
        );
        assert_eq!(rate_limits(&HeaderMap::new()), RateLimits::default());
    }

    #[test]
    fn rate_limits_wait_for_the_empty_bucket_when_one_is_empty() {
        for (requests, tokens, expect) in [
            ("0", "5", 2),
            ("5", "0", 9),
            ("0", "0", 9),
            ("5", "5", 9),
            ("x", "5", 9),
        ] {
            let limits = rate_limits(&headers(&[
                ("x-ratelimit-remaining-requests", requests),
                ("x-ratelimit-remaining-tokens", tokens),
                ("x-ratelimit-reset-requests", "2s"),
                ("x-ratelimit-reset-tokens", "9s"),
            ]));
            assert_eq!(
                limits.reset_after,
                Some(Duration::from_secs(expect)),
                "{requests} {tokens}"
            );
        }
        let limits = rate_limits(&headers(&[
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-remaining-tokens", "5"),
            ("x-ratelimit-reset-tokens", "9s"),
        ]));
        assert_eq!(limits.reset_after, Some(Duration::from_secs(9)));
    }
}
