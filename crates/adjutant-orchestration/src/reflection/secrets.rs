//! The patterns of secrets: keys and tokens, and values next to a name that identifies them.

use std::{borrow::Cow, sync::LazyLock};

use regex::{Captures, Regex};

use super::redact::REDACTED;

/// A pattern and its replacement: `$1` and `$2` stay.
type Rule = (Regex, &'static str);

/// Patterns that are secrets in any context.
static SHAPES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let shapes = [
        // Private keys, including truncated ones.
        (
            r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
            "[redacted]",
        ),
        (r"AGE-SECRET-KEY-1[0-9A-Z]{10,}", "[redacted]"),
        // Headers.
        (
            r#"(?i)\b((?:proxy-)?authorization["']?\s*[:=]\s*["']?)[^"'\r\n]+"#,
            "$1[redacted]",
        ),
        (
            r#"(?i)\b((?:set-)?cookie["']?\s*:\s*["']?)[^"'\r\n]+"#,
            "$1[redacted]",
        ),
        // Names and passwords in addresses and for curl.
        (
            r"(?i)\b([a-z][a-z0-9+.-]*://[^\s/:@]*:)[^\s/@]+(?:@[^\s/@]+)*@",
            "$1[redacted]@",
        ),
        (
            r"(?i)((?:^|\s)(?:-u|--user)[ =]+[^\s:]+:)\S+",
            "$1[redacted]",
        ),
        (r"https://hooks\.slack\.com/services/\S+", "[redacted]"),
        (
            r"https://(?:\w+\.)?discord(?:app)?\.com/api/webhooks/\S+",
            "[redacted]",
        ),
        (
            r"(?i)([?&](?:sig|signature|x-amz-signature|x-amz-security-token|code|key)=)[^&\s#]{8,}",
            "$1[redacted]",
        ),
        // Tokens that begin with the name of who issues them.
        (r"\bsk-[A-Za-z0-9_-]{16,}", "[redacted]"),
        (
            r"\b(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{10,}",
            "[redacted]",
        ),
        (r"\bwhsec_[A-Za-z0-9+/=]{16,}", "[redacted]"),
        (r"\bgh[pousr]_[A-Za-z0-9]{20,}", "[redacted]"),
        (r"\bgithub_pat_[A-Za-z0-9_]{20,}", "[redacted]"),
        (
            r"\bgl(?:pat|dt|rt|ptt|cbt|soat|ft)-[A-Za-z0-9_-]{16,}",
            "[redacted]",
        ),
        (r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}", "[redacted]"),
        (r"\bxapp-[A-Za-z0-9-]{10,}", "[redacted]"),
        (
            r"\b(?:AKIA|ASIA|AGPA|AIDA|AROA|ABIA|ACCA)[A-Z0-9]{16}\b",
            "[redacted]",
        ),
        (r"\bAIza[A-Za-z0-9_-]{30,}", "[redacted]"),
        (r"\bya29\.[A-Za-z0-9_-]{20,}", "[redacted]"),
        (r"\bGOCSPX-[A-Za-z0-9_-]{20,}", "[redacted]"),
        (
            r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)*",
            "[redacted]",
        ),
        (
            r"\b(?:hf|npm|r8|gsk|nvapi|pplx|tvly|xai|ntn|secret|figd|glsa|dckr_pat|dop_v1|doo_v1|shpat|shpss|lin_api|sntrys|rubygems|sbp|pscale_tkn|oauth2)[_-][A-Za-z0-9_-]*[0-9][A-Za-z0-9_-]{11,}",
            "[redacted]",
        ),
        (r"\bpypi-[A-Za-z0-9_-]{16,}", "[redacted]"),
        (
            r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
            "[redacted]",
        ),
        (r"\bsq0(?:atp|csp|idp)-[A-Za-z0-9_-]{16,}", "[redacted]"),
        (r"\bhvs\.[A-Za-z0-9_-]{16,}", "[redacted]"),
        (r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}", "[redacted]"),
        (r"\bkey-[0-9a-f]{32}\b", "[redacted]"),
    ];
    shapes
        .into_iter()
        .map(|(shape, left)| (compile_shape(shape), left))
        .collect()
});

/// `Bearer` and a token outside a header.
static BEARER: LazyLock<Regex> =
    LazyLock::new(|| compile_shape(r"\b((?i:bearer|basic|token)\s+)([A-Za-z0-9._~+/=-]{12,})"));
