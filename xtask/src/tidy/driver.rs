//! The driver stays one short function that knows nothing of what others add around it.

use super::Source;
use crate::scan;

const PATH: &str = "crates/adjutant-agent/src/drive.rs";
const SIGNATURE: &str = "pub async fn drive";
const LINES: usize = 60;
/// What the file may not mention outside of comments, in any spelling.
const FOREIGN: &[&str] = &[
    "retry",
    "compact",
    "approval",
    "telemetry",
    "provider",
    "tracing",
];

pub(super) fn by_name(sources: &[Source]) -> Vec<String> {
    let Some(source) = sources.iter().find(|source| source.path == PATH) else {
        return vec![format!("{PATH}:1: the driver is missing")];
    };
    let mut messages = Vec::new();
    let functions = scan::functions(&source.scanned.code);
    let driver = functions.iter().find(|function| {
        function.name == "drive" && source.scanned.code[..function.start].ends_with("pub async ")
    });
    match driver {
        None => messages.push(source.message(0, &format!("no `{SIGNATURE}`"))),
        Some(driver) if driver.lines > LINES => {
            let what = format!(
                "`{SIGNATURE}` has {} code lines (limit {LINES})",
                driver.lines
            );
            messages.push(source.message(driver.start, &what));
        }
        Some(_) => {}
    }
    let text = source.scanned.text.to_ascii_lowercase();
    for word in FOREIGN {
        let found = text.match_indices(word);
        messages.extend(
            found.map(|(at, _)| source.message(at, &format!("the driver mentions `{word}`"))),
        );
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(raw: &str, expect: &[&str]) {
        let expect: Vec<String> = expect.iter().map(|what| format!("{PATH}:{what}")).collect();
        assert_eq!(by_name(&[Source::new(PATH.into(), raw.into())]), expect);
    }

    #[test]
    fn driver_passes_when_short_and_foreign_words_stand_in_comments() {
        check(
            "//! No retry.\npub async fn drive<P>(port: P) { /* tracing */ }",
            &[],
        );
    }

    #[test]
    fn driver_is_reported_when_missing_long_or_knowing() {
        check("async fn drive() {}", &["1: no `pub async fn drive`"]);
        let long = format!("pub async fn drive() {{\n{}}}", "a();\n".repeat(59));
        check(
            &long,
            &["1: `pub async fn drive` has 61 code lines (limit 60)"],
        );
        check(
            "pub async fn drive() {\nself.RetryPolicy(\"\") }",
            &["2: the driver mentions `retry`"],
        );
    }
}
