//! The function that becomes a tool, checked.

use proc_macro2::TokenStream;
use syn::{Attribute, Error, ItemFn, Result, Safety};

use crate::{
    argument::{Argument, Role},
    description::description,
};

pub(crate) struct Function {
    /// The function without what only the macro reads.
    pub(crate) item: ItemFn,
    pub(crate) description: String,
    pub(crate) arguments: Vec<Argument>,
    /// The conditions (`cfg`) of all generated items.
    pub(crate) conditions: Vec<Attribute>,
}

impl Function {
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let mut item: ItemFn = syn::parse2(tokens)?;
        check(&item)?;
        let Some(description) = description(&item.attrs)? else {
            let message = "a tool needs a doc comment: it is what the model is told of the tool";
            return Err(Error::new_spanned(&item.sig.ident, message));
        };
        let arguments: Vec<Argument> = item
            .sig
            .inputs
            .iter_mut()
            .map(Argument::take)
            .collect::<Result<_>>()?;
        for argument in &arguments {
            if argument.name == item.sig.ident {
                let message = "an argument cannot have the tool's own name: give the tool another name in Rust and \
                               keep this one with `#[tool(name = \"…\")]`";
                return Err(Error::new_spanned(&argument.name, message));
            }
        }
        let conditions: Vec<_> = item
            .attrs
            .iter()
            .filter(|it| it.path().is_ident("cfg"))
            .cloned()
            .collect();
        item.attrs.retain(|it| !it.path().is_ident("cfg"));
        Ok(Self {
            item,
            description,
            arguments,
            conditions,
        })
    }

    pub(crate) fn with(&self, role: Role) -> impl Iterator<Item = &Argument> {
        self.arguments.iter().filter(move |it| it.role == role)
    }
}

fn check(item: &ItemFn) -> Result<()> {
    let signature = &item.sig;
    if !signature.generics.params.is_empty() {
        return Err(Error::new_spanned(
            &signature.generics,
            "a tool cannot be generic: its schema must be one",
        ));
    }
    if let Some(clause) = &signature.generics.where_clause {
        return Err(Error::new_spanned(
            clause,
            "a tool cannot be generic: its schema must be one",
        ));
    }
    if let Safety::Unsafe(token) = &signature.safety {
        return Err(Error::new_spanned(
            token,
            "a tool cannot be unsafe: a model calls it",
        ));
    }
    if let Some(abi) = &signature.abi {
        return Err(Error::new_spanned(abi, "a tool is a plain Rust function"));
    }
    if let Some(dots) = &signature.variadic {
        return Err(Error::new_spanned(
            dots,
            "a tool has a fixed number of arguments",
        ));
    }
    Ok(())
}