/// An option of a program.
static FLAG: LazyLock<Regex> = LazyLock::new(|| {
    compile_shape(
        r#"(?i)(--?(?:[a-z0-9]+-)*(?:password|passwd|passphrase|secret|token|api-?key|access-?key|secret-?key|auth-?token)(?:\s+|=))("[^"\r\n]*"|'[^'\r\n]*'|[^\s"'-][^\s"']*)"#,
    )
});
/// A name, a separator, and a value.
static PAIR: LazyLock<Regex> = LazyLock::new(|| {
    compile_shape(
        r#"(?x)
        (?P<name> [A-Za-z_][A-Za-z0-9_.-]* )
        (?P<between> ["']? [\ \t]* (?: := | => | [:=] ) [\ \t]* )
        (?P<value> "(?:[^"\\\r\n]|\\.)*" | '(?:[^'\\\r\n]|\\.)*' | [^\s"',;&)\]}]+ )
        "#,
    )
});
/// Words that announce a password.
static PROSE: LazyLock<Regex> = LazyLock::new(|| {
    compile_shape(
        r#"(?i)\b((?:password|passphrase|passwd|pin)\s+(?:is|was)\s*:?\s+["'`]?)([^\s"'`]+)"#,
    )
});
/// Long runs of letters and digits.
static RUN: LazyLock<Regex> = LazyLock::new(|| compile_shape(r"[A-Za-z0-9_+/=-]{32,}"));

/// The smallest number of bits for each character of a run that is a key and no word.
const MIN_ENTROPY: f64 = 4.4;

/// The text without what looks like a secret.
pub(super) fn redact_secrets(mut text: String) -> String {
    for (shape, left) in SHAPES.iter() {
        if let Cow::Owned(changed) = shape.replace_all(&text, *left) {
            text = changed;
        }
    }
    text = replace_matches(&BEARER, text, |it| {
        looks_random(part(it, 2)).then(|| format!("{}{REDACTED}", part(it, 1)))
    });
    text = replace_matches(&FLAG, text, |it| {
        (!is_placeholder(inner(part(it, 2)))).then(|| format!("{}{REDACTED}", part(it, 1)))
    });
    text = replace_matches(&PAIR, text, pair);
    text = replace_matches(&PROSE, text, |it| {
        has_digit(part(it, 2)).then(|| format!("{}{REDACTED}", part(it, 1)))
    });
    replace_matches(&RUN, text, |it| {
        is_key(part(it, 0)).then(|| REDACTED.to_owned())
    })
}

fn compile_shape(shape: &str) -> Regex {
    Regex::new(shape).expect("the shapes are fixed, and a test compiles each")
}

/// The text with the result of `change` for each match; without a result, the match stays.
fn replace_matches(
    shape: &Regex,
    text: String,
    change: impl Fn(&Captures<'_>) -> Option<String>,
) -> String {
    let changed = shape.replace_all(&text, |it: &Captures<'_>| {
        change(it).unwrap_or_else(|| part(it, 0).to_owned())
    });
    match changed {
        Cow::Owned(changed) => changed,
        Cow::Borrowed(_) => text,
    }
}

fn part<'a>(it: &Captures<'a>, at: usize) -> &'a str {
    it.get(at).map_or("", |part| part.as_str())
}

/// A name and a value, without the value if the name identifies a secret.
fn pair(it: &Captures<'_>) -> Option<String> {
    let (name, between, value) = (part(it, 1), part(it, 2), part(it, 3));
    let sort = sort(name)?;
    let is_quoted = value.starts_with(['"', '\'']);
    let text = inner(value);
    if text.len() < 3 || is_placeholder(text) {
        return None;
    }
    let is_tight = between == "=";
    let is_variable = is_tight && name.chars().all(|it| !it.is_ascii_lowercase());
    let is_secret = match sort {
        _ if is_quoted || is_variable => true,
        _ if is_code(name, text) => false,
        Sort::Password => is_tight || has_digit(text),
        Sort::Token => {
            (is_tight && text.len() >= 6 || text.len() >= 8) && has_digit(text) && !is_number(text)
        }
    };
    let quote = if is_quoted {
        value.get(..1).unwrap_or_default()
    } else {
        ""
    };
    is_secret.then(|| format!("{name}{between}{quote}{REDACTED}{quote}"))
}

/// The kind of value that a name indicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Password,
    Token,
}

