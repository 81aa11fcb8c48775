use adjutant_macros::tool;

/// Adds.
#[tool(max_output = 0)]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Subtracts.
#[tool(timeout_secs = 0)]
fn subtract(a: i64, b: i64) -> i64 {
    a - b
}

/// Multiplies.
#[tool(approve)]
fn multiply(a: i64, b: i64) -> i64 {
    a * b
}

fn main() {}
