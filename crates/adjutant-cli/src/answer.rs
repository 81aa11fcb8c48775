//! Structured answers: reads the file with the schema.

use std::{path::Path, sync::Arc};

use adjutant::{Error, agent::Output, llm::Format};
use serde_json::Value;

use crate::{exit::Exit, file, problem::Problem};

/// The name of the schema for the model.
const NAME: &str = "answer";

/// Reads the schema from a file.
pub(crate) fn read(path: &Path) -> Result<Output<Value>, Problem> {
    let text = file::text(path, "the schema")?;
    let wrong = || {
        Problem::new(
            Exit::Usage,
            format!("cannot use the schema: {}", path.display()),
        )
    };
    let schema: Arc<Value> = serde_json::from_str(&text).map_err(|error| wrong().cause(&error))?;
    Output::from_format(Format::new(NAME, schema)).map_err(|error| match error {
        Error::Output(cause) => wrong().cause(&cause),
        error => wrong().cause(&error),
    })
}
