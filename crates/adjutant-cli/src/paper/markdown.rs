//! Formats streamed Markdown as rows for a terminal, without side effects. A row is emitted when later text cannot
//! change it.

use super::style::{Style, width_of, width_of_char};

/// The number of bytes for which an unfinished construct can delay rows; then its marker is literal.
const MAX_OPEN: usize = 600;
/// The maximum number of bytes of an unfinished line of code.
const MAX_CODE: usize = 8_192;
/// The maximum indentation.
const MAX_INDENT: usize = 12;

/// Text that was not emitted yet, and its context.
#[derive(Debug)]
pub(crate) struct Markdown {
    style: Style,
    /// The line so far, without the emitted part.
    line: String,
    /// The fence that ends the current block of code.
    fence: Option<String>,
    /// The kind of the line that is continued after its first row.
    goes_on: Option<Block>,
}

/// The kind of a line: the prefix of its rows, and its style.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Block {
    /// The prefix of the first row.
    lead: String,
    /// The number of columns before the rows after the first.
    indent: usize,
    marks: Marks,
}

/// The style of characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Marks {
    bold: bool,
    italic: bool,
    code: bool,
    dim: bool,
}

/// A character, its style, the style after it, and the end of its source.
struct Cell {
    character: char,
    marks: Marks,
    after: Marks,
    end: usize,
}

impl Markdown {
    pub(crate) fn new(style: Style) -> Self {
        Self {
            style,
            line: String::new(),
            fence: None,
            goes_on: None,
        }
    }

    /// Takes more text, which must be sanitized, and returns the complete rows, each with its line end.
    pub(crate) fn push(&mut self, text: &str) -> String {
        let mut rows = String::new();
        for piece in text.split_inclusive('\n') {
            match piece.strip_suffix('\n') {
                Some(piece) => {
                    self.line += piece;
                    self.end_line(&mut rows);
                }
                None => {
                    self.line += piece;
                    self.give_rows(false, &mut rows);
                }
            }
        }
        rows
    }

    /// Ends the text: everything is emitted, and the state is reset.
    pub(crate) fn end(&mut self) -> String {
        let mut rows = String::new();
        if !self.line.is_empty() || self.goes_on.is_some() {
            self.end_line(&mut rows);
        }
        self.fence = None;
        rows
    }

    fn end_line(&mut self, rows: &mut String) {
        let bare = self.line.trim();
        if self.goes_on.is_none() {
            match &self.fence {
                Some(fence)
                    if bare.starts_with(fence.as_str())
                        && bare.trim_start_matches(['`', '~']).is_empty() =>
                {
                    self.fence = None;
                    return self.fenced(rows);
                }
                None if let Some(fence) = fence_of(bare) => {
                    self.fence = Some(fence);
                    return self.fenced(rows);
                }
                _ => {}
            }
        }
        self.give_rows(true, rows);
        self.line.clear();
        self.goes_on = None;
    }

    /// Handles the line of a fence, which is hidden if code has a color.
    fn fenced(&mut self, rows: &mut String) {
        if !self.style.is_coloured() {
            *rows += &format!("{}\n", self.line);
        }
        self.line.clear();
    }

    /// Emits the full rows of the line; all of them if it is complete.
    fn give_rows(&mut self, is_whole: bool, rows: &mut String) {
        if self.fence.is_some() {
            if is_whole || self.line.len() > MAX_CODE {
                let indent = if self.style.is_coloured() && self.goes_on.is_none() {
                    "  "
                } else {
                    ""
                };
                *rows += &format!("{indent}{}", self.style.code(&self.line));
                if is_whole {
                    rows.push('\n');
                } else {
                    self.goes_on = Some(Block::default());
                    self.line.clear();
                }
            }
            return;
        }
        let width = self.style.width();
        // A row is full only when the next word is known to go to the next row.
        if !is_whole && self.goes_on.is_none() && width_of(&self.line) <= width {
            return;
        }
        let (mut block, from) = match self.goes_on.take() {
            Some(block) => (block, None),
            None if self.style.is_coloured() => first(block_of(&self.line)),
            None => first(plain(&self.line)),
        };
        let cells = self.cells(from.unwrap_or_default(), block.marks, is_whole);
        let (mut at, mut is_first) = (0, from.is_some());
        while at < cells.len() || (is_whole && is_first) {
            let lead = if is_first {
                width_of(&block.lead)
            } else {
                block.indent
            };
            let row = row_end(&cells[at..], width.saturating_sub(lead).max(1));
            if at + row == cells.len() && !is_whole {
                break;
            }
            self.write_row(&block, is_first, &cells[at..at + row], rows);
            (is_first, at) = (false, at + row);
        }
        if let Some(last) = cells.get(at.wrapping_sub(1)) {
            block.marks = last.after;
            self.line.drain(..last.end);
        }
        if !is_first && !is_whole {
            self.goes_on = Some(block);
        }
    }

