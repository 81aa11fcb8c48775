//! The answers of the command line to pauses.

use std::{path::Path, sync::Arc};

use adjutant::{
    agent::{Answered, Pause},
    llm::CallResult,
    tools::{Answer, AskKind},
};
use serde_json::Value;

use crate::{
    args::GivenAnswers,
    consent::{answered, is_on_terminal},
    exit::Exit,
    plain,
    problem::Problem,
    screen::tell,
    waits,
};

/// Returns the given answers; not every pause needs one.
///
/// # Errors
/// `Usage` if an answer matches no pause or does not fit, or if one pause is answered twice.
pub(crate) fn answers(
    args: &GivenAnswers,
    pauses: &[Arc<Pause>],
) -> Result<Vec<Answered>, Problem> {
    let mut given: Vec<Answered> = Vec::new();
    for (pause, answer) in named(args, pauses)? {
        if given.iter().any(|it| it.pause == pause.id) {
            return Err(Problem::new(
                Exit::Usage,
                format!("there are two answers to {}", pause.id),
            ));
        }
        given.push(pause.with_answer(answer));
    }
    let is_all = |ids: &[String]| ids.iter().any(String::is_empty);
    let (approves, denies) = (is_all(&args.approve), is_all(&args.deny));
    if approves && denies {
        return Err(
            Problem::new(Exit::Usage, "everything cannot be approved and denied")
                .hint("name an id with one"),
        );
    }
    for pause in pauses {
        if given.iter().any(|it| it.pause == pause.id) {
            continue;
        }
        let answer = if denies {
            Some(denial(args, pause))
        } else {
            None
        };
        let answer =
            answer.or_else(|| (approves && waits::is_approval(pause)).then(Answer::approve));
        given.extend(answer.map(|answer| pause.with_answer(answer)));
    }
    for Answered {
        pause: id, answer, ..
    } in &given
    {
        let pause = pauses.iter().find(|pause| pause.id == *id);
        let unfit = |error| {
            Problem::new(Exit::Usage, format!("the answer does not fit: {id}")).cause(&error)
        };
        pause
            .map_or(Ok(()), |pause| answer.fits(&pause.ask))
            .map_err(unfit)?;
    }
    Ok(given)
}

/// Returns the answers to named pauses.
fn named<'a>(
    args: &GivenAnswers,
    pauses: &'a [Arc<Pause>],
) -> Result<Vec<(&'a Pause, Answer)>, Problem> {
    let mut named = Vec::new();
    for id in args.approve.iter().filter(|id| !id.is_empty()) {
        named.push((find(id, pauses)?, Answer::approve()));
    }
    for id in args.deny.iter().filter(|id| !id.is_empty()) {
        let pause = find(id, pauses)?;
        named.push((pause, denial(args, pause)));
    }
    for answer in &args.answers {
        let Some((id, text)) = answer.split_once('=') else {
            let problem = Problem::new(
                Exit::Usage,
                format!("an answer names what it answers: {answer}"),
            );
            return Err(problem.hint("use --answer ID=TEXT"));
        };
        let pause = find(id, pauses)?;
        named.push((pause, value(pause, text)?));
    }
    Ok(named)
}

/// Prints the complete calls that these answers approve, and asks for a confirmation on a terminal, unless the answer
/// contains the digest.
///
/// # Errors
/// `Usage` if a part of a call cannot be displayed, unless the digest from a complete display is given.
pub(crate) fn show(
    named: &[String],
    root: Option<&Path>,
    pauses: &[Arc<Pause>],
    given: &[Answered],
) -> Result<(), Problem> {
    let mut is_asked = false;
    let approved = given
        .iter()
        .filter(|it| matches!(it.answer, Answer::Approve { .. }));
    for pause in approved.filter_map(|it| pauses.iter().find(|pause| pause.id == it.pause)) {
        let (shown, is_whole) = waits::shown(pause, root);
        tell(&format!("approves: {shown}"));
        let is_seen = named
            .iter()
            .any(|id| digest_of(id).is_some_and(|(id, _)| is_named(id, pause)));
        is_asked |= !is_seen;
        if !is_whole && !is_seen {
            let problem = Problem::new(
                Exit::Usage,
                format!("this is not approved unseen: {}", pause.id),
            );
            return Err(
                problem.hint("without --approve, `2> FILE` writes it whole, and how to approve it")
            );
        }
    }
    if is_asked && is_on_terminal() && !answered("approve it? [y/N] ")? {
        return Err(Problem::new(Exit::Usage, "nothing was approved"));
    }
    Ok(())
}

/// Splits an id and the digits of the digest after `@`.
fn digest_of(id: &str) -> Option<(&str, &str)> {
    let is_digest = |digits: &str| {
        (waits::DIGITS..=64).contains(&digits.len())
            && digits
                .bytes()
                .all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
    };
    id.rsplit_once('@').filter(|(_, digits)| is_digest(digits))
}

/// True if this is the id of the pause, or the part of it after a slash.
fn is_named(id: &str, pause: &Pause) -> bool {
    pause
        .id
        .0
        .strip_suffix(id)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
}

