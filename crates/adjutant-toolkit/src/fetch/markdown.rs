//! Converts HTML to Markdown in one pass over the tokens of the page; the cost is linear in the length of the page.
//!
//! Uses the tokenizer of html5ever and builds no tree: a hostile page can be nested as deep as it is long, and
//! converters that walk a tree recursively overflow the stack.

use std::cell::RefCell;

use adjutant_tool::{Cancel, ToolError};
use html5ever::{
    LocalName,
    interface::TokenizerResult,
    tendril::StrTendril,
    tokenizer::{
        BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
        states::RawKind,
    },
};
use reqwest::Url;

use crate::files::{show, work};

/// The number of bytes between two checks for a stop request.
const CHUNK: usize = 16 << 10;
/// The maximum number of open elements. Deeper elements lose their format and keep their text.
const MAX_DEPTH: usize = 48;
/// The maximum number of bytes of Markdown.
const MAX_TEXT: usize = 10 << 20;
/// The maximum number of bytes of a link's address.
const MAX_LINK: usize = 2_000;

/// Returns the title of a page, and its text as Markdown.
///
/// # Errors
/// `Cancelled` after a stop request.
pub(super) fn read(
    html: &str,
    base: &Url,
    stop: &Cancel,
) -> Result<(Option<String>, String), ToolError> {
    let writer = Markdown {
        base: base.clone(),
        title: None,
        out: String::new(),
        open: Vec::new(),
        breaks: 0,
        gap: String::new(),
        space: false,
    };
    let tokenizer = Tokenizer::new(Sink(RefCell::new(writer)), TokenizerOpts::default());
    let (input, mut rest) = (BufferQueue::default(), html);
    while !rest.is_empty() {
        work::go_on(stop)?;
        let (chunk, after) = rest.split_at(show::floor(rest, CHUNK));
        input.push_back(StrTendril::from_slice(chunk));
        while !matches!(tokenizer.feed(&input), TokenizerResult::Done) {}
        rest = after;
    }
    tokenizer.end();
    let mut writer = tokenizer.sink.0.into_inner();
    writer.close(0);
    writer.out.truncate(writer.out.trim_end().len());
    Ok((writer.title, writer.out))
}

struct Sink(RefCell<Markdown>);

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        let mut writer = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => {
                writer.start(&tag);
                match &*tag.name {
                    "script" => return TokenSinkResult::RawData(RawKind::ScriptData),
                    "style" | "xmp" | "iframe" | "noembed" | "noframes" => {
                        return TokenSinkResult::RawData(RawKind::Rawtext);
                    }
                    "title" | "textarea" => return TokenSinkResult::RawData(RawKind::Rcdata),
                    "plaintext" => return TokenSinkResult::Plaintext,
                    _ => {}
                }
            }
            Token::TagToken(tag) => writer.end(&tag.name),
            Token::CharacterTokens(text) => writer.text(&text),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

/// The effect of an open element.
#[derive(Debug, Clone, PartialEq)]
enum ElementForm {
    /// It is not displayed.
    Hidden,
    Title,
    Block,
    Quote,
    /// The number of the next item, for a numbered list.
    List(Option<u64>),
    Item,
    Pre,
    /// A mark before and after.
    Marked(&'static str),
    Link(String),
    /// True with a header row; then the number of rows, and the number of cells of this row.
    Table {
        is_headed: bool,
        rows: u64,
        cells: u64,
    },
    Row,
    Cell,
}

#[derive(Debug)]
struct Open {
    name: LocalName,
    form: ElementForm,
    /// The start of its text.
    from: usize,
}

struct Markdown {
    base: Url,
    title: Option<String>,
    out: String,
    open: Vec<Open>,
    /// The number of line ends before the next text.
    breaks: usize,
    /// The prefix of the empty lines among them.
    gap: String,
    /// True if a blank is written before the next text.
    space: bool,
}

impl Markdown {
    fn start(&mut self, tag: &Tag) {
        let name = &*tag.name;
        self.end_implied(name);
        match name {
            "br" => return self.line(1),
            "hr" => {
                self.line(2);
                self.word("---");
                return self.line(2);
            }
            "img" => return self.image(tag),
            _ if is_void(name) => return,
            _ => {}
        }
        // Deeper elements have no format, so their end tag closes nothing.
        if self.open.len() >= MAX_DEPTH {
            return;
        }
        let Some(form) = self.form(tag) else { return };
        match &form {
            ElementForm::Block | ElementForm::Quote | ElementForm::Pre => self.line(2),
            ElementForm::Table { .. } => self.line(2),
            ElementForm::List(_) => {
                self.line(if self.within(|it| matches!(it, ElementForm::Item)) {
                    1
                } else {
                    2
                })
            }
            ElementForm::Row => self.line(1),
            _ => {}
        }
        match &form {
            ElementForm::Item => self.item(),
            ElementForm::Cell => self.cell(name == "th"),
            ElementForm::Pre => self.word("```\n"),
            ElementForm::Marked(mark) => self.word(mark),
            ElementForm::Link(_) => self.word("["),
            _ => {}
        }
        if let Some(level) = heading(name) {
            self.word(&"#".repeat(level));
            self.space = true;
        }
        self.open.push(Open {
            name: tag.name.clone(),
            form,
            from: self.out.len(),
        });
    }

