//! Refusals of media: whether a provider refused a request because of an image, a document or a recording, and which. Pure.

use adjutant_llm::{
    Content, Error, ErrorKind, MediaPlace, RefusedMedia, Request, Source,
    media::{has_media, media_of},
};
use serde_json::Value;

/// Words by which a provider names media. Compared in lower case.
///
/// Source: texts in the trackers of anthropics/claude-code (1747, 6300, 10395), anomalyco/opencode (12068),
/// google-gemini/gemini-cli (5064, 27244), ollama/ollama (7247, 16926) and langchain-ai/langchainjs (11248), 2026-11.
const MEDIA: [&str; 10] = [
    "image",
    "picture",
    "vision",
    "multimodal",
    "media",
    "inline_data",
    "pdf",
    "document",
    "audio",
    "input_file",
];
/// Words of refusals that concern something else.
const OTHERS: [&str; 5] = [
    "tools.",
    "tools[",
    "tool_choice",
    "input_schema",
    "response_format",
];
/// The members that hold the messages, on the wires.
const MESSAGES: [&str; 3] = ["messages", "contents", "input"];
/// The maximum number of steps of a path that are followed.
const MAX_STEPS: usize = 16;

/// Adds the media that the provider refused to an error, if there are any. `body` writes the request again.
pub(crate) fn mark(error: Error, request: &Request, body: impl FnOnce() -> Vec<u8>) -> Error {
    // Servers that people run themselves answer 500 to an image that their model does not take.
    let may_refuse = match error.kind() {
        ErrorKind::Invalid | ErrorKind::Protocol | ErrorKind::Overloaded => true,
        ErrorKind::Config => error.details().status == Some(404),
        _ => false,
    };
    if !may_refuse || !request.entries.iter().any(|it| has_media(&it.entry)) {
        return error;
    }
    let text = format!(
        "{} {}",
        error.message(),
        error.details().body.as_deref().unwrap_or_default()
    );
    let lower = text.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let named = match path(&text) {
        Some(path) => find(request, &path, &body()),
        None => Vec::new(),
    };
    // Gateways refuse a body that is too large without a name; media are mostly the largest part of it.
    let is_about_media = error.details().status == Some(413) || has(&MEDIA) && !has(&OTHERS);
    if named.is_empty() && !is_about_media {
        return error;
    }
    error.with(|details| {
        details.refused = Some(RefusedMedia { named });
        details.should_retry = Some(false);
    })
}

/// Returns the first path to a message in a text: `messages.3.content.1`, `input[3].content[1].image_url`.
fn path(text: &str) -> Option<Vec<&str>> {
    MESSAGES.iter().find_map(|member| {
        text.match_indices(member).find_map(|(at, _)| {
            let rest = &text[at..];
            let is_part = |letter: char| letter.is_alphanumeric() || "._[]".contains(letter);
            let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
            let steps = rest[..end]
                .split(['.', '[', ']'])
                .filter(|step| !step.is_empty());
            let steps: Vec<&str> = steps.take(MAX_STEPS).collect();
            let is_path = steps[0] == *member && steps.get(1)?.parse::<usize>().is_ok();
            is_path.then_some(steps)
        })
    })
}

/// Returns the media within the part of the body at a path. Vendors put types into it, which are no members.
fn find(request: &Request, path: &[&str], body: &[u8]) -> Vec<MediaPlace> {
    let Ok(body) = serde_json::from_slice::<Value>(body) else {
        return Vec::new();
    };
    let mut part = &body;
    for step in path {
        let next = match step.parse::<usize>() {
            Ok(at) => part.get(at),
            Err(_) => part.get(*step),
        };
        // A name inside of a medium leads to less than its data.
        match next {
            Some(next) if next.is_object() || next.is_array() => part = next,
            None if step.starts_with(|first: char| first.is_ascii_digit()) => return Vec::new(),
            _ => {}
        }
    }
    let part = part.to_string();
    let mut places = Vec::new();
    for stored in request.entries.iter() {
        for (number, content) in media_of(&stored.entry).enumerate() {
            if data(content).is_some_and(|data| !data.is_empty() && part.contains(data)) {
                places.push(MediaPlace {
                    entry: stored.id,
                    number,
                });
            }
        }
    }
    places
}

