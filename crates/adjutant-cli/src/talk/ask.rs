//! What is asked in a conversation, and the answers that are typed in place.

use std::{collections::VecDeque, sync::Arc};

use adjutant::{
    agent::Pause,
    tools::{Answer, AskKind},
};
use tokio::sync::oneshot;

use super::diff;
use crate::{
    paper::{Paper, input::Board},
    plain,
    resume::answers,
    waits::{self, MAX_ON_TERMINAL},
};

/// A question of a run, and where its answer goes.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) pause: Arc<Pause>,
    pub(crate) answer: oneshot::Sender<Answer>,
}

/// The questions that are open, the first of them shown.
#[derive(Debug)]
pub(crate) struct Questions {
    board: Arc<Board>,
    open: VecDeque<Question>,
    /// False if the first one could not be shown whole, so that nobody may agree to it.
    is_whole: bool,
}

/// What a line was to the question that is shown.
#[derive(Debug, PartialEq)]
pub(crate) enum Hearing {
    /// An answer; true if the same need never be asked again.
    Answered(Arc<Pause>, bool),
    /// No answer to it.
    Other,
    /// An answer that does not fit, for this reason.
    Unfit(String),
}

impl Questions {
    pub(crate) fn new(board: Arc<Board>) -> Self {
        Self { board, open: VecDeque::new(), is_whole: true }
    }

    /// Takes a question, and shows it unless another one is shown.
    pub(crate) fn push(&mut self, question: Question, paper: &Paper) {
        self.open.push_back(question);
        if self.open.len() == 1 {
            self.show(paper);
        }
    }

    /// Forgets the questions that nobody waits for any more, and shows the next one.
    pub(crate) fn sweep(&mut self, paper: &Paper) {
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

    /// True if nothing is asked.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.open.clear();
        self.board.ask(None);
    }

    /// Takes a line as the answer to the question that is shown.
    pub(crate) fn hear(&mut self, text: &str, edited: bool, paper: &Paper) -> Hearing {
        let Some(Question { pause, .. }) = self.open.front() else { return Hearing::Other };
        let pause = Arc::clone(pause);
        let (answer, always) = match self.read(&pause, text.trim(), edited) {
            Ok(Some(answer)) => answer,
            Ok(None) => return Hearing::Other,
            Err(why) => return Hearing::Unfit(why),
        };
        if let Err(error) = answer.fits(&pause.ask) {
            return Hearing::Unfit(error.to_string());
        }
        if let Some(question) = self.open.pop_front() {
            // A call that ended meanwhile needs no answer.
            let _ = question.answer.send(answer);
        }
        self.show(paper);
        Hearing::Answered(pause, always)
    }

    /// Reads an answer; none if it is something else.
    fn read(&self, pause: &Pause, text: &str, edited: bool) -> Result<Option<(Answer, bool)>, String> {
        if edited {
            return Ok(Some((Answer::approve_with(text), false)));
        }
        if !waits::is_approval(pause) {
            let declined = || Answer::Decline { message: None };
            let answer = if text.is_empty() { Ok(declined()) } else { answers::value(pause, text) };
            return answer.map(|answer| Some((answer, false))).map_err(|problem| problem.line());
        }
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        Ok(match (word.to_ascii_lowercase().as_str(), rest.trim()) {
            ("y" | "yes" | "a" | "always", "") if !self.is_whole => {
                return Err("it is too long to be shown here, so nobody agrees to it; n denies it".to_owned());
            }
            ("y" | "yes", "") => Some((Answer::approve(), false)),
            ("a" | "always", "") if pause.ask.kind == AskKind::Approval => {
                Some((Answer::Approve { args: None, for_run: true }, true))
            }
            ("n" | "no", reason) => Some((Answer::deny(reason), false)),
            _ => None,
        })
    }

    /// Shows the first question whole: what it would do, and how it is answered.
    fn show(&mut self, paper: &Paper) {
        let Some(question) = self.open.front() else { return self.board.ask(None) };
        let pause = &question.pause;
        let call = pause.call.as_ref();
        let change = call.and_then(|call| diff::of_call(call.name.as_str(), &call.args));
        let is_usual =
            call.is_some_and(|call| pause.key.is_none() && *pause.ask.prompt == *waits::usual(call.name.as_str()));
        let who = if pause.path.contains('/') { format!("{}: ", plain::whole(&pause.path)) } else { String::new() };
        let about = match &change {
            Some(_) if is_usual => format!("{who}{}", call.map_or("", |call| call.name.as_str())),
            _ => format!("{who}{}", waits::about(pause)),
        };
        let changed = change.map(|lines| diff::shown(&lines, true, paper.style)).unwrap_or_default();
        self.is_whole = about.len() + changed.len() <= MAX_ON_TERMINAL;
        if self.is_whole {
            paper.tell(&format!("? {about}"));
            paper.print(changed);
        } else {
            paper.tell(&format!("? {}… ({} bytes)", plain::line(&about), about.len() + changed.len()));
        }
        // What is typed from here on may be an answer: the question is shown.
        let args = call
            .filter(|_| pause.ask.kind == AskKind::Approval)
            .map(|call| plain::json_line(&*call.args).trim_end().to_owned());
        self.board.ask(Some(args.unwrap_or_default()));
        paper.tell(match pause.ask.kind {
            AskKind::Approval => "? y(es), n(o) and why, e(dit), a(lways)",
            AskKind::Authorisation => "? y(es) when it is given, n(o)",
            AskKind::Limit => "? by how much it is extended; an empty line declines",
            _ => "? your answer; an empty line declines",
        });
    }
}
