//! One argument of a tool's function, and the mistakes that get an explanation.

use syn::{
    Attribute, Error, FnArg, GenericArgument, Ident, Pat, PatIdent, PatType, PathArguments, Result,
    ReturnType, Type, TypeParamBound,
};

/// An argument, without the attributes that only the macro reads.
pub(crate) struct Argument {
    pub(crate) name: Ident,
    pub(crate) ty: Type,
    pub(crate) role: Role,
    /// For the field that the argument becomes: its description, and what serde and schemars read.
    pub(crate) field_attributes: Vec<Attribute>,
}

/// The source of an argument.
#[derive(PartialEq, Eq)]
pub(crate) enum Role {
    Asked,
    State,
    Context,
}

impl Argument {
    /// Reads an argument and takes from it what the function must not keep.
    pub(crate) fn take(argument: &mut FnArg) -> Result<Self> {
        let typed = match argument {
            FnArg::Receiver(this) => {
                return Err(Error::new_spanned(
                    this,
                    "a tool is a free function: pass what it needs as `#[state]`",
                ));
            }
            FnArg::Typed(typed) => typed,
        };
        let name = name(&typed.pat)?;
        check(&typed.ty)?;
        let state = take_state(typed)?;
        let own = |it: &Attribute| {
            ["doc", "serde", "schemars"]
                .iter()
                .any(|name| it.path().is_ident(name))
        };
        let (field_attributes, kept) = typed.attrs.drain(..).partition(own);
        typed.attrs = kept;
        let role = match state {
            true => Role::State,
            false if is_context(&typed.ty) => Role::Context,
            false => Role::Asked,
        };
        Ok(Self {
            name,
            ty: (*typed.ty).clone(),
            role,
            field_attributes,
        })
    }
}

fn name(pattern: &Pat) -> Result<Ident> {
    match pattern {
        Pat::Ident(PatIdent {
            by_ref: None,
            subpat: None,
            ident,
            ..
        }) => Ok(ident.clone()),
        Pat::Ident(_)
        | Pat::Wild(_)
        | Pat::Tuple(_)
        | Pat::TupleStruct(_)
        | Pat::Struct(_)
        | Pat::Slice(_)
        | Pat::Reference(_) => Err(Error::new_spanned(
            pattern,
            "an argument of a tool needs a name that the model can use",
        )),
        other => Err(Error::new_spanned(other, "not the name of an argument")),
    }
}

fn take_state(typed: &mut PatType) -> Result<bool> {
    let mut state = false;
    for attribute in typed.attrs.iter().filter(|it| it.path().is_ident("state")) {
        attribute.meta.require_path_only()?;
        if std::mem::replace(&mut state, true) {
            return Err(Error::new_spanned(attribute, "`#[state]` is given twice"));
        }
    }
    typed.attrs.retain(|it| !it.path().is_ident("state"));
    Ok(state)
}

fn is_context(ty: &Type) -> bool {
    match ty {
        Type::Path(path) => path
            .path
            .segments
            .last()
            .is_some_and(|it| it.ident == "CallContext"),
        _ => false,
    }
}

/// Refuses types that borrow or that are not spelled out.
fn check(ty: &Type) -> Result<()> {
    match ty {
        Type::Reference(reference) => Err(Error::new_spanned(
            reference,
            borrow_error_text(&reference.elem),
        )),
        Type::ImplTrait(_) => Err(Error::new_spanned(
            ty,
            "an argument of a tool needs a type of its own, not `impl Trait`",
        )),
        Type::Infer(_) => Err(Error::new_spanned(
            ty,
            "an argument of a tool needs its type spelled out",
        )),
        Type::Path(path) => path
            .path
            .segments
            .iter()
            .try_for_each(|it| check_generics(&it.arguments)),
        Type::Tuple(tuple) => tuple.elems.iter().try_for_each(check),
        Type::Array(array) => check(&array.elem),
        Type::Paren(paren) => check(&paren.elem),
        Type::Group(group) => check(&group.elem),
        Type::TraitObject(object) => object.bounds.iter().try_for_each(|bound| match bound {
            TypeParamBound::Trait(bound) => bound
                .path
                .segments
                .iter()
                .try_for_each(|it| check_generics(&it.arguments)),
            _ => Ok(()),
        }),
        _ => Ok(()),
    }
}

fn check_generics(arguments: &PathArguments) -> Result<()> {
    match arguments {
        PathArguments::None => Ok(()),
        PathArguments::AngleBracketed(list) => {
            list.args.iter().try_for_each(|argument| match argument {
                GenericArgument::Type(ty) => check(ty),
                GenericArgument::Lifetime(lifetime) if lifetime.ident != "static" => {
                    Err(Error::new_spanned(
                        lifetime,
                        "an argument of a tool must be owned: it outlives the call's text",
                    ))
                }
                _ => Ok(()),
            })
        }
        // A function type may take borrowed arguments: they are not held.
        PathArguments::Parenthesized(function) => match &function.output {
            ReturnType::Default => Ok(()),
            ReturnType::Type(_, ty) => check(ty),
        },
    }
}

fn borrow_error_text(inner: &Type) -> String {
    let owned = match inner {
        Type::Path(path) if path.path.is_ident("str") => "use `String`".to_owned(),
        Type::Slice(_) => "use `Vec`".to_owned(),
        inner if is_context(inner) => "use `CallContext` by value, it is cheap to clone".to_owned(),
        _ => "take the value itself, or an `Arc` of it as `#[state]`".to_owned(),
    };
    format!("an argument of a tool must be owned: {owned}")
}
