//! The tree behind budgets: one lock, no waiting. Every operation walks up from a node, and the line from its front.

use std::{
    collections::{BTreeMap, BTreeSet},
    task::Waker,
};

use adjutant_core::{Caps, Limit, Spend};
use adjutant_llm::{NanoUsd, ThreadId};
use tokio::time::Instant;

use super::{ReservationRequest, reservation::UNLIMITED};

/// The place of a node in its tree.
pub(super) type NodeId = usize;

/// The output of a request without a limit, in a budget that limits it.
const USUAL_OUTPUT: u64 = 8_192;
/// The first node.
const ROOT: NodeId = 0;

/// All nodes of a tree, and the waiting line.
#[derive(Debug)]
pub(super) struct BudgetTree {
    nodes: Vec<BudgetNode>,
    free: Vec<NodeId>,
    /// The requests that wait, in the order of arrival.
    line: BTreeMap<u64, WaitingRequest>,
    /// The decisions that were not received yet, with the requesting node.
    decided: BTreeMap<u64, (NodeId, Decided)>,
    tickets: u64,
    /// The places of agents that were running when their log was left, with the nodes that count them.
    kept: BTreeMap<ThreadId, NodeId>,
}

#[derive(Debug)]
struct BudgetNode {
    up: Option<NodeId>,
    caps: Caps,
    spent: Spend,
    held: Spend,
    /// The number of agents that run below.
    agents: u32,
    /// The moment at which its time is over.
    end: Option<Instant>,
}

#[derive(Debug)]
struct WaitingRequest {
    node: NodeId,
    request: ReservationRequest,
    waker: Option<Waker>,
}

/// The decision about a request.
#[derive(Debug)]
pub(super) enum Decided {
    /// It is held.
    Held { held: Spend, output: u64 },
    /// There will never be enough.
    Refused(Limit),
}

/// The room for a request.
enum Room {
    Fits(u64),
    Full(NodeId),
    Never(Limit),
}

impl BudgetTree {
    pub(super) fn new(caps: Caps, spent: Spend) -> (Self, NodeId) {
        let root = BudgetNode {
            up: None,
            caps,
            spent,
            held: Spend::default(),
            agents: 0,
            end: None,
        };
        let (line, decided) = (BTreeMap::new(), BTreeMap::new());
        (
            Self {
                nodes: vec![root],
                free: Vec::new(),
                line,
                decided,
                tickets: 0,
                kept: BTreeMap::new(),
            },
            ROOT,
        )
    }

    pub(super) fn add(&mut self, up: NodeId, caps: Caps, spent: Spend) -> NodeId {
        let node = BudgetNode {
            up: Some(up),
            caps,
            spent: Spend::default(),
            held: Spend::default(),
            agents: 0,
            end: None,
        };
        let id = match self.free.pop() {
            Some(id) => {
                self.nodes[id] = node;
                id
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() - 1
            }
        };
        self.spend(id, spent);
        id
    }

    /// Removes a node without handles: nothing is held in it and no one waits for it.
    pub(super) fn remove(&mut self, id: NodeId) {
        self.give_up(|_, node| node == id);
        if id != ROOT {
            self.free.push(id);
        }
    }

    pub(super) fn set_caps(&mut self, id: NodeId, caps: Caps) {
        self.nodes[id].caps = caps;
        self.serve();
    }

    pub(super) fn set_end(&mut self, id: NodeId, end: Option<Instant>) {
        self.nodes[id].end = end;
    }

    pub(super) fn remaining(&self, id: NodeId) -> Caps {
        let millis = |end: Instant| end.saturating_duration_since(Instant::now()).as_millis();
        let of = |(above, (_, node)): (u16, (NodeId, &BudgetNode))| {
            let (caps, gone) = (node.caps, node.spent + node.held);
            Caps {
                tokens: caps.tokens.map(|cap| cap.saturating_sub(gone.tokens)),
                cost: caps
                    .cost
                    .map(|cap| NanoUsd(cap.0.saturating_sub(gone.cost.0))),
                requests: caps.requests.map(|cap| cap.saturating_sub(gone.requests)),
                tool_calls: caps
                    .tool_calls
                    .map(|cap| cap.saturating_sub(gone.tool_calls)),
                wall_ms: node
                    .end
                    .map(|end| u64::try_from(millis(end)).unwrap_or(u64::MAX)),
                depth: caps.depth.map(|cap| cap.saturating_sub(above)),
                agents: caps.agents.map(|cap| cap.saturating_sub(node.agents)),
            }
        };
        (0..)
            .zip(self.path(id))
            .map(of)
            .fold(Caps::default(), Caps::within)
    }

    pub(super) fn spent(&self, id: NodeId) -> Spend {
        self.nodes[id].spent
    }

    pub(super) fn outstanding(&self, id: NodeId) -> Spend {
        self.nodes[id].held
    }