    fn form(&self, tag: &Tag) -> Option<ElementForm> {
        let name = &*tag.name;
        if is_hidden(tag) {
            return (!tag.self_closing).then_some(ElementForm::Hidden);
        }
        Some(match name {
            "title"
                if self.title.is_none()
                    && self.open.iter().all(|open| open.form == ElementForm::Block) =>
            {
                ElementForm::Title
            }
            "title" | "script" | "style" | "svg" | "math" | "template" | "iframe" | "object"
            | "canvas" | "noembed" | "noframes" | "select" | "textarea" | "audio" | "video" => {
                // In SVG and MathML, a self-closing tag has no content.
                return (!(tag.self_closing && matches!(name, "svg" | "math")))
                    .then_some(ElementForm::Hidden);
            }
            "blockquote" => ElementForm::Quote,
            "ul" | "menu" | "dir" => ElementForm::List(None),
            "ol" => ElementForm::List(Some(
                attribute(tag, "start")
                    .and_then(|it| it.parse().ok())
                    .unwrap_or(1),
            )),
            "li" => ElementForm::Item,
            "pre" | "xmp" | "listing" => ElementForm::Pre,
            "code" | "kbd" | "samp" | "tt" if !self.within(|it| *it == ElementForm::Pre) => {
                ElementForm::Marked("`")
            }
            "strong" | "b" => ElementForm::Marked("**"),
            "em" | "i" => ElementForm::Marked("*"),
            "del" | "s" | "strike" => ElementForm::Marked("~~"),
            "a" => ElementForm::Link(self.address(attribute(tag, "href")?)?),
            "table" => ElementForm::Table {
                is_headed: false,
                rows: 0,
                cells: 0,
            },
            "tr" => ElementForm::Row,
            "td" | "th" => ElementForm::Cell,
            "body" | "head" | "html" => return None,
            _ if is_block(name) => ElementForm::Block,
            _ => return None,
        })
    }

    /// Returns the address of a link or of an image, if it can be resolved.
    fn address(&self, text: &str) -> Option<String> {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') || text.len() > MAX_LINK {
            return None;
        }
        let url = self.base.join(text).ok()?;
        matches!(url.scheme(), "http" | "https" | "mailto")
            .then(|| url.as_str().replace(')', "%29"))
    }

    fn image(&mut self, tag: &Tag) {
        let text = attribute(tag, "alt").map(|text| text.replace(['[', ']'], " "));
        let text = text.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
        let Some(text) = text.filter(|text| !text.is_empty() && !is_hidden(tag)) else {
            return;
        };
        match attribute(tag, "src").and_then(|from| self.address(from)) {
            Some(from) => self.word(&format!("![{text}]({from})")),
            None => self.word(&text),
        }
    }

    /// Closes the elements that HTML closes implicitly at the start of this one.
    fn end_implied(&mut self, name: &str) {
        let (ended, held): (&[&str], &[&str]) = match name {
            "li" => (&["li"], &["ul", "ol", "menu", "dir"]),
            "dt" | "dd" => (&["dt", "dd"], &["dl"]),
            "td" | "th" => (&["td", "th"], &["table"]),
            "tr" => (&["tr"], &["table"]),
            "thead" | "tbody" | "tfoot" => {
                (&["thead", "tbody", "tfoot", "caption", "tr"], &["table"])
            }
            "a" => (&["a"], &["td", "th"]),
            name if heading(name).is_some()
                || is_block(name)
                || matches!(name, "ul" | "ol" | "pre" | "table") =>
            {
                (&["p"], &["td", "th", "li", "div", "blockquote"])
            }
            _ => return,
        };
        let found = self
            .open
            .iter()
            .rposition(|open| ended.contains(&&*open.name) || held.contains(&&*open.name));
        if let Some(at) = found.filter(|at| ended.contains(&&*self.open[*at].name)) {
            self.close(at);
        }
    }

