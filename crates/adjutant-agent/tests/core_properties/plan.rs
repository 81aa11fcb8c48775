//! What a session is tried with, all chosen by chance and small when it shrinks.

use adjutant_agent::{AtLimit, Drain, Lane, Limits};
use adjutant_llm::{Error, ErrorKind, FinishReason, Script, Usage};
use proptest::{collection::vec, prelude::*, sample::select};

/// A session: how its agent is made, and what is done with it.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) gear: Gear,
    pub(crate) steps: Vec<Step>,
}

/// What an agent is made with; lists are gone through again and again.
#[derive(Debug, Clone)]
pub(crate) struct Gear {
    /// What hooks say; there are none if this is empty.
    pub(crate) says: Vec<Say>,
    pub(crate) deeds: Vec<Deed>,
    pub(crate) around: Vec<Around>,
    /// How pauses are answered in place; nobody is there if this is empty.
    pub(crate) reactions: Vec<Reaction>,
    /// What the summariser writes; nothing is compacted if this is empty.
    pub(crate) summaries: Vec<Writing>,
    /// Whether masks, windows, trimming and detectors act.
    pub(crate) masks: bool,
    pub(crate) drains: (Drain, Drain),
}

/// What a hook says.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Say {
    Pass,
    Change,
    Deny,
    Panic,
    Fail,
}

/// What an effect does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Deed {
    Nothing,
    Remind,
    Hide,
    Mask,
    Fold,
    Misfit,
    Remember,
    Report,
    Charge,
    Ask,
    Stop,
    Fail,
    Panic,
}

/// What a middleware does with a drive.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Around {
    Through,
    Judges,
    Fails,
    Skips,
    PanicsBefore,
    PanicsAfter,
    /// Goes away after so many polls.
    Leaves(usize),
    Prompts,
}

/// How a pause is answered in place.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reaction {
    Nobody,
    Fits(u8),
    Misfits,
    Panics,
}

/// What the summariser writes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Writing {
    Good,
    Empty,
    Fails,
    Calls,
}

/// One run, and what is done if it waits.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// Queued before the run.
    pub(crate) queued: Vec<Lane>,
    pub(crate) lines: Vec<Line>,
    pub(crate) cut: Cut,
    /// What is done at an event counted from 0.
    pub(crate) pokes: Vec<(usize, Poke)>,
    pub(crate) turns: u32,
    pub(crate) parallel: u32,
    pub(crate) at_limit: AtLimit,
    pub(crate) afters: Vec<After>,
}

/// One reply.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    text: bool,
    calls: Vec<(&'static str, &'static str)>,
    void: bool,
    end: End,
    used: u64,
}

#[derive(Debug, Clone, Copy)]
enum End {
    Said,
    Stop(FinishReason),
    Breaks,
    Overflows,
}

/// How a drive is stopped, at an event counted from 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cut {
    Never,
    Handle(usize),
    Token(usize),
    Drop(usize),
}

/// What someone else does while a run is at work.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Poke {
    Queue(Lane),
    Custom,
    Interrupt,
    Withdraw,
    Abort,
}

/// What is done with a run that waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct After {
    pub(crate) how: How,
    pub(crate) cut: Cut,
    pub(crate) choice: u8,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum How {
    Here,
    Elsewhere,
    Wrongly,
    GivesUp,
}

