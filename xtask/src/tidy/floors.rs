//! The floors of a crate: which of its modules need each other, from names resolved through every re-export and from calls.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::{
    Attribute, ExprMethodCall, ImplItem, Item, ItemImpl, ItemUse, Macro, Type, UseTree, Visibility,
    visit::Visit,
};

use super::Source;

/// The largest number of files that import each other in a circle.
const FILES: usize = 3;
/// The largest number of re-exports that the lookup of a name follows.
const HOPS: usize = 16;

/// A module's path below the root of its crate; the root's is empty.
type Module = Vec<String>;
type Graph<N> = BTreeMap<N, BTreeSet<N>>;

/// The references between the sources of one crate.
#[derive(Default)]
struct House {
    files: BTreeMap<Module, File>,
}

#[derive(Default)]
struct File {
    /// Names that the module brings in, and where from.
    names: BTreeMap<String, Module>,
    /// Paths that it names, and whether they are re-exports.
    paths: Vec<(Module, bool)>,
    /// Types that it adds methods to, and the methods.
    extends: Vec<(Module, Vec<String>)>,
    /// Functions that belong to traits.
    others: Vec<String>,
    /// Methods that it calls.
    calls: BTreeSet<String>,
}

/// Circles of modules, in all crates.
pub(super) fn circles(sources: &[Source]) -> Vec<String> {
    let mut houses: BTreeMap<&str, House> = BTreeMap::new();
    for source in sources {
        let inside = source
            .path
            .strip_prefix("crates/")
            .and_then(|path| path.split_once("/src/"));
        let Some((name, path)) =
            inside.filter(|(_, path)| !path.starts_with("bin/") && *path != "main.rs")
        else {
            continue;
        };
        houses.entry(name).or_default().add(path, &source.raw);
    }
    let (mut found, mut messages) = (0, Vec::new());
    for (name, house) in &houses {
        let (tops, files) = house.graphs();
        let tops: Vec<String> = circles_of(&tops)
            .iter()
            .map(|circle| circle.join(", "))
            .collect();
        let files = circles_of(&files)
            .into_iter()
            .filter(|circle| circle.len() > FILES);
        let files: Vec<String> = files
            .map(|it| {
                it.iter()
                    .map(|it| it.join("/"))
                    .collect::<Vec<_>>()
                    .join(", ")
            })
            .collect();
        for (what, circles) in [("modules", tops), ("files", files)] {
            found += circles.len();
            let tell = |circle| format!("crates/{name}/src/lib.rs:1: {what} in a circle: {circle}");
            messages.extend(circles.iter().map(tell));
        }
    }
    println!("tidy: {found} circles of modules");
    messages
}

impl House {
    fn add(&mut self, path: &str, raw: &str) {
        let module: Module = path
            .trim_end_matches(".rs")
            .split('/')
            .map(str::to_owned)
            .collect();
        let module = if module == ["lib"] {
            Module::new()
        } else {
            module
        };
        let mut file = File::default();
        // Parse errors are reported by the compiler.
        if let Ok(parsed) = syn::parse_file(raw) {
            file.visit_file(&parsed);
        }
        self.files.insert(module, file);
    }

    /// The edges between top modules, and between files without edges from a child to its parent module.
    fn graphs(&self) -> (Graph<String>, Graph<Module>) {
        let (mut tops, mut files) = (Graph::new(), Graph::new());
        let strays = self.strays();
        for (module, file) in self.files.iter().filter(|(module, _)| !module.is_empty()) {
            let called = file
                .calls
                .iter()
                .filter_map(|method| strays.get(method.as_str()));
            for to in called.filter(|to| to.first() != module.first() && !to.is_empty()) {
                tops.entry(module[0].clone())
                    .or_insert_with(BTreeSet::new)
                    .insert(to[0].clone());
            }
            for (path, is_re_export) in &file.paths {
                let Some(to) = self
                    .resolve(module, path, 0)
                    .filter(|to| to != module && !to.is_empty())
                else {
                    continue;
                };
                if *is_re_export && to.starts_with(module) {
                    continue;
                }
                if to.first() != module.first() {
                    tops.entry(module[0].clone())
                        .or_insert_with(BTreeSet::new)
                        .insert(to[0].clone());
                }
                if !module.starts_with(&to) {
                    files
                        .entry(module.clone())
                        .or_insert_with(BTreeSet::new)
                        .insert(to);
                }
            }
        }
        (tops, files)
    }

