//! The names of reflections: safe as file names, whatever their source.

use std::sync::Arc;

use adjutant_llm::Utc;

use super::ReflectionId;

/// The largest number of bytes of an agent's name in the names of its reflections.
const MAX_AGENT_BYTES: usize = 64;
/// The largest number of bytes in a name.
const MAX_BYTES: usize = 96;
/// The largest number of reflections of one agent in one second.
const MAX_OF_ONE_NAME: u32 = 1_000;

/// The first name for a reflection of this agent.
pub(super) fn first(agent: &str, now_ms: u64) -> ReflectionId {
    let Utc {
        year,
        month,
        day,
        hour,
        minute,
        second,
        ..
    } = Utc::from_ms(now_ms);
    let year = year.min(9_999);
    let stamp = format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}");
    ReflectionId(format!("{}-{stamp}", plain(agent)).into())
}

/// A name of an agent in letters, digits, `_` and `-` alone.
pub(super) fn plain(agent: &str) -> String {
    let mut plain = String::new();
    for letter in agent.chars().take(4 * MAX_AGENT_BYTES) {
        match letter {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => plain.push(letter),
            _ if plain.is_empty() || plain.ends_with('-') => {}
            _ => plain.push('-'),
        }
    }
    // Every character is one byte here.
    plain.truncate(MAX_AGENT_BYTES);
    let plain = plain.trim_end_matches('-');
    if plain.is_empty() {
        "agent".to_owned()
    } else {
        plain.to_owned()
    }
}

/// The names that a reflection may have: its own, and with a number.
pub(super) fn candidates(id: &ReflectionId) -> impl Iterator<Item = ReflectionId> + use<> {
    let id = id.clone();
    (1..=MAX_OF_ONE_NAME).map(move |number| match number {
        1 => id.clone(),
        _ => ReflectionId(format!("{id}-{number}").into()),
    })
}

/// Returns the creation time in the name of a reflection, as sortable text; `None` if the name is invalid.
pub(super) fn stamp(id: &str) -> Option<Arc<str>> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if id.len() > MAX_BYTES || !id.bytes().all(is_plain) || id.starts_with('-') {
        return None;
    }
    let are_digits = |part: &str, count: usize| {
        part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let mut parts: Vec<&str> = id.split('-').collect();
    let is_number = |part: &str| (1..=4).any(|count| are_digits(part, count));
    if parts.len() > 3 && parts.last().is_some_and(|last| is_number(last)) {
        parts.pop();
    }
    match parts.as_slice() {
        [_, .., day, time] if are_digits(day, 8) && are_digits(time, 6) => {
            Some(format!("{day}-{time}").into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(agent: &str, expect: &str) {
        let id = first(agent, 951_782_400_999);
        assert_eq!(&*id.0, format!("{expect}-20000229-000000"));
        assert_eq!(stamp(&id.0).as_deref(), Some("20000229-000000"), "{id}");
        assert!(candidates(&id).all(|id| stamp(&id.0).is_some()));
    }

    #[test]
    fn names_stay_plain_when_agents_have_hostile_ones() {
        check("coder", "coder");
        check("../../etc/passwd", "etc-passwd");
        check("/", "agent");
        check("", "agent");
        check("--a\0b\n..", "a-b");
        check("äöü 日本", "agent");
        check("C:\\x|y", "C-x-y");
        check(&"x".repeat(999), &"x".repeat(64));
    }

    #[test]
    fn stamp_refuses_when_a_name_is_none() {
        for id in [
            "",
            "a",
            "a-20000229",
            "20000229-000000",
            "../a-20000229-000000",
            "-a-20000229-000000",
            "a-20000229-000000-x",
            "a-2000022x-000000",
            "a-20000229-000000.md",
        ] {
            assert_eq!(stamp(id), None, "{id}");
        }
        assert_eq!(
            stamp("a-20000229-000000-12").as_deref(),
            Some("20000229-000000")
        );
    }
}
