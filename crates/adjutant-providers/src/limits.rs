//! The content of an answer's headers: limits, the time to wait, the id of the request. Pure; now is the answer's date.

use std::{sync::Arc, time::Duration};

use adjutant_llm::RateLimits;
use http::HeaderMap;
use jiff::{Timestamp, fmt::rfc2822::DateTimeParser};

/// A wait beyond a year is no wait that anybody meant; it is cut to this, so that nobody tries again at once.
const MAX_WAIT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The provider's id of the request.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<Arc<str>> {
    text(headers, "request-id")
        .or_else(|| text(headers, "x-request-id"))
        .map(Into::into)
}

/// Returns the time that the provider asks to wait: milliseconds, seconds, or a date.
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

/// Returns the provider's word on trying the request again, if it gives one.
///
/// Source: `x-should-retry` in both vendors' clients, 2026-08.
pub(crate) fn should_retry(headers: &HeaderMap) -> Option<bool> {
    text(headers, "x-should-retry")?.trim().parse().ok()
}

/// The limits of the account.
///
/// Source: OpenAI's rate limit guide (`x-ratelimit-remaining-*`, `-reset-*` like `6m0s`) and Anthropic's
/// (`anthropic-ratelimit-*-remaining`, `-reset` in RFC 3339), 2026-08.
pub(crate) fn rate_limits(headers: &HeaderMap) -> RateLimits {
    let is_limit =
        |name: &str| name.starts_with("x-ratelimit-") || name.starts_with("anthropic-ratelimit-");
    if !headers.keys().any(|name| is_limit(name.as_str())) {
        return RateLimits::default();
    }
    told_limits(headers)
}

#[cold]
fn told_limits(headers: &HeaderMap) -> RateLimits {
    let count = |names: [&str; 2]| {
        names
            .iter()
            .find_map(|name| text(headers, name)?.trim().parse().ok())
    };
    let after = |name| text(headers, name).and_then(go_duration);
    let at = |name| {
        text(headers, name)?
            .trim()
            .parse::<Timestamp>()
            .ok()
            .and_then(|then| until(headers, then))
    };
    let requests =
        after("x-ratelimit-reset-requests").max(at("anthropic-ratelimit-requests-reset"));
    let tokens = after("x-ratelimit-reset-tokens").max(at("anthropic-ratelimit-tokens-reset"));
    let mut limits = RateLimits::default();
    limits.requests_left = count([
        "x-ratelimit-remaining-requests",
        "anthropic-ratelimit-requests-remaining",
    ]);
    limits.tokens_left = count([
        "x-ratelimit-remaining-tokens",
        "anthropic-ratelimit-tokens-remaining",
    ]);
    // An empty limit is the one that is waited for; where it is not known which is empty, the longest wait is safe.
    let requests_out = requests.filter(|_| limits.requests_left == Some(0));
    let tokens_out = tokens.filter(|_| limits.tokens_left == Some(0));
    limits.reset_after = requests_out
        .max(tokens_out)
        .or_else(|| requests.max(tokens));
    limits
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
    let mut rest = text.trim();
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|it: char| !it.is_ascii_digit() && it != '.')?;
        let (number, tail) = rest.split_at(digits);
        let unit = tail
            .find(|it: char| it.is_ascii_digit())
            .unwrap_or(tail.len());
        let scale = match &tail[..unit] {
            "h" => 3_600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * scale;
        rest = &tail[unit..];
    }
    (!text.trim().is_empty()).then(|| seconds(total)).flatten()
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
