//! Admit: finds the tool of a call, validates its arguments, and consults hooks and people.

mod texts;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use adjutant_core::{ActivityId, Admission, Failure, OpenCall, Pause, Record, Run, panic_text};
use adjutant_llm::{Call, CallId, CallResult, Status, ToolName, Transcript};
use adjutant_tool::{Admitted, Answer, Ask, AskKind, Bound, Toolset};
use futures_util::FutureExt;
use serde_json::Value;
use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    task::coop::unconstrained,
};

use super::{LocalExecutor, Performed, bound, contain::failure_result, prepare::Restore};
use crate::{
    event_sink::EventSink,
    hooks::{Point, Verdict},
    points::BeforeTool,
    turn_position::TurnPosition,
};

/// One call to be admitted.
struct Admit {
    feed: Arc<EventSink>,
    place: TurnPosition,
    call: Call,
    hidden: Vec<ToolName>,
    /// The only tools that an earlier turn left.
    chosen: Option<Vec<ToolName>>,
    /// True if a call with the same arguments was approved for the rest of the run.
    approved: bool,
    unattended: bool,
    /// The pause that its admission waited for, with the answer.
    answer: Option<(Arc<Pause>, Answer)>,
    /// True if it was cancelled before its start.
    stopped: bool,
    /// The history, if all earlier calls of the turn have ended: this call may depend on their effects.
    history: Option<Transcript>,
}

/// The tool, if it was found, and why the call may not run.
type Unfit<'a> = Box<(Option<&'a Bound>, CallResult)>;

/// The decision, and the arguments, already read.
type Decided = (Admission, Option<Value>);

/// A place in the queue of calls that pass through hooks.
type InLine = Pin<Box<dyn Future<Output = OwnedMutexGuard<()>> + Send>>;

impl LocalExecutor {
    /// Decides about a call immediately, if it has no hook; returns its parsed arguments too.
    pub(super) fn try_admit(&self, run: &Run, id: CallId) -> Option<(Record, Option<Value>)> {
        if let Some(record) = self.output_call_record(run, id) {
            return Some((record, None));
        }
        let (tools, admit) = (self.tools.as_ref()?, self.admission(run, id)?);
        if admit.is_heard() {
            return None;
        }
        let (admission, args) = admit.decide(tools);
        Some((
            Record::Admitted {
                call: id,
                admission,
            },
            args,
        ))
    }

    /// Returns the result of the call that is the requested output: no tool runs for it, and its turn is settled by
    /// the result.
    fn output_call_record(&self, run: &Run, id: CallId) -> Option<Record> {
        let goal = self.setup.goal.as_ref()?;
        let call = run.calls().call(id)?.call;
        if *call.name.0 != *goal.shape.format().name {
            return None;
        }
        let fits = goal
            .shape
            .read(run.reply()?)
            .is_some_and(|read| read.is_ok());
        let result = Arc::new(if fits {
            texts::receipt_result()
        } else {
            texts::misfit()
        });
        Some(Record::Admitted {
            call: id,
            admission: Admission::Supplied {
                result,
                shown: None,
            },
        })
    }

    fn admission(&self, run: &Run, id: CallId) -> Option<Admit> {
        let OpenCall { call, answer, .. } = run.calls().call(id)?;
        Some(Admit {
            feed: Arc::clone(&self.feed),
            place: self.place,
            hidden: run.request().hidden().to_vec(),
            chosen: run.request().chosen_tools().map(<[_]>::to_vec),
            approved: run
                .calls()
                .approval_for_run(&call.name, &call.args)
                .is_some(),
            unattended: run.limits().is_some_and(|limits| limits.unattended),
            answer: answer.map(|(pause, answer)| (Arc::clone(pause), answer.clone())),
            stopped: self.stopped.contains(&id),
            history: run.calls().is_next(id).then(|| run.history().clone()),
            call: call.clone(),
        })
    }

