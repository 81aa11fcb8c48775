//! The model of a run: the chosen models with fallbacks, or a cassette; and the recorder of its replies.

use std::{
    error::Error as _,
    fs::{File, OpenOptions},
    io,
    path::Path,
    sync::Arc,
};

use adjutant::{
    Model,
    llm::{Error, ErrorKind, ModelId, Recorder, Replay, SystemWorld, private},
    providers::{self, Chooser, Chosen, Credential},
    runtime::{
        self, Manifest, Models,
        manifest::{ModelChoice, ModelSpec},
    },
};

use crate::{args::How, chooser, cure, exit::Exit, played, problem::Problem};

/// The model of a run.
#[derive(Debug)]
pub(crate) struct ChosenModel {
    /// The model with all its fallbacks.
    pub(crate) model: Arc<dyn Model>,
    /// Notices about the choice, if it was not made on the command line, and about keys that are sent to other hosts
    /// than their vendors'.
    pub(crate) notices: Vec<String>,
    /// The last fallback: errors about keys belong to it.
    last: ModelId,
    credentials: Vec<Credential>,
    played: Option<Arc<Replay>>,
    others: Others,
    /// True if it was chosen because there is no key and no server.
    is_last_resort: bool,
}

/// The models of other agents.
#[derive(Debug)]
enum Others {
    /// Chosen models, with this number of retries.
    Chosen(Box<Models>, u32),
    /// One model for all: a cassette, or a model without calls.
    Same,
    /// None, because they could not be recorded.
    Unrecorded,
}

/// The cassettes of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tape<'a> {
    /// The new one for recording.
    pub(crate) record: Option<&'a Path>,
    /// The one to play.
    pub(crate) played: Option<&'a Path>,
}

impl ChosenModel {
    /// Chooses the models, or opens the cassette. Every name must be known, and every key available.
    ///
    /// Without a name on the command line, `usual` is used.
    pub(crate) async fn new(
        how: &How,
        usual: Option<&str>,
        tape: Tape<'_>,
    ) -> Result<Self, Problem> {
        let mut chosen = match tape.played {
            Some(path) => {
                let played = Arc::new(played::open(path)?);
                Self {
                    played: Some(Arc::clone(&played)),
                    ..Self::alone(played)
                }
            }
            None => Self::live(how, usual).await?,
        };
        if let Some(path) = tape.record {
            chosen.model = Arc::new(Recorder::new(chosen.model, create(path)?));
            chosen.others = Others::Unrecorded;
        }
        Ok(chosen)
    }

    /// Uses one model for all agents, without further information.
    pub(crate) fn alone(model: Arc<dyn Model>) -> Self {
        let last = model.info().id.clone();
        Self {
            model,
            notices: Vec::new(),
            last,
            credentials: Vec::new(),
            played: None,
            others: Others::Same,
            is_last_resort: false,
        }
    }

    /// True if a cassette is replayed.
    pub(crate) fn is_played(&self) -> bool {
        self.played.is_some()
    }

    /// True if a cassette is replayed or recorded.
    pub(crate) fn has_cassette(&self) -> bool {
        self.is_played() || matches!(self.others, Others::Unrecorded)
    }

    /// # Errors
    /// Returns `Usage` if no model was named, and there is no key and no server on this machine.
    pub(crate) fn must_be_chosen(&self) -> Result<(), Problem> {
        if !self.is_last_resort {
            return Ok(());
        }
        let text = "no model: no key is set, and no server on this machine answers";
        Err(Problem::new(Exit::Usage, text).hint(
            "set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, start Ollama, or name a model with --model; \
             `--model offline/planner` needs none of them",
        ))
    }

    /// # Errors
    /// Returns `Usage` if the model is the planner, which is not a language model.
    pub(crate) fn must_learn(&self) -> Result<(), Problem> {
        if !is_planner(&self.model.info().id) {
            return Ok(());
        }
        let problem = Problem::new(
            Exit::Usage,
            "the planner is no language model: it learns nothing",
        );
        Err(problem.hint("--model names a language model; without one, leave --memory out"))
    }

    /// Returns the number of exchanges of the cassette that were not replayed.
    pub(crate) fn left(&self) -> usize {
        self.played.as_ref().map_or(0, |played| played.remaining())
    }

    /// Returns a hint for a failed call.
    pub(crate) fn cure(&self, error: &Error) -> Option<String> {
        if self.is_played() {
            let hint = "give the prompt, the options and the directory of the recorded run";
            return (error.kind() == ErrorKind::Invalid).then(|| hint.to_owned());
        }
        cure::cure(error, &self.last, &self.credentials)
    }