    fn write_row(&self, block: &Block, is_first: bool, cells: &[Cell], rows: &mut String) {
        if is_first {
            *rows += &block.lead;
        } else {
            *rows += &" ".repeat(block.indent);
        }
        let end = cells
            .iter()
            .rposition(|cell| cell.character != ' ')
            .map_or(0, |at| at + 1);
        let mut rest = &cells[..end];
        while let Some(cell) = rest.first() {
            let run = rest
                .iter()
                .position(|it| it.marks != cell.marks)
                .unwrap_or(rest.len());
            let text: String = rest[..run].iter().map(|cell| cell.character).collect();
            *rows += &self.style.sgr(&cell.marks.sgr(), &text);
            rest = &rest[run..];
        }
        rows.push('\n');
    }

    /// Returns the characters of the line up to the first unfinished construct; all of them if the line is complete.
    fn cells(&self, from: usize, marks: Marks, is_whole: bool) -> Vec<Cell> {
        let (text, mut now, mut cells) = (self.line.as_str(), marks, Vec::<Cell>::new());
        let mut at = from;
        while let Some(character) = text[at..].chars().next() {
            let rest = &text[at..];
            let before = text[from..at].chars().next_back();
            let mark = if self.style.is_coloured() {
                mark_of(rest, now, before)
            } else {
                None
            };
            match mark {
                Some((length, Toggle::Open(closes))) => {
                    let is_closed = find(&rest[length..], closes);
                    if !is_closed && !is_whole && rest.len() < MAX_OPEN {
                        // It may be closed later.
                        return cells;
                    }
                    let next = if is_closed { now.toggled(closes) } else { now };
                    if !is_closed {
                        cells.extend(rest[..length].char_indices().map(|(from, character)| Cell {
                            character,
                            marks: now,
                            after: now,
                            end: at + from + character.len_utf8(),
                        }));
                    }
                    (now, at) = (next, at + length);
                }
                Some((length, Toggle::Close(closes))) => {
                    (now, at) = (now.toggled(closes), at + length);
                    if let Some(last) = cells.last_mut() {
                        // The marker belongs to the construct that it closes.
                        (last.end, last.after) = (at, now);
                    }
                }
                None => {
                    at += character.len_utf8();
                    cells.push(Cell {
                        character,
                        marks: now,
                        after: now,
                        end: at,
                    });
                }
            }
        }
        cells
    }
}

