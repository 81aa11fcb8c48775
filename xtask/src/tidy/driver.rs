//! The driver stays one short function that knows nothing of what others add around it.

use super::Source;
use crate::scan;

const PATH: &str = "crates/adjutant-core/src/drive.rs";
/// One screen at a width of 100.
const LINES: usize = 80;
/// Names that the file must not contain outside of comments, in any spelling.
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
    let code = &source.scanned.code;
    let drive = scan::functions(code)
        .into_iter()
        .find(|(name, range)| *name == "drive" && code[..range.start].ends_with("pub async "));
    let first = match drive {
        None => Some(source.message(0, "no `pub async fn drive`")),
        Some((_, range)) => {
            source.longer(range.start, "the driver", scan::count(&code[range]), LINES)
        }
    };
    let text = source.scanned.text.to_ascii_lowercase();
    let foreign = FOREIGN.iter().flat_map(|word| text.match_indices(word));
    let foreign =
        foreign.map(|(at, word)| source.message(at, &format!("the driver mentions `{word}`")));
    first.into_iter().chain(foreign).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(raw: &str, expect: &[&str]) {
        let expect: Vec<_> = expect.iter().map(|what| format!("{PATH}:{what}")).collect();
        assert_eq!(by_name(&[Source::new(PATH, raw.into())]), expect);
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
        let long = format!("pub async fn drive() {{\n{}}}", "a();\n".repeat(79));
        check(&long, &["1: the driver has 81 lines (limit 80)"]);
        let knowing = "pub async fn drive() {\nself.RetryPolicy(\"\") }";
        check(knowing, &["2: the driver mentions `retry`"]);
    }
}
