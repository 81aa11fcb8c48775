//! Doc comments as text.

use syn::{Attribute, Error, Expr, ExprLit, Lit, Meta, Result};

/// The text of the doc comments among these attributes; `None` if there is no text.
pub(crate) fn description(attributes: &[Attribute]) -> Result<Option<String>> {
    let mut lines = Vec::new();
    for attribute in attributes {
        let Meta::NameValue(doc) = &attribute.meta else {
            continue;
        };
        if !doc.path.is_ident("doc") {
            continue;
        }
        let Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) = &doc.value
        else {
            return Err(Error::new_spanned(
                &doc.value,
                "the description of a tool must be plain text",
            ));
        };
        let text = text.value();
        lines.extend(
            text.split('\n')
                .map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned()),
        );
    }
    let text = lines.join("\n").trim().to_owned();
    Ok((!text.is_empty()).then_some(text))
}
