//! Teams: a lead and members that work at the same time and write to each other, as long as a run of the lead lasts.
//!
//! The members are agents under the lead's run, so usage, budgets, hooks and cancellation work as for every subagent. A team has no separate conversation: its messages are in the log.
//!
//! ```
//! use adjutant_agent::Agent;
//! use adjutant_llm::{Script, ScriptedModel};
//! use adjutant_orchestration::team::Team;
//! use serde_json::json;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime").block_on(async {
//! let writer = Agent::new(ScriptedModel::new([Script::new().text("A poem.")]));
//! let script = [
//!     Script::new().call("spawn_teammate", json!({"name": "writer", "task": "Write a poem."})),
//!     Script::new().call("wait_for_team", json!({})),
//!     Script::new().call("read_messages", json!({})),
//!     Script::new().text("It is written."),
//! ];
//! let lead = Team::new("poets").template("writer", writer).install(Agent::new(ScriptedModel::new(script)));
//! let result = lead.run("A poem, please.").await?;
//! assert!(result.calls[2].result.text().contains("A poem."));
//! assert_eq!(result.text(), "It is written.");
//! # Ok::<(), adjutant_agent::Error>(())
//! # }).expect("the run finishes");
//! ```

mod drive;
mod effects;
mod ended;
mod find;
mod lead_tools;
mod mailbox;
mod member;
mod past;
mod post;
mod recipe;
mod report;
mod roster;
mod rule;
mod talk_tools;
mod texts;
mod wait;

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use adjutant_agent::{Agent, Caps, Limits};
use adjutant_llm::{SystemWorld, World};
use adjutant_tool::{Tools, toolbox_fn};

use drive::{OpenRosters, Surround};
pub use mailbox::{Address, Mailbox, MemoryMailbox, Message, MessageKind, Pick};
pub use report::{MemberReport, MemberStatus, TeamReport};

/// The name of the lead in its team.
pub const LEAD: &str = "lead";

/// A team that an agent can lead; cheap to clone.
///
/// Every run of the lead begins with an empty mailbox and no running members, and ends its members. Members of
/// earlier runs are listed, and can get a new task in their conversation. The state of a team is in the lead's log: a
/// run that is resumed in another program continues with every member that was running, every unread message, and the
/// spent budget, and the lead is notified before its next request. The same team can be led by several agents, and in
/// several sessions at a time, independently of each other.
#[derive(Clone)]
pub struct Team {
    plan: Arc<TeamPlan>,
    open: Arc<OpenRosters>,
}

/// The parts that a team is made of.
#[derive(Clone)]
struct TeamPlan {
    name: Arc<str>,
    max_size: Option<usize>,
    member_timeout: Option<Duration>,
    member_limits: Option<Limits>,
    max_member_turns: Option<u32>,
    caps: Caps,
    templates: BTreeMap<Arc<str>, Agent>,
    invents: bool,
    coordinator: bool,
    board: Option<Tools>,
    mailbox: Arc<dyn Mailbox>,
    world: Arc<dyn World>,
    reports: Option<Arc<Hears>>,
}

type Hears = dyn Fn(&TeamReport) + Send + Sync;

