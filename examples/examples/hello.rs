//! The smallest agent: one tool, one question. Reads `ANTHROPIC_API_KEY`.

use adjutant::{Agent, tool};

/// Adds two whole numbers.
#[tool]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let agent = Agent::new(adjutant::model("anthropic/claude-sonnet-5")?).tool(add);
    println!("{}", agent.run("What is 17 plus 25?").await?.text());
    Ok(())
}
