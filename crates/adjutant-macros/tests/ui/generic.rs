use adjutant_macros::tool;

/// Shows anything.
#[tool]
fn show<T: ToString>(value: T) -> String {
    value.to_string()
}

fn main() {}
