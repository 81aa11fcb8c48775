//! The questions of a conversation, and the answers that the user types.

use std::{collections::VecDeque, sync::Arc};

use adjutant::{
    agent::Pause,
    llm::CallId,
    toolkit::{Decision, Lasting},
    tools::{Answer, AskKind, ToolSpec},
};
use serde_json::Value;
use tokio::sync::oneshot;

use super::diff;
use crate::{
    hands::Hands,
    paper::{Paper, input::Board},
    plain,
    resume::answers,
    waits::{self, MAX_ON_TERMINAL},
};

/// A question of a run, and the channel for its answer.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) pause: Arc<Pause>,
    pub(crate) answer: oneshot::Sender<Answer>,
}

/// The open questions; the first one is displayed.
#[derive(Debug)]
pub(crate) struct Questions {
    board: Arc<Board>,
    open: VecDeque<Question>,
    /// False if the first question could not be displayed completely; it cannot be approved then.
    is_whole: bool,
    /// The number of the question that was displayed last.
    shown: u64,
    /// The calls that had a question in this run.
    calls: Vec<CallId>,
}

/// The meaning of a line for the displayed question.
#[derive(Debug, PartialEq)]
pub(crate) enum Hearing {
    /// An answer, and messages about it.
    Answered(Vec<String>),
    /// Not an answer.
    Other,
    /// An invalid answer, with the reason.
    Unfit(String),
}

impl Questions {
    pub(crate) fn new(board: Arc<Board>) -> Self {
        Self {
            board,
            open: VecDeque::new(),
            is_whole: true,
            shown: 0,
            calls: Vec::new(),
        }
    }

    /// Adds a question, and displays it if it is the first one.
    pub(crate) fn push(&mut self, question: Question, paper: &mut Paper) {
        self.calls.extend(question.pause.call_id());
        self.open.push_back(question);
        if self.open.len() == 1 {
            self.show(paper);
        }
    }

    /// Removes questions whose run no longer waits, and displays the next one.
    pub(crate) fn sweep(&mut self, paper: &mut Paper) {
        let is_over = |question: &Question| question.answer.is_closed();
        if !self.open.iter().any(is_over) {
            return;
        }
        let is_shown_over = self.open.front().is_some_and(is_over);
        self.open.retain(|question| !is_over(question));
        if is_shown_over {
            self.show(paper);
        }
    }

    /// True if this call had a question in this run.
    pub(crate) fn was_asked(&self, call: CallId) -> bool {
        self.calls.contains(&call)
    }

    /// True if there are no open questions.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Removes all questions.
    pub(crate) fn clear(&mut self) {
        self.open.clear();
        self.calls.clear();
        self.board.ask(0, String::new());
    }

    /// Processes a line as the answer to the question that was displayed when the line was started, if it is still
    /// displayed.
    pub(crate) fn hear(
        &mut self,
        text: &str,
        (answers, edited): (u64, bool),
        hands: &Hands,
        paper: &mut Paper,
    ) -> Hearing {
        let Some(Question { pause, .. }) = self.open.front().filter(|_| answers == self.shown)
        else {
            return Hearing::Other;
        };
        let pause = Arc::clone(pause);
        let read = read(&pause, text.trim(), (edited, self.is_whole), || {
            lasting(&pause, hands, Lasting::Call)
        });
        let read = match read {
            Ok(None) if self.is_whole && matches!(text.trim(), "p" | "prefix") => {
                match pause.ask.data["prefix"].is_string() {
                    true => Ok(Some(lasting(&pause, hands, Lasting::Prefix))),
                    false => Err("no rule is offered for the first words of this".to_owned()),
                }
            }
            read => read,
        };
        let (answer, told) = match read {
            Ok(Some(answer)) => answer,
            Ok(None) => return Hearing::Other,
            Err(why) => return Hearing::Unfit(why),
        };
        if let Err(error) = answer.fits(&pause.ask) {
            return Hearing::Unfit(error.to_string());
        }
        if edited {
            // The executed call differs from the displayed one.
            self.calls.retain(|call| pause.call_id() != Some(*call));
        }
        if let Some(question) = self.open.pop_front() {
            // A call that ended in the meantime needs no answer.
            let _ = question.answer.send(answer);
        }
        self.show(paper);
        Hearing::Answered(told)
    }

    /// Displays the first question completely, with its effect and the possible answers.
    fn show(&mut self, paper: &mut Paper) {
        let Some(question) = self.open.front() else {
            return self.board.ask(0, String::new());
        };
        let pause = &question.pause;
        let call = pause.call.as_ref();
        let change = call.and_then(|call| diff::call_diff(call.name.as_str(), &call.args));
        let is_usual = call.is_some_and(|call| {
            pause.key.is_none() && *pause.ask.prompt == *waits::usual(call.name.as_str())
        });
        let who = if pause.path.contains('/') {
            format!("{}: ", plain::whole(&pause.path))
        } else {
            String::new()
        };
        // The reason of a rule; the rest of its text repeats the arguments.
        let why = pause
            .ask
            .data
            .get("why")
            .and_then(Value::as_str)
            .filter(|_| pause.key.is_none());
        let about = match call {
            Some(call) if change.is_some() && (is_usual || why.is_some()) => {
                format!("{who}{}", call.name)
            }
            Some(call) if why.is_some() && pause.refused.is_empty() => {
                format!(
                    "{who}{} {}",
                    plain::whole(call.name.as_str()),
                    plain::json(&call.args)
                )
            }
            _ => format!("{who}{}", waits::about(pause)),
        };
        let changed = change
            .map(|lines| diff::shown(&lines, true, paper.style))
            .unwrap_or_default();
        self.is_whole = about.len() + changed.len() <= MAX_ON_TERMINAL;
        if self.is_whole {
            paper.tell(&format!("? {about}"));
            paper.print(changed);
            why.into_iter()
                .for_each(|why| paper.tell(&format!("  {}", plain::line(why))));
            offers(pause)
                .iter()
                .for_each(|offer| paper.tell(&format!("  {offer}")));
        } else {
            paper.tell(&format!(
                "? {}… ({} bytes)",
                plain::line(&about),
                about.len() + changed.len()
            ));
        }
        // From here on, typed text can be an answer, because the question is displayed.
        let args = call
            .filter(|_| pause.ask.kind == AskKind::Approval)
            .map(|call| plain::json_line(&*call.args).trim_end().to_owned());
        self.shown += 1;
        self.board.ask(self.shown, args.unwrap_or_default());
        paper.wait("waiting for your answer");
        let prefix = if pause.ask.data["prefix"].is_string() {
            ", p(refix)"
        } else {
            ""
        };
        paper.tell(&format!("{}{prefix}", how(pause.ask.kind)));
    }
}