enum Toggle {
    Open(&'static str),
    Close(&'static str),
}

/// Returns the marker at the start of a text: its length and its effect.
fn mark_of(rest: &str, now: Marks, before: Option<char>) -> Option<(usize, Toggle)> {
    if now.code {
        return rest.starts_with('`').then_some((1, Toggle::Close("`")));
    }
    if rest.starts_with('`') {
        return Some((1, Toggle::Open("`")));
    }
    let is_word = |character: Option<char>| character.is_some_and(char::is_alphanumeric);
    for (mark, is_open) in [("**", now.bold), ("*", now.italic)] {
        let Some(behind) = rest.strip_prefix(mark) else {
            continue;
        };
        let next = behind.chars().next();
        if is_open && before.is_none_or(|it| !it.is_whitespace()) {
            return Some((mark.len(), Toggle::Close(mark)));
        }
        if !is_open
            && next.is_none_or(|it| !it.is_whitespace() && it != '*')
            && !(mark == "*" && is_word(before))
        {
            return Some((mark.len(), Toggle::Open(mark)));
        }
    }
    None
}

/// True if the text contains this closing marker.
fn find(text: &str, mark: &str) -> bool {
    match mark {
        "*" => text.match_indices('*').any(|(at, _)| {
            at > 0 && !text[..at].ends_with([' ', '*']) && !text[at + 1..].starts_with('*')
        }),
        mark => text
            .match_indices(mark)
            .any(|(at, _)| at > 0 && (mark == "`" || !text[..at].ends_with(' '))),
    }
}

impl Marks {
    fn toggled(self, mark: &str) -> Self {
        match mark {
            "**" => Self {
                bold: !self.bold,
                ..self
            },
            "*" => Self {
                italic: !self.italic,
                ..self
            },
            _ => Self {
                code: !self.code,
                ..self
            },
        }
    }

    fn sgr(self) -> String {
        let all = [
            (self.bold, "1"),
            (self.dim, "2"),
            (self.italic, "3"),
            (self.code, "36"),
        ];
        all.iter()
            .filter(|(is_on, _)| *is_on)
            .map(|(_, mark)| *mark)
            .collect::<Vec<_>>()
            .join(";")
    }
}

/// Returns the kind of a line that was not emitted yet.
fn first((block, from): (Block, usize)) -> (Block, Option<usize>) {
    (block, Some(from))
}

/// Returns the kind of a line without markers.
fn plain(line: &str) -> (Block, usize) {
    let indent = indent_of(line);
    (
        Block {
            lead: line[..indent].to_owned(),
            indent: indent.min(MAX_INDENT),
            ..Block::default()
        },
        indent,
    )
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Returns the kind of a line, and the length of its marker.
fn block_of(line: &str) -> (Block, usize) {
    let blanks = indent_of(line);
    let (indent, bare) = (&line[..blanks.min(MAX_INDENT)], &line[blanks..]);
    let level = bare.len() - bare.trim_start_matches('#').len();
    if (1..=6).contains(&level) && bare[level..].starts_with(' ') {
        let marks = Marks {
            bold: true,
            ..Marks::default()
        };
        return (
            Block {
                marks,
                ..Block::default()
            },
            blanks + level + 1,
        );
    }
    let item = ["- ", "* ", "+ "].iter().any(|mark| bare.starts_with(mark));
    if item {
        return (
            Block {
                lead: format!("{indent}• "),
                indent: indent.len() + 2,
                marks: Marks::default(),
            },
            blanks + 2,
        );
    }
    if let Some(rest) = bare.strip_prefix('>') {
        let marks = Marks {
            dim: true,
            ..Marks::default()
        };
        let from = blanks + 1 + usize::from(rest.starts_with(' '));
        return (
            Block {
                lead: "│ ".to_owned(),
                indent: 2,
                marks,
            },
            from,
        );
    }
    let digits = bare.len()
        - bare
            .trim_start_matches(|it: char| it.is_ascii_digit())
            .len();
    if (1..=4).contains(&digits)
        && (bare[digits..].starts_with(". ") || bare[digits..].starts_with(") "))
    {
        let lead = format!("{indent}{}", &bare[..digits + 2]);
        return (
            Block {
                indent: lead.len(),
                lead,
                marks: Marks::default(),
            },
            blanks + digits + 2,
        );
    }
    (
        Block {
            lead: indent.to_owned(),
            indent: indent.len(),
            ..Block::default()
        },
        blanks,
    )
}

/// Returns the fence with which a line opens a block of code.
fn fence_of(bare: &str) -> Option<String> {
    let mark = bare.chars().next().filter(|it| matches!(it, '`' | '~'))?;
    let length = bare.chars().take_while(|it| *it == mark).count();
    let is_fence = length >= 3 && !bare[length..].contains('`');
    is_fence.then(|| mark.to_string().repeat(length))
}

/// Returns the number of cells in a row: up to the last blank that fits, else as many as fit.
fn row_end(cells: &[Cell], width: usize) -> usize {
    let (mut used, mut blank) = (0, None);
    for (at, cell) in cells.iter().enumerate() {
        if cell.character == ' ' {
            blank = Some(at + 1);
            // A blank after a full row is hidden.
            used += usize::from(used < width);
            continue;
        }
        used += width_of_char(cell.character);
        if used > width {
            return blank.unwrap_or(at).max(1);
        }
    }
    cells.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the output of a text, as a whole and in chunks.
    #[track_caller]
    fn check(style: Style, text: &str, expect: &str) {
        let mut whole = Markdown::new(style);
        let rows = whole.push(text) + &whole.end();
        assert_eq!(rows, expect, "{rows}");
        let mut pieces = Markdown::new(style);
        let rows: String = text
            .chars()
            .map(|it| pieces.push(it.encode_utf8(&mut [0; 4])))
            .collect();
        assert_eq!(rows + &pieces.end(), expect, "{text}");
    }

    #[test]
    fn markdown_is_marked_when_the_terminal_has_colours() {
        let cases = [
            ("# A *b*\n", "\x1b[1mA \x1b[0m\x1b[1;3mb\x1b[0m\n"),
            (
                "a **bold** `co*de*` 2*3*4\n",
                "a \x1b[1mbold\x1b[0m \x1b[36mco*de*\x1b[0m 2*3*4\n",
            ),
            ("never **closed\nand `this\n", "never **closed\nand `this\n"),
            (
                "- one\n  * two\n12. three\n> said",
                "• one\n  • two\n12. three\n│ \x1b[2msaid\x1b[0m\n",
            ),
            (
                "```rust\nlet **a** = 1;\n```\nafter\n",
                "  \x1b[36mlet **a** = 1;\x1b[0m\nafter\n",
            ),
            ("\n\n***\n", "\n\n***\n"),
            (
                "- one two three four five six\n",
                "• one two three four\n  five six\n",
            ),
            (
                "one **two three four five** six\n",
                "one \x1b[1mtwo three four\x1b[0m\n\x1b[1mfive\x1b[0m six\n",
            ),
            ("éééééééééééééééééééééééé", "éééééééééééééééééééé\néééé\n"),
        ];
        for (text, expect) in cases {
            check(Style::test(true, 20), text, expect);
        }
    }

    #[test]
    fn markdown_stays_as_it_is_when_nothing_is_coloured() {
        let text = "# A\n- **b** `c`\n```\nx\n```\n";
        check(Style::test(false, 20), text, text);
    }

    #[test]
    fn rows_come_early_when_a_paragraph_is_long() {
        let mut markdown = Markdown::new(Style::test(true, 10));
        assert_eq!(markdown.push("one two three"), "one two\n");
        assert_eq!(markdown.push(" **four"), "");
        assert_eq!(markdown.push(" five six** "), "three \x1b[1mfour\x1b[0m\n");
        assert_eq!(markdown.end(), "\x1b[1mfive six\x1b[0m\n");
        let held = "x ".repeat(MAX_OPEN);
        assert!(
            !markdown.push(&format!("a **b {held}")).is_empty(),
            "an open mark holds nothing for ever"
        );
    }
}
