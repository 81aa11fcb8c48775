//! The encoding of a text file: detected or set by the caller, and used again when the file is changed.

use std::fmt;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{GB18030, GBK, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE};

/// The encoding of a text file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Encoding {
    kind: &'static encoding_rs::Encoding,
    /// True if the file begins with a byte order mark.
    is_marked: bool,
}

/// The reason why a file is not read as text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum NotText {
    Binary,
    /// UTF-8, apart from a byte in this line.
    Utf8WithError(usize),
    /// Some bytes would change if it were written in this encoding again.
    Inexact(&'static str),
}

impl Encoding {
    /// Finds an encoding by a label of the WHATWG Encoding Standard, such as `windows-1252`, `gbk` or `shift_jis`.
    pub(crate) fn from_label(label: &str) -> Option<Self> {
        let kind = encoding_rs::Encoding::for_label(label.as_bytes())?;
        (kind != REPLACEMENT).then_some(Self {
            kind,
            is_marked: false,
        })
    }

    pub(crate) fn is_utf8(self) -> bool {
        self.kind == UTF_8
    }

    pub(crate) fn name(self) -> &'static str {
        self.kind.name()
    }

    /// Returns the encoding and the text of a file. An encoding that the caller sets is not checked against another.
    ///
    /// # Errors
    /// The reason why the file is not text whose every byte is reproduced.
    pub(crate) fn read(bytes: &[u8], set: Option<Self>) -> Result<(Self, String), NotText> {
        let (mut encoding, body) = match bytes {
            [0xEF, 0xBB, 0xBF, body @ ..] => (Some(UTF_8), body),
            [0xFF, 0xFE, body @ ..] => (Some(UTF_16LE), body),
            [0xFE, 0xFF, body @ ..] => (Some(UTF_16BE), body),
            _ => (None, bytes),
        };
        let mark = encoding;
        if let Some(set) = set.filter(|set| encoding != Some(set.kind)) {
            encoding = Some(set.kind);
        } else if encoding.is_none() && std::str::from_utf8(body).is_ok() {
            encoding = Some(UTF_8);
        }
        let body = if encoding == mark { body } else { bytes };
        let kinds = match encoding {
            Some(kind) => [Some(kind), None],
            None => detect(body)?,
        };
        let mut inexact = NotText::Binary;
        for kind in kinds.into_iter().flatten() {
            let encoding = Self {
                kind,
                is_marked: mark == Some(kind),
            };
            let text = encoding.decode(body).filter(|text| !text.contains('\0'));
            match text {
                Some(text) if set.is_some() || kind == UTF_8 || !text.contains(is_control) => {
                    return Ok((encoding, text));
                }
                Some(_) => {}
                None if kind == UTF_8 || mark.is_some() => {}
                None => inexact = NotText::Inexact(kind.name()),
            }
        }
        Err(inexact)
    }

    /// The text of these bytes, if they are the bytes of the text.
    fn decode(self, bytes: &[u8]) -> Option<String> {
        if self.kind == UTF_8 {
            return std::str::from_utf8(bytes).ok().map(str::to_owned);
        }
        let text = self
            .kind
            .decode_without_bom_handling_and_without_replacement(bytes)?
            .into_owned();
        let unmarked = Self {
            is_marked: false,
            ..self
        };
        (unmarked.write(&text).as_deref() == Ok(bytes)).then_some(text)
    }

    /// The bytes of a text.
    ///
    /// # Errors
    /// A character that the encoding does not have.
    pub(crate) fn write(self, text: &str) -> Result<Vec<u8>, char> {
        let units = |of: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(of).collect::<Vec<u8>>();
        let mark = |mark: &'static [u8]| if self.is_marked { mark } else { &[] };
        if self.kind == UTF_8 {
            return Ok([mark(b"\xEF\xBB\xBF"), text.as_bytes()].concat());
        } else if self.kind == UTF_16LE {
            return Ok([mark(b"\xFF\xFE"), &units(u16::to_le_bytes)].concat());
        } else if self.kind == UTF_16BE {
            return Ok([mark(b"\xFE\xFF"), &units(u16::to_be_bytes)].concat());
        }
        let (bytes, _, has_unmappable) = self.kind.encode(text);
        if !has_unmappable {
            return Ok(bytes.into_owned());
        }
        let is_missing = |c: &char| self.kind.encode(c.encode_utf8(&mut [0; 4])).2;
        Err(text.chars().find(is_missing).unwrap_or_default())
    }
}