/// Returns the rules of a lasting approval word for word, one line each.
pub(crate) fn offers(pause: &Pause) -> Vec<String> {
    let data = &pause.ask.data;
    let always = data["always"].as_array().into_iter().flatten();
    let always = always
        .filter_map(Value::as_str)
        .map(|rule| format!("always: {}", plain::whole(rule)));
    let prefix = data["prefix"].as_str().map(|rule| {
        format!(
            "prefix: {}, in this directory from now on; it may run the project's code",
            plain::whole(rule)
        )
    });
    always.chain(prefix).collect()
}

/// Describes how to answer a question of this kind on a terminal.
pub(crate) fn how(kind: AskKind) -> &'static str {
    match kind {
        AskKind::Approval => "? y(es), n(o) and why, e(dit), a(lways)",
        AskKind::Authorisation => "? y(es) when it is given, n(o)",
        AskKind::Limit => "? by how much it is extended; an empty line declines",
        _ => "? your answer; an empty line declines",
    }
}

/// Parses typed text as an answer, or as edited arguments; `None` if it is neither.
///
/// # Errors
/// The reason why it is not a valid answer.
pub(crate) fn read(
    pause: &Pause,
    text: &str,
    (edited, is_whole): (bool, bool),
    always: impl FnOnce() -> (Answer, Vec<String>),
) -> Result<Option<(Answer, Vec<String>)>, String> {
    let bare = |answer| Some((answer, Vec::new()));
    if edited {
        return Ok(bare(Answer::approve_with(text)));
    }
    if !waits::is_approval(pause) {
        let declined = || Answer::Decline { message: None };
        let answer = if text.is_empty() {
            Ok(declined())
        } else {
            answers::value(pause, text)
        };
        return answer.map(bare).map_err(|problem| problem.line());
    }
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    Ok(match (word.to_ascii_lowercase().as_str(), rest.trim()) {
        ("y" | "yes" | "a" | "always", "") if !is_whole => {
            return Err(
                "it is too long to be shown here, so nobody agrees to it; n denies it".to_owned(),
            );
        }
        ("y" | "yes", "") => bare(Answer::approve()),
        ("a" | "always", "") if pause.ask.kind == AskKind::Approval => Some(always()),
        ("n" | "no", reason) => bare(Answer::deny(reason)),
        _ => None,
    })
}

/// Approves a call permanently: with the same arguments for the rest of the run if `--ask` names its tool, else by the
/// displayed rules. Every other call is approved once.
pub(crate) fn lasting(pause: &Pause, hands: &Hands, lasting: Lasting) -> (Answer, Vec<String>) {
    let once = |why: &str| {
        (
            Answer::approve(),
            vec![format!("only this once: {}", plain::line(why))],
        )
    };
    let Some(call) = &pause.call else {
        return once("it is about no call");
    };
    if *pause.ask.prompt == *waits::usual(call.name.as_str()) {
        let told = format!(
            "{} with these arguments is not asked about again in this run",
            plain::whole(call.name.as_str())
        );
        return (
            Answer::Approve {
                args: None,
                for_run: true,
            },
            vec![told],
        );
    }
    // Rules know only the names of a server's tools.
    let of_server = || {
        hands
            .servers
            .may_have(call.name.as_str())
            .then(|| ToolSpec::new(call.name.clone(), "", Value::Null))
    };
    let spec = hands
        .tools()
        .find(|spec| *spec.name() == call.name)
        .cloned()
        .or_else(of_server);
    let args = serde_json::from_str::<Value>(&call.args).ok();
    let Some((spec, args)) = spec.zip(args).filter(|_| pause.key.is_none()) else {
        return once("no rule is about it");
    };
    match hands.rules.agree(&spec, &args, (&pause.ask, lasting)) {
        Err(error) => once(&error.to_string()),
        Ok(rules) => {
            let ruling = hands.rules.decide(&spec, &args);
            if ruling.decision != Decision::Allow {
                return once(&ruling.why);
            }
            let (of, kept) = match lasting {
                Lasting::Call => ("session", Ok(())),
                Lasting::Prefix => ("directory", hands.keep_rules(&rules)),
            };
            let told = rules
                .iter()
                .map(|rule| format!("rule of this {of}: {}", plain::whole(&rule.to_string())));
            let unkept = kept
                .err()
                .map(|error| format!("warning: the rule lasts for this session only: {error}"));
            (Answer::approve(), told.chain(unkept).collect())
        }
    }
}
