//! Admit: find the tool of a call, and make its arguments fit.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use adjutant_llm::{Call, CallId, CallResult, Status};
use adjutant_tool::Toolset;
use serde_json::Value;

use super::{Feed, LocalPort, Performed, bound, prepare};
use crate::{ActId, Admission, Failure, Record, Run};

/// How many tool names a model is told when it asks for one that is not there.
const MAX_NAMES: usize = 50;

impl LocalPort {
    pub(super) fn admit(&mut self, run: &Run, id: CallId) {
        let Some(call) = run.call(id).cloned() else { return };
        match &self.tools {
            Some(tools) => {
                let admitted = admit(tools, &call);
                self.done.push(performed(id, admitted));
            }
            None => {
                let work = admit_later(Arc::clone(&self.feed), call);
                self.perform_unless_stopped(ActId::Admit(id), work);
            }
        }
    }
}

/// Resolves the tools first: the turn was prepared by an earlier drive.
async fn admit_later(feed: Arc<Feed>, call: Call) -> Performed {
    match prepare::resolve(&feed.setup, Default::default()).await {
        Ok((sources, tools)) => {
            let admitted = admit(&tools, &call);
            Performed { tools: Some((sources, tools)), ..performed(call.id, admitted) }
        }
        Err(message) => {
            let act = ActId::Admit(call.id);
            Performed::new(act, Record::Broke { act, failure: Failure::Act { act, message: message.into() } })
        }
    }
}

fn performed(call: CallId, (admission, args): (Admission, Option<Value>)) -> Performed {
    let record = Record::Admitted { call, admission };
    Performed { args: args.map(|args| (call, args)), ..Performed::new(ActId::Admit(call), record) }
}

fn admit(tools: &Toolset, call: &Call) -> (Admission, Option<Value>) {
    let refuse = |status, message: String| {
        let result = Arc::new(CallResult::new(status, message));
        (Admission::Refuse { result }, None)
    };
    let Some(tool) = tools.get(call.name.as_str()) else {
        return refuse(Status::UnknownTool, unknown(tools, call));
    };
    match catch_unwind(AssertUnwindSafe(|| tool.admit(&call.args))) {
        Ok(Ok(admitted)) => {
            let admission = Admission::Allow {
                args: admitted.text,
                changed: admitted.changed,
                title: tool.spec().title.clone(),
                replay: tool.spec().replay,
                sequential: tool.spec().sequential,
            };
            (admission, Some(admitted.value))
        }
        Ok(Err(refusal)) => refuse(Status::InvalidArguments, refusal.message),
        Err(panic) => refuse(Status::Panicked, format!("the tool panicked: {}", bound::panic_text(&*panic))),
    }
}

fn unknown(tools: &Toolset, call: &Call) -> String {
    let names: Vec<&str> = tools.iter().take(MAX_NAMES).map(|tool| tool.spec().name().as_str()).collect();
    if names.is_empty() {
        return format!("unknown tool {:?}: there are no tools", call.name.as_str());
    }
    format!("unknown tool {:?}; the tools are: {}", call.name.as_str(), names.join(", "))
}
