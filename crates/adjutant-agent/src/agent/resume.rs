//! Runs that wait for the outside: what they wait for, how they go on, and how they are given up.

use std::sync::Arc;

use adjutant_core::{Answered, Error, Pause, RunResult};

use super::Agent;
use crate::{
    begin::Begin,
    running::Running,
    session::{self, Start},
};

impl Agent {
    /// Goes on with a run that waits for answers, or that the program before this one left open.
    ///
    /// Every pause that nobody here could answer needs its answer, except those that have run out of time. A run that
    /// was left open without such a pause needs none. Answers that were posted meanwhile count too, unless another one is
    /// given here; if someone posted the wish to stop, the run ends instead.
    ///
    /// # Errors
    /// `Answers` if they are not exactly those that the run waits for, or if no run is open; nothing is lost then. And
    /// like [`run`](Agent::run).
    pub async fn resume(&self, answers: Vec<Answered>) -> Result<RunResult, Error> {
        self.resume_stream(answers)?.finish().await
    }

    /// Goes on with a run that waits for answers, as a stream of events.
    ///
    /// # Errors
    /// `Busy` if the session is running. Answers that do not match fail the stream.
    pub fn resume_stream(&self, answers: Vec<Answered>) -> Result<Running, Error> {
        self.go_on(Begin::Resume { answers })
    }

    /// Ends a run that waits for answers: its calls are closed, and it counts as cancelled by the user.
    ///
    /// # Errors
    /// `Answers` if no run is open, `Busy` if the session is running, `Journal` if the log could not be used.
    pub async fn cancel_paused(&self) -> Result<RunResult, Error> {
        self.go_on(Begin::Cancel)?.finish().await
    }

    /// What the session waits for, as of the newest drive that ended here, in the order in which it was asked.
    ///
    /// In a session that was begun elsewhere, it is known after [`open`](Agent::open).
    pub fn pauses(&self) -> Vec<Arc<Pause>> {
        self.session.pauses()
    }

    /// Whether a run of the session has not ended: it is at work, it waits for answers, or a crash has cut it off.
    ///
    /// In a session that was begun elsewhere, it is known after [`open`](Agent::open).
    pub fn has_open_run(&self) -> bool {
        self.session.has_open_run()
    }

    /// Takes over the log of the session and reads it, so that its transcript and its pauses are known; runs nothing.
    ///
    /// # Errors
    /// `Busy` if the session is running, `Journal` if the log could not be read.
    pub async fn open(&self) -> Result<(), Error> {
        let claim = self.session.claim()?;
        session::look(self.start(Begin::Resume { answers: Vec::new() }), claim).await
    }

    fn go_on(&self, begin: Begin) -> Result<Running, Error> {
        let claim = self.session.claim()?;
        Ok(Running::new(self.start(begin), claim))
    }

    fn start(&self, begin: Begin) -> Start {
        Start { setup: Arc::clone(&self.setup), session: Arc::clone(&self.session), begin, cancel: None }
    }
}
