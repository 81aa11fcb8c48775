//! Parses a command line of bash if it has plain syntax. Any other syntax is reported, never guessed.

use adjutant_llm::hidden::is_hidden;

/// The maximum number of bytes of a line.
const MAX_LINE: usize = 64 * 1024;
/// The maximum nesting depth of commands.
const MAX_DEPTH: usize = 12;
/// The maximum nesting depth of commands inside quoted words.
const MAX_QUOTED: usize = 2;
/// The maximum number of commands that are searched in words at a time, and the maximum number of inspected words of a
/// command.
pub(super) const MAX_INNER: usize = 2_000;
const MAX_WORDS: usize = 200;
/// Keywords, which are not commands where a command may start.
const KEYWORDS: [&str; 20] = [
    "!", "{", "}", "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done",
    "case", "esac", "in", "select", "function", "coproc", "[[",
];
/// Files that can always be written without harm.
const SINKS: [&str; 4] = ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/zero"];

/// The simple commands of a line, including commands in substitutions.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Line {
    pub(super) commands: Vec<Simple>,
    /// The first reason why the line cannot be parsed, if any.
    pub(super) unclear: Option<&'static str>,
}

/// A simple command, with quotes removed.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Simple {
    /// The variables that are set only for this command, as `NAME=value`.
    pub(super) assigns: Vec<String>,
    pub(super) words: Vec<String>,
    /// The positions of words that expand to file names, which may begin with a dash.
    pub(super) globs: Vec<usize>,
    /// The files that it writes to.
    pub(super) writes: Vec<String>,
    /// The files that it reads by redirection.
    pub(super) reads: Vec<String>,
}

/// A parsed word.
#[derive(Default)]
struct Word {
    text: String,
    /// The characters that were not quoted; others are NUL.
    bare: String,
}

struct Reader<'a> {
    chars: std::iter::Peekable<std::str::Chars<'a>>,
    line: Line,
    depth: usize,
}

impl Line {
    /// Parses a line.
    pub(super) fn read(text: &str) -> Self {
        Self::within(text, 0)
    }

    fn within(text: &str, depth: usize) -> Self {
        let mut reader = Reader {
            chars: text.chars().peekable(),
            line: Self::default(),
            depth,
        };
        if text.len() > MAX_LINE {
            reader.unclear("it is too long to be read");
        } else if depth > MAX_DEPTH {
            reader.unclear("commands stand too deep in others");
        } else {
            if text
                .chars()
                .any(|c| is_hidden(c) && !matches!(c, '\t' | '\n'))
            {
                reader.unclear("it has characters that are not seen");
            }
            reader.list(false);
        }
        reader.line
    }

    /// A command that is started without a shell.
    pub(super) fn from_argv(argv: Vec<String>) -> Self {
        if argv.iter().map(|word| word.len() + 1).sum::<usize>() > MAX_LINE {
            return Self {
                commands: Vec::new(),
                unclear: Some("it is too long to be read"),
            };
        }
        let unclear = argv
            .iter()
            .flat_map(|word| word.chars())
            .any(|c| is_hidden(c) && !matches!(c, '\t' | '\n'));
        let unclear = unclear.then_some("it has characters that are not seen");
        Self {
            commands: vec![Simple {
                words: argv,
                ..Simple::default()
            }],
            unclear,
        }
    }
}

impl Simple {
    /// Returns the name of the program, without its directory.
    pub(super) fn program(&self) -> &str {
        let name = self.words.first().map_or("", String::as_str);
        name.rsplit('/').next().unwrap_or(name)
    }

    /// Returns the commands that this command may run, as its words show, including nested ones.
    pub(super) fn inner(&self) -> Vec<Simple> {
        let (mut inner, mut from) = (self.within_words(), 0);
        for _ in 0..MAX_QUOTED {
            let next: Vec<Simple> = inner[from..]
                .iter()
                .flat_map(Simple::within_words)
                .take(MAX_INNER)
                .collect();
            from = inner.len();
            inner.extend(next);
        }
        inner
    }

