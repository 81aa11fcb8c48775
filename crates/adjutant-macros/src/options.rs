//! The options in the parentheses of `#[tool(…)]`.

use std::{num::ParseIntError, str::FromStr};

use proc_macro2::{Ident, Span, TokenStream};
use quote::format_ident;
use syn::{
    Error, LitBool, LitInt, LitStr, Path, Result, Token, meta::ParseNestedMeta, parse::Parser,
    spanned::Spanned,
};

use crate::nearest::nearest;

/// The known options.
const KNOWN: [&str; 14] = [
    "name",
    "title",
    "replay",
    "sequential",
    "approval",
    "blocking",
    "timeout_secs",
    "max_output",
    "rewrite",
    "deny_unknown_fields",
    "reads_only",
    "destructive",
    "idempotent",
    "open_world",
];
/// The replay classes and their variants.
const CLASSES: [(&str, &str); 4] = [
    ("pure", "Pure"),
    ("idempotent", "Idempotent"),
    ("once", "Once"),
    ("resumable", "Resumable"),
];
/// The longest tool name that all providers take.
const MAX_NAME: usize = 64;

#[derive(Default)]
pub(crate) struct Options {
    pub(crate) name: Option<String>,
    pub(crate) title: Option<LitStr>,
    pub(crate) replay: Option<Ident>,
    pub(crate) sequential: bool,
    pub(crate) approval: bool,
    pub(crate) blocking: Option<Span>,
    pub(crate) timeout_secs: Option<u64>,
    pub(crate) max_output: Option<usize>,
    pub(crate) rewrite: Option<Path>,
    pub(crate) deny_unknown_fields: bool,
    /// The hints that are given: a field of `ToolHints` and its value.
    pub(crate) hints: Vec<(Ident, bool)>,
}

impl Options {
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let mut options = Options::default();
        let mut seen = Vec::new();
        syn::meta::parser(|meta| {
            let key = meta
                .path
                .get_ident()
                .map(ToString::to_string)
                .unwrap_or_default();
            if seen.contains(&key) {
                return Err(meta.error(format!("`{key}` is given twice")));
            }
            options.take(&key, &meta)?;
            seen.push(key);
            Ok(())
        })
        .parse2(tokens)?;
        Ok(options)
    }

    fn take(&mut self, key: &str, meta: &ParseNestedMeta<'_>) -> Result<()> {
        match key {
            "name" => self.name = Some(tool_name(&meta.value()?.parse()?)?),
            "title" => self.title = Some(meta.value()?.parse()?),
            "replay" => self.replay = Some(replay(&meta.value()?.parse()?)?),
            "sequential" => self.sequential = true,
            "approval" => self.approval = true,
            "blocking" => self.blocking = Some(meta.path.span()),
            "timeout_secs" => {
                self.timeout_secs = Some(at_least_one(&meta.value()?.parse()?, "second of time")?)
            }
            "max_output" => {
                self.max_output = Some(at_least_one(&meta.value()?.parse()?, "byte of output")?)
            }
            "rewrite" => self.rewrite = Some(meta.value()?.parse()?),
            "deny_unknown_fields" => self.deny_unknown_fields = true,
            "reads_only" | "destructive" | "idempotent" | "open_world" => {
                let given = meta
                    .input
                    .peek(Token![=])
                    .then(|| meta.value()?.parse::<LitBool>())
                    .transpose()?;
                self.hints
                    .push((format_ident!("{key}"), given.is_none_or(|it| it.value)));
            }
            unknown => {
                let hint = match nearest(unknown, &KNOWN) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("known are `{}`", KNOWN.join("`, `")),
                };
                return Err(meta.error(format!("unknown option of `#[tool]`: {hint}")));
            }
        }
        Ok(())
    }
}

fn tool_name(literal: &LitStr) -> Result<String> {
    let name = literal.value();
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(allowed) {
        return Err(Error::new_spanned(
            literal,
            "a tool's name has 1 to 64 characters of `a-z`, `A-Z`, `0-9`, `_` and `-`: providers take no other",
        ));
    }
    Ok(name)
}

fn replay(literal: &LitStr) -> Result<Ident> {
    let class = literal.value();
    if let Some((_, variant)) = CLASSES.iter().find(|(name, _)| *name == class) {
        return Ok(format_ident!("{variant}"));
    }
    let known = CLASSES.map(|(name, _)| name);
    let hint = match nearest(&class, &known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known are `{}`", known.join("`, `")),
    };
    Err(Error::new_spanned(
        literal,
        format!("unknown replay class: {hint}"),
    ))
}

fn at_least_one<N: FromStr<Err = ParseIntError> + Default + PartialEq>(
    literal: &LitInt,
    unit: &str,
) -> Result<N> {
    let number: N = literal.base10_parse()?;
    if number == N::default() {
        return Err(Error::new_spanned(
            literal,
            format!("a call needs at least one {unit}"),
        ));
    }
    Ok(number)
}
