//! Looks at Rust source without parsing it: hides comments and literals, counts lines, finds functions and tests.

use std::ops::Range;

const COMMENT: Option<u8> = Some(b' ');
const LITERAL: Option<u8> = Some(b'"');
const CODE: Option<u8> = None;

/// A source with some bytes hidden and unchanged positions.
#[derive(Debug)]
pub(crate) struct Scanned {
    /// Comments are spaces.
    pub(crate) text: String,
    /// Comments are spaces and literals are quotes, so braces and words found here are code.
    pub(crate) code: String,
}

pub(crate) fn scan(source: &str) -> Scanned {
    let (mut text, mut code) = (source.as_bytes().to_vec(), source.as_bytes().to_vec());
    let mut at = 0;
    while at < source.len() {
        let (fill, length) = piece(&source[at..]);
        let end = source.len().min(at + length);
        for place in at..end {
            if let Some(fill) = fill.filter(|_| !code[place].is_ascii_whitespace()) {
                code[place] = fill;
                text[place] = if fill == b' ' { fill } else { text[place] };
            }
        }
        at = end;
    }
    let [text, code] = [text, code].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Scanned { text, code }
}

/// The number of lines of code that are not blank.
pub(crate) fn count(code: &str) -> usize {
    code.lines().filter(|line| !line.trim().is_empty()).count()
}

/// The positions of inline test modules, each from its `#[cfg(test)]` to its closing brace.
pub(crate) fn test_modules(code: &str) -> Vec<Range<usize>> {
    let module = |(start, _)| {
        let mut rest = &code[start..];
        while rest.starts_with('#') {
            rest = rest[end(rest, 1, b']')?..].trim_start();
        }
        let length = end(rest, 0, b'}').filter(|_| rest.starts_with("mod "))?;
        Some(start..code.len() - rest.len() + length)
    };
    let starts = code.match_indices("#[cfg(test)]");
    starts.filter_map(module).collect()
}

/// Every function with a body, including nested ones: its name, and its position from `fn` to its closing brace.
pub(crate) fn functions(code: &str) -> Vec<(&str, Range<usize>)> {
    let function = |(start, _)| {
        let rest = &code[start + "fn ".len()..];
        let name = &rest[..span(rest, is_word)];
        let is_function = !name.is_empty() && !code[..start].ends_with(is_word);
        let end = end(code, start, b'}').filter(|_| is_function)?;
        Some((name, start..end))
    };
    code.match_indices("fn ").filter_map(function).collect()
}

/// The end of what starts at `from`, after the `last` that closes its outermost bracket; none if a `;` ends it.
pub(crate) fn end(code: &str, from: usize, last: u8) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            b';' if depth == 0 => return None,
            _ => {}
        }
        if depth == 0 && byte == last {
            return Some(at + 1);
        }
    }
    None
}

/// The token at the start of `rest`: the byte that hides it, and its length.
fn piece(rest: &str) -> (Option<u8>, usize) {
    let (prefix, after) = rest.split_at(span(rest, is_word));
    let hashes = span(after, |c| c == '#');
    match prefix {
        "" if rest.starts_with("//") => (COMMENT, span(rest, |c| c != '\n')),
        "" if rest.starts_with("/*") => (COMMENT, comment(rest)),
        "" | "b" | "c" if after.starts_with('"') => (LITERAL, prefix.len() + literal_len(after)),
        "" if is_character(after) => (LITERAL, literal_len(after)),
        "b" if after.starts_with('\'') => (LITERAL, 1 + literal_len(after)),
        "r" | "br" | "cr" if after[hashes..].starts_with('"') => {
            let closing = format!("\"{}", "#".repeat(hashes));
            let start = prefix.len() + hashes + 1;
            let length = rest[start..].find(&closing).unwrap_or(rest.len());
            (LITERAL, start + length + closing.len())
        }
        "" => (CODE, after.chars().next().map_or(1, char::len_utf8)),
        _ => (CODE, prefix.len()),
    }
}

fn comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        let step = match rest.as_bytes()[at..] {
            [b'/', b'*', ..] => 1,
            [b'*', b'/', ..] => -1,
            _ => 0,
        };
        depth += step;
        at += if step == 0 { 1 } else { 2 };
        if depth == 0 {
            break;
        }
    }
    at
}

/// The length of a literal in its own quotes.
fn literal_len(rest: &str) -> usize {
    let (bytes, mut at) = (rest.as_bytes(), 1);
    while at < bytes.len() && bytes[at] != bytes[0] {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

/// A quote opens a character when it closes one character later; otherwise it opens a lifetime or a label.
fn is_character(rest: &str) -> bool {
    let mut chars = rest.chars();
    chars.next() == Some('\'') && (chars.next() == Some('\\') || chars.next() == Some('\''))
}

fn span(text: &str, belongs: fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
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
            r###"""""" """ + """"" + r#type"###,
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
            .into_iter()
            .map(|(name, range)| (name, range.start, count(&code[range])))
            .collect();
        assert_eq!(found, [("outer", 43, 4), ("inner", 80, 1)]);
    }

    #[test]
    fn test_modules_span_attribute_to_brace_when_inline() {
        let code = scan(
            "a\n#[cfg(test)]\n#[expect(x, reason = \"]{\")]\nmod tests { f(\"}\"); }\nb\n#[cfg(test)]\nmod tests;",
        )
        .code;
        let found: Vec<_> = test_modules(&code)
            .into_iter()
            .map(|range| count(&code[range]))
            .collect();
        assert_eq!(found, [3]);
    }
}