/// The tools that a script may call; `nobody` is unknown on purpose.
const TOOLS: [&str; 17] = [
    "echo", "write", "body", "away", "own", "pair", "pure", "panics", "fails", "solo", "hangs",
    "polite", "maybe", "enough", "idem", "large", "nobody",
];
const ARGS: [&str; 4] = [r#"{"n":1}"#, r#"{"n":2}"#, "{}", r#"{"n":"#];
const STOPS: [FinishReason; 4] = [
    FinishReason::Length,
    FinishReason::Refused,
    FinishReason::Filtered,
    FinishReason::Paused,
];

pub(crate) fn plans() -> impl Strategy<Value = Plan> {
    (gear(), vec(step(), 1..3)).prop_map(|(gear, steps)| Plan { gear, steps })
}

fn maybe<T: std::fmt::Debug + Clone>(
    some: impl Strategy<Value = Vec<T>>,
) -> impl Strategy<Value = Vec<T>> {
    prop_oneof![Just(Vec::new()), some]
}

fn gear() -> impl Strategy<Value = Gear> {
    let say = prop_oneof![30 => Just(Say::Pass), 5 => Just(Say::Change), 1 => Just(Say::Deny), 1 => Just(Say::Panic), 1 => Just(Say::Fail)];
    let deeds = [
        Deed::Nothing,
        Deed::Remind,
        Deed::Hide,
        Deed::Mask,
        Deed::Fold,
        Deed::Remember,
        Deed::Report,
    ];
    let deed = prop_oneof![
        16 => select(deeds.to_vec()),
        4 => select(vec![Deed::Charge, Deed::Ask]),
        1 => select(vec![Deed::Stop, Deed::Fail, Deed::Panic, Deed::Misfit]),
    ];
    let around = prop_oneof![
        6 => Just(Around::Through),
        3 => select(vec![Around::Judges, Around::Fails, Around::Skips, Around::PanicsBefore, Around::PanicsAfter]),
        1 => Just(Around::Prompts),
        1 => (0_usize..60).prop_map(Around::Leaves),
    ];
    let reaction = prop_oneof![
        2 => Just(Reaction::Nobody),
        6 => any::<u8>().prop_map(Reaction::Fits),
        1 => Just(Reaction::Misfits),
        1 => Just(Reaction::Panics),
    ];
    let writing = prop_oneof![4 => Just(Writing::Good), 3 => select(vec![Writing::Empty, Writing::Fails, Writing::Calls])];
    let drain = || select(vec![Drain::One, Drain::All]);
    let lists = (
        maybe(vec(say, 1..40)),
        maybe(vec(deed, 1..6)),
        maybe(vec(around, 1..4)),
    );
    let others = (
        maybe(vec(reaction, 1..4)),
        maybe(vec(writing, 1..4)),
        any::<bool>(),
        (drain(), drain()),
    );
    (lists, others).prop_map(
        |((says, deeds, around), (reactions, summaries, masks, drains))| Gear {
            says,
            deeds,
            around,
            reactions,
            summaries,
            masks,
            drains,
        },
    )
}

fn cut() -> impl Strategy<Value = Cut> {
    prop_oneof![
        6 => Just(Cut::Never),
        1 => (0_usize..50).prop_map(Cut::Handle),
        1 => (0_usize..50).prop_map(Cut::Token),
        1 => (0_usize..50).prop_map(Cut::Drop),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let lane = || select(vec![Lane::Steering, Lane::FollowUp]);
    let poke = prop_oneof![
        4 => lane().prop_map(Poke::Queue),
        1 => Just(Poke::Custom),
        2 => Just(Poke::Interrupt),
        2 => Just(Poke::Withdraw),
        1 => Just(Poke::Abort),
    ];
    let how = prop_oneof![4 => Just(How::Here), 3 => Just(How::Elsewhere), 1 => Just(How::Wrongly), 1 => Just(How::GivesUp)];
    let after = (how, cut(), any::<u8>()).prop_map(|(how, cut, choice)| After { how, cut, choice });
    let at_limit = select(vec![AtLimit::End, AtLimit::LastTurn, AtLimit::Ask]);
    let said = (
        vec(lane(), 0..3),
        vec(line(), 0..5),
        cut(),
        vec((0_usize..40, poke), 0..4),
    );
    (said, (1_u32..5, 1_u32..4, at_limit), vec(after, 0..5)).prop_map(
        |((queued, lines, cut, pokes), (turns, parallel, at_limit), afters)| Step {
            queued,
            lines,
            cut,
            pokes,
            turns,
            parallel,
            at_limit,
            afters,
        },
    )
}

fn line() -> impl Strategy<Value = Line> {
    let args = prop_oneof![4 => Just(ARGS[0]), 2 => Just(ARGS[1]), 1 => select(ARGS.to_vec())];
    let end = prop_oneof![
        10 => Just(End::Said),
        1 => select(STOPS.to_vec()).prop_map(End::Stop),
        1 => Just(End::Breaks),
        1 => Just(End::Overflows),
    ];
    (
        any::<bool>(),
        vec((select(TOOLS.to_vec()), args), 0..4),
        prop::bool::weighted(0.1),
        end,
        0_u64..400,
    )
        .prop_map(|(text, calls, void, end, used)| Line {
            text,
            calls,
            void,
            end,
            used,
        })
}

impl Line {
    /// A reply that calls these tools.
    pub(crate) fn calling(tools: &[&'static str]) -> Self {
        let calls = tools.iter().map(|tool| (*tool, ARGS[0])).collect();
        Self {
            text: false,
            calls,
            void: false,
            end: End::Said,
            used: 0,
        }
    }

    pub(crate) fn script(&self) -> Script {
        let broken = || Error::new(ErrorKind::Network, "the connection broke");
        let usage = Usage {
            input_uncached: self.used,
            output: 7,
            ..Usage::default()
        };
        let mut script = Script::new().delta_chars(6).usage(usage);
        if self.text {
            script = script.text("some text");
        }
        script = self
            .calls
            .iter()
            .fold(script, |script, (tool, args)| script.call_raw(*tool, *args));
        if self.void {
            let usage = Usage {
                output: 3,
                ..Usage::default()
            };
            script =
                script.after_retracted(Script::new().text("never mind").usage(usage), broken());
        }
        match self.end {
            End::Said => script,
            End::Stop(stop) => script.stop(stop),
            End::Breaks => script.fail(broken()),
            End::Overflows => {
                script.fail(Error::new(ErrorKind::Overflow, "the request does not fit"))
            }
        }
    }
}

impl Step {
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            max_turns: Some(self.turns),
            max_parallel_tools: self.parallel,
            at_limit: self.at_limit,
            ..Limits::default()
        }
    }
}
