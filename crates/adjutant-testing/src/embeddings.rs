//! Embeddings on the wires of OpenAI and Gemini: a vector for each text that depends on nothing but the text.
//!
//! Source: OpenAI API reference "Create embeddings"; Gemini API reference "Embeddings", both August 2026.

use adjutant_llm::Estimate;
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{
    gemini,
    node::Node,
    received::Received,
    refusal::Refusal,
    wire::{Wire, json_body},
};

/// The number of numbers in a vector, unless the request gives another.
const DIMENSIONS: u64 = 64;
/// The largest number of numbers in a vector.
const MAX_DIMENSIONS: u64 = 3_072;
/// The largest number of texts in one request of OpenAI.
const MAX_INPUTS: usize = 2_048;
/// The largest number of texts in one batch of Gemini.
const MAX_BATCH: usize = 100;

/// Answers a request for embeddings.
pub(crate) fn answer(wire: Wire, received: &Received) -> Result<Value, Refusal> {
    let body = json_body(received)?;
    match wire {
        Wire::Gemini => batch(received, &body),
        Wire::Messages | Wire::Chat | Wire::Responses | Wire::Foreign => embeddings(&body),
    }
}

fn embeddings(body: &Value) -> Result<Value, Refusal> {
    let root = Node::root(body);
    let model = root.need("model")?.text()?;
    let input = root.need("input")?;
    let texts = if input.value.is_string() {
        vec![input.clone()]
    } else {
        input.items()?
    };
    if texts.is_empty() {
        return Err(input.refuse("Invalid 'input': expected an array with at least one item"));
    }
    if texts.len() > MAX_INPUTS {
        let message = format!("array too long. Expected an array with maximum length {MAX_INPUTS}");
        return Err(input.refuse(message).code("array_above_max_length"));
    }
    let encoding = root
        .field("encoding_format")
        .map(|it| it.text())
        .transpose()?
        .unwrap_or("float");
    let size = dimensions(root.field("dimensions"))?;
    let (mut data, mut tokens) = (Vec::new(), 0);
    for (at, text) in texts.iter().enumerate() {
        let text = read_input(text)?;
        tokens += Estimate.count(text);
        let vector = vector(text, size);
        let embedding = match encoding {
            "float" => json!(vector),
            "base64" => STANDARD
                .encode(
                    vector
                        .iter()
                        .flat_map(|it| it.to_le_bytes())
                        .collect::<Vec<u8>>(),
                )
                .into(),
            other => {
                return Err(
                    Refusal::invalid(format!("Invalid value: '{other}'.")).param("encoding_format")
                );
            }
        };
        data.push(json!({"object": "embedding", "index": at, "embedding": embedding}));
    }
    let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens});
    Ok(json!({"object": "list", "data": data, "model": model, "usage": usage}))
}

fn batch(received: &Received, body: &Value) -> Result<Value, Refusal> {
    let (model, _) = gemini::method(received.route()).unwrap_or_default();
    let requests = Node::root(body).need("requests")?.items()?;
    if requests.len() > MAX_BATCH {
        let message =
            "* BatchEmbedContentsRequest.requests: at most 100 requests can be in one batch\n";
        return Err(Refusal::invalid(message));
    }
    let (mut embeddings, mut tokens) = (Vec::new(), 0);
    for request in &requests {
        if request.need("model")?.text()? != format!("models/{model}") {
            return Err(request.refuse("the model must be that of the batch"));
        }
        let parts = request.need("content")?.need("parts")?.items()?;
        let texts = parts
            .iter()
            .map(|part| read_input(&part.need("text")?).map(str::to_owned));
        let text = texts.collect::<Result<Vec<_>, _>>()?.concat();
        tokens += Estimate.count(&text);
        let size = dimensions(request.field("outputDimensionality"))?;
        embeddings.push(json!({"values": vector(&text, size)}));
    }
    Ok(json!({"embeddings": embeddings, "usageMetadata": {"promptTokenCount": tokens}}))
}

fn read_input<'a>(text: &Node<'a>) -> Result<&'a str, Refusal> {
    match text.text()? {
        "" => Err(text.refuse("input cannot be an empty string")),
        text => Ok(text),
    }
}

fn dimensions(node: Option<Node<'_>>) -> Result<u64, Refusal> {
    let Some(node) = node else {
        return Ok(DIMENSIONS);
    };
    match node.count()? {
        size @ ..=MAX_DIMENSIONS => Ok(size),
        _ => Err(node.refuse(format!("must be at most {MAX_DIMENSIONS}"))),
    }
}

/// A vector of length 1 that is the same whenever the text is.
///
/// Source: FNV-1a for the text, SplitMix64 for the numbers.
fn vector(text: &str, dimensions: u64) -> Vec<f32> {
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let mut state = text.bytes().fold(0xcbf2_9ce4_8422_2325, fold);
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    };
    let raw: Vec<f32> = (0..dimensions).map(|_| next()).collect();
    let length = raw.iter().map(|it| it * it).sum::<f32>().sqrt();
    raw.into_iter()
        .map(|it| if length > 0.0 { it / length } else { 1.0 })
        .collect()
}
