//! An answer of the agent's own model, on request of a call: reserved in the budget of the run, and billed to the
//! call.

use std::{mem, sync::Arc};

use adjutant_core::{Record, Spend, Tally, chain};
use adjutant_llm::{Cache, ModelInfo, NanoUsd, Options, Reply, Request, Usage};
use adjutant_tool::{Sampler, ToolError, ToolErrorKind};
use async_trait::async_trait;
use tokio::sync::oneshot;

use super::CallScope;
use crate::{
    budget::{Reservation, aside},
    inbox::Input,
};

/// The largest number of tokens of an answer that no number is given for.
const OUTPUT: u64 = 1_024;

/// The usage of an answer: recorded in the log, and held until then.
struct Bill<'a> {
    scope: &'a CallScope,
    held: Option<(Reservation, Spend)>,
    tally: Tally,
}

#[async_trait]
impl Sampler for CallScope {
    async fn sample(&self, request: Request) -> Result<Arc<Reply>, ToolError> {
        let ended = || {
            ToolError::new(
                ToolErrorKind::Cancelled,
                "the call that uses the model was stopped or has ended",
            )
        };
        if self.is_heard().await.is_err() || self.is_closed() {
            return Err(ended());
        }
        tokio::select! {
            biased;
            () = self.cancel().cancelled() => Err(ended()),
            asked = self.ask(request) => asked,
        }
    }
}

impl CallScope {
    async fn ask(&self, request: Request) -> Result<Arc<Reply>, ToolError> {
        let failed =
            |error: String| ToolError::failed(format!("the model gave no answer: {error}"));
        let model = self
            .feed
            .setup
            .chosen(self.model.as_deref())
            .cloned()
            .map_err(|error| failed(chain(&error)))?;
        let mut request = self.bare(request, model.info())?;
        let mut need = aside::need(&*model, &request);
        need.fixed.requests = 1;
        let (tokens, window) = (need.fixed.tokens, model.info().context_window);
        if window > 0 && tokens > window {
            return Err(refusal_error(format!(
                "about {tokens} tokens do not fit its window of {window}"
            )));
        }
        let mut bill = Bill {
            scope: self,
            held: None,
            tally: Tally::default(),
        };
        if let Some(budget) = &self.budget {
            let held = aside::hold(budget, need, &mut request)
                .await
                .map_err(|limit| {
                    let message = format!(
                        "the model is not asked: the limit of {limit} leaves no room for it"
                    );
                    ToolError::new(ToolErrorKind::Denied, message)
                })?;
            bill.held = Some((held, need.fixed));
        }
        bill.tally.requests = 1;
        let asked = aside::ask(&*model, request, |usage, cost| bill.add(usage, cost)).await;
        bill.record_usage(asked.is_ok()).await;
        asked.map_err(|error| failed(chain(&error)).with_source(error))
    }

    /// Returns the request with its relevant parts.
    ///
    /// # Errors
    /// `InvalidArguments` if it is empty.
    fn bare(&self, request: Request, info: &ModelInfo) -> Result<Request, ToolError> {
        if request.entries.is_empty() {
            return Err(refusal_error("there is no message for it".to_owned()));
        }
        let asked = &request.options;
        let most = if info.max_output_tokens > 0 {
            info.max_output_tokens
        } else {
            u64::MAX
        };
        let options = Options {
            max_output_tokens: Some(asked.max_output_tokens.unwrap_or(OUTPUT).clamp(1, most)),
            temperature: asked.temperature,
            top_p: asked.top_p,
            stop: asked.stop.clone(),
            cache: Cache::Off,
            headers: self.feed.setup.options.headers.clone(),
            ..Options::default()
        };
        Ok(Request {
            tools: Arc::from([]),
            options: Arc::new(options),
            turn: None,
            attempt: 0,
            ..request
        })
    }
}

fn refusal_error(why: String) -> ToolError {
    ToolError::new(
        ToolErrorKind::InvalidArguments,
        format!("the model is not asked: {why}"),
    )
}

impl Bill<'_> {
    fn add(&mut self, usage: Usage, cost: Option<NanoUsd>) {
        self.tally.usage += usage;
        self.tally.cost = NanoUsd::sum_known(self.tally.cost, cost);
    }

    /// Records it in the log, and waits until it is there: the held amount is returned when the usage counts.
    async fn record_usage(mut self, answered: bool) {
        if answered
            && self.tally.usage.total() == 0
            && let Some((held, fixed)) = self.held.take()
        {
            // No count arrived; the input was sent anyway.
            held.settle(Spend {
                requests: 0,
                ..fixed
            });
        }
        let (done, durable) = oneshot::channel();
        self.tell(Some(done));
        // A run that has ended records nothing.
        let _ = durable.await;
    }

    fn tell(&mut self, done: Option<oneshot::Sender<()>>) {
        let Tally {
            usage,
            cost,
            requests,
            tool_calls,
        } = mem::take(&mut self.tally);
        if requests > 0 {
            let record = Record::Spent {
                call: self.scope.call,
                usage,
                cost,
                requests,
                tool_calls,
            };
            // Also for a call that has ended: its usage counts.
            self.scope.inbox.push(Input::Kept {
                record: Box::new(record),
                done,
            });
        }
    }
}

impl Drop for Bill<'_> {
    fn drop(&mut self) {
        self.tell(None);
        if let Some((held, _)) = self.held.take() {
            held.settle(Spend::default());
        }
    }
}
