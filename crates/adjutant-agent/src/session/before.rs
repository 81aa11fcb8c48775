//! Steps before the first record of a drive: hooks that may change or refuse it, and its instructions.

use std::sync::Arc;

use adjutant_core::{ActivityId, CancelBy, Error, Failure, Outcome, OutputWish, Record, Terms};
use adjutant_llm::{Entry, Reply};

use super::drive_setup::{DriveSetup, Never};
use crate::{
    begin::Begin,
    hooks::{Point, Verdict},
    points::{BeforeAgent, BeforeRun, UserMessage},
    setup::Setup,
};

impl DriveSetup<'_> {
    /// The records that the drive begins with.
    pub(super) async fn before(&mut self) -> Result<Vec<Record>, Never> {
        let prompts = match (self.prompts.take(), &self.start.begin) {
            (Some(prompts), _) => prompts,
            (None, Begin::Run { prompts, .. }) => prompts.as_slice().into(),
            (None, Begin::Resume { .. } | Begin::Cancel) => Arc::from([]),
        };
        self.hears_run = true;
        if self.setup.hooks.hears::<BeforeRun>() {
            // Observed only: the returned value of a hook is ignored.
            let passed = self.pass(BeforeRun::new(Arc::clone(&prompts))).await;
            passed.ok_or_else(|| self.cancellation())?;
        }
        let (prompts, answer) = match &self.start.begin {
            Begin::Run { .. } => {
                let prompts = self.messages(prompts).await?;
                let answer = self.agent(&prompts).await?;
                (prompts, answer)
            }
            Begin::Resume { .. } | Begin::Cancel => (prompts, None),
        };
        self.instruct().await?;
        self.prompts = Some(prompts);
        Ok(self.first(answer))
    }

    /// Each message of a person, as its hooks leave it.
    async fn messages(&mut self, prompts: Arc<[Entry]>) -> Result<Arc<[Entry]>, Never> {
        if !self.setup.hooks.hears::<UserMessage>() {
            return Ok(prompts);
        }
        let mut passed = Vec::with_capacity(prompts.len());
        for entry in prompts.iter() {
            passed.push(match entry {
                Entry::User(message) => {
                    Entry::User(self.ask(UserMessage::new(message.clone())).await?.message)
                }
                other => other.clone(),
            });
        }
        Ok(passed.into())
    }

    /// The answer in the model's place, if a hook has one.
    async fn agent(&mut self, prompts: &Arc<[Entry]>) -> Result<Option<Arc<Reply>>, Never> {
        let answer = if self.setup.hooks.hears::<BeforeAgent>() {
            self.ask(BeforeAgent::new(Arc::clone(prompts), None))
                .await?
                .answer
        } else {
            None
        };
        self.hears_agent = true;
        Ok(answer)
    }

    /// Passes a point that may be denied.
    async fn ask<P: Point>(&mut self, point: P) -> Result<P, Never> {
        match self.pass(point).await {
            Some(Verdict::Pass(point)) => Ok(point),
            Some(Verdict::Deny(reason)) => Err(Never::Denied {
                point: P::NAME,
                reason,
            }),
            None => Err(self.cancellation()),
        }
    }

    /// The system prompt of this run: resolved when it begins, and kept in its log.
    async fn instruct(&mut self) -> Result<(), Never> {
        let known = self.core.run.terms();
        let frozen = known.and_then(|known| known.system.as_ref());
        let (said, keeps) = match (&self.start.begin, frozen) {
            (Begin::Resume { terms, .. }, Some(system))
                if !self.setup.anew
                    && terms.as_ref().is_none_or(|terms| terms.state.is_empty()) =>
            {
                self.setup = Arc::new(Setup {
                    system: Arc::clone(system),
                    ..Setup::clone(&self.setup)
                });
                self.start.session.view().instruct(&self.setup.system);
                return Ok(());
            }
            (Begin::Run { terms, .. }, _) => (terms, false),
            (Begin::Resume { terms, .. }, _) => (terms, !self.setup.anew),
            (Begin::Cancel, _) => return Ok(()),
        };
        if self.setup.is_instructed() {
            self.keep_system();
            return Ok(());
        }
        let said = said.iter().flat_map(|it| &it.state);
        let state = known
            .iter()
            .filter(|_| keeps)
            .flat_map(|it| &it.state)
            .chain(said);
        let state: Vec<_> = state
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        if !state.is_empty() {
            Arc::make_mut(&mut Arc::make_mut(&mut self.setup).state).extend(state);
        }
        let (setup, patience) = (Arc::clone(&self.setup), self.patience());
        let instructed = tokio::select! {
            biased;
            instructed = setup.with_system_prompt(self.run) => instructed,
            () = patience => return Err(self.cancellation()),
        };
        self.setup = instructed.map_err(Never::Failed)?;
        self.keep_system();
        self.start.session.view().instruct(&self.setup.system);
        Ok(())
    }

    /// Keeps the system prompt that the session started with; later changes are announced before the next request.
    pub(super) fn keep_system(&mut self) {
        if let Some(setup) = self.setup.keeping(&self.core.run) {
            self.setup = Arc::new(setup);
        }
    }

    fn cancellation(&self) -> Never {
        Never::Cancelled(self.wish().unwrap_or(CancelBy::Shutdown))
    }

    /// Returns the first records of the drive; an answer replaces the model's.
    pub(super) fn first(&self, answer: Option<Arc<Reply>>) -> Vec<Record> {
        let (prompts, limits, terms) = match &self.start.begin {
            Begin::Run {
                prompts,
                limits,
                terms,
            } => (prompts, limits, terms),
            Begin::Resume {
                answers,
                bounds,
                terms,
                ..
            } => {
                let limits = self
                    .core
                    .run
                    .limits()
                    .and_then(|limits| bounds.over(limits));
                return vec![Record::Resumed {
                    answers: answers.clone(),
                    limits,
                    terms: self.terms(terms.as_deref(), None),
                }];
            }
            Begin::Cancel => return vec![Record::CancelAsked { by: CancelBy::User }],
        };
        let prompts = self
            .prompts
            .as_ref()
            .map_or_else(|| prompts.clone(), |prompts| prompts.to_vec());
        let output = self.setup.goal.as_ref().map(|goal| Arc::new(goal.wish()));
        let (limits, terms) = (limits.clone(), self.terms(terms.as_deref(), output));
        let began = Record::Began {
            run: self.run,
            prompts,
            limits,
            terms,
        };
        let Some(reply) = answer else {
            return vec![began];
        };
        let turn = adjutant_core::TurnNo(self.core.run.turn().0 + 1);
        let model = self.setup.model.info().id.clone();
        vec![
            began,
            Record::Opened { turn, last: None },
            Record::turn_prepared(turn, model, Vec::new()),
            Record::reply_received(turn, reply, None),
        ]
    }

    /// Returns the settings of this drive that the log does not contain.
    fn terms(&self, said: Option<&Terms>, output: Option<Arc<OutputWish>>) -> Option<Box<Terms>> {
        let known = self
            .core
            .run
            .terms()
            .and_then(|known| known.system.as_deref());
        let is_new = known.unwrap_or_default() != &*self.setup.system;
        if !is_new && said.is_none() && output.is_none() {
            return None;
        }
        let mut terms = said.cloned().unwrap_or_default();
        terms.output = output;
        terms.system = is_new.then(|| Arc::clone(&self.setup.system));
        terms.agent = is_new.then(|| Arc::clone(&self.setup.who.config_name));
        Some(Box::new(terms))
    }

    /// Records a run that ends before it starts; its prompt does not join the conversation.
    pub(super) async fn never(&mut self, never: Never) -> Result<(), Error> {
        let (denied, outcome) = match never {
            Never::Denied { point, reason } => {
                let point: Arc<str> = point.into();
                let denied = Record::Denied {
                    point: Arc::clone(&point),
                    reason: Arc::clone(&reason),
                    call: None,
                };
                (
                    Some(denied),
                    Outcome::Failed {
                        failure: Failure::Denied { point, reason },
                    },
                )
            }
            Never::Failed(failure) => (None, Outcome::Failed { failure }),
            Never::Cancelled(by) => (Some(Record::CancelAsked { by }), Outcome::Cancelled { by }),
            Never::Ended(outcome) => (None, outcome),
        };
        let Begin::Run { limits, .. } = &self.start.begin else {
            return self.close_with(denied, outcome).await;
        };
        let began = Record::began(self.run, Vec::new(), limits.clone());
        let ended = Record::Ended {
            run: self.run,
            outcome,
        };
        self.commit([began].into_iter().chain(denied).chain([ended]).collect())
            .await
    }

    /// Ends a waiting run that does not continue: open work is closed first.
    async fn close_with(&mut self, denied: Option<Record>, outcome: Outcome) -> Result<(), Error> {
        let act = ActivityId::Prepare(self.core.run.turn());
        let broke = match outcome {
            Outcome::Failed { failure } => Some(Record::Broke { act, failure }),
            _ => None,
        };
        self.commit(denied.into_iter().chain(broke).collect())
            .await?;
        self.drive().await
    }
}
