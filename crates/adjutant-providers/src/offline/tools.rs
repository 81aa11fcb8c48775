//! The offered tools that list, read and search files, recognized by their names and properties.

use adjutant_llm::{ToolDecl, ToolName};
use serde_json::{Map, Value};

/// A call that should be made.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Planned {
    pub(super) tool: ToolName,
    pub(super) args: Map<String, Value>,
}

/// The use that a tool can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    List,
    Read,
    Search,
    Edit,
    Run,
}

/// An argument that a tool may take, under one of several names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArgumentSlot {
    Path,
    Pattern,
    Depth,
    Limit,
    LastLine,
    IgnoreCase,
    Old,
    New,
    Command,
}

/// The tools that the planner can use: the first one of each role.
#[derive(Debug, Default)]
pub(super) struct Offered<'a> {
    pub(super) list: Option<&'a ToolDecl>,
    pub(super) read: Option<&'a ToolDecl>,
    pub(super) search: Option<&'a ToolDecl>,
    pub(super) edit: Option<&'a ToolDecl>,
    pub(super) run: Option<&'a ToolDecl>,
}

impl<'a> Offered<'a> {
    pub(super) fn from_tools(tools: &'a [ToolDecl]) -> Self {
        let mut offered = Self::default();
        for decl in tools {
            let Some(role) = role(decl) else { continue };
            let slot = match role {
                Role::List => &mut offered.list,
                Role::Read => &mut offered.read,
                Role::Search => &mut offered.search,
                Role::Edit => &mut offered.edit,
                Role::Run => &mut offered.run,
            };
            slot.get_or_insert(decl);
        }
        offered
    }

    /// Returns the use of the tool of that name.
    pub(super) fn role(&self, name: &str) -> Option<Role> {
        let is = |decl: Option<&ToolDecl>| decl.is_some_and(|it| it.name.as_str() == name);
        let roles = [
            (self.list, Role::List),
            (self.read, Role::Read),
            (self.search, Role::Search),
            (self.edit, Role::Edit),
            (self.run, Role::Run),
        ];
        roles
            .into_iter()
            .find(|(decl, _)| is(*decl))
            .map(|(_, role)| role)
    }
}

impl ArgumentSlot {
    fn names(self) -> &'static [&'static str] {
        match self {
            ArgumentSlot::Path => &[
                "path",
                "file_path",
                "filepath",
                "filename",
                "file",
                "relative_path",
                "directory",
                "dir",
                "dir_path",
                "folder",
                "root",
            ],
            ArgumentSlot::Pattern => &[
                "pattern", "regex", "query", "search", "term", "needle", "text",
            ],
            ArgumentSlot::Depth => &["depth", "max_depth", "levels"],
            ArgumentSlot::Limit => &["limit", "max_results", "max_entries", "max"],
            ArgumentSlot::LastLine => &["end_line", "line_end", "last_line", "to_line"],
            ArgumentSlot::IgnoreCase => &["ignore_case", "case_insensitive"],
            ArgumentSlot::Old => &["old_text", "old_string", "old_str", "old"],
            ArgumentSlot::New => &["new_text", "new_string", "new_str", "new"],
            ArgumentSlot::Command => &["command", "cmd"],
        }
    }

    /// The value of this argument among the arguments of a call.
    pub(super) fn find(self, args: &Value) -> Option<&Value> {
        self.names().iter().find_map(|name| args.get(*name))
    }
}

/// The name under which a tool takes an argument.
pub(super) fn takes(decl: &ToolDecl, slot: ArgumentSlot) -> Option<&'static str> {
    let properties = decl.schema.get("properties")?.as_object()?;
    slot.names()
        .iter()
        .copied()
        .find(|name| properties.contains_key(*name))
}

/// A call of a tool with the arguments that it accepts.
pub(super) fn call(
    decl: &ToolDecl,
    args: impl IntoIterator<Item = (ArgumentSlot, Value)>,
) -> Planned {
    let mut taken = Map::new();
    for (slot, value) in args {
        if let Some(name) = takes(decl, slot) {
            taken.insert(name.to_owned(), value);
        }
    }
    Planned {
        tool: decl.name.clone(),
        args: taken,
    }
}

fn role(decl: &ToolDecl) -> Option<Role> {
    let words = words(decl.name.as_str());
    let says = |any: &[&str]| words.iter().any(|word| any.contains(&word.as_str()));
    let about_files = says(&[
        "file",
        "files",
        "dir",
        "directory",
        "folder",
        "text",
        "code",
    ]);
    let (path, pattern) = (
        takes(decl, ArgumentSlot::Path).is_some(),
        takes(decl, ArgumentSlot::Pattern).is_some(),
    );
    if says(&["edit", "replace"]) && path {
        return takes(decl, ArgumentSlot::Old)
            .and(takes(decl, ArgumentSlot::New))
            .map(|_| Role::Edit);
    }
    if says(&["run", "exec", "shell", "bash", "command"])
        && takes(decl, ArgumentSlot::Command).is_some()
    {
        return fits(decl, &[ArgumentSlot::Command]).then_some(Role::Run);
    }
    if says(&["search", "grep", "rg", "find"]) && pattern && (path || about_files) {
        return fits(decl, &[ArgumentSlot::Pattern, ArgumentSlot::Path]).then_some(Role::Search);
    }
    if says(&["list", "ls", "tree"]) && (path || about_files) {
        return fits(
            decl,
            &[ArgumentSlot::Path, ArgumentSlot::Depth, ArgumentSlot::Limit],
        )
        .then_some(Role::List);
    }
    if says(&["read", "cat", "view", "show", "open"]) && path {
        return fits(decl, &[ArgumentSlot::Path]).then_some(Role::Read);
    }
    None
}

/// The words of a name like `files__list_files` or `readFile`, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = '_';
    for character in name.chars() {
        if !character.is_ascii_alphanumeric()
            || (before.is_ascii_lowercase() && character.is_ascii_uppercase())
        {
            words.push(String::new());
        }
        if let Some(word) = words
            .last_mut()
            .filter(|_| character.is_ascii_alphanumeric())
        {
            word.push(character.to_ascii_lowercase());
        }
        before = character;
    }
    words
}

/// True if the tool requires nothing that the planner would not give.
fn fits(decl: &ToolDecl, given: &[ArgumentSlot]) -> bool {
    let Some(required) = decl.schema.get("required").and_then(Value::as_array) else {
        return true;
    };
    required.iter().all(|name| {
        let name = name.as_str().unwrap_or_default();
        given.iter().any(|slot| takes(decl, *slot) == Some(name))
    })
}
