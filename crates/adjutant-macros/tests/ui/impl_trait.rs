use adjutant_macros::tool;

/// Shows anything.
#[tool]
fn show(value: impl ToString) -> String {
    value.to_string()
}

fn main() {}