    fn end(&mut self, name: &LocalName) {
        let is_held = |open: &&Open| matches!(&*open.name, "td" | "th" | "table");
        let of_table = matches!(
            &**name,
            "td" | "th" | "tr" | "table" | "thead" | "tbody" | "tfoot"
        );
        let found = self
            .open
            .iter()
            .rev()
            .position(|open| open.name == *name || (!of_table && is_held(&open)));
        let at = found.map(|back| self.open.len() - 1 - back);
        match at.filter(|at| self.open[*at].name == *name) {
            Some(at) => self.close(at),
            // Source: WHATWG HTML, "in body": an end tag of a paragraph that is not open creates an empty paragraph.
            None if &**name == "p" => self.line(2),
            None => {}
        }
    }

    /// Closes every open element from this one on.
    fn close(&mut self, at: usize) {
        while self.open.len() > at {
            let Some(open) = self.open.pop() else { return };
            let is_empty = self.out.len() <= open.from;
            match open.form {
                ElementForm::Marked(mark) if is_empty => self.take_back(open.from - mark.len()),
                ElementForm::Marked(mark) => self.out.push_str(mark),
                ElementForm::Link(_) if is_empty => self.take_back(open.from - 1),
                ElementForm::Link(address) => self.out.push_str(&format!("]({address})")),
                ElementForm::Pre => {
                    let end = if self.out.ends_with('\n') {
                        "```"
                    } else {
                        "\n```"
                    };
                    self.out
                        .push_str(&end.replace('\n', &format!("\n{}", self.prefix())));
                    self.line(2);
                }
                ElementForm::Block | ElementForm::Quote | ElementForm::Table { .. } => self.line(2),
                ElementForm::List(_) => self.line(if self.within(|it| *it == ElementForm::Item) {
                    1
                } else {
                    2
                }),
                ElementForm::Item => self.line(1),
                ElementForm::Row => self.end_row(),
                ElementForm::Hidden | ElementForm::Title | ElementForm::Cell => {}
            }
        }
    }

    /// Removes a marker without text, and everything after it.
    fn take_back(&mut self, to: usize) {
        self.out.truncate(to);
        for open in &mut self.open {
            open.from = open.from.min(to);
        }
    }

    fn item(&mut self) {
        self.line(1);
        let list = self
            .open
            .iter_mut()
            .rev()
            .find_map(|open| match &mut open.form {
                ElementForm::List(next) => Some(next),
                _ => None,
            });
        match list {
            Some(Some(number)) => {
                let mark = format!("{number}.");
                *number = number.saturating_add(1);
                self.word(&mark);
            }
            _ => self.word("-"),
        }
        self.space = true;
    }

    fn cell(&mut self, is_heading: bool) {
        let Some(ElementForm::Table {
            is_headed,
            rows,
            cells,
        }) = self.table()
        else {
            return;
        };
        *cells += 1;
        *is_headed |= is_heading && *rows == 0;
        let is_first = *cells == 1;
        if *is_headed {
            if !is_first {
                (self.breaks, self.space) = (0, true);
            }
            self.word("|");
            self.space = true;
        } else if !is_first && self.breaks == 0 && !self.out.ends_with('\n') {
            self.space = true;
            self.word("|");
            self.space = true;
        }
    }

    fn end_row(&mut self) {
        let Some(ElementForm::Table {
            is_headed,
            rows,
            cells,
        }) = self.table()
        else {
            return self.line(1);
        };
        let (was_headed, is_first, of) = (*is_headed, *rows == 0, std::mem::take(cells));
        *rows += 1;
        if was_headed {
            self.breaks = 0;
            self.space = true;
            self.word("|");
            if is_first {
                self.line(1);
                // At most as many cells as the row has, so that the output is bounded by the input.
                self.word(&format!(
                    "|{}",
                    " --- |".repeat(usize::try_from(of).unwrap_or(1))
                ));
            }
        }
        self.line(1);
    }

    fn table(&mut self) -> Option<&mut ElementForm> {
        let forms = self.open.iter_mut().rev().map(|open| &mut open.form);
        forms
            .into_iter()
            .find(|form| matches!(form, ElementForm::Table { .. }))
    }

    /// True if an open element is of this kind.
    fn within(&self, is: impl Fn(&ElementForm) -> bool) -> bool {
        self.open.iter().any(|open| is(&open.form))
    }

    fn text(&mut self, text: &str) {
        let form = self.open.iter().rev().find_map(|open| match open.form {
            ElementForm::Hidden | ElementForm::Title | ElementForm::Pre => Some(open.form.clone()),
            _ => None,
        });
        match form {
            _ if self.within(|it| *it == ElementForm::Hidden) => {}
            Some(ElementForm::Title) => {
                let title = self.title.get_or_insert_default();
                title.push_str(text.get(..show::floor(text, MAX_LINK)).unwrap_or_default());
            }
            Some(_) => {
                let next = format!("\n{}", self.prefix());
                for (at, line) in text.split('\n').enumerate() {
                    if at > 0 && !self.is_full() {
                        self.out.push_str(&next);
                    }
                    if !self.is_full() {
                        self.out.push_str(line);
                    }
                }
            }
            None => self.flow(text),
        }
    }