    fn within_words(&self) -> Vec<Simple> {
        let mut inner = Vec::new();
        for at in 1..self.words.len().min(MAX_WORDS) {
            if inner.len() >= MAX_INNER {
                break;
            }
            inner.push(Simple {
                words: self.words[at..].to_vec(),
                ..Simple::default()
            });
            if self.words[at].contains([' ', '\t', '\n', ';', '|', '&', '$', '`', '(']) {
                inner.extend(
                    Line::within(&self.words[at], MAX_DEPTH / 2)
                        .commands
                        .into_iter()
                        .take(MAX_INNER),
                );
            }
        }
        inner
    }
}

impl Reader<'_> {
    fn unclear(&mut self, why: &'static str) {
        self.line.unclear.get_or_insert(why);
    }

    fn next_is(&mut self, wanted: char) -> bool {
        self.chars.next_if_eq(&wanted).is_some()
    }

    /// Parses commands to the end, or to a closing bracket.
    fn list(&mut self, closes: bool) {
        let mut words: Vec<Word> = Vec::new();
        let mut command = Simple::default();
        loop {
            let Some(&next) = self.chars.peek() else {
                if closes {
                    self.unclear("a bracket is not closed");
                }
                return self.end(&mut words, &mut command);
            };
            match next {
                ' ' | '\t' => {
                    self.chars.next();
                }
                '\n' | ';' | '|' => {
                    self.chars.next();
                    self.end(&mut words, &mut command);
                }
                '&' => {
                    self.chars.next();
                    match self.chars.peek() {
                        Some('>') => self.redirect(&mut command, true),
                        _ => self.end(&mut words, &mut command),
                    }
                }
                ')' => {
                    self.chars.next();
                    self.end(&mut words, &mut command);
                    if closes {
                        return;
                    }
                    self.unclear("a bracket closes nothing");
                }
                '(' => {
                    self.chars.next();
                    if !words.is_empty() || self.chars.peek() == Some(&'(') {
                        self.unclear("a function, a list or arithmetic");
                    }
                    self.end(&mut words, &mut command);
                    self.nested(|reader| reader.list(true));
                }
                '#' => while self.chars.next_if(|it| *it != '\n').is_some() {},
                '<' | '>' => self.redirect(&mut command, false),
                _ => {
                    let word = self.word();
                    let feeds = matches!(self.chars.peek(), Some('<' | '>'));
                    if feeds
                        && !word.bare.is_empty()
                        && word.bare.chars().all(|it| it.is_ascii_digit())
                    {
                        self.redirect(&mut command, false);
                    } else if !word.bare.is_empty() || self.line.unclear.is_some() {
                        // A continued line alone is not a word.
                        words.push(word);
                    }
                }
            }
        }
    }

    /// Skips blanks, and line ends behind a backslash.
    fn skip_blanks(&mut self) {
        loop {
            let mut ahead = self.chars.clone();
            match (ahead.next(), ahead.peek()) {
                (Some('\\'), Some('\n')) => {
                    ahead.next();
                }
                (Some(' ' | '\t'), _) => {}
                _ => return,
            }
            self.chars = ahead;
        }
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self)) {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            self.unclear("commands stand too deep in others");
            self.chars.by_ref().for_each(drop);
        } else {
            read(self);
        }
        self.depth -= 1;
    }

    /// Ends a command.
    fn end(&mut self, words: &mut Vec<Word>, command: &mut Simple) {
        let mut left = std::mem::take(words).into_iter().peekable();
        while let Some(word) = left.peek() {
            if KEYWORDS.contains(&word.bare.as_str()) {
                self.unclear("a control structure");
            } else if is_assignment(word) {
                command.assigns.push(word.text.clone());
            } else {
                break;
            }
            left.next();
        }
        if left.peek().is_none() && !command.assigns.is_empty() {
            self.unclear("a variable is set");
        }
        if let Some(name) = left.peek()
            && name.bare != "["
            && (name.text.is_empty()
                || !name.text.is_ascii()
                || name.bare.contains(['*', '?', '[', '~']))
        {
            self.unclear("the name of the command is not plain");
        }
        for word in left {
            let expands = word.bare.contains(['*', '?', '[']);
            if expands && word.bare.starts_with(['-', '\0']) {
                self.unclear("names of files may become options");
            }
            if expands && word.bare != "[" && word.bare.starts_with(['*', '?', '[']) {
                command.globs.push(command.words.len());
            }
            command.words.push(word.text);
        }
        let command = std::mem::take(command);
        if command != Simple::default() {
            self.line.commands.push(command);
        }
    }

    /// Parses `>`, `>>`, `<`, `&>` and similar operators, with the file.
    fn redirect(&mut self, command: &mut Simple, both: bool) {
        let writes = self.chars.next() == Some('>');
        if !writes && self.next_is('<') {
            self.unclear("text that follows is fed to a command");
            self.next_is('<');
            self.next_is('-');
            self.skip_blanks();
            self.word();
            return;
        } else if self.chars.peek() == Some(&'(') {
            return self.unclear("a command stands for a file");
        }
        // `>>` and `>|` write too, and so does `<>`.
        let more = self.next_is('>') || (writes && self.next_is('|'));
        let writes = writes || more;
        let dup = !both && self.next_is('&');
        self.skip_blanks();
        if self
            .chars
            .peek()
            .is_none_or(|it| matches!(it, '\n' | ';' | '|' | '&' | '(' | ')' | '<' | '>'))
        {
            return self.unclear("nothing stands behind a redirection");
        }
        let target = self.word();
        if target.bare.contains(['*', '?', '[', '~']) {
            self.unclear("the file of a redirection is not plain");
        }
        let digits = target.text.strip_suffix('-').unwrap_or(&target.text);
        let is_number = !target.text.is_empty() && digits.bytes().all(|it| it.is_ascii_digit());
        if ["/dev/tcp/", "/dev/udp/"]
            .iter()
            .any(|start| target.text.starts_with(start))
        {
            self.unclear("a connection replaces a file");
        }
        match (dup && is_number, writes) {
            (true, _) => {}
            (false, true) if SINKS.contains(&target.text.as_str()) => {}
            (false, true) => command.writes.push(target.text),
            (false, false) => command.reads.push(target.text),
        }
    }

    fn word(&mut self) -> Word {
        let mut word = Word::default();
        while let Some(&next) = self.chars.peek() {
            match next {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                '\\' => {
                    self.chars.next();
                    match self.chars.next() {
                        Some('\n') => {}
                        Some(literal) => word.quoted(literal),
                        None => self.unclear("a backslash stands at the end"),
                    }
                }
                '\'' => {
                    self.chars.next();
                    self.single(&mut word);
                }
                '"' => {
                    self.chars.next();
                    self.double(&mut word);
                }
                '$' | '`' => self.expansion(&mut word, false),
                plain => {
                    self.chars.next();
                    word.text.push(plain);
                    word.bare.push(plain);
                }
            }
        }
        if let Some((_, rest)) = word.bare.split_once('{')
            && (rest.contains(',') || rest.contains(".."))
        {
            self.unclear("braces become several words");
        }
        word
    }

    fn single(&mut self, word: &mut Word) {
        word.quoted_nothing();
        loop {
            match self.chars.next() {
                Some('\'') => return,
                Some(literal) => word.quoted(literal),
                None => return self.unclear("a quote is not closed"),
            }
        }
    }

    /// Parses the text between `$'` and `'`.
    ///
    /// Source: the manual of bash, section "ANSI-C Quoting" (2026-11).
    fn read_escapes(&mut self, word: &mut Word) {
        word.quoted_nothing();
        loop {
            match self.chars.next() {
                Some('\'') => return,
                None => return self.unclear("a quote is not closed"),
                Some('\\') => {
                    let decoded = match self.chars.next() {
                        Some('n') => Some('\n'),
                        Some('t') => Some('\t'),
                        Some('r') => Some('\r'),
                        Some('x') => self.read_code(16, 2, 0),
                        Some('u') => self.read_code(16, 4, 0),
                        Some('U') => self.read_code(16, 8, 0),
                        Some(digit @ '0'..='7') => {
                            self.read_code(8, 2, digit.to_digit(8).unwrap_or_default())
                        }
                        Some(other) => Some(other),
                        None => None,
                    };
                    decoded.into_iter().for_each(|c| word.quoted(c));
                }
                Some(literal) => word.quoted(literal),
            }
        }
    }

    /// Parses a character code with at most this number of digits.
    fn read_code(&mut self, radix: u32, most: usize, first: u32) -> Option<char> {
        let mut code = first;
        for _ in 0..most {
            let Some(digit) = self.chars.next_if(|it| it.is_digit(radix)) else {
                break;
            };
            code = code
                .saturating_mul(radix)
                .saturating_add(digit.to_digit(radix).unwrap_or_default());
        }
        char::from_u32(code)
    }

    fn double(&mut self, word: &mut Word) {
        word.quoted_nothing();
        loop {
            match self.chars.peek() {
                None => return self.unclear("a quote is not closed"),
                Some('"') => {
                    self.chars.next();
                    return;
                }
                Some('$' | '`') => self.expansion(word, true),
                Some('\\') => {
                    self.chars.next();
                    match self.chars.next() {
                        Some('\n') => {}
                        Some(literal @ ('$' | '`' | '"' | '\\')) => word.quoted(literal),
                        Some(other) => {
                            word.quoted('\\');
                            word.quoted(other);
                        }
                        None => return self.unclear("a quote is not closed"),
                    }
                }
                Some(_) => self
                    .chars
                    .next()
                    .into_iter()
                    .for_each(|literal| word.quoted(literal)),
            }
        }
    }

    /// Parses an expansion after `$` or between backquotes. Commands in it are found; their output is unknown.
    fn expansion(&mut self, word: &mut Word, is_quoted: bool) {
        if self.next_is('`') {
            self.unclear("the output of a command becomes words");
            let mut text = String::new();
            loop {
                match self.chars.next() {
                    Some('`') => break,
                    Some('\\') => text.extend(self.chars.next()),
                    Some(other) => text.push(other),
                    None => break self.unclear("a quote is not closed"),
                }
            }
            let inner = Line::within(&text, self.depth + 1);
            self.line.commands.extend(inner.commands);
            return;
        }
        self.chars.next();
        match self.chars.peek() {
            Some('(') => {
                self.chars.next();
                self.unclear("the output of a command becomes words");
                self.nested(|reader| reader.list(true));
            }
            // The content of the braces is parsed as part of the word.
            Some('{') => self.unclear("a variable becomes words"),
            Some('\'') if !is_quoted => {
                self.chars.next();
                self.unclear("a quote with escapes");
                self.read_escapes(word);
            }
            Some('"') if !is_quoted => self.unclear("a quote with escapes"),
            Some('[') => self.unclear("arithmetic"),
            Some(name) if name.is_alphanumeric() || "_@*#?$!-".contains(*name) => {
                self.unclear("a variable becomes words");
            }
            _ => word.quoted('$'),
        }
    }
}

impl Word {
    fn quoted(&mut self, literal: char) {
        self.text.push(literal);
        self.bare.push('\0');
    }

    /// Empty quotes also form a word, which is not a keyword.
    fn quoted_nothing(&mut self) {
        self.bare.push('\0');
    }
}

fn is_assignment(word: &Word) -> bool {
    let Some((name, _)) = word.bare.split_once('=') else {
        return false;
    };
    let name = name.strip_suffix('+').unwrap_or(name);
    let name = name.split('[').next().unwrap_or(name);
    !name.is_empty()
        && name
            .chars()
            .all(|it| it.is_ascii_alphanumeric() || it == '_')
        && !name.starts_with(|it: char| it.is_ascii_digit())
}

#[cfg(test)]
mod tests;
