//! Looks at Rust source without parsing it: hides comments and literals, counts lines, finds functions and test modules.

use std::ops::Range;

/// A source whose bytes stand where they stood, with some of them hidden.
#[derive(Debug)]
pub(crate) struct Scanned {
    /// Comments are spaces.
    pub(crate) text: String,
    /// Comments are spaces and literals are quotes, so braces and words found here are code.
    pub(crate) code: String,
}

/// A function with a body.
#[derive(Debug, PartialEq)]
pub(crate) struct Function<'a> {
    pub(crate) name: &'a str,
    pub(crate) start: usize,
    /// Its code lines, from `fn` to the closing brace.
    pub(crate) lines: usize,
}

#[derive(Clone, Copy)]
enum Piece {
    Code,
    Comment,
    Literal,
}

pub(crate) fn scan(source: &str) -> Scanned {
    let bytes = source.as_bytes();
    let (mut text, mut code) = (bytes.to_vec(), bytes.to_vec());
    let mut at = 0;
    while at < bytes.len() {
        let (piece, end) = piece(bytes, at);
        for place in (at..end.min(bytes.len())).filter(|place| !bytes[*place].is_ascii_whitespace())
        {
            match piece {
                Piece::Code => {}
                Piece::Comment => (text[place], code[place]) = (b' ', b' '),
                Piece::Literal => code[place] = b'"',
            }
        }
        at = end;
    }
    let string = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Scanned {
        text: string(text),
        code: string(code),
    }
}

/// How many lines of hidden-comment code are not blank.
pub(crate) fn count(code: &str) -> usize {
    code.lines().filter(|line| !line.trim().is_empty()).count()
}

/// The number of the line that holds the byte at `at`, from 1.
pub(crate) fn line_of(code: &str, at: usize) -> usize {
    code.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

/// Where inline test modules stand, each from its `#[cfg(test)]` to its closing brace.
pub(crate) fn test_modules(code: &str) -> Vec<Range<usize>> {
    let module = |(start, marker): (usize, &str)| {
        let mut rest = code[start + marker.len()..].trim_start();
        while let Some(attribute) = rest.strip_prefix('#') {
            rest = attribute[block(attribute, 0, b'[', b']')?..].trim_start();
        }
        let rest = rest.strip_prefix("mod ")?;
        let open = rest
            .find(['{', ';'])
            .filter(|open| rest[*open..].starts_with('{'))?;
        Some(start..code.len() - rest.len() + block(rest, open, b'{', b'}')?)
    };
    code.match_indices("#[cfg(test)]")
        .filter_map(module)
        .collect()
}

/// Every function that has a body, nested ones too.
pub(crate) fn functions(code: &str) -> Vec<Function<'_>> {
    let function = |(start, _): (usize, &str)| {
        let before = code[..start].bytes().next_back();
        let name_at = start + "fn ".len();
        let name = code[name_at..]
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .next()
            .filter(|name| !name.is_empty())?;
        let open = body(code, name_at).filter(|_| !before.is_some_and(is_word))?;
        let end = block(code, open, b'{', b'}')?;
        Some(Function {
            name,
            start,
            lines: count(&code[start..end]),
        })
    };
    code.match_indices("fn ").filter_map(function).collect()
}

/// Where the body opens of the function whose name is at `from`; none for a declaration.
fn body(code: &str, from: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.checked_sub(1)?,
            b'{' if depth == 0 => return Some(at),
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// The end of the block that opens first at or after `from`, after its closing byte.
pub(crate) fn block(code: &str, from: usize, open: u8, close: u8) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(from) {
        if byte == open {
            depth += 1;
        } else if byte == close {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return Some(at + 1);
            }
        }
    }
    None
}

/// What stands at `at`, and where it ends.
fn piece(bytes: &[u8], at: usize) -> (Piece, usize) {
    let rest = &bytes[at..];
    match rest {
        [b'/', b'/', ..] => (
            Piece::Comment,
            at + rest
                .iter()
                .position(|byte| *byte == b'\n')
                .unwrap_or(rest.len()),
        ),
        [b'/', b'*', ..] => (Piece::Comment, comment_end(bytes, at)),
        [b'"', ..] => (Piece::Literal, quoted_end(bytes, at, b'"')),
        [b'\'', ..] if is_character(rest) => (Piece::Literal, quoted_end(bytes, at, b'\'')),
        [byte, ..] if is_word(*byte) => word(bytes, at),
        _ => (Piece::Code, at + 1),
    }
}

