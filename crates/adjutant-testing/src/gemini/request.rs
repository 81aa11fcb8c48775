//! Reads a request of the Gemini wire, and refuses what the vendor refuses.

use adjutant_llm::Request;
use serde_json::Value;

use super::{contents::Reading, method, options};
use crate::{
    issued::Issued, node::Node, prefix::Prefix, received::Received, refusal::Refusal, wire::Asked,
};

/// Reads a request.
pub(crate) fn decode(received: &Received, body: &Value, issued: &Issued) -> Result<Asked, Refusal> {
    let (model, _) = method(received.route()).unwrap_or_default();
    if !received.queries("alt=sse") {
        return Err(Refusal::invalid(
            "alt: only streams of server-sent events are served here",
        ));
    }
    let root = Node::root(body);
    let tools = options::tools(&root)?;
    let options = options::options(&root, model, &tools)?;
    let system = root
        .field("systemInstruction")
        .map(|it| system(&it))
        .transpose()?
        .unwrap_or_default();
    let contents = root
        .field("contents")
        .map(|it| it.items())
        .transpose()?
        .unwrap_or_default();
    if contents.is_empty() {
        return Err(Refusal::invalid(
            "* GenerateContentRequest.contents: contents is not specified\n",
        ));
    }
    let mut request = Request::new().options(options).system(system).tools(tools);
    request.entries = Reading::new(model, issued).read(&contents)?.finish();
    Ok(Asked {
        request,
        model: model.to_owned(),
        include_usage: true,
        prefix: Prefix::default(),
    })
}

fn system(content: &Node<'_>) -> Result<String, Refusal> {
    let mut texts = Vec::new();
    for part in content.need("parts")?.items()? {
        texts.push(part.need("text")?.words()?.to_owned());
    }
    Ok(texts.join("\n\n"))
}