    /// Methods in another top module than their type, with that module: callers need it without an import. Only
    /// unique names are certain.
    fn strays(&self) -> BTreeMap<&str, &Module> {
        let (mut strays, mut counts) = (BTreeMap::new(), BTreeMap::<&str, usize>::new());
        for (module, file) in &self.files {
            for (path, methods) in &file.extends {
                let is_stray = self
                    .resolve(module, path, 0)
                    .is_some_and(|of| of.first() != module.first());
                for method in methods {
                    *counts.entry(method).or_default() += 1;
                    is_stray.then(|| strays.insert(method.as_str(), module));
                }
            }
            file.others
                .iter()
                .for_each(|method| *counts.entry(method).or_default() += 1);
        }
        strays.retain(|method, _| counts[method] == 1);
        strays
    }

    /// The module that defines the name of a path, if it is in this crate.
    fn resolve(&self, module: &Module, path: &[String], hops: usize) -> Option<Module> {
        let (mut at, mut rest) = (module.clone(), path);
        match path.first()?.as_str() {
            "crate" => (at, rest) = (Module::new(), &path[1..]),
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|word| word == "super") {
                    at.pop();
                    rest = &rest[1..];
                }
            }
            first => {
                let child = [module.as_slice(), &[first.to_owned()]].concat();
                let known =
                    self.files.contains_key(&child) || self.files[module].names.contains_key(first);
                known.then_some(())?;
            }
        }
        self.walk(at, rest, hops)
    }

    fn walk(&self, mut at: Module, path: &[String], hops: usize) -> Option<Module> {
        for (index, name) in path.iter().enumerate() {
            at.push(name.clone());
            if self.files.contains_key(&at) {
                continue;
            }
            at.pop();
            let file = self.files.get(&at)?;
            let Some(from) = file.names.get(name).filter(|_| hops < HOPS) else {
                return Some(at);
            };
            let whole: Module = from.iter().chain(&path[index + 1..]).cloned().collect();
            return self.resolve(&at, &whole, hops + 1);
        }
        self.files.contains_key(&at).then_some(at)
    }
}

impl File {
    fn tree(&mut self, tree: &UseTree, mut path: Module, is_public: bool) {
        match tree {
            UseTree::Path(it) => {
                path.push(it.ident.to_string());
                self.tree(&it.tree, path, is_public);
            }
            UseTree::Group(it) => it
                .items
                .iter()
                .for_each(|tree| self.tree(tree, path.clone(), is_public)),
            UseTree::Glob(_) => self.paths.push((path, is_public)),
            UseTree::Name(it) => {
                self.bring(it.ident.to_string(), &it.ident.to_string(), path, is_public)
            }
            UseTree::Rename(it) => self.bring(
                it.rename.to_string(),
                &it.ident.to_string(),
                path,
                is_public,
            ),
        }
    }

    fn bring(&mut self, name: String, of: &str, mut path: Module, is_public: bool) {
        let name = if of == "self" {
            path.last().cloned().unwrap_or_default()
        } else {
            name
        };
        if of != "self" {
            path.push(of.to_owned());
        }
        self.paths.push((path.clone(), is_public));
        // A name that a module imports from outside under its own word must not lead back to it.
        if path.first() != Some(&name) || path.len() > 1 {
            self.names.insert(name, path);
        }
    }

    /// Paths within what only a macro can read.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path = Module::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(word) => {
                    if colons != 2 {
                        self.paths.push((std::mem::take(&mut path), false));
                    }
                    path.push(word.to_string());
                    colons = 0;
                }
                TokenTree::Punct(it) if it.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.tokens(group.stream());
                    colons = 0;
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => colons = 0,
            }
        }
        self.paths.push((path, false));
        self.paths.retain(|(path, _)| path.len() > 1);
    }
}

impl<'a> Visit<'a> for File {
    fn visit_item(&mut self, item: &'a Item) {
        if !is_test(item) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'a ItemUse) {
        self.tree(
            &item.tree,
            Module::new(),
            !matches!(item.vis, Visibility::Inherited),
        );
    }

    fn visit_item_impl(&mut self, item: &'a ItemImpl) {
        let methods = item.items.iter().filter_map(|it| match it {
            // No call of a method reaches a function without a receiver, whatever it is called.
            ImplItem::Fn(it) if it.sig.receiver().is_some() => Some(it.sig.ident.to_string()),
            _ => None,
        });
        match (&item.trait_, &*item.self_ty) {
            (None, Type::Path(of)) => {
                let path = of
                    .path
                    .segments
                    .iter()
                    .map(|it| it.ident.to_string())
                    .collect();
                self.extends.push((path, methods.collect()));
            }
            _ => self.others.extend(methods),
        }
        syn::visit::visit_item_impl(self, item);
    }