/// A word: an identifier, a number, or the prefix of a literal, which is then taken whole.
fn word(bytes: &[u8], at: usize) -> (Piece, usize) {
    let end = at
        + bytes[at..]
            .iter()
            .take_while(|byte| is_word(**byte))
            .count();
    let hashes = bytes[end..]
        .iter()
        .take_while(|byte| **byte == b'#')
        .count();
    match (&bytes[at..end], bytes.get(end + hashes)) {
        (b"r" | b"br" | b"cr", Some(b'"')) => {
            let closing = [b"\"".as_slice(), &b"#".repeat(hashes)].concat();
            let inside = end + hashes + 1;
            let length = bytes[inside..]
                .windows(closing.len())
                .position(|window| window == closing);
            (
                Piece::Literal,
                length.map_or(bytes.len(), |length| inside + length + closing.len()),
            )
        }
        (b"b" | b"c", Some(quote @ (b'"' | b'\''))) if hashes == 0 => {
            (Piece::Literal, quoted_end(bytes, end, *quote))
        }
        _ => (Piece::Code, end),
    }
}

fn comment_end(bytes: &[u8], at: usize) -> usize {
    let (mut depth, mut end) = (0_usize, at);
    while end < bytes.len() {
        match &bytes[end..] {
            [b'/', b'*', ..] => (depth, end) = (depth + 1, end + 2),
            [b'*', b'/', ..] if depth == 1 => return end + 2,
            [b'*', b'/', ..] => (depth, end) = (depth - 1, end + 2),
            _ => end += 1,
        }
    }
    end
}

fn quoted_end(bytes: &[u8], at: usize, quote: u8) -> usize {
    let mut end = at + 1;
    while end < bytes.len() && bytes[end] != quote {
        end += if bytes[end] == b'\\' { 2 } else { 1 };
    }
    end + 1
}

/// A quote opens a character when one character later it closes; otherwise it opens a lifetime or a label.
fn is_character(rest: &[u8]) -> bool {
    let is_start = |byte: u8| byte & 0b1100_0000 != 0b1000_0000;
    match rest {
        [_, b'\\', ..] => true,
        [_, _, more @ ..] => more.iter().find(|byte| is_start(**byte)) == Some(&b'\''),
        _ => false,
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, code: &str) {
        assert_eq!(scan(source).code, code);
    }

    #[test]
    fn scan_hides_comments_when_they_nest_and_contain_quotes() {
        check(
            "a /* \" /* { */ ' */ b // it's {\nc",
            "a                   b          \nc",
        );
    }

    #[test]
    fn scan_hides_literals_when_they_hold_braces_quotes_and_comments() {
        check(
            r#"f("{ \" // }", '{', b'\'', b"}")"#,
            r#"f("" "" "" "", """, """"", """")"#,
        );
        check(
            r###"r#"a" {"# + br"}" + r#type"###,
            r###""""""" """" + """"" + r#type"###,
        );
        check("'é' + '\\u{7d}'", "\"\"\"\" + \"\"\"\"\"\"\"\"");
    }

    #[test]
    fn scan_keeps_lifetimes_and_labels_when_they_look_like_characters() {
        check(
            "fn f<'a,'b>(x: &'a str) { 'o: loop {} }",
            "fn f<'a,'b>(x: &'a str) { 'o: loop {} }",
        );
    }

    #[test]
    fn scan_keeps_literals_in_text_when_comments_go() {
        assert_eq!(
            scan("x(\"// retry\") // retry").text,
            "x(\"// retry\")         "
        );
    }

    #[test]
    fn count_skips_blank_and_comment_lines_when_strings_span_lines() {
        assert_eq!(
            count(&scan("//! Doc.\n\nlet a = \"\n// text\n\n\";\n/* no\nno */\nb();\n").code),
            4
        );
    }

    #[test]
    fn functions_have_names_and_lines_when_nested_or_declared() {
        let source = "trait T { fn declared(&self) -> [u8; 2]; }\nfn outer(f: fn (u8))\n{\n    // no\n    \
                      fn inner() { '}'; }\n}\nmacro!(fn $name() {});";
        let code = scan(source).code;
        let found: Vec<_> = functions(&code)
            .iter()
            .map(|f| (f.name, line_of(&code, f.start), f.lines))
            .collect();
        assert_eq!(found, [("outer", 2, 4), ("inner", 5, 1)]);
    }

    #[test]
    fn test_modules_span_attribute_to_brace_when_inline() {
        let code = scan("a\n#[cfg(test)]\n#[expect(x, reason = \"]{\")]\nmod tests { f(\"}\"); }\nb\n#[cfg(test)]\nmod tests;").code;
        let found: Vec<_> = test_modules(&code)
            .into_iter()
            .map(|range| count(&code[range]))
            .collect();
        assert_eq!(found, [3]);
    }
}
