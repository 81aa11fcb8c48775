//! A schema of an object with simple members, as most tools have: a value that certainly fits is recognized
//! immediately. It never rejects a value; only the validator does.

use serde_json::Value;

/// The largest number of members that are looked through.
const MAX_MEMBERS: usize = 16;

/// The members of an object and their types.
#[derive(Debug)]
pub(super) struct Plain {
    members: Vec<(String, Kind)>,
    required: Vec<String>,
    /// True if other members may be there.
    open: bool,
}

/// The type of a member.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Text,
    Bool,
    Number,
    Integer,
    /// An integer of 0 or more.
    Count,
}

impl Plain {
    /// Reads a schema; `None` if it contains a keyword that is not supported here.
    pub(super) fn from_schema(schema: &Value) -> Option<Self> {
        let mut plain = Self {
            members: Vec::new(),
            required: Vec::new(),
            open: true,
        };
        let mut is_object = false;
        for (key, value) in schema.as_object()? {
            match (key.as_str(), value) {
                ("title" | "description", _) => {}
                ("type", Value::String(kind)) => is_object = kind == "object",
                ("additionalProperties", Value::Bool(open)) => plain.open = *open,
                ("required", Value::Array(names)) => {
                    let names = names.iter().map(|name| name.as_str().map(str::to_owned));
                    plain.required = names.collect::<Option<_>>()?;
                }
                ("properties", Value::Object(members)) if members.len() <= MAX_MEMBERS => {
                    let members = members
                        .iter()
                        .map(|(name, member)| Some((name.clone(), Kind::from_schema(member)?)));
                    plain.members = members.collect::<Option<_>>()?;
                }
                _ => return None,
            }
        }
        is_object.then_some(plain)
    }

    /// True if the value surely fits.
    pub(super) fn fits(&self, value: &Value) -> bool {
        let Some(value) = value.as_object() else {
            return false;
        };
        let has = |name: &String| value.keys().any(|key| key == name);
        let is_right = |(key, value): (&String, &Value)| match self
            .members
            .iter()
            .find(|(name, _)| name == key)
        {
            Some((_, kind)) => kind.fits(value),
            None => self.open,
        };
        value.len() <= MAX_MEMBERS && self.required.iter().all(has) && value.iter().all(is_right)
    }
}

impl Kind {
    fn from_schema(schema: &Value) -> Option<Self> {
        let mut kind = None;
        let (mut from_zero, mut is_sized) = (false, false);
        for (key, value) in schema.as_object()? {
            match (key.as_str(), value) {
                ("title" | "description" | "default" | "examples", _) => {}
                ("type", Value::String(name)) => kind = Some(name.as_str()),
                ("minimum", Value::Number(least)) if least.as_u64() == Some(0) => from_zero = true,
                // Names of Rust's numbers, which no validator checks.
                ("format", Value::String(name))
                    if name.starts_with("int") || name.starts_with("uint") =>
                {
                    is_sized = true
                }
                _ => return None,
            }
        }
        match (kind?, from_zero, is_sized) {
            ("integer", true, _) => Some(Kind::Count),
            ("integer", false, _) => Some(Kind::Integer),
            ("string", false, false) => Some(Kind::Text),
            ("boolean", false, false) => Some(Kind::Bool),
            ("number", false, false) => Some(Kind::Number),
            _ => None,
        }
    }

    fn fits(self, value: &Value) -> bool {
        match self {
            Kind::Text => value.is_string(),
            Kind::Bool => value.is_boolean(),
            Kind::Number => value.is_number(),
            Kind::Integer => value.is_i64() || value.is_u64(),
            Kind::Count => value.is_u64(),
        }
    }
}
