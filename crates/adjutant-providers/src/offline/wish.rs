//! The task of a question: describe something, find a word, or show a file. Words only, no grammar.

/// The largest number of characters of a question that are read.
const MAX_QUESTION: usize = 4_000;
/// The largest number of characters that a search term or a path may have.
const MAX_TERM: usize = 200;
/// The largest number of plain words that make up a search term.
const MAX_WORDS: usize = 3;

/// The maximum number of tasks in one question.
const MAX_WISHES: usize = 4;
/// Words before the verb of a task.
const POLITE: &str = "please now then and also can could would you";
/// Words that start another task after `and`.
const BEGINS: &str = "\
    where what which find search list show read print replace change run execute describe summarise summarize how";

/// Words that search for something.
const FIND: &str = "\
    where find search locate grep usage usages uses used occur occurs occurrences references mention mentions \
    mentioned contain contains defined definition declared implemented symbol";
/// Words that request the content of something.
const READ: &str = "\
    read show open print cat display summarise summarize summary say says content contents explain describe view \
    inside in look";
/// Words that request the text itself.
const WHOLE: &str = "show print cat display";
/// Words that request a description of a directory or its content.
const DESCRIBE: &str = "\
    directory folder project repo repository workspace crate crates package packages files here overview languages \
    codebase contents holds describe";
/// Files that are called without an extension.
const KNOWN: &str =
    "README LICENSE CHANGELOG CONTRIBUTING ARCHITECTURE Makefile Dockerfile Justfile";
/// Words that are never searched for unless they are quoted.
const NOISE: &str = "\
    a about all am an and any anything are at be been being by called can class classes code codebase comment \
    comments constant could crate defined definition directory do does each every everything file files folder \
    for from function functions get gets here how i identifier if in is it its line lines located look looks me \
    method module my name named of on or out place places please project repo repository say string struct tell \
    text that the there they thing this through to trait type use variable we what which who with word words \
    workspace you your";

/// The task of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wish {
    /// A description of the directory; also for everything that is not understood.
    Describe { understood: bool },
    /// The places where these words occur.
    Find {
        words: Vec<String>,
        within: Option<String>,
    },
    /// The content of a file; `whole` if its text itself is wanted.
    Read { path: String, whole: bool },
    /// A text of a file in the place of another.
    Edit {
        path: String,
        old: String,
        new: String,
    },
    /// The output of a command.
    Run { command: String },
}

impl Wish {
    /// Returns the tasks of a question, in order; unknown tasks only if no other exists.
    pub(super) fn all(question: &str) -> Vec<Self> {
        let question: String = question.chars().take(MAX_QUESTION).collect();
        let mut wishes: Vec<Self> = Vec::new();
        for part in parts(&question) {
            let wish = Self::from_question(&part);
            if wish != (Self::Describe { understood: false }) && !wishes.contains(&wish) {
                wishes.push(wish);
            }
        }
        wishes.truncate(MAX_WISHES);
        if wishes.is_empty() {
            wishes.push(Self::from_question(&question));
        }
        wishes
    }

    pub(super) fn from_question(question: &str) -> Self {
        let question: String = question.chars().take(MAX_QUESTION).collect();
        let quoted = find_quoted(&question);
        if let Some(wish) = Self::parse_action(&question, &quoted) {
            return wish;
        }
        let tokens: Vec<&str> = question
            .split_whitespace()
            .map(bare)
            .filter(|it| !it.is_empty())
            .collect();
        let lower: Vec<String> = tokens.iter().map(|it| it.to_lowercase()).collect();
        let says = |list: &str| lower.iter().any(|word| among(list, word));
        let finds = says(FIND);
        let describe = Wish::Describe {
            understood: says(DESCRIBE),
        };
        let slash_counts = says(READ) || finds;
        let path = quoted
            .iter()
            .map(String::as_str)
            .chain(tokens.iter().copied());
        let path = path
            .filter(|it| is_path(it, slash_counts))
            .map(str::to_owned)
            .next();
        let term = quoted.into_iter().find(|it| Some(it) != path.as_ref());
        let term = term.or_else(|| {
            tokens
                .iter()
                .find(|it| is_identifier(it))
                .map(|it| (*it).to_owned())
        });
        match (term, path) {
            (None, Some(path)) if !finds => Wish::Read {
                path,
                whole: says(WHOLE),
            },
            (Some(term), within) if finds || within.is_none() => Wish::Find {
                words: vec![term],
                within,
            },
            (Some(_), Some(path)) => Wish::Read {
                path,
                whole: says(WHOLE),
            },
            (None, within) if finds => {
                match (plain_words(&tokens, &lower, within.as_deref()), within) {
                    (words, within) if !words.is_empty() => Wish::Find { words, within },
                    (_, Some(path)) => Wish::Find {
                        words: vec![path],
                        within: None,
                    },
                    (_, None) => describe,
                }
            }
            _ => describe,
        }
    }
}

