//! The mistakes that `#[tool]` explains, each at the place where it was made; and the words that it proposes.

// The library itself has no test target.
#[path = "../src/nearest.rs"]
mod nearest;

#[test]
fn tool_explains_when_it_is_misused() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}

#[test]
fn nearest_answers_when_a_word_is_near() {
    let known = ["name", "title", "timeout_secs"];
    let nearest = nearest::nearest;
    assert_eq!(nearest("tittle", &known), Some("title"));
    assert_eq!(nearest("nmae", &["image", "name"]), Some("name"));
    assert_eq!(nearest("timeout", &known), None);
    assert_eq!(nearest("timeout_sec", &known), Some("timeout_secs"));
    assert_eq!(nearest("colour", &known), None);
}