    #[cold]
    pub(super) fn admit(&mut self, run: &Run, id: CallId) -> Option<Performed> {
        if let Some(record) = self.output_call_record(run, id) {
            return Some(Performed::new(ActivityId::Admit(id), record));
        }
        let admit = self.admission(run, id)?;
        match &self.tools {
            Some(tools) if !admit.is_heard() => {
                let decided = admit.decide(tools);
                return Some(self.counter(run).count(build_performed(id, decided)));
            }
            tools => {
                let (tools, restore, line) =
                    (tools.clone(), self.restore(run), in_line(&self.line));
                let counter = self.counter(run);
                let work = admit
                    .later(tools, restore, line)
                    .map(move |performed| counter.count(performed));
                self.perform_unless_stopped(ActivityId::Admit(id), work);
            }
        }
        None
    }
}

/// The next place in the queue, taken at once: calls pass in their order, and never two at a time.
fn in_line(line: &Arc<Mutex<()>>) -> InLine {
    // Also when its task has no time left now.
    let mut place = Box::pin(unconstrained(Arc::clone(line).lock_owned()));
    match place.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(first) => Box::pin(std::future::ready(first)),
        Poll::Pending => place,
    }
}

fn build_performed(call: CallId, (admission, args): Decided) -> Performed {
    let record = Record::Admitted { call, admission };
    Performed {
        args: args.map(|args| (call, args)),
        ..Performed::new(ActivityId::Admit(call), record)
    }
}

fn refuse(result: CallResult) -> Decided {
    (
        Admission::Refuse {
            result: Arc::new(result),
        },
        None,
    )
}

impl Admit {
    /// True if hooks are called: for the arguments of the model, and for arguments replaced by an answer.
    fn is_heard(&self) -> bool {
        (self.answer.is_none() || self.approval_args().is_some())
            && self.feed.setup.hooks.hears::<BeforeTool>()
    }

    /// The pause that was answered with other arguments, and these.
    fn approval_args(&self) -> Option<(&Pause, &Arc<str>)> {
        match &self.answer {
            Some((
                pause,
                Answer::Approve {
                    args: Some(args), ..
                },
            )) if pause.ask.kind == AskKind::Approval => Some((pause, args)),
            _ => None,
        }
    }

    /// Refuses the call in this form. The source of replaced arguments receives the reason, and another question.
    fn turn_down(&self, tool: Option<&Bound>, result: CallResult) -> Decided {
        let is_late = |pause: &Pause| pause.is_late(self.feed.setup.world.now_ms());
        match (
            self.approval_args().filter(|(pause, _)| !is_late(pause)),
            tool,
        ) {
            (Some((pause, _)), Some(tool)) => {
                let mut pause = pause.clone();
                pause.refused.push(result.text().into());
                (
                    Admission::Ask {
                        pause: Arc::new(pause),
                        sequential: tool.spec().sequential,
                    },
                    None,
                )
            }
            _ => refuse(result),
        }
    }

    /// Decides after hooks, or with tools that must be resolved first: the turn was prepared by an earlier drive.
    async fn later(
        self,
        tools: Option<Toolset>,
        restore: Option<Box<Restore>>,
        line: InLine,
    ) -> Performed {
        let _place = line.await;
        let act = ActivityId::Admit(self.call.id);
        let (tools, resolved) = match restore {
            None => (tools.unwrap_or_default(), None),
            Some(restore) => match restore.tools(&self.feed.setup).await {
                Ok((sources, tools)) => (tools.clone(), Some((sources, tools))),
                Err(message) => {
                    let failure = Failure::Activity {
                        act,
                        message: message.into(),
                    };
                    return Performed::new(act, Record::Broke { act, failure });
                }
            },
        };
        let mut performed = if self.is_heard() {
            self.through_hooks(&tools).await
        } else {
            build_performed(self.call.id, self.decide(&tools))
        };
        performed.tools = resolved;
        performed
    }

