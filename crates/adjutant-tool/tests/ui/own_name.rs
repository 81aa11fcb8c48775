use adjutant_tool::tool;

/// Searches.
#[tool]
fn query(query: String) -> String {
    query
}

fn main() {}
