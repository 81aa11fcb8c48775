//! Hints for failed model calls.

use adjutant::{
    llm::{Error, ErrorKind, ModelId},
    providers::Credential,
};

/// Returns a hint for a failed call of this model, if there is one.
pub(crate) fn cure(error: &Error, model: &ModelId, credentials: &[Credential]) -> Option<String> {
    let provider = model.as_str().split('/').next().unwrap_or_default();
    let mut of_provider = credentials.iter().filter(|it| it.provider == provider);
    let credential = of_provider
        .clone()
        .find(|it| it.present)
        .or_else(|| of_provider.next());
    match error.kind() {
        ErrorKind::Auth => Some(match credential {
            Some(credential) => format!("check the key in {}", credential.variable),
            None => format!("check what {provider} asks callers for"),
        }),
        ErrorKind::Config if error.details().status.is_none() => {
            Some("check the key and the base URL in the environment".into())
        }
        ErrorKind::Config => {
            Some("check the base URL; `adjutant models` lists the known models".into())
        }
        ErrorKind::RateLimited | ErrorKind::Overloaded | ErrorKind::Timeout => {
            Some(match error.retry_after() {
                Some(wait) => format!("try again in {wait:?}"),
                None => "try again later".into(),
            })
        }
        ErrorKind::Network => Some("check the connection and the base URL, and try again".into()),
        ErrorKind::Overflow => {
            Some("ask for less at once, or take a model with a larger context window".into())
        }
        ErrorKind::Generation => Some("try again, or take another model".into()),
        // A successful response that is not an event stream comes from something other than the provider.
        ErrorKind::Protocol if error.details().status.is_some() => {
            Some("check that the base URL is that of the API".into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use adjutant::providers::Chooser;

    use super::*;

    #[test]
    fn cure_names_the_key_that_is_there_when_there_are_several() {
        let credentials =
            Chooser::new(|name| (name == "GOOGLE_API_KEY").then(|| "k".into())).credentials();
        let cure = cure(
            &Error::new(ErrorKind::Auth, "x"),
            &"gemini/m".into(),
            &credentials,
        );
        assert_eq!(cure.as_deref(), Some("check the key in GOOGLE_API_KEY"));
    }

    #[track_caller]
    fn check(error: &Error, model: &str, expect: Option<&str>) {
        let credentials = Chooser::new(|_| None).credentials();
        assert_eq!(cure(error, &model.into(), &credentials).as_deref(), expect);
    }

    #[test]
    fn cure_names_what_to_do_when_a_user_can_do_it() {
        let error = |kind| Error::new(kind, "x");
        check(
            &error(ErrorKind::Auth),
            "anthropic/m",
            Some("check the key in ANTHROPIC_API_KEY"),
        );
        check(
            &error(ErrorKind::Auth),
            "openai/m",
            Some("check the key in OPENAI_API_KEY"),
        );
        check(
            &error(ErrorKind::Auth),
            "ollama/m",
            Some("check what ollama asks callers for"),
        );
        check(
            &error(ErrorKind::Auth),
            "gemini/m",
            Some("check the key in GEMINI_API_KEY"),
        );
        check(
            &error(ErrorKind::Overloaded),
            "openai/m",
            Some("try again later"),
        );
        let limited =
            error(ErrorKind::RateLimited).with(|it| it.retry_after = Some(Duration::from_secs(2)));
        check(&limited, "openai/m", Some("try again in 2s"));
        check(&error(ErrorKind::Protocol), "openai/m", None);
        let html = error(ErrorKind::Protocol).with(|it| it.status = Some(200));
        check(
            &html,
            "openai/m",
            Some("check that the base URL is that of the API"),
        );
        check(&error(ErrorKind::Refused), "openai/m", None);
    }
}
