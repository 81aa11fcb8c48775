//! The mistakes that `#[tool]` explains, each at the place where it was made; and the words that it proposes.

// It has tests of its own.
#[path = "../src/nearest.rs"]
mod nearest;

#[test]
fn tool_explains_when_it_is_misused() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