    fn flow(&mut self, text: &str) {
        if text.starts_with(char::is_whitespace) {
            self.space = true;
        }
        for word in text.split_whitespace() {
            match self.in_headed_cell() && word.contains('|') {
                true => self.word(&word.replace('|', "\\|")),
                false => self.word(word),
            }
            self.space = true;
        }
        self.space = text.ends_with(char::is_whitespace) || (self.space && text.trim().is_empty());
    }

    /// Writes a text without blanks, after the pending line ends or blank.
    fn word(&mut self, text: &str) {
        if self.is_full() || self.within(|it| *it == ElementForm::Hidden) {
            return;
        }
        if self.breaks > 0 && self.in_headed_cell() {
            (self.breaks, self.space) = (0, true);
        }
        let prefix = self.prefix();
        if self.out.is_empty() {
            self.out.push_str(&prefix);
        } else if self.breaks > 0 && !self.is_at_mark() {
            for _ in 1..self.breaks {
                self.out.push('\n');
                self.out.push_str(self.gap.trim_end());
            }
            self.out.push('\n');
            self.out.push_str(&prefix);
        } else if self.space && !self.out.ends_with([' ', '\n']) {
            self.out.push(' ');
        }
        (self.breaks, self.space) = (0, false);
        self.out.push_str(text);
    }

    /// Ends the line; `count - 1` empty lines follow.
    fn line(&mut self, count: usize) {
        if self.within(|it| *it == ElementForm::Hidden) {
            return;
        }
        let prefix = self.prefix();
        // Empty lines between two containers belong to neither of them.
        if self.breaks == 0 || prefix.len() < self.gap.len() {
            self.gap = prefix;
        }
        (self.breaks, self.space) = (self.breaks.max(count), false);
    }

    /// True if the text of a list item begins here, directly after its marker.
    fn is_at_mark(&mut self) -> bool {
        let is_at_mark = self
            .open
            .iter()
            .any(|open| open.form == ElementForm::Item && open.from == self.out.len());
        if is_at_mark {
            self.out.push(' ');
        }
        is_at_mark
    }

    fn in_headed_cell(&self) -> bool {
        let mut forms = self.open.iter().rev().map(|open| &open.form);
        let is_headed = |form: &ElementForm| {
            matches!(
                form,
                ElementForm::Table {
                    is_headed: true,
                    ..
                }
            )
        };
        self.within(|it| *it == ElementForm::Cell) && forms.any(is_headed)
    }

    /// The prefix of each line here.
    fn prefix(&self) -> String {
        let part = |open: &Open| match open.form {
            ElementForm::Quote => "> ",
            ElementForm::Item => "  ",
            _ => "",
        };
        self.open.iter().map(part).collect()
    }

    fn is_full(&self) -> bool {
        self.out.len() >= MAX_TEXT
    }
}

fn attribute<'a>(tag: &'a Tag, name: &str) -> Option<&'a str> {
    tag.attrs
        .iter()
        .find(|it| *it.name.local == *name)
        .map(|it| &*it.value)
}

/// True if a browser does not display it: such text is often written for models only.
fn is_hidden(tag: &Tag) -> bool {
    let style = attribute(tag, "style").unwrap_or_default();
    let style: String = style
        .chars()
        .take(MAX_LINK)
        .filter(|c| !c.is_whitespace())
        .collect::<String>()
        .to_ascii_lowercase();
    let hides = [
        "display:none",
        "visibility:hidden",
        "opacity:0;",
        "font-size:0;",
        "font-size:0px",
    ];
    let style = style + ";";
    attribute(tag, "hidden").is_some() || hides.iter().any(|hides| style.contains(hides))
}

fn heading(name: &str) -> Option<usize> {
    match name.as_bytes() {
        [b'h', level @ b'1'..=b'6'] => Some(usize::from(level - b'0')),
        _ => None,
    }
}

fn is_block(name: &str) -> bool {
    const BLOCKS: [&str; 34] = [
        "address",
        "article",
        "aside",
        "caption",
        "center",
        "dd",
        "details",
        "dialog",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hgroup",
        "legend",
        "main",
        "nav",
        "p",
        "search",
        "section",
        "summary",
        "tbody",
        "tfoot",
        "thead",
    ];
    BLOCKS.binary_search(&name).is_ok()
}

fn is_void(name: &str) -> bool {
    const VOID: [&str; 11] = [
        "area", "base", "col", "embed", "input", "link", "meta", "param", "source", "track", "wbr",
    ];
    VOID.binary_search(&name).is_ok()
}
