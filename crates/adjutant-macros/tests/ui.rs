//! The mistakes that `#[tool]` explains, each at the place where it was made.

#[test]
fn tool_explains_when_it_is_misused() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
