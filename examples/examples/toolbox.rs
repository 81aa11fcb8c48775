//! A ready toolbox: an agent that looks around in a folder, with the offline model, so it needs no key.
//!
//! Run it with a folder: `cargo run -p adjutant-examples --example toolbox -- .`

use adjutant::{Agent, toolkit::Files};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    let agent = Agent::new(adjutant::model("offline/planner")?)
        .instructions("Answer from the files of the folder.")
        .toolbox(Files::new(folder)?.toolbox());
    let result = agent
        .run("What is this directory, and which crates does it hold?")
        .await?;
    for call in &result.calls {
        println!("> {} {:?}", call.name, call.result.status);
    }
    println!("{}", result.text());
    Ok(())
}
