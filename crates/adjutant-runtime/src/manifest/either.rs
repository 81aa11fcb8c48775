//! Values with a short form as text and a full form as mapping: the error refers to the form that was used.

use std::{fmt, marker::PhantomData, sync::Arc};

use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor, value::MapAccessDeserializer},
};

use super::{
    ContextSpec, Instructions, ModelChoice, ModelSpec, NamedContext, ToolboxChoice, ToolboxSpec,
};

/// Either form.
struct Either<Full> {
    expected: &'static str,
    full: PhantomData<Full>,
}

enum Read<Full> {
    Short(Arc<str>),
    Full(Full),
}

impl<'de, Full: Deserialize<'de>> Visitor<'de> for Either<Full> {
    type Value = Read<Full>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Read::Short(text.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Full::deserialize(MapAccessDeserializer::new(map)).map(Read::Full)
    }
}

fn either<'de, D: Deserializer<'de>, Full: Deserialize<'de>>(
    deserializer: D,
    expected: &'static str,
) -> Result<Read<Full>, D::Error> {
    deserializer.deserialize_any(Either {
        expected,
        full: PhantomData,
    })
}

impl<'de> Deserialize<'de> for ModelChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(
            match either::<_, ModelSpec>(
                deserializer,
                "the name of a model, or a mapping with `name`",
            )? {
                Read::Short(name) => Self::Name(name),
                Read::Full(spec) => Self::Spec(spec),
            },
        )
    }
}

impl<'de> Deserialize<'de> for ToolboxChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(
            match either::<_, ToolboxSpec>(
                deserializer,
                "the name of a toolbox, or a mapping with `name`",
            )? {
                Read::Short(name) => Self::Name(name),
                Read::Full(spec) => Self::Spec(spec),
            },
        )
    }
}

impl<'de> Deserialize<'de> for ContextSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(
            match either::<_, NamedContext>(deserializer, "a file, or a mapping with `file`")? {
                Read::Short(file) => Self::File((*file).into()),
                Read::Full(named) => Self::Named(named),
            },
        )
    }
}

impl<'de> Deserialize<'de> for Instructions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct InFile {
            file: std::path::PathBuf,
        }
        Ok(
            match either::<_, InFile>(deserializer, "a text, or a mapping with `file`")? {
                Read::Short(text) => Self::Text(text),
                Read::Full(InFile { file }) => Self::File { file },
            },
        )
    }
}