    /// Sets the models of a manifest: this one for the first agent, and the named ones for the others.
    ///
    /// # Errors
    /// `Usage` if one is unknown or has no key.
    pub(crate) async fn models_of(&mut self, manifest: &mut Manifest) -> Result<Models, Problem> {
        let own = ModelChoice::Name(self.model.info().id.as_str().into());
        let (lead, others) = manifest
            .agents
            .split_first_mut()
            .expect("the agent that answers is the first one");
        lead.model = Some(own.clone());
        for agent in others {
            let Some(name) = agent.model.as_ref().and_then(|model| model.names().next()) else {
                continue;
            };
            let wrong = |problem: Problem| problem.within(&format!("the agent {}", agent.name));
            agent.model = match &mut self.others {
                Others::Same => None,
                Others::Chosen(models, retries) => {
                    let choice = choice(&[name.to_owned()], *retries);
                    models
                        .resolve(&choice)
                        .await
                        .map_err(|error| wrong(model_problem(&error)))?;
                    Some(choice)
                }
                Others::Unrecorded => {
                    let problem = Problem::new(
                        Exit::Usage,
                        "a cassette holds one model, and this agent has its own",
                    );
                    return Err(wrong(
                        problem.hint("leave `model` out of its file, or --record"),
                    ));
                }
            };
        }
        let mut models = match std::mem::replace(&mut self.others, Others::Same) {
            Others::Chosen(models, _) => *models,
            Others::Same | Others::Unrecorded => Models::new(Chooser::new(|_| None), SystemWorld),
        };
        models.put(&own, Arc::clone(&self.model));
        Ok(models)
    }

    async fn live(how: &How, usual: Option<&str>) -> Result<Self, Problem> {
        let wrong = |error: runtime::Error| model_problem(&error);
        let chooser = chooser::chooser()?.timeouts("", how.model_timeouts.unwrap_or_default());
        let mut models = Models::new(chooser, SystemWorld);
        let (mut names, mut notices) = (how.models.clone(), Vec::new());
        let mut is_last_resort = false;
        if names.iter().any(|name| name == "offline") {
            let problem = Problem::new(Exit::Usage, "no model has this name: offline");
            return Err(problem.hint("offline/planner needs no key, and is not a language model"));
        }
        if names.is_empty() {
            names.extend(usual.map(str::to_owned));
        }
        if let [] | [_] = &names[..]
            && names.iter().all(|name| name.trim().is_empty())
        {
            let offered = models.offered().await.map_err(wrong)?;
            notices.extend(notice(&offered));
            is_last_resort = is_planner(&offered.model.info().id)
                && !matches!(
                    offered.how,
                    providers::How::Asked | providers::How::Variable
                );
            names = vec![offered.model.info().id.to_string()];
        }
        models
            .resolve(&choice(&names, how.retries))
            .await
            .map_err(wrong)?;
        let each = names
            .iter()
            .map(|name| models.chosen(&choice(std::slice::from_ref(name), how.retries)));
        let each = each.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
        let ids: Vec<&ModelId> = each.iter().map(|model| &model.info().id).collect();
        if how.schema.is_some() && ids.iter().any(|id| is_planner(id)) {
            let problem = Problem::new(
                Exit::Usage,
                "the planner is no language model: it cannot answer by a schema",
            );
            return Err(problem.hint("--model names a language model"));
        }
        notices.extend(chooser::detours(
            models.chooser(),
            ids.iter().map(|id| id.as_str()),
        ));
        let model = models.chosen(&choice(&names, how.retries)).map_err(wrong)?;
        let last = ids
            .last()
            .map_or_else(|| model.info().id.clone(), |id| (*id).clone());
        let credentials = models.chooser().credentials();
        let others = Others::Chosen(Box::new(models), how.retries);
        Ok(Self {
            model,
            notices,
            last,
            credentials,
            played: None,
            others,
            is_last_resort,
        })
    }
}

/// Returns the first of these models with the others as fallbacks, each with this number of retries.
fn choice(names: &[String], retries: u32) -> ModelChoice {
    let mut names = names.iter().map(|name| name.as_str().into());
    let mut spec = ModelSpec::new(names.next().unwrap_or_default());
    (spec.fallbacks, spec.retries) = (names.collect(), Some(retries));
    ModelChoice::Spec(spec)
}

/// Returns the problem of an unavailable model, with the model's own error.
fn model_problem(error: &runtime::Error) -> Problem {
    Problem::from_error(Exit::Usage, error.source().unwrap_or(error))
}

fn is_planner(model: &ModelId) -> bool {
    model.as_str() == "offline/planner"
}

/// Creates a new private file for a cassette.
fn create(path: &Path) -> Result<File, Problem> {
    private::file(OpenOptions::new().write(true).create_new(true))
        .open(path)
        .map_err(|error| {
            let problem = Problem::new(
                Exit::Usage,
                format!("cannot create the cassette: {}", path.display()),
            );
            match error.kind() {
                io::ErrorKind::AlreadyExists => problem
                    .cause(&error)
                    .hint("take another name; a cassette is never written over"),
                _ => problem.cause(&error),
            }
        })
}

/// Returns a notice about the choice of a model, if it was not made on the command line.
fn notice(chosen: &Chosen) -> Option<String> {
    let id = &chosen.model.info().id;
    match &chosen.how {
        providers::How::Asked => None,
        providers::How::Variable => Some(format!("model: {id} (ADJUTANT_MODEL names it)")),
        providers::How::Credential(variable) => Some(format!("model: {id} ({variable} is set)")),
        providers::How::Loopback { server, base_url } => {
            Some(format!("model: {id} ({server} answers at {base_url})"))
        }
        _ => Some(format!(
            "model: {id} (no key and no server on this machine; ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY \
             would bring a language model)"
        )),
    }
}
