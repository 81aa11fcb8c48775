//! Counts the methods of `Agent` and the ways to start a run: these numbers may only fall.

use super::Source;
use crate::scan;

const CRATES: &[&str] = &["llm", "tool", "core", "agent", "context"];
const AGENT: &str = "crates/adjutant-agent/src/agent";
/// Item, maximum number.
const LIMITS: [(&str, usize); 2] = [("methods of Agent", 48), ("ways to start a run", 3)];

pub(super) fn counts(sources: &[Source]) -> Vec<String> {
    let mut counted = [0; 2];
    let is_core = |path: &str| {
        CRATES
            .iter()
            .any(|name| path.starts_with(&format!("crates/adjutant-{name}/src/")))
    };
    for source in sources
        .iter()
        .filter(|source| is_core(&source.path) && !source.path.contains("/tests"))
    {
        let mut code = source.scanned.code.clone();
        scan::test_modules(&code)
            .into_iter()
            .rev()
            .for_each(|module| code.replace_range(module, ""));
        let functions = public(&code, "fn ");
        counted[1] += functions
            .iter()
            .filter(|it| it.starts_with("drive<"))
            .count();
        for (start, _) in code
            .match_indices("impl Agent {")
            .filter(|_| source.path.starts_with(AGENT))
        {
            let block = &code[start..scan::end(&code, start, b'}').unwrap_or(start)];
            counted[0] += public(block, "fn ").len();
            counted[1] += block.matches("-> RunBuilder {").count();
        }
    }
    let found = LIMITS.iter().zip(counted).map(|((what, most), counted)| {
        println!("tidy: {counted} {what} (limit {most})");
        (counted > *most).then(|| format!("{AGENT}.rs:1: {counted} {what} (limit {most})"))
    });
    found.flatten().collect()
}

/// Returns the rest of each line after `pub` and this word.
fn public<'a>(code: &'a str, word: &str) -> Vec<&'a str> {
    let item = |line: &'a str| {
        let rest = line.trim_start().strip_prefix("pub ")?;
        let rest = rest
            .trim_start_matches("const ")
            .trim_start_matches("async ");
        rest.strip_prefix(word)
    };
    code.lines().filter_map(item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(raw: &str, expect: &[&str]) {
        let expect: Vec<_> = expect
            .iter()
            .map(|what| format!("{AGENT}.rs:1: {what}"))
            .collect();
        assert_eq!(
            counts(&[Source::new(&format!("{AGENT}.rs"), raw.into())]),
            expect
        );
    }

    #[test]
    fn surface_is_reported_when_it_has_grown() {
        let tests = "    pub fn f() {}\n".repeat(1_000);
        check(
            &format!(
                "impl Agent {{\n    pub fn run(&self) {{}}\n}}\n#[cfg(test)]\nmod tests {{\n{tests}}}"
            ),
            &[],
        );
        let methods = "    pub async fn f(&self) {}\n".repeat(49);
        check(
            &format!("impl Agent {{\n{methods}}}"),
            &["49 methods of Agent (limit 48)"],
        );
        let ways = "    pub fn run(&self) -> RunBuilder {}\n".repeat(3);
        check(
            &format!("impl Agent {{\n{ways}}}\npub async fn drive<P>() {{}}"),
            &["4 ways to start a run (limit 3)"],
        );
    }
}
