use adjutant_macros::tool;

/// Shows a text.
#[tool]
fn show(text: &str) -> String {
    text.to_owned()
}

/// Shows texts.
#[tool]
fn join(texts: Option<Vec<&str>>) -> String {
    texts.unwrap_or_default().join(" ")
}

fn main() {}