impl Team {
    /// A team without templates, of any size, whose lead can create members from a prompt.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        let plan = TeamPlan {
            name: name.into(),
            max_size: None,
            member_timeout: None,
            member_limits: None,
            max_member_turns: None,
            caps: Caps::default(),
            templates: BTreeMap::new(),
            invents: true,
            coordinator: false,
            board: None,
            mailbox: Arc::new(MemoryMailbox::new()),
            world: Arc::new(SystemWorld),
            reports: None,
        };
        Self {
            plan: Arc::new(plan),
            open: Arc::default(),
        }
    }

    /// Sets the number of members that can run at a time; ended ones do not count.
    #[must_use]
    pub fn max_size(self, members: usize) -> Self {
        self.with(|plan| plan.max_size = Some(members))
    }

    /// Sets the time limit of a member for one task; the lead can request less.
    #[must_use]
    pub fn member_timeout(self, timeout: Duration) -> Self {
        self.with(|plan| plan.member_timeout = Some(timeout))
    }

    /// Sets the limits of members made from a prompt; a template has its own.
    #[must_use]
    pub fn member_limits(self, limits: Limits) -> Self {
        self.with(|plan| plan.member_limits = Some(limits))
    }

    /// Sets how many requests the lead may allow a member for one task at most; 50 without it.
    #[must_use]
    pub fn max_member_turns(self, turns: u32) -> Self {
        self.with(|plan| plan.max_member_turns = Some(turns))
    }

    /// Sets what all members together may spend in one run: tokens, money and requests.
    ///
    /// Checked before each request of a member, which ends with that limit when nothing is left. Requests are counted
    /// exactly. Tokens and cost can be exceeded by concurrent requests; the caps of the lead's run, which apply to
    /// everything under it, cannot.
    #[must_use]
    pub fn member_caps(self, caps: Caps) -> Self {
        self.with(|plan| plan.caps = caps)
    }

    /// Adds a member that the lead may spawn, by the name of the template or under another one.
    #[must_use]
    pub fn template(self, name: impl Into<Arc<str>>, agent: Agent) -> Self {
        let name = name.into();
        self.with(|plan| drop(plan.templates.insert(name, agent)))
    }

    /// Allows members from templates only.
    #[must_use]
    pub fn templates_only(self) -> Self {
        self.with(|plan| plan.invents = false)
    }

    /// Restricts the lead to the tools of the team: its own are neither offered nor run.
    #[must_use]
    pub fn coordinator(self) -> Self {
        self.with(|plan| plan.coordinator = true)
    }

    /// Gives these tools to the lead and to every member, for example the tools of a shared board.
    #[must_use]
    pub fn board_tools(self, tools: Tools) -> Self {
        self.with(|plan| plan.board = Some(tools))
    }

    /// Sets where messages wait; in memory without it.
    #[must_use]
    pub fn mailbox(self, mailbox: impl Mailbox + 'static) -> Self {
        self.with(|plan| plan.mailbox = Arc::new(mailbox))
    }

    /// Sets the clock of messages and members, and the ids of rooms.
    #[must_use]
    pub fn world(self, world: impl World + 'static) -> Self {
        self.with(|plan| plan.world = Arc::new(world))
    }

    /// Sets a function that gets a report at the end of every run, on every path, about the members and the unread
    /// messages. Its panic is handled like one of a middleware.
    #[must_use]
    pub fn on_end(self, told: impl Fn(&TeamReport) + Send + Sync + 'static) -> Self {
        self.with(|plan| plan.reports = Some(Arc::new(told)))
    }

    /// Returns the name of the team.
    pub fn name(&self) -> &str {
        &self.plan.name
    }

    /// The agent as lead of this team: with its tools, and the rules of its end.
    ///
    /// Members have no part in them, nor has any agent under the lead that has the lead's configuration.
    #[must_use]
    pub fn install(&self, lead: Agent) -> Agent {
        let Self { plan, open } = self.clone();
        let (tools, hidden) = (lead_tools::tools(&plan, &open), Arc::clone(&open));
        let set = tools.toolset().clone();
        let board = plan.board.clone();
        let toolbox = toolbox_fn("team", move |_| {
            let set = if hidden.is_nested() {
                Ok(adjutant_tool::Toolset::default())
            } else {
                Ok(set.clone())
            };
            async move { set }
        });
        let names = tools
            .names()
            .chain(board.iter().flat_map(Tools::names))
            .cloned()
            .collect();
        let lead = lead
            .toolbox(toolbox)
            .effect(effects::Lead::new(&plan, &open, names));
        let lead = match board {
            Some(board) => lead.toolbox(board),
            None => lead,
        };
        let (turns, ends) = (Arc::clone(&open), Arc::clone(&open));
        lead.on(move |cx, point| rule::after_turn(turns.here(), cx, point))
            .on(move |cx, point| rule::after_agent(ends.here(), cx, point))
            .middleware(Surround { plan, open })
    }

    fn with(mut self, change: impl FnOnce(&mut TeamPlan)) -> Self {
        change(Arc::make_mut(&mut self.plan));
        self
    }
}

impl fmt::Debug for Team {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Team")
            .field("name", &self.plan.name)
            .field("templates", &self.plan.templates.keys().collect::<Vec<_>>())
            .field("coordinator", &self.plan.coordinator)
            .finish_non_exhaustive()
    }
}