    pub(super) fn spend(&mut self, id: NodeId, spent: Spend) {
        self.change(id, |node| node.spent = node.spent + spent);
        self.serve();
    }

    pub(super) fn hold(&mut self, id: NodeId, held: Spend) {
        self.change(id, |node| node.held = node.held + held);
    }

    pub(super) fn settle(&mut self, id: NodeId, held: Spend, actual: Spend) {
        self.change(id, |node| {
            node.held = node.held - held;
            node.spent = node.spent + actual;
        });
        self.serve();
    }

    pub(super) fn take_call(&mut self, id: NodeId) -> Result<(), Limit> {
        let full = |node: &BudgetNode| {
            node.caps
                .tool_calls
                .is_some_and(|cap| node.spent.tool_calls >= cap)
        };
        if self.path(id).any(|(_, node)| full(node)) {
            return Err(Limit::ToolCalls);
        }
        self.change(id, |node| {
            node.spent.tool_calls = node.spent.tool_calls.saturating_add(1)
        });
        Ok(())
    }

    /// Takes a place; an agent with a reserved place gets it, independent of the current caps.
    pub(super) fn take_permit(&mut self, id: NodeId, thread: &ThreadId) -> Result<(), Limit> {
        if let Some(node) = self.kept.remove(thread) {
            self.leave_seat(node);
        } else if self
            .path(id)
            .any(|(_, node)| node.caps.agents.is_some_and(|cap| node.agents >= cap))
        {
            return Err(Limit::Agents);
        }
        self.change(id, |node| node.agents = node.agents.saturating_add(1));
        Ok(())
    }

    /// Reserves places for agents until they start or the places are released: other agents cannot take them. No one
    /// waits for a place, so a reserved one cannot block a running agent.
    pub(super) fn keep(&mut self, id: NodeId, threads: Vec<ThreadId>) {
        for thread in threads {
            self.change(id, |node| node.agents = node.agents.saturating_add(1));
            if let Some(before) = self.kept.insert(thread, id) {
                self.leave_seat(before);
            }
        }
    }

