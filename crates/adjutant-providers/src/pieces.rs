//! What both wires need of content and calls: media that the model cannot take, and the arguments that really ran.

use std::borrow::Cow;

use adjutant_llm::{Call, CallResult, Content, Document, Image, Inputs, Warning, WarningKind};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Value, value::RawValue};

const NO_IMAGES: &str = "[image omitted: this model takes no images]";
const NO_DOCUMENTS: &str = "[document omitted: this model takes no documents]";

/// A piece of content that the model can take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Piece<'a> {
    Text(&'a str),
    Image(&'a Image),
    Document(&'a Document),
}

/// The content without blank texts; what the model cannot take becomes a text, one for a run of the same kind.
pub(crate) fn pieces<'a>(content: &'a [Content], inputs: Inputs, warnings: &mut Vec<Warning>) -> Vec<Piece<'a>> {
    let mut pieces = Vec::with_capacity(content.len());
    for it in content {
        let piece = match it {
            Content::Text { text } if text.trim().is_empty() => continue,
            Content::Text { text } => Piece::Text(text),
            Content::Image(image) if inputs.images => Piece::Image(image),
            Content::Image(_) => Piece::Text(NO_IMAGES),
            Content::Document(document) if inputs.documents => Piece::Document(document),
            Content::Document(_) => Piece::Text(NO_DOCUMENTS),
            _ => continue,
        };
        let stand_in = match piece {
            Piece::Text(text) => [NO_IMAGES, NO_DOCUMENTS].into_iter().find(|it| std::ptr::eq(*it, text)),
            Piece::Image(_) | Piece::Document(_) => None,
        };
        if let Some(text) = stand_in {
            changed(warnings, text);
            if pieces.last() == Some(&piece) {
                continue;
            }
        }
        pieces.push(piece);
    }
    pieces
}

/// Says once that content was changed.
pub(crate) fn changed(warnings: &mut Vec<Warning>, text: &str) {
    let warning = Warning::new(WarningKind::ContentChanged, text);
    if !warnings.contains(&warning) {
        warnings.push(warning);
    }
}

/// The name of a call as it is sent back: models make up names that no wire takes in a history.
///
/// Source: anomalyco/opencode 48750, 2026-09, and NousResearch/hermes-agent 31666, 2026-05: `^[a-zA-Z0-9_-]{1,64}$`.
pub(crate) fn name(call: &Call, longest: usize) -> Cow<'_, str> {
    let fits = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    let name = call.name.as_str();
    if !name.is_empty() && name.len() <= longest && name.chars().all(fits) {
        return Cow::Borrowed(name);
    }
    let clean: String = name.chars().map(|it| if fits(it) { it } else { '_' }).take(longest).collect();
    Cow::Owned(if clean.is_empty() { "_".to_owned() } else { clean })
}

/// The arguments of a call as they are sent: what really ran, as a JSON object.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Args<'a> {
    Empty,
    Object(&'a RawValue),
    Invalid(&'a str),
}

impl<'a> Args<'a> {
    /// The arguments that ran, if they are known, else those that the model wrote.
    pub(crate) fn of(call: &'a Call, result: &'a CallResult) -> Self {
        let raw = result.args.as_ref().unwrap_or(&call.args).trim();
        if raw.is_empty() {
            return Args::Empty;
        }
        match serde_json::from_str::<&RawValue>(raw) {
            // A raw value lets lone surrogates, any depth and numbers beyond all bounds through; vendors do not.
            Ok(value) if value.get().starts_with('{') && serde_json::from_str::<Value>(raw).is_ok() => {
                Args::Object(value)
            }
            Ok(_) | Err(_) => Args::Invalid(raw),
        }
    }
}

impl Serialize for Args<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Args::Empty => serializer.serialize_map(Some(0))?.end(),
            Args::Object(raw) => raw.serialize(serializer),
            Args::Invalid(raw) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("INVALID_JSON", raw)?;
                map.end()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use adjutant_llm::{CallId, Source};

    use super::*;

    #[test]
    fn pieces_collapse_runs_when_the_model_takes_no_media() {
        let source = Source::Url { url: "https://a.example/x".into() };
        let image = Content::Image(Image { media_type: "image/png".into(), source: source.clone() });
        let document = Content::Document(Document { media_type: "application/pdf".into(), name: None, source });
        let content = [
            image.clone(),
            image.clone(),
            Content::text(" \n"),
            Content::text("a"),
            image.clone(),
            document.clone(),
            document.clone(),
        ];
        let mut warnings = Vec::new();
        let expect = [Piece::Text(NO_IMAGES), Piece::Text("a"), Piece::Text(NO_IMAGES), Piece::Text(NO_DOCUMENTS)];
        assert_eq!(pieces(&content, Inputs::default(), &mut warnings), expect);
        assert_eq!(warnings.len(), 2);
        let mut inputs = Inputs::default();
        (inputs.images, inputs.documents) = (true, true);
        assert_eq!(pieces(&content, inputs, &mut Vec::new()).len(), 6);
    }

    #[track_caller]
    fn check(raw: &str, ran: Option<&str>, expect: &str) {
        let id = CallId { turn: 1, attempt: 0, block: 0 };
        let call = Call { id, wire_id: None, name: "t".into(), args: raw.into(), extra: Default::default() };
        let mut result = CallResult::ok("done");
        result.args = ran.map(Into::into);
        assert_eq!(serde_json::to_string(&Args::of(&call, &result)).expect("JSON"), expect);
    }

    #[test]
    fn args_are_an_object_when_the_model_wrote_none() {
        check("", None, "{}");
        check(" {\"n\": 9007199254740993} ", None, "{\"n\": 9007199254740993}");
        check("{\"a\":1}", Some("{\"b\":2}"), "{\"b\":2}");
        check("{\"a\":", None, r#"{"INVALID_JSON":"{\"a\":"}"#);
        check("[1]", None, r#"{"INVALID_JSON":"[1]"}"#);
    }
}
