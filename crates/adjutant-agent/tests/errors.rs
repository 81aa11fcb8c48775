//! An error says what happened, its sources go on from there, and neither of its forms is a page.

use std::{error::Error as _, io};

use adjutant_agent::{Agent, Error, JournalError, JournalErrorKind, chain};
use adjutant_llm::{Error as ModelError, ErrorKind, Script, ScriptedModel};

#[tokio::test]
async fn error_says_what_happened_when_it_wraps_another() {
    let answered = "openai/gpt-5.4 answered 401 (invalid_api_key): no such key";
    let refused = ModelError::new(ErrorKind::Auth, answered).with_source(io::Error::other("reset"));
    let model = ScriptedModel::new([Script::new().text("A page of text.").fail(refused)]);
    let failed = Agent::new(model)
        .run("Go.")
        .await
        .expect_err("the model fails");
    let journal = JournalError::new(JournalErrorKind::Io, "the disk is full")
        .with_source(io::Error::other("ENOSPC"));
    let cases = [
        (failed, answered, "reset"),
        (Error::from(journal), "the disk is full", "ENOSPC"),
    ];
    for (error, said, behind) in cases {
        assert_eq!(error.to_string(), said);
        assert_eq!(
            error.source().map(ToString::to_string).as_deref(),
            Some(behind)
        );
        assert_eq!(chain(&error), format!("{said}: {behind}"));
        // What a `main` that returns it prints.
        assert_eq!(format!("{error:?}"), format!("{said}\ncaused by: {behind}"));
        assert_eq!(format!("{error:#?}"), format!("{error:?}"));
    }
}
