//! Fingerprints of requests: the recorded ones, and the records to write.

use std::sync::Arc;

use adjutant_core::{Config, Prefix, Record, Run};
use adjutant_llm::{Model, Options, Request, ToolName, Warning, WarningKind};

use super::{LocalExecutor, Records, prepare::ShownTools};
use crate::{
    event_sink::EventSink,
    setup::{Parts, Print, Prints},
    turn_position::TurnPosition,
};

/// The fingerprint of a thread's requests in its log, and the last computed one.
#[derive(Debug, Default)]
pub(super) struct KnownRequests {
    /// The fingerprint in the log.
    recorded: Option<Arc<Config>>,
    print: Option<Arc<Print>>,
    /// The fingerprint in the log and the last computed one, if they are equal.
    agreed: Option<(Arc<Config>, Arc<Config>)>,
    /// The settings of the turn that is being prepared.
    next: Option<NextRequest>,
}

/// The facts known of a request before its turn is prepared.
#[derive(Debug)]
struct NextRequest {
    model: Arc<dyn Model>,
    options: Arc<Options>,
    only: Option<Vec<ToolName>>,
    /// The beginning that the session declared, if the model refuses another one.
    prefix: Option<Arc<Prefix>>,
    /// True if the request is sent whatever stops the turn.
    last: bool,
}

/// Compares a request with the record of an earlier program.
pub(super) struct Recorded {
    config: Option<Arc<Config>>,
    model: Arc<dyn Model>,
    options: Arc<Options>,
}

impl LocalExecutor {
    /// A turn is about to be prepared: keeps what its request will be made with.
    pub(super) fn expect(&mut self, run: &Run, model: &Arc<dyn Model>) {
        let known = &mut self.known;
        known.recorded = run.config().cloned();
        let only = run.request().chosen_tools().map(<[ToolName]>::to_vec);
        let binds = model.info().thinking_binding;
        known.next = Some(NextRequest {
            model: Arc::clone(model),
            options: self.setup.options_of(run),
            prefix: run.prefix().filter(|_| binds).cloned(),
            only,
            last: run.request().is_last(),
        });
    }

    /// Puts the fingerprint of the request before the preparation of its turn, if it is not what the log knows.
    pub(super) fn configure(&mut self, records: &mut Records) {
        let Some(at) = records
            .iter()
            .position(|record| matches!(record, Record::Prepared { .. }))
        else {
            return;
        };
        if let Some(configured) = self.config_record(&records[at]) {
            records.insert(at, configured);
        }
    }

    /// The fingerprint of the request of a turn that is prepared like this, if it is not what the log knows.
    pub(super) fn config_record(&mut self, prepared: &Record) -> Option<Record> {
        let Record::Prepared { hidden, stop, .. } = prepared else {
            return None;
        };
        let is_asked = |next: &mut NextRequest| next.last || stop.is_none();
        let (tools, next) = (self.tools.as_ref()?, self.known.next.take_if(is_asked)?);
        let (system, tools) = match &next.prefix {
            Some(prefix) => (&prefix.system, Arc::clone(&prefix.tools)),
            None => {
                let only = next.only.as_deref();
                let tools = ShownTools::decls(&mut self.shown, tools.decls(), hidden, only);
                (&self.setup.system, tools)
            }
        };
        let parts = Parts {
            model: next.model.info(),
            system,
            tools: &tools,
            options: &next.options,
        };
        self.known
            .update_config(parts, &self.setup.prints)
            .map(|config| Record::Configured { config })
    }

    /// Returns the recorded parts that a request is held against, for a turn that an earlier drive prepared.
    pub(super) fn request_baseline(&self, run: &Run) -> Recorded {
        Recorded {
            config: run.config().cloned(),
            model: Arc::clone(self.model_of(run)),
            options: self.setup.options_of(run),
        }
    }
}

impl KnownRequests {
    /// The fingerprint, if the log knows another one or none.
    fn update_config(&mut self, parts: Parts<'_>, prints: &Prints) -> Option<Arc<Config>> {
        let print = match &self.print {
            Some(print) if print.is_of(parts) => Arc::clone(print),
            _ => prints.fingerprint(parts),
        };
        let config = Arc::clone(&print.config);
        self.print = Some(print);
        let Some(recorded) = &self.recorded else {
            return Some(config);
        };
        let agreed = |(one, other): &(Arc<Config>, Arc<Config>)| {
            Arc::ptr_eq(one, recorded) && Arc::ptr_eq(other, &config)
        };
        if Arc::ptr_eq(recorded, &config) || self.agreed.as_ref().is_some_and(agreed) {
            return None;
        }
        if **recorded != *config {
            return Some(config);
        }
        self.agreed = Some((Arc::clone(recorded), config));
        None
    }
}

impl Recorded {
    /// Returns the record to write before this request is sent; a warning lists the differences from the recorded
    /// parts.
    pub(super) fn check(
        self,
        request: &Request,
        feed: &EventSink,
        place: TurnPosition,
    ) -> Option<Record> {
        let (system, tools) = (&request.system, &request.tools);
        let parts = Parts {
            model: self.model.info(),
            system,
            tools,
            options: &self.options,
        };
        let config = Arc::clone(&feed.setup.prints.fingerprint(parts).config);
        let differences = match &self.config {
            Some(recorded) => recorded.differences(&config),
            // A log without fingerprints has nothing to compare with.
            None => return Some(Record::Configured { config }),
        };
        if differences.is_empty() {
            return None;
        }
        let fields: Vec<&str> = differences.iter().map(|it| &*it.field).collect();
        let message = format!(
            "turn {} is asked with other parts than it was prepared with: {}",
            place.turn,
            fields.join(", ")
        );
        feed.warn(
            place,
            feed.setup.world.now_ms(),
            &Warning {
                kind: WarningKind::Diverged,
                message: message.into(),
            },
        );
        Some(Record::Configured { config })
    }
}
