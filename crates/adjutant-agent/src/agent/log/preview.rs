//! A preview of the next request: nothing is recorded, and no model is called.

use std::sync::Arc;

use adjutant_core::{
    ActivityId, Config, EffectInput, Error, Failure, Ledger, Outcome, RunNo, RunResult, TurnNo,
};
use adjutant_llm::{Entry, Model, Request};

use super::AgentLog;
use crate::{
    effect::Phase,
    executor::{
        engine::{Stage, TurnPlan},
        fund,
        prepare::{self, KnownTools, ShownTools},
    },
    floor::FloorMemo,
    prompt::Prompt,
    setup::Setup,
};

impl AgentLog<'_> {
    /// The next request, exactly as a run with this prompt would begin: with the tools, the instructions and what effects
    /// change now.
    ///
    /// Nothing is recorded, no model is called, and hooks before the request are not run. Effects that need a model,
    /// and messages in queues, are ignored. While a run is running, the preview starts from its log.
    ///
    /// Cancel: nothing is lost.
    ///
    /// # Errors
    /// `Prompt` if the prompt is empty, `Journal` if the log cannot be read, `Failed` if a toolbox cannot be opened, the
    /// instructions cannot be made or an effect fails.
    pub async fn preview(self, prompt: impl Into<Prompt>) -> Result<Request, Error> {
        let prompts = prompt.into().into_entries()?;
        let (setup, sight, model, mut request) = self.upcoming(prompts, true).await?;
        if let Some(goal) = &setup.goal {
            request = goal.dress(request, &*model).map_err(Error::Output)?;
        }
        fund::cut_first(&mut request, &setup, model.info(), &sight);
        Ok(request)
    }

    /// Returns the fingerprint of the next request, if a run started now, for comparison with a log.
    ///
    /// Like [`preview`](AgentLog::preview), it records nothing and calls no model.
    ///
    /// Cancel: nothing is lost.
    ///
    /// # Errors
    /// Like [`preview`](AgentLog::preview).
    pub async fn config(self) -> Result<Arc<Config>, Error> {
        let (setup, _, model, request) = self.upcoming(Vec::new(), false).await?;
        Ok(setup.config_of(model.info(), &request))
    }

    /// Returns the next request and its parts: in its final form, or with the current system prompt and tools.
    async fn upcoming(
        self,
        prompts: Vec<Entry>,
        is_sent: bool,
    ) -> Result<(Arc<Setup>, EffectInput, Arc<dyn Model>, Request), Error> {
        let run = self.agent.session.look(&self.agent.setup.who).await?;
        let instructed = self
            .agent
            .setup
            .with_system_prompt(RunNo(run.run().0 + 1))
            .await
            .map_err(|failure| self.never(failure))?;
        let kept = instructed.keeping(&run).filter(|_| is_sent);
        let instructed = kept.map_or(instructed, Arc::new);
        let setup = &*instructed;
        let mut sight = run.request().sight(setup.world.now_ms()).with(prompts);
        // As in the first turn of the next run, also while one is running.
        (sight.run, sight.turn) = (RunNo(run.run().0 + 1), TurnNo(run.turn().0 + 1));
        sight.ledger = Ledger {
            caps: self.agent.limits.caps,
            ..Ledger::default()
        };
        (sight.overflow, sight.last, sight.only) = (None, false, None);
        let model = Arc::clone(&setup.model);
        let failed = |message| self.preview_error(message);
        let (_, tools) = prepare::resolve(setup, KnownTools::default())
            .await
            .map_err(failed)?;
        let mut plan = TurnPlan::new(&sight);
        let stage = Stage::new(setup, &sight, &tools, &model, Phase::Preview);
        stage.act(&mut plan).await.map_err(failed)?;
        stage
            .announce(&mut plan)
            .map_err(|error| failed(error.to_string()))?;
        // A run would fail; the preview is still useful.
        let _too_large = stage.fit(&mut plan, FloorMemo::read(&sight.memos)).await;
        let (_, tools) = prepare::offer(
            Vec::new(),
            tools,
            std::mem::take(&mut plan.offered),
            KnownTools::default(),
        );
        let decls = ShownTools::decls(&mut None, tools.decls(), &plan.hidden, None);
        let (entries, options) = (plan.view.items().fork(), Arc::clone(&setup.options));
        let mut request = prepare::compose(setup, decls, entries, options, (sight.turn, 0));
        if is_sent {
            let prefix = run.prefix().map(|prefix| (prefix, run.extra_tools()));
            prepare::keep_prefix(&mut request, model.info(), prefix);
        }
        Ok((instructed, sight, model, request))
    }

    fn preview_error(self, message: String) -> Error {
        self.never(Failure::Activity {
            act: ActivityId::Prepare(TurnNo(0)),
            message: message.into(),
        })
    }

    fn never(self, failure: Failure) -> Error {
        Error::from_failure(
            RunResult::never(
                &self.agent.setup.who,
                Outcome::Failed {
                    failure: failure.clone(),
                },
            ),
            failure,
        )
    }
}
