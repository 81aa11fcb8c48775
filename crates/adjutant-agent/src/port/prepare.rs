//! Prepare: the tools of a turn, and the request that they make with the view.

use std::sync::Arc;

use adjutant_llm::Request;
use adjutant_tool::Toolset;

use super::{Feed, LocalPort, Performed, Place, Setup};
use crate::{ActId, Failure, Record, Run, TurnNo};

/// The tools of the turn before: what each source gave, and what they make together.
pub(super) type Known = (Vec<Toolset>, Option<Toolset>);

pub(super) async fn prepare(feed: Arc<Feed>, place: Place, turn: TurnNo, known: Known) -> Performed {
    let act = ActId::Prepare(turn);
    match resolve(&feed.setup, known).await {
        Ok((sources, tools)) => {
            let performed = prepared(&feed, place, turn, &tools);
            Performed { tools: Some((sources, tools)), ..performed }
        }
        Err(message) => {
            Performed::new(act, Record::Broke { act, failure: Failure::Act { act, message: message.into() } })
        }
    }
}

/// The turn with these tools.
pub(super) fn prepared(feed: &Feed, place: Place, turn: TurnNo, tools: &Toolset) -> Performed {
    if !tools.warnings().is_empty() {
        let at_ms = feed.setup.world.now_ms();
        tools.warnings().iter().for_each(|warning| feed.warn(place, at_ms, warning));
    }
    let model = feed.setup.model.info().id.clone();
    Performed::new(ActId::Prepare(turn), Record::prepared(turn, model, Vec::new()))
}

/// Asks every source of tools; what did not change is not merged again.
pub(super) async fn resolve(setup: &Setup, (known, merged): Known) -> Result<(Vec<Toolset>, Toolset), String> {
    let mut sources = vec![setup.tools.toolset().clone()];
    for toolbox in &setup.toolboxes {
        let resolved = toolbox.resolve(&setup.who).await;
        sources.push(resolved.map_err(|error| format!("toolbox {:?} could not be opened: {error}", toolbox.name()))?);
    }
    sources.retain(|set| !set.is_empty());
    let same = known.len() == sources.len() && known.iter().zip(&sources).all(|(old, new)| is_same(old, new));
    let tools = match merged {
        Some(merged) if same => merged,
        _ if sources.len() == 1 => sources[0].clone(),
        _ => Toolset::merge(&sources),
    };
    Ok((sources, tools))
}

fn is_same(one: &Toolset, other: &Toolset) -> bool {
    Arc::ptr_eq(one.decls(), other.decls())
}

impl LocalPort {
    pub(super) fn known_tools(&self) -> Known {
        (self.sources.clone(), self.tools.clone())
    }

    /// The request of a turn: everything in it is shared, nothing is copied.
    pub(super) fn request(&self, run: &Run, turn: TurnNo, attempt: u32) -> Request {
        let tools = self.tools.as_ref().map_or_else(|| Arc::from([]), |tools| Arc::clone(tools.decls()));
        let (system, options) = (Arc::clone(&self.setup.system), Arc::clone(&self.setup.options));
        let mut request = Request::shared(system, tools, run.view().items().clone(), options);
        request.turn = Some(turn.0);
        request.attempt = attempt;
        request
    }
}