/// Decodes the bytes of a text file in any encoding that is detected; `None` if it is not text.
pub fn decode_text(bytes: &[u8]) -> Option<String> {
    Encoding::read(bytes, None).ok().map(|(_, text)| text)
}

/// The encodings that a file without a mark may have which is not UTF-8.
fn detect(bytes: &[u8]) -> Result<[Option<&'static encoding_rs::Encoding>; 2], NotText> {
    if bytes.contains(&0) {
        return Err(NotText::Binary);
    }
    let (mut characters, mut errors, mut line) = (0_usize, 0_usize, 1);
    let mut first = None;
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid();
        characters += valid.chars().filter(|c| !c.is_ascii()).count();
        line += valid.matches('\n').count();
        if !chunk.invalid().is_empty() {
            first.get_or_insert(line);
            errors += 1;
        }
    }
    // In another encoding, few characters look like valid UTF-8.
    if characters > errors {
        return Err(NotText::Utf8WithError(first.unwrap_or(1)));
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    let kind = detector.guess(None, Utf8Detection::Deny);
    Ok([Some(kind), (kind == GBK).then_some(GB18030)])
}

/// True for control characters that text files do not contain.
fn is_control(c: char) -> bool {
    c.is_control()
        && !matches!(
            c,
            '\t' | '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1a}' | '\u{1b}'
        )
}

impl fmt::Display for NotText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Binary => f.write_str("is a binary file"),
            Self::Utf8WithError(line) => {
                write!(f, "is UTF-8 with an invalid byte in line {line}")
            }
            Self::Inexact(name) => {
                write!(f, "is not {name} text: writing it again would change bytes")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_in_its_encoding_and_every_byte_is_reproduced() {
        let cases: [(&str, &str); 9] = [
            (
                "windows-1252",
                "// © ACME – “quoted”\r\nint main() { return 0; }\r\n",
            ),
            ("windows-1252", "größer, naïve café\n"),
            ("GBK", "/* 中文 */\nint x = 1;\n"),
            ("GBK", "配置文件：请不要修改\nname=a\n"),
            ("Shift_JIS", "設定=有\nname=a\n"),
            ("Shift_JIS", "これは日本語のテキストです。ファイル名\n"),
            ("EUC-KR", "한국어 주석입니다\nint x;\n"),
            ("Big5", "這是繁體中文的說明文件\n"),
            ("windows-1251", "Это русский текст, комментарий\n"),
        ];
        for (label, text) in cases {
            let encoding = Encoding::from_label(label).expect("it is known");
            let bytes = encoding.write(text).expect("it has these characters");
            let (found, read) = Encoding::read(&bytes, None).expect(text);
            assert_eq!((found.name(), &*read), (label, text));
            assert_eq!(found.write(&read).as_deref(), Ok(&*bytes));
            let set = Encoding::read(&bytes, Some(encoding));
            assert_eq!(set, Ok((encoding, text.to_owned())));
        }
        for (bytes, name) in [
            (&b"plain"[..], "UTF-8"),
            (b"\xEF\xBB\xBFmarked", "UTF-8"),
            (b"\xFF\xFEa\0", "UTF-16LE"),
            (b"\xFE\xFF\0a", "UTF-16BE"),
        ] {
            let (found, text) = Encoding::read(bytes, None).expect(name);
            assert_eq!(
                (found.name(), found.write(&text).as_deref()),
                (name, Ok(bytes))
            );
        }
    }

    #[test]
    fn other_bytes_are_refused_with_the_reason() {
        let set = |label| Encoding::from_label(label);
        for (bytes, label, expect) in [
            (&b"a\0b"[..], None, NotText::Binary),
            (b"\x89PNG\r\n\x1a\x01\x02", None, NotText::Binary),
            (
                b"caf\xC3\xA9 na\xC3\xAFve\n\xFF",
                None,
                NotText::Utf8WithError(2),
            ),
            (b"\xFF\xFEa", None, NotText::Binary),
            (b"\x81", set("gbk"), NotText::Inexact("GBK")),
        ] {
            assert_eq!(Encoding::read(bytes, label), Err(expect), "{bytes:?}");
        }
        let latin = Encoding::from_label("latin1").expect("it is known");
        assert_eq!(latin.write("a → b"), Err('→'));
        assert_eq!(Encoding::from_label("klingon"), None);
    }
}