fn data(content: &Content) -> Option<&str> {
    let source = match content {
        Content::Image(image) => &image.source,
        Content::Document(document) => &document.source,
        Content::Audio(audio) => &audio.source,
        _ => return None,
    };
    match source {
        Source::Base64 { data } => Some(data),
        Source::Url { url } => Some(url),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use adjutant_llm::{Image, Transcript, UserMessage};
    use serde_json::json;

    use super::*;

    fn image(data: &str) -> Content {
        let source = Source::Base64 { data: data.into() };
        Content::Image(Image {
            media_type: "image/png".into(),
            source,
        })
    }

    /// Two messages: the first with the image AAAA, the second with BBBB and CCCC.
    fn request() -> Request {
        let one = UserMessage::from(vec![Content::text("look"), image("AAAA")]);
        let two = UserMessage::from(vec![image("BBBB"), image("CCCC")]);
        Request::from_entries(Transcript::from_iter([one.into(), two.into()]))
    }

    fn body() -> Vec<u8> {
        let part =
            |data: &str| json!({"type": "image", "source": {"type": "base64", "data": data}});
        let result = json!({"type": "tool_result", "content": [part("BBBB"), part("CCCC")]});
        let messages = json!([
            {"role": "user", "content": [{"type": "text", "text": "look"}, part("AAAA")]},
            {"role": "user", "content": [result]},
        ]);
        json!({"messages": messages, "input": messages})
            .to_string()
            .into_bytes()
    }

    /// Returns the numbers of the refused media, as `entry.number`; `None` if the refusal concerns something else.
    fn refused(kind: ErrorKind, text: &str) -> Option<Vec<String>> {
        let marked = mark(Error::new(kind, text), &request(), body);
        let refused = marked.details().refused.clone()?;
        let place = |place: &MediaPlace| format!("{}.{}", place.entry.0, place.number);
        Some(refused.named.iter().map(place).collect())
    }

    #[test]
    fn mark_finds_the_media_that_a_refusal_names() {
        let rows: [(&str, Option<&[&str]>); 15] = [
            (
                "messages.0.content.1.image.source.base64.data: Image does not match the provided media type image/png",
                Some(&["0.0"]),
            ),
            (
                "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 8 bytes > 5 bytes",
                Some(&["0.0"]),
            ),
            (
                "messages.1.content.0.tool_result.content.1.image.source: bad",
                Some(&["1.1"]),
            ),
            (
                "messages.1.content.0: At least one of the image dimensions exceed max allowed size",
                Some(&["1.0", "1.1"]),
            ),
            (
                "Invalid 'input[0].content[1].image_url'. Expected a valid URL",
                Some(&["0.0"]),
            ),
            ("Could not process image", Some(&[])),
            ("Unable to process input image. Please retry", Some(&[])),
            ("Provided image is not valid.", Some(&[])),
            ("invalid image input", Some(&[])),
            ("this model does not support images", Some(&[])),
            (
                "Invalid content type. image_url is only supported by certain models.",
                Some(&[]),
            ),
            ("The PDF specified was not valid.", Some(&[])),
            (
                "messages.7.content.0: text content blocks must be non-empty",
                None,
            ),
            (
                "tools.3.custom.input_schema: invalid (generate_image)",
                None,
            ),
            ("max_tokens: too large", None),
        ];
        for (text, expected) in rows {
            let expected =
                expected.map(|names| names.iter().map(|&name| name.to_owned()).collect());
            assert_eq!(refused(ErrorKind::Invalid, text), expected, "{text}");
        }
        assert_eq!(refused(ErrorKind::RateLimited, "too many images"), None);
        let plain = Request::new().user("look");
        let error = mark(
            Error::new(ErrorKind::Invalid, "invalid image"),
            &plain,
            body,
        );
        assert_eq!(error.details().refused, None);
    }
}