    /// True if a place is kept.
    pub(super) fn keeps_any(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Releases reserved places.
    pub(super) fn give_up(&mut self, is_in: impl Fn(&ThreadId, NodeId) -> bool) {
        let gone: Vec<_> = self
            .kept
            .extract_if(.., |thread, node| is_in(thread, *node))
            .collect();
        gone.into_iter().for_each(|(_, node)| self.leave_seat(node));
    }

    pub(super) fn leave_seat(&mut self, id: NodeId) {
        self.change(id, |node| node.agents = node.agents.saturating_sub(1));
    }

    pub(super) fn may_nest(&self, id: NodeId) -> Result<(), Limit> {
        let deep = |(above, (_, node)): (u16, (NodeId, &BudgetNode))| {
            node.caps.depth.is_some_and(|cap| above >= cap)
        };
        if (0_u16..).zip(self.path(id)).any(deep) {
            Err(Limit::Depth)
        } else {
            Ok(())
        }
    }

    pub(super) fn caps_money(&self, id: NodeId) -> bool {
        self.path(id).any(|(_, node)| node.caps.cost.is_some())
    }

    pub(super) fn blocking_limit(&self, id: NodeId) -> Option<Limit> {
        self.path(id).find_map(|(_, node)| {
            let full = |(_, spent, cap): &(Limit, u64, u64)| spent >= cap;
            node.uses().find(full).map(|(limit, ..)| limit)
        })
    }

    pub(super) fn tightest(&self, id: NodeId) -> Option<(Limit, u64, u64)> {
        let share = |(_, spent, cap): &(Limit, u64, u64)| {
            u128::from(*spent) * 1_000_000 / u128::from((*cap).max(1))
        };
        let calls = |node: &BudgetNode| {
            Some((
                Limit::ToolCalls,
                node.spent.tool_calls,
                node.caps.tool_calls?,
            ))
        };
        self.path(id)
            .flat_map(|(_, node)| node.uses().chain(calls(node)))
            .max_by_key(share)
    }

    /// Joins the line, and serves the requests that can be served.
    pub(super) fn enter(&mut self, node: NodeId, request: ReservationRequest) -> u64 {
        self.tickets += 1;
        self.line.insert(
            self.tickets,
            WaitingRequest {
                node,
                request,
                waker: None,
            },
        );
        let ticket = self.tickets;
        self.serve();
        ticket
    }

    /// Takes the decision; the waker is called when there is one.
    pub(super) fn look(&mut self, ticket: u64, waker: &Waker) -> Option<Decided> {
        if let Some(waiting) = self.line.get_mut(&ticket) {
            waiting.waker = Some(waker.clone());
        }
        self.decided.remove(&ticket).map(|(_, decided)| decided)
    }

    /// Leaves the line; a held amount is returned.
    pub(super) fn leave(&mut self, ticket: u64) {
        self.line.remove(&ticket);
        if let Some((node, Decided::Held { held, .. })) = self.decided.remove(&ticket) {
            self.change(node, |node| node.held = node.held - held);
        }
        self.serve();
    }

    /// Serves the line from its front: a request is never overtaken by one that needs the same node.
    fn serve(&mut self) {
        let mut full: BTreeSet<NodeId> = BTreeSet::new();
        let mut at = 0;
        while let Some((&ticket, waiting)) = self.line.range(at..).next() {
            at = ticket + 1;
            let (node, request) = (waiting.node, waiting.request);
            if !full.is_empty() && self.path(node).any(|(id, _)| full.contains(&id)) {
                continue;
            }
            let decided = match self.room(node, &request) {
                Room::Full(ROOT) => return,
                Room::Full(id) => {
                    full.insert(id);
                    continue;
                }
                Room::Never(limit) => Decided::Refused(limit),
                Room::Fits(output) => {
                    let held = request.spend(output);
                    self.change(node, |node| node.held = node.held + held);
                    Decided::Held { held, output }
                }
            };
            let waiting = self.line.remove(&ticket);
            self.decided.insert(ticket, (node, decided));
            waiting
                .and_then(|waiting| waiting.waker)
                .into_iter()
                .for_each(Waker::wake);
        }
    }

    fn room(&self, id: NodeId, request: &ReservationRequest) -> Room {
        let least = request.spend(request.least_output);
        let (mut output, mut full) = (request.most_output.max(request.least_output), None);
        for (at, node) in self.path(id) {
            if request.overdraws && at == id {
                continue;
            }
            let needs = [
                (
                    Limit::Tokens,
                    node.caps.tokens,
                    node.spent.tokens,
                    node.held.tokens,
                    least.tokens,
                ),
                (
                    Limit::Money,
                    node.caps.cost.map(|it| it.0),
                    node.spent.cost.0,
                    node.held.cost.0,
                    least.cost.0,
                ),
                (
                    Limit::Requests,
                    node.caps.requests,
                    node.spent.requests,
                    node.held.requests,
                    least.requests,
                ),
            ];
            for (limit, cap, spent, held, need) in needs {
                let Some(cap) = cap else { continue };
                let left = cap.saturating_sub(spent);
                if need > left {
                    return Room::Never(limit);
                }
                let now = left.saturating_sub(held);
                if need > now {
                    full = full.or(Some(at));
                    continue;
                }
                output = output.min(request.output_within(&limit, now));
            }
        }
        match full {
            Some(id) => Room::Full(id),
            None if request.most_output == UNLIMITED && output < UNLIMITED => {
                Room::Fits(output.min(USUAL_OUTPUT))
            }
            None => Room::Fits(output),
        }
    }

    /// A node and all above it.
    fn path(&self, id: NodeId) -> impl Iterator<Item = (NodeId, &BudgetNode)> {
        std::iter::successors(Some(id), |id| self.nodes[*id].up).map(|id| (id, &self.nodes[id]))
    }

    fn change(&mut self, id: NodeId, change: impl Fn(&mut BudgetNode)) {
        let mut next = Some(id);
        while let Some(id) = next {
            let node = &mut self.nodes[id];
            change(node);
            next = node.up;
        }
    }
}

impl BudgetNode {
    /// Returns the caps of the request, with their usage.
    fn uses(&self) -> impl Iterator<Item = (Limit, u64, u64)> + use<> {
        let BudgetNode { caps, spent, .. } = self;
        let tokens = caps.tokens.map(|cap| (Limit::Tokens, spent.tokens, cap));
        let cost = caps.cost.map(|cap| (Limit::Money, spent.cost.0, cap.0));
        let requests = caps
            .requests
            .map(|cap| (Limit::Requests, spent.requests, cap));
        [tokens, cost, requests].into_iter().flatten()
    }
}

impl ReservationRequest {
    /// Returns the amount that it spends with so much output.
    fn spend(&self, output: u64) -> Spend {
        // No cap limits the output, so nothing is held for it.
        let output = if output == UNLIMITED { 0 } else { output };
        let cost = u128::from(output) * u128::from(self.output_price.0);
        let cost = NanoUsd(u64::try_from(cost.div_ceil(1_000_000)).unwrap_or(u64::MAX));
        self.fixed
            + Spend {
                tokens: output,
                cost,
                ..Spend::default()
            }
    }

    /// Returns the output that fits, if so much of a limit is left.
    fn output_within(&self, limit: &Limit, left: u64) -> u64 {
        match limit {
            Limit::Tokens => left.saturating_sub(self.fixed.tokens),
            Limit::Money if self.output_price.0 > 0 => {
                let left = u128::from(left.saturating_sub(self.fixed.cost.0)) * 1_000_000;
                u64::try_from(left / u128::from(self.output_price.0)).unwrap_or(u64::MAX)
            }
            _ => u64::MAX,
        }
    }
}
