//! An answer while it comes: the part of its JSON that is whole so far. Nothing is validated here.

use std::{fmt, sync::Arc};

use serde_json::{Map, Value};

use super::form::Form;
use crate::BlockKind;

/// The maximum depth that is read; deeper values are emitted only with the complete answer.
const MAX_DEPTH: usize = 64;

/// Reads an answer while it comes. Within one reply its value only grows: texts get longer, lists and objects get more.
///
/// A number or a literal such as `true` is emitted when it is complete. Invalid JSON is not emitted.
pub struct PartialAnswer {
    form: Arc<Form>,
    /// The block that is read.
    block: Option<u32>,
    json: Growing,
}

impl PartialAnswer {
    pub(super) fn new(form: Arc<Form>) -> Self {
        Self {
            form,
            block: None,
            json: Growing::default(),
        }
    }

    /// Another reply, or another attempt at it, begins: nothing is known of it.
    pub fn begin(&mut self) {
        (self.block, self.json) = (None, Growing::default());
    }

    /// A block of the reply begins.
    pub fn open(&mut self, block: u32, kind: &BlockKind) {
        let may_answer = match kind {
            BlockKind::Text => true,
            BlockKind::Call { name, .. } => *name.0 == *self.form.format().name,
            _ => false,
        };
        // The previous value stays: a partial answer never shrinks.
        if may_answer && self.json.root.is_null() {
            (self.block, self.json) = (Some(block), Growing::default());
        }
    }

    /// A block has grown by this text; the value if it has grown too.
    pub fn grow(&mut self, block: u32, text: &str) -> Option<&Value> {
        if self.block != Some(block) || !self.json.push(text) {
            return None;
        }
        self.form.inner(&self.json.root)
    }
}

/// The beginning of a JSON text, parsed incrementally.
#[derive(Debug, Default)]
struct Growing {
    root: Value,
    /// The open objects and lists, from the outside in; for an object, with its current key.
    open: Vec<Open>,
    state: State,
    /// The key, number or word that is not whole.
    token: String,
    /// The first half of a surrogate pair.
    half: Option<u32>,
}

#[derive(Debug)]
enum Open {
    Object(Option<String>),
    List,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first bracket: white space, or a code fence.
    #[default]
    Start,
    /// A value or the end of a list may come.
    Value,
    /// A key or the end of an object may come.
    Key,
    InKey,
    /// Behind a key.
    Colon,
    InText,
    /// Behind a backslash; true in a key.
    Escape(bool),
    /// In the digits of a `\u`, and how many are missing.
    Hex(bool, u8),
    /// In a number or a literal.
    Bare,
    /// Behind a value.
    Behind,
    Over,
}

