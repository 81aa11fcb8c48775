//! Variables in texts: `${NAME}`, `${NAME:-default}`, and `$$` for a dollar sign.

use std::cell::RefCell;

use super::{
    node::{Content, Form, Map, Mark, Node, Scalar},
    problem::{Problem, Problems, quoted},
    server::LATE,
};

/// Returns the values of variables.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Expands variables in every text of a tree, not in keys. Invalid texts are removed.
pub(super) fn expand(node: &mut Node, lookup: Lookup<'_>, problems: &mut Problems) {
    // The root is a mapping.
    let _ = fill(node, Level::Root, lookup, problems);
}

/// The level of a value, which decides whether variables are expanded.
#[derive(Clone, Copy)]
enum Level {
    Root,
    Mcp,
    Servers,
    Server,
    Below,
}

impl Level {
    /// Returns the level below a key; `None` if variables are not expanded there.
    fn below(self, key: &str) -> Option<Self> {
        match (self, key) {
            (Self::Root, "mcp") => Some(Self::Mcp),
            (Self::Mcp, "servers") => Some(Self::Servers),
            (Self::Servers, _) => Some(Self::Server),
            (Self::Server, key) if LATE.contains(&key) => None,
            _ => Some(Self::Below),
        }
    }
}

/// Expands the variables of a node; false if it is invalid.
fn fill(node: &mut Node, level: Level, lookup: Lookup<'_>, problems: &mut Problems) -> bool {
    let mark = node.mark.clone();
    match &mut node.content {
        Content::Scalar(scalar) if scalar.text.contains('$') => {
            match expanded(&scalar.text, Credentials::Refused, lookup) {
                Ok(text) => {
                    let form = if scalar.form == Form::Plain {
                        Form::Expanded
                    } else {
                        Form::Filled
                    };
                    *scalar = Scalar { text, form };
                }
                Err(Wrong { at, message, hint }) => {
                    problems.push(Problem::new(&inside(&mark, scalar, at), message).hint(hint));
                    return false;
                }
            }
        }
        Content::Scalar(_) => {}
        Content::List(items) => items.retain_mut(|item| fill(item, Level::Below, lookup, problems)),
        Content::Map(Map { entries, spoiled }) => entries.retain_mut(|(key, value)| {
            let stays = level
                .below(&key.text)
                .is_none_or(|level| fill(value, level, lookup, problems));
            spoiled.extend((!stays).then(|| key.text.clone()));
            stays
        }),
    }
    true
}

/// True if a text contains a variable.
pub(crate) fn has_any(text: &str) -> bool {
    text.contains("${")
}

/// Returns the names of the variables in a text.
///
/// # Errors
/// The reason why one is invalid, and a hint.
pub(crate) fn names(text: &str) -> Result<Vec<String>, (String, Option<String>)> {
    let names = RefCell::new(Vec::new());
    let note = |name: &str| {
        names.borrow_mut().push(name.to_owned());
        Some(String::new())
    };
    filled(text, &note)?;
    Ok(names.into_inner())
}

/// Expands the variables of a text; they may be credentials.
///
/// # Errors
/// The reason why a variable cannot be expanded, and a hint.
pub(crate) fn filled(text: &str, lookup: Lookup<'_>) -> Result<String, (String, Option<String>)> {
    expanded(text, Credentials::Taken, lookup).map_err(|wrong| (wrong.message, wrong.hint))
}

/// The handling of variables whose names look like credentials.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Credentials {
    Refused,
    Taken,
}

/// True if the name of a variable looks like a credential.
pub(crate) fn is_credential(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let name = name.strip_suffix('S').unwrap_or(&name);
    let ends = ["KEY", "TOKEN", "SECRET"].iter().any(|word| {
        name.strip_suffix(word)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
    });
    // The address of a database often contains a password.
    let is_place = ["DATABASE_URL", "DB_URL", "REDIS_URL", "DSN"]
        .iter()
        .any(|it| name.ends_with(it));
    let is_word = ["PAT", "PASS", "PWD", "AUTH"]
        .iter()
        .any(|it| name.split('_').any(|part| part == *it));
    ends || is_place
        || is_word && name != "PWD"
        || ["APIKEY", "PASSWORD", "PASSWD", "CREDENTIAL"]
            .iter()
            .any(|part| name.contains(part))
}

/// True if this is a valid name of an environment variable.
pub(crate) fn is_variable(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty()
        && name.len() <= 128
        && name.chars().all(is_part)
        && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// An error in a text, and its offset in bytes.
struct Wrong {
    at: usize,
    message: String,
    hint: Option<String>,
}

fn expanded(text: &str, credentials: Credentials, lookup: Lookup<'_>) -> Result<String, Wrong> {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once('$') {
        let at = text.len() - rest.len() + before.len();
        out.push_str(before);
        if let Some(after) = after.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some(inner) = after.strip_prefix('{') {
            let Some((inner, after)) = inner.split_once('}') else {
                let hint = Some("`$$` stands for a dollar sign".to_owned());
                return Err(Wrong {
                    at,
                    message: "a variable does not end: `}` is missing".to_owned(),
                    hint,
                });
            };
            out.push_str(
                &value(inner, credentials, lookup).map_err(|(message, hint)| Wrong {
                    at,
                    message,
                    hint,
                })?,
            );
            rest = after;
        } else {
            out.push('$');
            rest = after;
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// Returns the value for the text between the braces.
fn value(
    inner: &str,
    credentials: Credentials,
    lookup: Lookup<'_>,
) -> Result<String, (String, Option<String>)> {
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    if !is_variable(name) {
        let hint = "the forms are `${NAME}` and `${NAME:-default}`; `$$` stands for a dollar sign"
            .to_owned();
        return Err((
            format!("no variable can be called {}", quoted(name)),
            Some(hint),
        ));
    }
    if credentials == Credentials::Refused && is_credential(name) {
        let hint =
            "name the variable in `key_variables` of a provider, or as `url_variable` of a store"
                .to_owned();
        return Err((
            format!("a manifest holds no credentials, and the variable {name} is called as one"),
            Some(hint),
        ));
    }
    // As in a shell, an empty variable counts as unset if there is a default.
    match (lookup(name), default) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) => {
            let hint = format!("set it, or give a default: `${{{name}:-…}}`");
            Err((format!("the variable {name} is not set"), Some(hint)))
        }
    }
}

/// Returns the position of an offset in a text; for a block, its line.
fn inside(mark: &Mark, scalar: &Scalar, at: usize) -> Mark {
    if scalar.form != Form::Block {
        return mark.clone();
    }
    let lines = scalar
        .text
        .get(..at)
        .unwrap_or_default()
        .matches('\n')
        .count();
    let line = mark
        .line
        .saturating_add(1)
        .saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
    Mark {
        line,
        column: 1,
        ..mark.clone()
    }
}
