//! Decodes the bytes of a page to text, and removes hidden characters.

use adjutant_llm::hidden;
use adjutant_tool::{Cancel, ToolError};
use encoding_rs::{Encoding, UTF_8};
use reqwest::Url;

use super::markdown;
use crate::files::show;

/// The number of bytes in which a page may declare its encoding.
///
/// Source: WHATWG HTML, "prescan a byte stream to determine its encoding".
const PRESCAN: usize = 1_024;
/// The maximum share of invalid bytes in a text: one in this number.
const UNREADABLE: usize = 8;
/// The maximum number of bytes of a title.
const MAX_TITLE: usize = 300;

/// A page as text.
#[derive(Debug)]
pub(super) struct Page {
    /// The content type from the server.
    pub(super) kind: String,
    pub(super) title: Option<String>,
    pub(super) text: String,
    /// The number of invisible characters that were removed from the text.
    pub(super) dropped: u64,
}

/// Decodes a page with the content type `kind`.
///
/// # Errors
/// `Failed` if it is not text, and `Cancelled` after a stop request.
pub(super) fn read(bytes: &[u8], kind: &str, base: &Url, stop: &Cancel) -> Result<Page, ToolError> {
    let name = kind
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let name: String = name
        .chars()
        .filter(|c| c.is_ascii_graphic())
        .take(80)
        .collect();
    let begins = |start: &[u8]| {
        let text = bytes.trim_ascii_start();
        text.get(..start.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(start))
    };
    let is_html = match &*name {
        "" => begins(b"<!doctype html") || begins(b"<html"),
        name => name == "text/html" || name == "application/xhtml+xml",
    };
    let encoding = encoding(bytes, kind, is_html);
    let is_wide = encoding != UTF_8 && !encoding.is_ascii_compatible();
    let odd: usize = bytes.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    let is_odd = encoding == UTF_8 && odd > bytes.len() / UNREADABLE;
    if !is_wide && (bytes.contains(&0) || is_odd) {
        let kind = if name.is_empty() {
            "of no type"
        } else {
            &*name
        };
        let size = show::size(bytes.len() as u64);
        return Err(ToolError::failed(format!(
            "the page is {kind}, {size}, and no text"
        )));
    }
    let (text, _, _) = encoding.decode(bytes);
    let (title, text) = match is_html {
        true => markdown::read(&text, base, stop)?,
        false => (None, text.into_owned()),
    };
    let mut dropped = 0;
    let mut plain = |text: String| {
        let text = text.replace("\r\n", "\n").replace('\u{a0}', " ");
        let mut kept = String::with_capacity(text.len());
        for c in text.chars() {
            match hidden::is_hidden(c) && !matches!(c, '\n' | '\t') {
                true => dropped += 1,
                false => kept.push(c),
            }
        }
        kept
    };
    let title = title
        .map(&mut plain)
        .map(|title| title.split_whitespace().collect::<Vec<_>>().join(" "));
    let title = title.filter(|title| !title.is_empty()).map(|mut title| {
        title.truncate(show::floor(&title, MAX_TITLE));
        title
    });
    let text = plain(text);
    let kind = if name.is_empty() {
        "no type".to_owned()
    } else {
        name
    };
    Ok(Page {
        kind,
        title,
        text,
        dropped,
    })
}

/// Returns the encoding of a page: from its byte order mark, from the server, from an HTML page itself, or UTF-8.
fn encoding(bytes: &[u8], kind: &str, is_html: bool) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(bytes) {
        return encoding;
    }
    let named = |text: &str| {
        let lower = text.to_ascii_lowercase();
        let at = lower.find("charset")? + "charset".len();
        let rest = lower
            .get(at..)?
            .trim_start()
            .strip_prefix('=')?
            .trim_start()
            .trim_start_matches(['"', '\'']);
        let label = rest
            .split(|c: char| c.is_whitespace() || ";\"'>/".contains(c))
            .next()?;
        Encoding::for_label(label.as_bytes())
    };
    let inner = || {
        let head = String::from_utf8_lossy(bytes.get(..PRESCAN).unwrap_or(bytes));
        // A page that is readable so far is not in a two-byte encoding, even if it declares one.
        named(&head).filter(|it| it.is_ascii_compatible())
    };
    named(kind)
        .or_else(|| inner().filter(|_| is_html))
        .unwrap_or(UTF_8)
}
