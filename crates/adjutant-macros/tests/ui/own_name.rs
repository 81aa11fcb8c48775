use adjutant_macros::tool;

/// Searches.
#[tool]
fn query(query: String) -> String {
    query
}

fn main() {}
