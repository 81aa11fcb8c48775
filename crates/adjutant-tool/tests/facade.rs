//! The attribute that the facade hands out, in a crate that knows nothing but the facade.

extern crate self as adjutant;

#[doc(hidden)]
pub use adjutant_tool as __tool;

/// Greets.
#[adjutant_macros::tool_facade]
async fn greet(
    name: Option<String>,
    cx: adjutant::__tool::CallContext,
) -> Result<String, std::fmt::Error> {
    Ok(format!("hello {}", name.unwrap_or(cx.who.name.to_string())))
}

#[tokio::test]
async fn tool_works_when_only_the_facade_is_known() {
    let bound = adjutant::__tool::Bound::new(greet);
    let admitted = bound.admit("{}").expect("nothing is required");
    let result = bound
        .call(admitted.value, adjutant::__tool::CallContext::detached())
        .await;
    assert_eq!(result.expect("it greets").text(), "hello detached");
}
