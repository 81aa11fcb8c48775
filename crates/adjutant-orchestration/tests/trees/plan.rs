//! Trees that are made up: who may do what, and what each says in each of its turns.

use proptest::{collection::vec, option, prelude::*};

/// The names of the entries.
pub(crate) const NAMES: [&str; 4] = ["ann", "bob", "cid", "dan"];
/// Who delegates first.
pub(crate) const LEAD: &str = "lead";
/// A name that no entry has.
pub(crate) const NOBODY: &str = "nobody";
/// How many requests a tree makes at most, so that none grows for ever.
pub(crate) const REQUESTS: u64 = 120;

/// A tree.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    pub(crate) lead: Vec<Line>,
    pub(crate) roles: Vec<Role>,
    /// How many levels the lead may have under itself, and how often its tasks may be handed on.
    pub(crate) depth: u16,
    pub(crate) handoffs: u32,
    pub(crate) bounds: Bounds,
    /// How many tasks are on the board.
    pub(crate) tasks: usize,
    pub(crate) strangers: Vec<Stranger>,
}

/// What a tree may come to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bounds {
    pub(crate) tokens: Option<u64>,
    pub(crate) agents: Option<u32>,
    pub(crate) depth: Option<u16>,
}

/// An entry of the registry.
#[derive(Debug, Clone, Default)]
pub(crate) struct Role {
    pub(crate) concurrency: Option<u32>,
    pub(crate) depth: u16,
    pub(crate) handoffs: u32,
    pub(crate) turns: Option<u32>,
    pub(crate) tokens: Option<u64>,
    pub(crate) lines: Vec<Line>,
}

/// One reply, and how long it takes.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) wait_ms: u64,
    pub(crate) says: Says,
}

#[derive(Debug, Clone)]
pub(crate) enum Says {
    Text,
    Work,
    Fail,
    /// Calls of `delegate` in one reply.
    Delegates(Vec<Vec<Order>>),
    Completes(bool),
    /// Two reports in one reply, the first of success.
    Twice,
    HandsOn(Who),
}

/// A task; perhaps one of the board, or one that is not there.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) agent: Who,
    pub(crate) task: Option<usize>,
}

/// Who something is for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Who {
    /// One of the other entries, counted round.
    Other(usize),
    Nobody,
    Oneself,
}

/// Another worker at the same board: it claims a task, and ends it a minute later, or dies.
#[derive(Debug, Clone)]
pub(crate) struct Stranger {
    pub(crate) at_ms: u64,
    pub(crate) task: usize,
    pub(crate) lease_ms: u64,
    pub(crate) ends: Option<bool>,
}

impl Plan {
    /// Whether what it comes to depends on nothing but what its agents say.
    pub(crate) fn is_free(&self) -> bool {
        let Bounds { tokens, agents, .. } = self.bounds;
        let is_free = |role: &Role| role.tokens.is_none();
        self.tasks == 0 && tokens.is_none() && agents.is_none() && self.roles.iter().all(is_free)
    }

    /// Who something is for, as an agent of this entry says it.
    pub(crate) fn named(&self, who: Who, own: &str) -> String {
        let others: Vec<&str> = NAMES
            .into_iter()
            .take(self.roles.len())
            .filter(|name| *name != own)
            .collect();
        match who {
            Who::Other(at) if !others.is_empty() => others[at % others.len()].to_owned(),
            Who::Oneself => format!(" {} ", own.to_uppercase()),
            Who::Other(_) | Who::Nobody => NOBODY.to_owned(),
        }
    }

    pub(crate) fn role(&self, name: &str) -> Option<&Role> {
        NAMES
            .iter()
            .position(|it| *it == name)
            .and_then(|at| self.roles.get(at))
    }
}

fn who() -> impl Strategy<Value = Who> {
    prop_oneof![40 => (0..4_usize).prop_map(Who::Other), 2 => Just(Who::Nobody), 1 => Just(Who::Oneself)]
}

fn order() -> impl Strategy<Value = Order> {
    (who(), option::of(0..4_usize)).prop_map(|(agent, task)| Order { agent, task })
}

fn line() -> impl Strategy<Value = Line> {
    let orders = || vec(order(), 1..4);
    let says = prop_oneof![
        2 => Just(Says::Text),
        3 => Just(Says::Work),
        1 => Just(Says::Fail),
        8 => orders().prop_map(|orders| Says::Delegates(vec![orders])),
        2 => (orders(), orders()).prop_map(|(one, two)| Says::Delegates(vec![one, two])),
        3 => any::<bool>().prop_map(Says::Completes),
        1 => Just(Says::Twice),
        2 => who().prop_map(Says::HandsOn),
    ];
    let wait_ms = prop_oneof![4 => Just(0), 4 => 1..20_u64, 1 => 30_000..100_000_u64];
    (wait_ms, says).prop_map(|(wait_ms, says)| Line { wait_ms, says })
}

fn role() -> impl Strategy<Value = Role> {
    let depth = prop_oneof![1 => Just(0_u16), 2 => 1..3_u16];
    let may = (option::weighted(0.4, 1..3_u32), depth, 0..3_u32);
    let spends = (
        option::weighted(0.3, 1..4_u32),
        option::weighted(0.2, 1_000..6_000_u64),
    );
    (may, spends, vec(line(), 1..4)).prop_map(
        |((concurrency, depth, handoffs), (turns, tokens), lines)| Role {
            concurrency,
            depth,
            handoffs,
            turns,
            tokens,
            lines,
        },
    )
}

fn bounds() -> impl Strategy<Value = Bounds> {
    let tokens = option::weighted(0.3, 1_000..20_000_u64);
    let (agents, depth) = (
        option::weighted(0.3, 1..5_u32),
        option::weighted(0.2, 0..3_u16),
    );
    (tokens, agents, depth).prop_map(|(tokens, agents, depth)| Bounds {
        tokens,
        agents,
        depth,
    })
}

fn stranger() -> impl Strategy<Value = Stranger> {
    let ends = option::of(any::<bool>());
    (0..60_000_u64, 0..4_usize, 1_000..200_000_u64, ends).prop_map(
        |(at_ms, task, lease_ms, ends)| Stranger {
            at_ms,
            task,
            lease_ms,
            ends,
        },
    )
}

/// Trees of any shape.
pub(crate) fn plans() -> impl Strategy<Value = Plan> {
    let delegates = vec(order(), 0..6).prop_map(|orders| Line {
        wait_ms: 0,
        says: Says::Delegates(vec![orders]),
    });
    let lead =
        (delegates, vec(line(), 0..3)).prop_map(|(first, rest)| [vec![first], rest].concat());
    let board = prop_oneof![
        (Just(0_usize), Just(Vec::new())),
        (1..4_usize, vec(stranger(), 0..3))
    ];
    let depth = prop_oneof![1 => Just(0_u16), 9 => 1..4_u16];
    (lead, vec(role(), 1..5), depth, 0..3_u32, bounds(), board).prop_map(
        |(lead, roles, depth, handoffs, bounds, (tasks, strangers))| Plan {
            lead,
            roles,
            depth,
            handoffs,
            bounds,
            tasks,
            strangers,
        },
    )
}

/// Where a log is cut, and how long it takes until the next program.
pub(crate) fn cuts() -> impl Strategy<Value = Vec<(f64, u64)>> {
    let gap = prop_oneof![2 => Just(0_u64), 1 => 100_000..300_000_u64];
    vec((0.0..1.0_f64, gap), 1..4).prop_map(|mut cuts| {
        cuts.sort_by(|one, other| one.0.total_cmp(&other.0));
        cuts
    })
}