    async fn through_hooks(&self, tools: &Toolset) -> Performed {
        let id = self.call.id;
        let (tool, admitted) = match self.fit(tools) {
            Ok(fits) => fits,
            Err(unfit) => return build_performed(id, self.turn_down(unfit.0, unfit.1)),
        };
        let cx = self.feed.hook_context(self.place);
        let point = BeforeTool::new(
            self.call.clone(),
            admitted.value.clone(),
            tool.spec().replay,
        );
        match self.feed.pass(&cx, point).await {
            Verdict::Deny(reason) => {
                let refused = build_performed(
                    id,
                    self.turn_down(Some(tool), texts::denial_result(&reason)),
                );
                let denied = Record::Denied {
                    point: BeforeTool::NAME.into(),
                    reason,
                    call: Some(id),
                };
                Performed {
                    records: [denied].into_iter().chain(refused.records).collect(),
                    ..refused
                }
            }
            Verdict::Pass(point) if point.args == admitted.value => {
                build_performed(id, self.judge(tool, admitted))
            }
            Verdict::Pass(point) => match fits(tool, &point.args.to_string().into()) {
                Ok(changed) => build_performed(id, self.judge(tool, changed)),
                Err(result) => build_performed(id, self.turn_down(Some(tool), result)),
            },
        }
    }

    /// Decides without hooks.
    fn decide(&self, tools: &Toolset) -> Decided {
        if let Some((pause, answer)) = self
            .answer
            .as_ref()
            .filter(|_| self.approval_args().is_none())
        {
            return self.apply_answer(tools, pause, answer);
        }
        match self.fit(tools) {
            Ok((tool, admitted)) => self.judge(tool, admitted),
            Err(unfit) => self.turn_down(unfit.0, unfit.1),
        }
    }