    fn visit_expr_method_call(&mut self, call: &'a ExprMethodCall) {
        self.calls.insert(call.method.to_string());
        syn::visit::visit_expr_method_call(self, call);
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        if path.segments.len() > 1 && path.leading_colon.is_none() {
            self.paths.push((
                path.segments
                    .iter()
                    .map(|it| it.ident.to_string())
                    .collect(),
                false,
            ));
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, it: &'a Macro) {
        self.tokens(it.tokens.clone());
    }
}

/// The scope of an item: tests only, or all builds.
pub(super) fn is_test(item: &Item) -> bool {
    let attributes: &[Attribute] = match item {
        Item::Mod(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        Item::Fn(it) => &it.attrs,
        _ => &[],
    };
    let is_test = |it: &Attribute| {
        it.path().is_ident("cfg") && it.parse_args::<syn::Ident>().is_ok_and(|it| it == "test")
    };
    attributes.iter().any(is_test)
}

/// The sets of nodes that reach each other, greatest first.
fn circles_of<N: Clone + Ord>(graph: &Graph<N>) -> Vec<Vec<N>> {
    let reach = |from: &N| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(node) = open.pop() {
            open.extend(
                graph
                    .get(&node)
                    .into_iter()
                    .flatten()
                    .filter(|to| seen.insert((*to).clone()))
                    .cloned(),
            );
        }
        seen
    };
    let reached: BTreeMap<&N, BTreeSet<N>> = graph.keys().map(|node| (node, reach(node))).collect();
    let mut circles = BTreeSet::new();
    for (node, to) in reached.iter().filter(|(node, to)| to.contains(*node)) {
        let circle: Vec<N> = to
            .iter()
            .filter(|it| reached.get(it).is_some_and(|back| back.contains(*node)))
            .cloned()
            .collect();
        circles.insert(circle);
    }
    let mut circles: Vec<_> = circles
        .into_iter()
        .filter(|circle| circle.len() > 1)
        .collect();
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(files: &[(&str, &str)], expect: &[&str]) {
        let source = |(path, raw): &(&str, &str)| {
            Source::new(&format!("crates/c/src/{path}"), (*raw).to_owned())
        };
        let found = circles(&files.iter().map(source).collect::<Vec<_>>());
        let told = found
            .iter()
            .filter_map(|it| it.strip_prefix("crates/c/src/lib.rs:1: "));
        assert_eq!(told.collect::<Vec<_>>(), expect);
    }

    #[test]
    fn circles_are_told_when_names_come_through_the_root_or_a_macro() {
        let lib = ("lib.rs", "mod a; mod b; pub use a::A; pub use b::B;");
        check(
            &[
                lib,
                ("a.rs", "pub struct A(crate::B);"),
                ("b.rs", "pub struct B;"),
            ],
            &[],
        );
        let circle = ["modules in a circle: a, b"];
        check(
            &[
                lib,
                ("a.rs", "use crate::B;"),
                ("b.rs", "use super::{a, x}; fn f(_: a::A) {}"),
            ],
            &circle,
        );
        check(
            &[
                lib,
                ("a.rs", "use crate::B;"),
                ("b.rs", "fn f() { matches!(1, crate::A) }"),
            ],
            &circle,
        );
        check(
            &[
                lib,
                ("a.rs", "use crate::B;"),
                ("b.rs", "#[cfg(test)] mod tests { use crate::A; }"),
            ],
            &[],
        );
    }

    #[test]
    fn files_in_a_circle_are_told_when_they_are_more_than_three_and_none_is_a_parent() {
        let lib = ("lib.rs", "mod m;");
        let ring = |last: &'static str| {
            [
                lib,
                ("m.rs", "mod a; use a::A;"),
                ("m/a.rs", "use super::b::B;"),
                ("m/b.rs", "use super::c::C;"),
            ]
            .into_iter()
            .chain([("m/c.rs", "use super::d::D;"), ("m/d.rs", last)])
            .collect::<Vec<_>>()
        };
        check(
            &ring("use super::a::A;"),
            &["files in a circle: m/a, m/b, m/c, m/d"],
        );
        check(&ring("use super::M;"), &[]);
    }

    #[test]
    fn methods_are_arrows_when_they_stand_in_another_module_than_their_type() {
        let lib = ("lib.rs", "mod a; mod b;");
        let above = (
            "b.rs",
            "use crate::a::A; impl A { fn above(&self) {} fn g(&self) {} fn of() {} } impl Drop for A {}",
        );
        check(
            &[
                lib,
                (
                    "a.rs",
                    "pub struct A; impl A { fn f(&self) { self.g().of() } fn g(&self) {} }",
                ),
                above,
            ],
            &[],
        );
        let circle = ["modules in a circle: a, b"];
        check(
            &[
                lib,
                (
                    "a.rs",
                    "pub struct A; impl A { fn f(&self) { self.above() } }",
                ),
                above,
            ],
            &circle,
        );
    }
}
