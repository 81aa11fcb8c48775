//! Reads the content parts of the Chat Completions wire.

use adjutant_llm::{Audio, Content, Document, Image, Source};

use crate::{node::Node, refusal::Refusal};

/// A string, or text parts, joined.
pub(super) fn texts(content: &Node<'_>) -> Result<String, Refusal> {
    let mut whole = String::new();
    for part in content_parts(content)? {
        match kind(&part)? {
            "text" => whole.push_str(words(&part)?),
            "refusal" => whole.push_str(part.need("refusal")?.words()?),
            other => return Err(refuse_kind(&part, other)),
        }
    }
    Ok(whole)
}

/// A string, or parts of any kind that a user may send.
pub(super) fn contents(content: &Node<'_>) -> Result<Vec<Content>, Refusal> {
    content_parts(content)?.iter().map(part).collect()
}

fn part(part: &Node<'_>) -> Result<Content, Refusal> {
    match kind(part)? {
        "text" => Ok(Content::text(words(part)?)),
        "image_url" => {
            let (media_type, source) = source(&part.need("image_url")?.need("url")?, "image/*")?;
            Ok(Content::Image(Image {
                media_type: media_type.into(),
                source,
            }))
        }
        "input_audio" => {
            let audio = part.need("input_audio")?;
            let format = audio.need("format")?;
            if !["wav", "mp3"].contains(&format.text()?) {
                return Err(format.refuse("Supported values are: 'wav' and 'mp3'."));
            }
            let media_type = format!("audio/{}", format.text()?).into();
            Ok(Content::Audio(Audio {
                media_type,
                source: Source::Base64 {
                    data: audio.need("data")?.words()?.into(),
                },
            }))
        }
        "file" => {
            let file = part.need("file")?;
            let (media_type, source) = source(&file.need("file_data")?, "application/pdf")?;
            let name = file
                .field("filename")
                .map(|it| it.text())
                .transpose()?
                .map(Into::into);
            Ok(Content::Document(Document {
                media_type: media_type.into(),
                name,
                source,
            }))
        }
        other => Err(refuse_kind(part, other)),
    }
}

fn content_parts<'a>(content: &Node<'a>) -> Result<Vec<Node<'a>>, Refusal> {
    if content.value.is_string() {
        return Ok(vec![content.clone()]);
    }
    let parts = content.items()?;
    if parts.is_empty() {
        return Err(content.refuse("empty array. Expected an array with minimum length 1"));
    }
    parts
        .iter()
        .try_for_each(|part| part.object().map(|_| ()))?;
    Ok(parts)
}

fn kind<'a>(part: &Node<'a>) -> Result<&'a str, Refusal> {
    if part.value.is_string() {
        Ok("text")
    } else {
        part.need("type")?.text()
    }
}

fn words<'a>(part: &Node<'a>) -> Result<&'a str, Refusal> {
    if part.value.is_string() {
        part.words()
    } else {
        part.need("text")?.words()
    }
}

fn source(url: &Node<'_>, media_type: &str) -> Result<(String, Source), Refusal> {
    let text = url.words()?;
    let Some(data) = text.strip_prefix("data:") else {
        return Ok((media_type.to_owned(), Source::Url { url: text.into() }));
    };
    let (media_type, data) = data
        .split_once(";base64,")
        .ok_or_else(|| url.refuse("expected a base64-encoded data URL"))?;
    Ok((media_type.to_owned(), Source::Base64 { data: data.into() }))
}

fn refuse_kind(part: &Node<'_>, kind: &str) -> Refusal {
    part.refuse(format!("Invalid value: '{kind}'."))
}
