//! From a manifest to an answer. Takes the path of the manifest; needs no key if its model is `offline/planner`.

use adjutant::runtime::{Engine, Prompter, prompt::PromptRequest};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "adjutant.yaml".to_owned());
    let engine = Engine::from_file(path).await?;
    let reply = engine
        .prompt(PromptRequest::new("Where does `apple` occur?"))
        .await?;
    println!("{}", reply.text);
    Ok(())
}
