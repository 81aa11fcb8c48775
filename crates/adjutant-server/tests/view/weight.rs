//! How much the page weighs: it may not grow without somebody who says so here.

use adjutant_server::PAGE;

/// All files as they are served, preact with htm (13,194) among them. Without any name or blank that a reader needs they
/// would have 71,000.
const MAX_BYTES: usize = 97_600;
/// Lines of ours that are neither blank nor only a comment.
const MAX_LINES: usize = 1_200;

#[test]
fn page_is_small() {
    let bytes: usize = PAGE.iter().map(|file| file.text.len()).sum();
    let ours = PAGE
        .iter()
        .filter(|file| file.name != "preact.js")
        .flat_map(|file| file.text.lines());
    let is_code = |line: &&str| {
        !line.is_empty() && !["//", "/*", "*"].iter().any(|mark| line.starts_with(mark))
    };
    let lines = ours.map(str::trim).filter(is_code).count();
    println!("the page: {bytes} bytes, {lines} lines");
    assert!(
        bytes <= MAX_BYTES && lines <= MAX_LINES,
        "the page: {bytes} bytes, {lines} lines"
    );
}