/// Finds the pause with this id, or whose id ends with it after a slash; with a digest, only if it matches.
///
/// # Errors
/// `Usage` if no pause or several pauses match, or if the pause has changed.
pub(crate) fn find<'a>(id: &str, pauses: &'a [Arc<Pause>]) -> Result<&'a Pause, Problem> {
    let Some((id, digits)) = digest_of(id) else {
        return by_id(id, pauses);
    };
    let pause = by_id(id, pauses)?;
    if pause.digest().to_string().starts_with(digits) {
        return Ok(pause);
    }
    let problem = Problem::new(
        Exit::Usage,
        format!("what waits is not what was shown: {}", pause.id),
    );
    Err(problem.hint("`adjutant resume` without answers shows it"))
}

fn by_id<'a>(id: &str, pauses: &'a [Arc<Pause>]) -> Result<&'a Pause, Problem> {
    let ends = |pause: &&Arc<Pause>| {
        pause
            .id
            .0
            .strip_suffix(id)
            .is_some_and(|rest| rest.ends_with('/'))
    };
    let mut ending = pauses.iter().filter(ends);
    let exact = pauses.iter().find(|pause| *pause.id.0 == *id);
    match (exact, ending.next(), ending.next()) {
        (Some(pause), ..) | (None, Some(pause), None) => Ok(pause),
        _ => {
            let problem = Problem::new(Exit::Usage, format!("nothing waits under this id: {id}"));
            let ids: Vec<String> = pauses
                .iter()
                .map(|pause| plain::word(&pause.id.0))
                .collect();
            Err(match &ids[..] {
                [] => problem
                    .hint("nothing waits; `adjutant resume` without answers continues the run"),
                ids => problem.hint(format!(
                    "what waits is {}; the name of a session stands first",
                    ids.join(", ")
                )),
            })
        }
    }
}

fn denial(args: &GivenAnswers, pause: &Pause) -> Answer {
    let why = args.why.clone().unwrap_or_default();
    if waits::is_approval(pause) {
        return Answer::deny(why);
    }
    Answer::Decline {
        message: args.why.is_some().then(|| why.into()),
    }
}

/// Parses a text as an answer: a result, an extension, or a value, which is the text itself if that matches, else JSON.
pub(crate) fn value(pause: &Pause, text: &str) -> Result<Answer, Problem> {
    match pause.ask.kind {
        AskKind::External => Ok(Answer::Return {
            result: CallResult::ok(text).into(),
        }),
        AskKind::Limit => match text.trim().parse() {
            Ok(by) => Ok(Answer::Extend { by, message: None }),
            Err(error) => {
                let problem = Problem::new(
                    Exit::Usage,
                    format!("by how much a limit is extended is a number: {text}"),
                );
                Err(problem.cause(&error))
            }
        },
        _ => {
            let itself = Answer::give(text);
            let json = || serde_json::from_str::<Value>(text).map(Answer::give).ok();
            Ok(match itself.fits(&pause.ask) {
                Ok(()) => itself,
                Err(_) => json().unwrap_or(itself),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use adjutant::{agent::PauseId, tools::Ask};
    use clap::Parser;
    use serde_json::json;

    use super::*;
    use crate::args::{Args, Command};

    fn pause(id: &str, ask: Ask) -> Arc<Pause> {
        let json = json!({"id": PauseId(id.into()), "ask": ask, "thread": "main"});
        Arc::new(serde_json::from_value(json).expect("a pause"))
    }

    fn pauses() -> [Arc<Pause>; 3] {
        let number = Ask {
            schema: json!({"type": "integer"}),
            ..Ask::question("how many?")
        };
        [
            pause("t/c1", Ask::approval("a?")),
            pause("t/c2", Ask::approval("b?")),
            pause("t/c3/n", number),
        ]
    }

    #[track_caller]
    fn check(args: &[&str], expect: Result<&[(&str, Answer)], &str>) {
        let args = ["adjutant", "resume", "x"].iter().chain(args);
        let Some(Command::Resume(args)) = Args::parse_from(args).command else {
            unreachable!("it is `resume`")
        };
        let found = answers(&args.given, &pauses()).map_err(|problem| problem.to_string());
        let found = found.map(|all| all.into_iter().map(|it| (it.pause, it.answer)).collect());
        let expect = expect.map(|answers| {
            let answered = |(id, answer): &(&str, Answer)| (PauseId((*id).into()), answer.clone());
            answers.iter().map(answered).collect::<Vec<_>>()
        });
        assert_eq!(found, expect.map_err(str::to_owned));
    }

    #[test]
    fn answers_go_to_all_or_to_one_when_an_id_is_left_out_or_named() {
        let yes = Answer::approve;
        check(&[], Ok(&[]));
        check(&["--approve"], Ok(&[("t/c1", yes()), ("t/c2", yes())]));
        check(&["--approve", "c2"], Ok(&[("t/c2", yes())]));
        check(
            &["--deny", "t/c1", "--why", "no", "--approve"],
            Ok(&[("t/c1", Answer::deny("no")), ("t/c2", yes())]),
        );
        check(&["--answer", "c3/n=7"], Ok(&[("t/c3/n", Answer::give(7))]));
    }

    #[test]
    fn answers_are_refused_when_they_answer_nothing_or_twice() {
        let twice = "error: there are two answers to t/c1\n";
        check(&["--approve", "c1", "--deny", "t/c1"], Err(twice));
        let unknown = "error: nothing waits under this id: c9\n\
                       hint: what waits is t/c1, t/c2, t/c3/n; the name of a session stands first\n";
        check(&["--approve", "c9"], Err(unknown));
        let all = "error: everything cannot be approved and denied\nhint: name an id with one\n";
        check(&["--approve", "--deny"], Err(all));
    }
}
