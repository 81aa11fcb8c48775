//! An answer as a Rust type: requested by its schema, validated, and sent back once for repair. Scripted, without a
//! key.

use adjutant::llm::{ModelInfo, Request, Script, ScriptedModel, Structured, complete_as};
use schemars::JsonSchema;
use serde::Deserialize;

/// The request in a letter.
#[derive(Debug, Deserialize, JsonSchema)]
struct Ticket {
    /// The subject, in a few words.
    subject: String,
    /// From 1, which can wait, to 5, which cannot.
    #[schemars(range(min = 1, max = 5))]
    urgency: u8,
    /// The people who should know.
    notify: Vec<String>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // How a schema is requested depends on the model's data: here with the wire's native mode.
    let model = ScriptedModel::new([
        Script::new().text(r#"{"subject": "Printer on fire", "urgency": 9, "notify": ["Ada"]}"#),
        Script::new().text(r#"{"subject": "Printer on fire", "urgency": 5, "notify": ["Ada"]}"#),
    ])
    .info(ModelInfo {
        structured: Structured::Native,
        ..ModelInfo::new("scripted/model")
    });

    let request = Request::new()
        .user("Dear Ada, the printer on the second floor burns. Please come at once.");
    let shaped = complete_as::<Ticket>(&model, request).await?;
    let Ticket {
        subject,
        urgency,
        notify,
    } = shaped.value;
    println!("{subject}, urgency {urgency}, for {}", notify.join(" and "));
    println!("after {} attempts", shaped.attempts);

    let requests = model.requests();
    let repair = requests[1]
        .entries
        .last()
        .ok_or("the second request tells what is wrong")?;
    let told = serde_json::to_value(&repair.entry)?.to_string();
    assert!(
        told.contains("/urgency"),
        "the model is told the place: {told}"
    );
    model.assert_done();
    Ok(())
}
