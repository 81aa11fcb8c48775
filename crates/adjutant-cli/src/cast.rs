//! Who answers in a run: the models that were chosen, one behind the other, or a cassette; and who writes it down.

use std::{
    fs::{File, OpenOptions},
    io,
    path::Path,
    sync::Arc,
};

use adjutant::{
    Model,
    llm::{Error, ErrorKind, Fallback, ModelId, Recorder, Retry, RetryPolicy, private},
    providers::{self, Chooser, Chosen, Credential},
};

use crate::{args::How, chooser, cure, exit::Exit, played::Played, problem::Problem};

/// Who answers in a run.
#[derive(Debug)]
pub(crate) struct Cast {
    /// The model of the run: all of them in one.
    pub(crate) model: Arc<dyn Model>,
    /// How it came to be chosen, where that was not said on the command line; and where keys go that leave their vendors.
    pub(crate) notices: Vec<String>,
    /// The one that is asked last: an error about a key is its.
    last: ModelId,
    credentials: Vec<Credential>,
    played: Option<Arc<Played>>,
    others: Others,
}

/// Where the models of other agents come from.
#[derive(Debug)]
enum Others {
    /// They are chosen, and tried again so often.
    Chosen(Box<Chooser>, u32),
    /// There is one model for all: a cassette, or one that is asked nothing.
    Same,
    /// They could not be written down.
    Unrecorded,
}

/// The cassettes of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tape<'a> {
    /// The new one that is written.
    pub(crate) record: Option<&'a Path>,
    /// The one that answers.
    pub(crate) played: Option<&'a Path>,
}

impl Cast {
    /// Chooses the models, or opens the cassette; every name must be known, and every key there.
    ///
    /// Without a name on the command line, `usual` is the model.
    pub(crate) async fn new(how: &How, usual: Option<&str>, tape: Tape<'_>) -> Result<Self, Problem> {
        let mut cast = match tape.played {
            Some(path) => Self::played(path)?,
            None => Self::live(how, usual).await?,
        };
        if let Some(path) = tape.record {
            cast.model = Arc::new(Recorder::new(cast.model, create(path)?));
            cast.others = Others::Unrecorded;
        }
        Ok(cast)
    }

    /// A model that is asked nothing.
    pub(crate) fn silent(model: Arc<dyn Model>) -> Self {
        let last = model.info().id.clone();
        Self { model, notices: Vec::new(), last, credentials: Vec::new(), played: None, others: Others::Same }
    }

    /// Whether a cassette answers.
    pub(crate) fn is_played(&self) -> bool {
        self.played.is_some()
    }

    /// Whether the planner answers, which is no language model.
    pub(crate) fn is_planner(&self) -> bool {
        is_planner(&self.model)
    }

    /// How many exchanges of the cassette were not played.
    pub(crate) fn left(&self) -> usize {
        self.played.as_ref().map_or(0, |played| played.left())
    }

    /// What a user can do about a failed call.
    pub(crate) fn cure(&self, error: &Error) -> Option<String> {
        if self.is_played() {
            let hint = "give the prompt, the options and the directory of the recorded run";
            return (error.kind() == ErrorKind::Invalid).then(|| hint.to_owned());
        }
        cure::cure(error, &self.last, &self.credentials)
    }

    /// A model for another agent, by its name; none if all have the one of the run.
    ///
    /// # Errors
    /// `Usage` if it is not known or has no key.
    pub(crate) fn other(&self, name: &str) -> Result<Option<Arc<dyn Model>>, Problem> {
        match &self.others {
            Others::Same => Ok(None),
            Others::Chosen(chooser, retries) => {
                let model = chooser.model(name).map_err(|error| Problem::of(Exit::Usage, &error))?;
                Ok(Some(again(model, *retries)))
            }
            Others::Unrecorded => {
                let problem = Problem::new(Exit::Usage, "a cassette holds one model, and this agent has its own");
                Err(problem.hint("leave `model` out of its file, or --record"))
            }
        }
    }

    async fn live(how: &How, usual: Option<&str>) -> Result<Self, Problem> {
        let chooser = chooser::chooser()?;
        let wrong = |error: Error| Problem::of(Exit::Usage, &error);
        let (first, rest, notice) = match &how.models[..] {
            [first, rest @ ..] if !rest.is_empty() => {
                let rest = rest.iter().map(|name| chooser.model(name)).collect::<Result<Vec<_>, _>>();
                (chooser.model(first).map_err(wrong)?, rest.map_err(wrong)?, None)
            }
            names => {
                let chosen = chooser.choose(names.first().map(String::as_str).or(usual)).await.map_err(wrong)?;
                let notice = notice(&chosen);
                (chosen.model, Vec::new(), notice)
            }
        };
        if how.schema.is_some() && rest.iter().chain([&first]).any(is_planner) {
            let problem = Problem::new(Exit::Usage, "the planner is no language model: it cannot answer by a schema");
            return Err(problem.hint("--model names a language model"));
        }
        let names = rest.iter().chain([&first]).map(|model| model.info().id.as_str());
        let notices = notice.into_iter().chain(chooser::detours(&chooser, names)).collect();
        let last = rest.last().unwrap_or(&first).info().id.clone();
        let first = again(first, how.retries);
        let model = if rest.is_empty() {
            first
        } else {
            let rest = rest.into_iter().map(|model| again(model, how.retries));
            Arc::new(rest.fold(Fallback::new(first).retract(), Fallback::or))
        };
        let (credentials, others) = (chooser.credentials(), Others::Chosen(Box::new(chooser), how.retries));
        Ok(Self { model, notices, last, credentials, played: None, others })
    }

    fn played(path: &Path) -> Result<Self, Problem> {
        let played = Arc::new(Played::open(path)?);
        let (model, last) = (Arc::clone(&played) as Arc<dyn Model>, played.info().id.clone());
        Ok(Self {
            model,
            notices: Vec::new(),
            last,
            credentials: Vec::new(),
            played: Some(played),
            others: Others::Same,
        })
    }
}

/// The model, tried again when it fails. The planner never does.
fn again(model: Arc<dyn Model>, retries: u32) -> Arc<dyn Model> {
    if is_planner(&model) {
        return model;
    }
    Arc::new(Retry::new(model).policy(RetryPolicy::new().max_retries(retries)).retract())
}

fn is_planner(model: &Arc<dyn Model>) -> bool {
    model.info().id.as_str() == "offline/planner"
}

/// A new file for a cassette, which nobody else may read.
fn create(path: &Path) -> Result<File, Problem> {
    private::file(OpenOptions::new().write(true).create_new(true)).open(path).map_err(|error| {
        let problem = Problem::new(Exit::Usage, format!("cannot create the cassette: {}", path.display()));
        match error.kind() {
            io::ErrorKind::AlreadyExists => {
                problem.cause(&error).hint("take another name; a cassette is never written over")
            }
            _ => problem.cause(&error),
        }
    })
}

/// How a model came to be chosen, where that was not said on the command line.
fn notice(chosen: &Chosen) -> Option<String> {
    let id = &chosen.model.info().id;
    match &chosen.how {
        providers::How::Asked => None,
        providers::How::Variable => Some(format!("model: {id} (ADJUTANT_MODEL names it)")),
        providers::How::Credential(variable) => Some(format!("model: {id} ({variable} is set)")),
        providers::How::Loopback { server, base_url } => Some(format!("model: {id} ({server} answers at {base_url})")),
        _ => Some(format!(
            "model: {id} (no key and no server on this machine; ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY \
             would bring a language model)"
        )),
    }
}
