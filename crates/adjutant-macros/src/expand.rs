//! The expansion of a tool's function: a value of its name, the function as `run`, and `Tool` for the value.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::{Index, Path, Result, ReturnType, ext::IdentExt, spanned::Spanned};

use crate::{
    argument::{Argument, Role},
    function::Function,
    options::Options,
};

/// Expands `#[tool(options)] item`; `root` is the path that the tool crate has for the user.
pub(crate) fn tool(options: TokenStream, item: TokenStream, root: &str) -> TokenStream {
    let expanded = || -> Result<TokenStream> {
        let root: Path = syn::parse_str(root)?;
        Ok(Expansion {
            options: Options::parse(options)?,
            function: Function::parse(item)?,
            root,
        }
        .all())
    };
    expanded().unwrap_or_else(|error| error.into_compile_error())
}

struct Expansion {
    options: Options,
    function: Function,
    root: Path,
}

impl Expansion {
    fn all(&self) -> TokenStream {
        let value = self.value();
        let run = self.run();
        let arguments = self.arguments();
        let implementation = self.implementation();
        let conditions = &self.function.conditions;
        let debug = self.debug();
        quote! {
            #value
            #(#conditions)*
            #run
            #(#conditions)*
            #[allow(
                clippy::all,
                clippy::pedantic,
                clippy::nursery,
                missing_debug_implementations,
                missing_docs,
                unreachable_pub,
                unused_qualifications,
                reason = "written by `#[tool]`"
            )]
            const _: () = {
                #arguments
                #implementation
                #debug
            };
        }
    }

    /// The value that the tool is; a constructor of the function's name if there is state.
    fn value(&self) -> TokenStream {
        let Function {
            item,
            description,
            conditions,
            ..
        } = &self.function;
        let (name, visibility) = (&item.sig.ident, &item.vis);
        let state: Vec<&Argument> = self.function.with(Role::State).collect();
        let (derives, fields) = if state.is_empty() {
            (quote!(Clone, Copy), quote!())
        } else {
            let fields = state.iter().map(|it| {
                let (ty, doc) = (&it.ty, format!("The state `{}` of the tool.", it.name));
                quote!(#[doc = #doc] #visibility #ty)
            });
            (quote!(Clone), quote!((#(#fields),*)))
        };
        quote! {
            #(#conditions)*
            #[doc = #description]
            #[allow(non_camel_case_types, reason = "the tool has the name of its function")]
            #[derive(#derives)]
            #visibility struct #name #fields;
        }
    }

    fn run(&self) -> TokenStream {
        let mut item = self.function.item.clone();
        let name = item.sig.ident.clone();
        item.sig.ident = format_ident!("run", span = name.span());
        quote! {
            #[allow(clippy::too_many_arguments, reason = "the arguments are the model's")]
            impl #name {
                #item
            }
        }
    }

    /// The struct that the model's arguments are read into.
    fn arguments(&self) -> TokenStream {
        let root = &self.root;
        let fields = self.function.with(Role::Asked).map(|it| {
            let Argument {
                name,
                ty,
                field_attributes,
                ..
            } = it;
            quote!(#(#field_attributes)* #name: #ty)
        });
        let text = |path: &str| format!("{}::{path}", quote!(#root).to_string().replace(' ', ""));
        let (serde, schemars) = (text("serde"), text("schemars"));
        let deny = self
            .options
            .deny_unknown_fields
            .then(|| quote!(, deny_unknown_fields));
        quote! {
            #[derive(#root::serde::Deserialize, #root::schemars::JsonSchema)]
            #[serde(crate = #serde #deny)]
            #[schemars(crate = #schemars)]
            #[doc(hidden)]
            pub struct __AdjutantArguments {
                #(#fields),*
            }
        }
    }

    fn implementation(&self) -> TokenStream {
        let root = &self.root;
        let name = &self.function.item.sig.ident;
        let (spec, rewrite, call) = (self.spec(), self.rewrite(), self.call());
        let states = self.function.with(Role::State).map(|it| {
            let ty = &it.ty;
            quote_spanned!(ty.span()=> #root::__macro::state::<#ty>();)
        });
        quote! {
            const _: fn() = || { #(#states)* };
            #[automatically_derived]
            impl #root::Tool for #name {
                type Args = __AdjutantArguments;
                type Output = #root::llm::CallResult;
                #spec
                #rewrite
                #call
            }
        }
    }

    fn spec(&self) -> TokenStream {
        let Self {
            options,
            function,
            root,
        } = self;
        let name = options
            .name
            .clone()
            .unwrap_or_else(|| function.item.sig.ident.unraw().to_string());
        let description = &function.description;
        let title = options
            .title
            .iter()
            .map(|it| quote!(title: ::core::option::Option::Some(#it.into()),));
        let replay = options
            .replay
            .iter()
            .map(|class| quote!(replay: #root::Replay::#class,));
        let sequential = options.sequential.then(|| quote!(sequential: true,));
        let approval = options
            .approval
            .then(|| quote!(approval: #root::Approval::Always,));
        let seconds = options
            .timeout_secs
            .iter()
            .map(|it| quote!(::core::time::Duration::from_secs(#it)));
        let timeout = seconds.map(|it| quote!(timeout: ::core::option::Option::Some(#it),));
        let max_output = options.max_output.iter();
        let max_output =
            max_output.map(|bytes| quote!(max_output: ::core::option::Option::Some(#bytes),));
        let said = options
            .hints
            .iter()
            .map(|(hint, is)| quote!(#hint: ::core::option::Option::Some(#is)));
        let hints = (!options.hints.is_empty()).then(|| {
            quote! {
                hints: #root::ToolHints { #(#said,)* ..::core::default::Default::default() },
            }
        });
        quote! {
            fn spec(&self) -> #root::ToolSpec {
                static SCHEMA: #root::__macro::SchemaCell = #root::__macro::SchemaCell::new();
                let schema = SCHEMA.get_or_init(#root::__macro::schema::<__AdjutantArguments>);
                #root::ToolSpec {
                    #(#title)* #(#replay)* #sequential #approval #(#timeout)* #(#max_output)* #hints
                    ..#root::ToolSpec::new(#name, #description, ::core::clone::Clone::clone(schema))
                }
            }
        }
    }

    fn rewrite(&self) -> TokenStream {
        let root = &self.root;
        let value = quote!(#root::serde_json::Value);
        match &self.options.rewrite {
            Some(path) => quote! {
                fn rewrite(&self, args: #value) -> #value {
                    #path(args)
                }
            },
            None => quote! {
                fn rewrites(&self) -> bool {
                    false
                }
            },
        }
    }

    /// Passes the arguments on and selects, by type, how the output is formatted.
    fn call(&self) -> TokenStream {
        let Self { function, root, .. } = self;
        let mut states = 0..;
        let passed: Vec<TokenStream> = function
            .arguments
            .iter()
            .map(|it| match it.role {
                Role::Asked => {
                    let name = &it.name;
                    quote!(__args.#name)
                }
                Role::State => {
                    let at = Index::from(states.next().unwrap_or_default());
                    quote!(::core::clone::Clone::clone(&self.#at))
                }
                Role::Context => quote!(::core::clone::Clone::clone(&__cx)),
            })
            .collect();
        let run = match (&self.options.blocking, &function.item.sig.asyncness) {
            (Some(_), None) => {
                let names: Vec<_> = (0..function.arguments.len())
                    .map(|at| format_ident!("__argument_{at}"))
                    .collect();
                quote! {{
                    #(let #names = #passed;)*
                    #root::__macro::blocking(move || Self::run(#(#names),*)).await?
                }}
            }
            (Some(span), Some(_)) => {
                quote_spanned!(*span=> ::core::compile_error!("an async function does not block: leave `blocking` out"))
            }
            (None, Some(_)) => quote!(Self::run(#(#passed),*).await),
            (None, None) => quote!(Self::run(#(#passed),*)),
        };
        let span = match &function.item.sig.output {
            ReturnType::Default => function.item.sig.ident.span(),
            ReturnType::Type(_, ty) => ty.span(),
        };
        let shown = quote_spanned!(span=> (&&&__kind).pick().show(__output));
        quote! {
            async fn call(
                &self,
                __args: Self::Args,
                __cx: #root::CallContext,
            ) -> ::core::result::Result<#root::llm::CallResult, #root::ToolError> {
                use #root::__macro::{
                    PickAny as _, PickDisplay as _, PickError as _, PickJson as _, PickOutput as _, PickToolError as _,
                    PickUnknown as _,
                };
                let __output = #run;
                let __kind = #root::__macro::Outcome::of(&__output);
                let __output = (&&&&__kind).split().apart(__output)?;
                let __kind = #root::__macro::Shown::of(&__output);
                #shown
            }
        }
    }

    fn debug(&self) -> TokenStream {
        let name = &self.function.item.sig.ident;
        let text = name.unraw().to_string();
        quote! {
            #[automatically_derived]
            impl ::core::fmt::Debug for #name {
                fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    f.write_str(#text)
                }
            }
        }
    }
}