fn sort(name: &str) -> Option<Sort> {
    let plain: String = name
        .chars()
        .filter(|it| it.is_ascii_alphanumeric())
        .map(|it| it.to_ascii_lowercase())
        .collect();
    let last = words(name).last().cloned().unwrap_or_default();
    let ends = |ends: &[&str]| ends.iter().any(|end| plain.ends_with(end));
    if ends(&["password", "passwd", "passphrase", "passwort", "pwd"]) || last == "pass" {
        return Some(Sort::Password);
    }
    let is_token = ends(&[
        "secret",
        "apikey",
        "accesskey",
        "privatekey",
        "secretkey",
        "signingkey",
        "encryptionkey",
        "masterkey",
        "accountkey",
        "sharedkey",
        "accesskeyid",
        "credential",
        "credentials",
        "connectionstring",
        "authtoken",
        "sessionid",
        "keybase64",
        "secretvalue",
    ]) || last == "token"
        || last == "auth";
    is_token.then_some(Sort::Token)
}

/// The words of a name, in small letters.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for letter in name.chars() {
        let begins = !letter.is_ascii_alphanumeric() || (letter.is_ascii_uppercase() && was_small);
        if begins {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_ascii_alphanumeric()) {
            word.push(letter.to_ascii_lowercase());
        }
        was_small = letter.is_ascii_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The text within quotes.
fn inner(value: &str) -> &str {
    value.trim_matches(['"', '\''])
}

/// True if a value is only a placeholder for one.
fn is_placeholder(text: &str) -> bool {
    let text = text.trim();
    let lower = text.to_ascii_lowercase();
    let names = [
        "none",
        "null",
        "nil",
        "true",
        "false",
        "undefined",
        "string",
        "str",
        "redacted",
        "[redacted]",
    ];
    text.is_empty()
        || text.starts_with(['$', '<', '{', '%'])
        || text.starts_with("[redacted")
        || text.contains(REDACTED)
        || text
            .chars()
            .all(|it| matches!(it, '*' | '.' | 'x' | 'X' | '-' | '_' | '…'))
        || names.contains(&lower.as_str())
        || lower.starts_with("your")
}

/// True if an unquoted value is an expression or a type: a call, a path, a name that repeats the key.
fn is_code(name: &str, text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let same = words(name)
        .last()
        .is_some_and(|last| lower.contains(last.as_str()))
        && !has_digit(text);
    same || text.contains(['(', '[', '<', '{', '&'])
        || text.contains("::")
        || lower.starts_with("self.")
        || lower.starts_with("env.")
        || lower.starts_with("os.")
        || lower.starts_with("process.env")
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}

fn is_number(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'_' | b','))
}

/// True if the text after `Bearer` is a token: it has digits, or upper and lower case letters within.
fn looks_random(text: &str) -> bool {
    let inside = text.get(1..).unwrap_or_default();
    has_digit(text)
        || inside.bytes().any(|byte| byte.is_ascii_uppercase())
            && text.bytes().any(|it| it.is_ascii_lowercase())
}

/// True if a long run of letters and digits is a key: it has every kind of letter, in an order that no word has.
fn is_key(run: &str) -> bool {
    let count = |is: fn(&u8) -> bool| run.bytes().filter(is).count();
    let mixed = count(u8::is_ascii_digit) >= 2
        && count(u8::is_ascii_uppercase) >= 2
        && count(u8::is_ascii_lowercase) >= 2;
    // Paths have slashes; a key with slashes has 40 letters, or a sign that paths seldom have.
    let is_path = run.contains('/') && run.len() != 40 && !run.contains(['+', '=']);
    mixed && !is_path && entropy(run) >= MIN_ENTROPY
}

/// Returns the number of bits for each character of a text.
fn entropy(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text.bytes() {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
        }
    }
    let all = text.len() as f64;
    let shares = counts
        .into_iter()
        .filter(|count| *count > 0)
        .map(|count| f64::from(count) / all);
    shares.map(|share| -share * share.log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_compile() {
        assert!(!SHAPES.is_empty());
        for shape in [&BEARER, &FLAG, &PAIR, &PROSE, &RUN] {
            assert!(!shape.as_str().is_empty());
        }
    }

    #[test]
    fn words_of_names_are_found_when_they_are_joined() {
        assert_eq!(words("accessToken"), ["access", "token"]);
        assert_eq!(words("AWS_SESSION-token"), ["aws", "session", "token"]);
        assert_eq!(
            (sort("max_tokens"), sort("tokenizer"), sort("compass")),
            (None, None, None)
        );
        assert_eq!(
            (sort("DB_PASS"), sort("apiKey")),
            (Some(Sort::Password), Some(Sort::Token))
        );
    }
}