impl Growing {
    /// Continues to read; returns whether the value has grown.
    fn push(&mut self, text: &str) -> bool {
        let mut has_grown = false;
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            if self.state == State::Over {
                break;
            }
            // Unescaped runs of a text are copied at once.
            let run = match self.state {
                State::InText => rest.find(['"', '\\']).unwrap_or(rest.len()),
                _ => 0,
            };
            if run > 0 {
                self.end_half();
                self.say(&rest[..run]);
                (rest, has_grown) = (&rest[run..], true);
                continue;
            }
            has_grown |= self.take(first);
            rest = &rest[first.len_utf8()..];
        }
        has_grown
    }

    fn take(&mut self, c: char) -> bool {
        match self.state {
            State::Start => self.start(c),
            State::Value => self.value(c),
            State::Key => self.key(c),
            State::InKey => {
                match c {
                    '"' => self.end_key(),
                    '\\' => self.state = State::Escape(true),
                    c => self.token.push(c),
                }
                false
            }
            State::Colon => {
                if c == ':' {
                    self.state = State::Value;
                } else if !c.is_whitespace() {
                    self.state = State::Over;
                }
                false
            }
            State::InText => {
                self.state = if c == '"' {
                    State::Behind
                } else {
                    State::Escape(false)
                };
                if c == '"' {
                    self.end_half();
                }
                false
            }
            State::Escape(in_key) => self.escape(c, in_key),
            State::Hex(in_key, left) => self.hex(c, in_key, left),
            State::Bare => self.bare(c),
            State::Behind => self.behind(c),
            State::Over => false,
        }
    }

    fn start(&mut self, c: char) -> bool {
        match c {
            '{' | '[' if self.token.is_empty() || self.token.starts_with("```") => self.value(c),
            c if c.is_whitespace() && self.token.is_empty() => false,
            c if self.token.len() < 16 => {
                self.token.push(c);
                false
            }
            _ => {
                self.state = State::Over;
                false
            }
        }
    }

    fn value(&mut self, c: char) -> bool {
        match c {
            c if c.is_whitespace() => false,
            '{' | '[' if self.open.len() == MAX_DEPTH => {
                self.state = State::Over;
                false
            }
            '{' => {
                self.place(Value::Object(Map::new()));
                self.open.push(Open::Object(None));
                self.state = State::Key;
                self.token.clear();
                true
            }
            '[' => {
                self.place(Value::Array(Vec::new()));
                self.open.push(Open::List);
                self.state = State::Value;
                self.token.clear();
                true
            }
            ']' => self.close(c),
            '"' => {
                self.place(Value::String(String::new()));
                self.state = State::InText;
                true
            }
            c => {
                self.token.push(c);
                self.state = State::Bare;
                false
            }
        }
    }

    fn key(&mut self, c: char) -> bool {
        match c {
            '"' => self.state = State::InKey,
            '}' => return self.close(c),
            c if c.is_whitespace() => {}
            _ => self.state = State::Over,
        }
        false
    }

    fn end_key(&mut self) {
        let key = std::mem::take(&mut self.token);
        // A duplicate key is not a valid answer, and would retract an emitted value.
        let stands = self.deepest().is_none_or(|it| it.get(&key).is_some());
        if let Some(Open::Object(named)) = self.open.last_mut() {
            *named = Some(key);
        }
        self.state = if stands { State::Over } else { State::Colon };
    }

    fn escape(&mut self, c: char, in_key: bool) -> bool {
        let plain = match c {
            'u' => {
                self.half_digits(in_key);
                return false;
            }
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            '"' | '\\' | '/' => c,
            _ => {
                self.state = State::Over;
                return false;
            }
        };
        self.end_half();
        self.character(plain, in_key)
    }

    fn half_digits(&mut self, in_key: bool) {
        if !in_key {
            self.token.clear();
        }
        self.state = State::Hex(in_key, 4);
    }

    fn hex(&mut self, c: char, in_key: bool, left: u8) -> bool {
        if !c.is_ascii_hexdigit() {
            self.state = State::Over;
            return false;
        }
        self.token.push(c);
        if left > 1 {
            self.state = State::Hex(in_key, left - 1);
            return false;
        }
        let digits = self.token.split_off(self.token.len() - 4);
        let unit = u32::from_str_radix(&digits, 16).unwrap_or_default();
        self.state = if in_key { State::InKey } else { State::InText };
        match (self.half.take(), unit) {
            (None, 0xD800..=0xDBFF) => {
                self.half = Some(unit);
                false
            }
            (Some(high), 0xDC00..=0xDFFF) => {
                let pair = 0x10000 + ((high - 0xD800) << 10) + (unit - 0xDC00);
                self.character(char::from_u32(pair).unwrap_or('\u{FFFD}'), in_key)
            }
            // Half of a surrogate pair is not valid JSON.
            (_, unit) => match char::from_u32(unit) {
                Some(c) => self.character(c, in_key),
                None => {
                    self.state = State::Over;
                    false
                }
            },
        }
    }

    fn end_half(&mut self) {
        self.half = None;
    }

    fn character(&mut self, c: char, in_key: bool) -> bool {
        self.state = if in_key { State::InKey } else { State::InText };
        if in_key {
            self.token.push(c);
            return false;
        }
        self.say(c.encode_utf8(&mut [0; 4]));
        true
    }

    fn bare(&mut self, c: char) -> bool {
        if !matches!(c, ',' | ']' | '}') && !c.is_whitespace() {
            self.token.push(c);
            return false;
        }
        let token = std::mem::take(&mut self.token);
        match serde_json::from_str::<Value>(&token) {
            Ok(value) => self.place(value),
            Err(_) => {
                self.state = State::Over;
                return false;
            }
        }
        self.state = State::Behind;
        self.behind(c);
        true
    }

    fn behind(&mut self, c: char) -> bool {
        match (c, self.open.last()) {
            (',', Some(Open::Object(_))) => self.state = State::Key,
            (',', Some(Open::List)) => self.state = State::Value,
            ('}' | ']', _) => return self.close(c),
            (c, _) if c.is_whitespace() => {}
            _ => self.state = State::Over,
        }
        false
    }

    fn close(&mut self, c: char) -> bool {
        let fits = match self.open.pop() {
            Some(Open::Object(_)) => c == '}',
            Some(Open::List) => c == ']',
            None => false,
        };
        self.state = if fits && !self.open.is_empty() {
            State::Behind
        } else {
            State::Over
        };
        false
    }

    /// The object or list that is open and lies deepest.
    fn deepest(&mut self) -> Option<&mut Value> {
        let mut at = &mut self.root;
        let (_, above) = self.open.split_last()?;
        for open in above {
            at = match open {
                Open::Object(key) => at.get_mut(key.as_deref()?)?,
                Open::List => at.as_array_mut()?.last_mut()?,
            };
        }
        Some(at)
    }

    /// Puts a value at the current place.
    fn place(&mut self, value: Value) {
        let key = match self.open.last_mut() {
            Some(Open::Object(key)) => key.clone(),
            _ => None,
        };
        match (self.deepest(), key) {
            (None, _) => self.root = value,
            (Some(Value::Object(map)), Some(key)) => {
                map.insert(key, value);
            }
            (Some(Value::Array(items)), _) => items.push(value),
            _ => {}
        }
    }

    /// Adds to the text that comes.
    fn say(&mut self, text: &str) {
        let key = match self.open.last() {
            Some(Open::Object(key)) => key.clone(),
            _ => None,
        };
        let place = match (self.deepest(), key) {
            (Some(Value::Object(map)), Some(key)) => map.get_mut(&key),
            (Some(Value::Array(items)), _) => items.last_mut(),
            _ => None,
        };
        if let Some(Value::String(said)) = place {
            said.push_str(text);
        }
    }
}

impl fmt::Debug for PartialAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartialAnswer")
            .field("block", &self.block)
            .field("value", &self.json.root)
            .finish()
    }
}