    /// The tool, and its arguments made to fit; or the tool, if it was found, and why not.
    fn fit<'a>(&self, tools: &'a Toolset) -> Result<(&'a Bound, Admitted), Unfit<'a>> {
        let tool = self
            .find(tools)
            .map_err(|result| Box::new((None, result)))?;
        let args = self
            .approval_args()
            .map_or(&self.call.args, |(_, args)| args);
        fits(tool, args)
            .map(|admitted| (tool, admitted))
            .map_err(|result| Box::new((Some(tool), result)))
    }

    fn find<'a>(&self, tools: &'a Toolset) -> Result<&'a Bound, CallResult> {
        if self.stopped {
            return Err(texts::cancellation_result());
        }
        let name = &self.call.name;
        let tool = tools.get(name.as_str());
        let is_left_out = |chosen: &Vec<ToolName>| !chosen.contains(name);
        if self.hidden.contains(name)
            || (tool.is_some() && self.chosen.as_ref().is_some_and(is_left_out))
        {
            return Err(texts::hidden(name));
        }
        tool.ok_or_else(|| match tools.is_unlisted(name.as_str()) {
            true => texts::not_loaded_result(name),
            false => texts::unknown(tools, name, &self.hidden),
        })
    }

    /// Decides if a call with valid arguments may run: here, after an approval, or elsewhere.
    fn judge(&self, tool: &Bound, admitted: Admitted) -> Decided {
        let setup = &self.feed.setup;
        if setup.calls.is_external(tool) {
            // The program that runs it decides if it may be run.
            let ask = Ask::new(AskKind::External, texts::run_elsewhere(tool));
            return if self.unattended {
                refuse(texts::no_executor(tool))
            } else {
                self.ask(tool, admitted, ask)
            };
        }
        if self.approved && admitted.text == self.call.args {
            return self.allow(tool, admitted);
        }
        match setup.policy.ask(tool, &admitted.value) {
            Ok(None) => self.allow(tool, admitted),
            // The requested approval was given with exactly these arguments.
            Ok(Some(_)) if self.approval_args().is_some() => self.allow(tool, admitted),
            Ok(Some(_)) if self.unattended => refuse(texts::nobody()),
            Ok(Some(ask)) => match self.check(tool, &admitted.value) {
                Ok(()) => self.ask(tool, admitted, ask),
                Err(result) => self.turn_down(Some(tool), result),
            },
            Err(panic) => self.turn_down(Some(tool), texts::rule_panic_result(&panic)),
        }
    }

    /// Refuses a call that cannot succeed, without an approval request.
    fn check(&self, tool: &Bound, args: &Value) -> Result<(), CallResult> {
        let Some(history) = &self.history else {
            return Ok(());
        };
        let conversation = self.feed.conversation(history.clone(), self.place.turn);
        let check = || tool.check(args, &conversation);
        match catch_unwind(AssertUnwindSafe(check)) {
            Ok(checked) => checked.map_err(|error| failure_result(&error)),
            Err(panic) => Err(texts::rule_panic_result(&panic_text(&*panic))),
        }
    }

    fn ask(&self, tool: &Bound, admitted: Admitted, ask: Ask) -> Decided {
        let setup = &self.feed.setup;
        let call = Call {
            args: admitted.text,
            ..self.call.clone()
        };
        let pause = Pause::for_call(&setup.who, call, None, ask, setup.world.now_ms());
        (
            Admission::Ask {
                pause: Arc::new(pause),
                sequential: tool.spec().sequential,
            },
            None,
        )
    }

    fn allow(&self, tool: &Bound, admitted: Admitted) -> Decided {
        let spec = tool.spec();
        let admission = Admission::Allow {
            changed: admitted.changed || admitted.text != self.call.args,
            args: admitted.text,
            title: spec.title.clone(),
            replay: spec.replay,
            sequential: spec.sequential,
        };
        (admission, Some(admitted.value))
    }

    /// The approval has arrived, and changes nothing: hooks are not called again.
    fn apply_answer(&self, tools: &Toolset, pause: &Pause, answer: &Answer) -> Decided {
        let tool = match self.find(tools) {
            Ok(tool) => tool,
            Err(result) => return refuse(result),
        };
        let asked = pause
            .call
            .as_ref()
            .map_or(&self.call.args, |call| &call.args);
        match answer {
            Answer::Approve { args: None, .. } | Answer::Give { .. }
                if texts::is_word(pause.ask.kind) =>
            {
                match adjutant_llm::json::from_str(asked) {
                    Ok(value) => self.allow(
                        tool,
                        Admitted {
                            value,
                            text: Arc::clone(asked),
                            changed: *asked != self.call.args,
                        },
                    ),
                    Err(error) => refuse(texts::unreadable(&error)),
                }
            }
            Answer::Return { result } => self.supply_result(tool, result, asked),
            other => refuse(texts::refusal_result(pause.ask.kind, other)),
        }
    }

    fn supply_result(&self, tool: &Bound, result: &CallResult, asked: &Arc<str>) -> Decided {
        let max = tool
            .spec()
            .max_output
            .unwrap_or(self.feed.setup.calls.max_result_bytes);
        let args = (*asked != self.call.args).then(|| Arc::clone(asked));
        let (result, shown) = bound::limit_result(
            CallResult {
                args,
                ..result.clone()
            },
            max,
            String::new,
        );
        (Admission::Supplied { result, shown }, None)
    }
}

/// Makes arguments fit a tool; its own panic refuses the call.
fn fits(tool: &Bound, raw: &Arc<str>) -> Result<Admitted, CallResult> {
    match catch_unwind(AssertUnwindSafe(|| tool.admit(Arc::clone(raw)))) {
        Ok(Ok(admitted)) => Ok(admitted),
        Ok(Err(refusal)) => Err(CallResult::new(Status::InvalidArguments, refusal.message)),
        Err(panic) => {
            let text = panic_text(&*panic);
            Err(CallResult::new(
                Status::Panicked,
                format!("the tool panicked: {text}"),
            ))
        }
    }
}