impl Wish {
    /// Returns a task that changes or runs something, recognized by its first word.
    fn parse_action(question: &str, quoted: &[String]) -> Option<Self> {
        let mut words = question
            .split_whitespace()
            .map(|word| bare(word).to_lowercase());
        let first = words.find(|word| !among(POLITE, word))?;
        let mut quoted = quoted.to_vec();
        quoted.sort_by_key(|term| question.find(term.as_str()));
        match first.as_str() {
            "run" | "execute" => Some(Self::Run {
                command: quoted.first()?.clone(),
            }),
            "replace" | "change" => {
                let [old, new] = [0, 1].map(|at| quoted.get(at).cloned());
                let (old, new) = (old?, new?);
                let named = question
                    .split_whitespace()
                    .map(bare)
                    .chain(quoted.get(2).map(String::as_str));
                let mut named = named.filter(|it| *it != old && *it != new && is_path(it, true));
                let path = named.next_back()?;
                Some(Self::Edit {
                    path: path.to_owned(),
                    old,
                    new,
                })
            }
            _ => None,
        }
    }
}

/// Splits a question into parts that may each be a task: sentences, and the text after `and` before a task word.
fn parts(question: &str) -> Vec<String> {
    let (mut parts, mut part, mut within) = (Vec::new(), String::new(), None);
    let words: Vec<&str> = question.split_inclusive([' ', '\n']).collect();
    for (at, word) in words.iter().enumerate() {
        for mark in word.chars().filter(|it| matches!(it, '`' | '"')) {
            within = match within {
                None => Some(mark),
                Some(open) if open == mark => None,
                open => open,
            };
        }
        let next = || {
            words
                .get(at + 1)
                .map(|word| bare(word.trim()).to_lowercase())
        };
        let joins = matches!(bare(word.trim()).to_lowercase().as_str(), "and" | "then")
            && next().is_some_and(|next| among(BEGINS, &next));
        if within.is_some() || !joins {
            part.push_str(word);
        }
        let ends = word.trim_end().ends_with(['.', '?', '!', ';']) || word.ends_with('\n');
        if within.is_none() && (joins || ends) {
            parts.push(std::mem::take(&mut part));
        }
    }
    parts.push(part);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// Returns the texts in back-ticks or quotation marks.
fn find_quoted(question: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (open, close) in [('`', '`'), ('"', '"'), ('“', '”'), ('\'', '\'')] {
        let mut rest = question;
        let mut before = ' ';
        while let Some(at) = rest.find(open) {
            before = rest[..at].chars().next_back().unwrap_or(before);
            rest = &rest[at + open.len_utf8()..];
            // An apostrophe within a word opens nothing.
            if before.is_alphanumeric() {
                continue;
            }
            let Some(end) = rest.find(close) else { break };
            let term = rest[..end].trim();
            if !term.is_empty()
                && term.chars().count() <= MAX_TERM
                && !term.chars().any(char::is_control)
            {
                found.push(term.to_owned());
            }
            rest = &rest[end + close.len_utf8()..];
            before = ' ';
        }
    }
    found
}

/// A word without the punctuation around it.
fn bare(token: &str) -> &str {
    let token = token.trim_matches(|it: char| "`\"'“”‘’?!,;:<>[]{}…".contains(it));
    let token = token.trim_end_matches('.').trim_start_matches('(');
    if token.ends_with("()") {
        token
    } else {
        token.trim_end_matches(')')
    }
}

/// True if a word looks like a path; a word with only a slash counts if the task is to read or to find.
fn is_path(token: &str, slash_counts: bool) -> bool {
    let plain = |it: char| it.is_alphanumeric() || "/._-+@".contains(it);
    let is_name = token.chars().all(plain) && token.chars().any(char::is_alphanumeric);
    // `and/or` and the like are no paths.
    if token.len() > MAX_TERM || !is_name || token.split('/').all(|part| among(NOISE, part)) {
        return false;
    }
    let name = token.rsplit('/').next().unwrap_or(token);
    let has_extension = match name.rsplit_once('.') {
        None => false,
        Some(("", rest)) => rest.len() > 2,
        Some((stem, end)) => {
            let plain_end = (1..=8).contains(&end.len())
                && end.starts_with(|it: char| it.is_ascii_alphabetic());
            plain_end
                && end.chars().all(|it| it.is_ascii_alphanumeric())
                && (stem.len() + end.len() > 2 || token.contains('/'))
        }
    };
    has_extension || among(KNOWN, name) || (slash_counts && token.contains('/'))
}

fn is_identifier(token: &str) -> bool {
    let body = token.strip_suffix("()").unwrap_or(token);
    let plain = |it: char| it.is_alphanumeric() || it == '_' || it == ':';
    if body.is_empty() || body.len() > MAX_TERM || !body.chars().all(plain) {
        return false;
    }
    let hump = body
        .chars()
        .zip(body.chars().skip(1))
        .any(|(one, next)| one.is_lowercase() && next.is_uppercase());
    let joined = body.trim_matches('_').contains('_') || body.trim_matches(':').contains("::");
    hump || joined || body.len() < token.len()
}

/// The words after the search word, or before it if none follow.
fn plain_words(tokens: &[&str], lower: &[String], path: Option<&str>) -> Vec<String> {
    let Some(asks) = lower.iter().position(|word| among(FIND, word)) else {
        return Vec::new();
    };
    let noise = |at: usize| {
        let word = lower[at].as_str();
        let is_noise = |it: &str| among(NOISE, it) || among(FIND, it);
        Some(tokens[at]) == path || word.contains('\'') || word.split('/').all(is_noise)
    };
    let run = |order: &mut dyn Iterator<Item = usize>| -> Vec<usize> {
        order
            .skip_while(|at| noise(*at))
            .take_while(|at| !noise(*at))
            .take(MAX_WORDS)
            .collect()
    };
    let mut places = run(&mut (asks + 1..tokens.len()));
    if places.is_empty() {
        places = run(&mut (0..asks).rev());
        places.reverse();
    }
    let word = |at: usize| tokens[at].chars().take(MAX_TERM).collect();
    places.into_iter().map(word).collect()
}

fn among(list: &str, word: &str) -> bool {
    list.split(' ').any(|it| it == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(words: &[&str], within: Option<&str>) -> Wish {
        let words = words.iter().map(|it| (*it).to_owned()).collect();
        Wish::Find {
            words,
            within: within.map(str::to_owned),
        }
    }

    fn read(path: &str, whole: bool) -> Wish {
        Wish::Read {
            path: path.to_owned(),
            whole,
        }
    }

    #[track_caller]
    fn check(question: &str, expect: &Wish) {
        assert_eq!(&Wish::from_question(question), expect, "{question}");
    }

    #[test]
    fn of_describes_when_nothing_is_named() {
        for question in [
            "What is this directory?",
            "which crates does this workspace hold?",
            "find out what this project does",
        ] {
            check(question, &Wish::Describe { understood: true });
        }
        for question in [
            "",
            "hello",
            "where am I?",
            "what's this used for and/or what is it",
            "What is 17 plus 25?",
            "Was ist das hier?",
        ] {
            check(question, &Wish::Describe { understood: false });
        }
    }

    #[test]
    fn of_finds_when_a_term_is_named() {
        check(
            "where is `Run::apply` called?",
            &find(&["Run::apply"], None),
        );
        check("Find \"two words\" please", &find(&["two words"], None));
        check("what does 'parse' do", &find(&["parse"], None));
        check("Where is CallResult defined?", &find(&["CallResult"], None));
        check("usages of read_all()", &find(&["read_all()"], None));
        check("where is the tool loop?", &find(&["tool", "loop"], None));
        check(
            "search for TODO comments in src/lib.rs",
            &find(&["TODO"], Some("src/lib.rs")),
        );
        check("how is caching implemented?", &find(&["caching"], None));
        check("where is Cargo.toml", &find(&["Cargo.toml"], None));
    }

    #[test]
    fn of_acts_when_a_deed_is_named() {
        let edit = |path: &str, old: &str, new: &str| Wish::Edit {
            path: path.into(),
            old: old.into(),
            new: new.into(),
        };
        check(
            "Replace `one two` with `three` in src/a.rs.",
            &edit("src/a.rs", "one two", "three"),
        );
        check(
            "please change \"a.b\" to \"c.d\" in `notes.md`",
            &edit("notes.md", "a.b", "c.d"),
        );
        check(
            "Run `cargo test -q`",
            &Wish::Run {
                command: "cargo test -q".into(),
            },
        );
        check("run the tests", &Wish::Describe { understood: false });
    }

    #[test]
    fn all_finds_each_wish_when_there_are_several() {
        let described = || Wish::Describe { understood: true };
        let table: [(&str, Vec<Wish>); 5] = [
            (
                "What is this directory, and which crates does it hold?",
                vec![described()],
            ),
            (
                "What is this directory, and where is `Rules` defined?",
                vec![described(), find(&["Rules"], None)],
            ),
            (
                "Read README.md. Run `ls; pwd and read`.",
                vec![
                    read("README.md", false),
                    Wish::Run {
                        command: "ls; pwd and read".into(),
                    },
                ],
            ),
            (
                "Hello! Show a.rs and then find TODO in src/lib.rs",
                vec![read("a.rs", true), find(&["TODO"], Some("src/lib.rs"))],
            ),
            ("hello there", vec![Wish::Describe { understood: false }]),
        ];
        for (question, expect) in table {
            assert_eq!(Wish::all(question), expect, "{question}");
        }
    }

    #[test]
    fn of_reads_when_a_path_is_named() {
        check("What does README.md say?", &read("README.md", false));
        check("show me `src/main.rs`.", &read("src/main.rs", true));
        check(
            "summarise crates/adjutant-llm",
            &read("crates/adjutant-llm", false),
        );
        check("what does the README say", &read("README", false));
        check("print .gitignore", &read(".gitignore", true));
    }
}
