use adjutant_macros::tool;

/// Adds.
#[tool(nam = "sum")]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Subtracts.
#[tool(colour = "red")]
fn subtract(a: i64, b: i64) -> i64 {
    a - b
}

/// Multiplies.
#[tool(sequential, sequential)]
fn multiply(a: i64, b: i64) -> i64 {
    a * b
}

fn main() {}
