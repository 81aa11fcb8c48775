//! The pauses of agents: lists them, and answers them by a command or on a terminal.

use std::{
    io::{self, BufRead, Write},
    path::Path,
    sync::Arc,
};

use adjutant::{
    Cancel,
    agent::{Answered, Pause},
    runtime::{
        Entry, Prompter,
        http::Client,
        prompt::{PausesRequest, ResumeRequest, WaitingPause, waiting_sessions},
    },
    tools::{self, AskKind},
};
use serde_json::{Value, json};

use super::{
    ask::{Asking, agent_problem, connect, converse},
    list::age,
    place::AgentFolder,
    reach::now_ms,
    standing,
};
use crate::{
    args::agent::{Answering, Approve, Deny, GivenAnswer, Pauses},
    consent::is_on_terminal,
    exit::Exit,
    plain,
    problem::Problem,
    prompt,
    resume::answers,
    run::begin,
    screen::{Screen, tell as told, write},
    talk::ask::{how, read},
    trouble::runtime_problem,
    waits,
};

/// Lists the pauses.
pub(super) async fn pauses(args: &Pauses) -> Result<Exit, Problem> {
    let place = AgentFolder::new(&args.homed, Path::new("."));
    let (mut text, now) = (String::new(), now_ms());
    for entry in place.chosen(&args.names, args.names.is_empty())? {
        if !entry
            .workspace
            .is_hosted()
            .map_err(|error| runtime_problem(&error))?
        {
            let waiting =
                waiting_sessions(&entry.workspace).map_err(|error| runtime_problem(&error))?;
            if !waiting.is_empty() {
                let (name, start) = (plain::line(&entry.name), plain::word(&entry.name));
                let start = place.command(&format!("agent start {start}"));
                told(&format!(
                    "{name}: {} sessions wait, and it does not run; `{start}` starts it",
                    waiting.len()
                ));
            }
            continue;
        }
        standing::awake(&entry)?;
        let mut waiting = waiting(&entry, &standing::client(&entry)?, None).await?;
        waiting.sort_by_key(|it| it.since_ms);
        text.extend(waiting.iter().map(|it| {
            if args.json {
                json_of(&entry, it)
            } else {
                line(&entry, it, now)
            }
        }));
    }
    write(&text)?;
    Ok(Exit::Finished)
}

/// Returns all pauses of an agent, or the pauses of one session.
async fn waiting(
    entry: &Entry,
    client: &Client,
    session: Option<&str>,
) -> Result<Vec<WaitingPause>, Problem> {
    let (mut request, mut all) = (PausesRequest::new(), Vec::new());
    request.session = session.map(Arc::from);
    loop {
        let page = client
            .pauses(request.clone())
            .await
            .map_err(|error| agent_problem(entry, &error))?;
        all.extend(page.pauses);
        match page.after {
            Some(mark) => request = request.after(mark),
            None => return Ok(all),
        }
    }
}

/// Format: `<agent>  <session>  <since>  <session>/<id>  <question>`.
fn line(entry: &Entry, waiting: &WaitingPause, now_ms: u64) -> String {
    let (agent, session) = (
        plain::line(&entry.name),
        plain::word(&plain::whole(&waiting.session)),
    );
    let since = match waiting.since_ms {
        0 => "-".to_owned(),
        since => age(now_ms.saturating_sub(since)),
    };
    let pause = &waiting.pause;
    let name = plain::word(&plain::whole(&full(waiting)));
    format!(
        "{agent}  {session}  {since}  {name}  {}{}\n",
        who(pause),
        waits::about(pause)
    )
}

/// Returns the agent that has the question, if it is not the first one.
fn who(pause: &Pause) -> String {
    if pause.path.contains('/') {
        format!("{}: ", plain::whole(&pause.path))
    } else {
        String::new()
    }
}

/// Format: `{"agent":…,"session":…,"since_ms":…,"digest":…,"id":…,"ask":…,"call":…}`.
fn json_of(entry: &Entry, waiting: &WaitingPause) -> String {
    let mut value = json!({"agent": &*entry.name});
    if let (Some(value), Ok(Value::Object(fields))) =
        (value.as_object_mut(), serde_json::to_value(waiting))
    {
        value.extend(fields);
    }
    plain::json_line(value)
}

/// Approves pauses.
pub(super) async fn approve(args: &Approve) -> Result<Exit, Problem> {
    if let Some(edit) = &args.edit {
        let wrong = || {
            Problem::new(
                Exit::Usage,
                format!("the arguments of a call are a JSON object: {edit}"),
            )
        };
        match serde_json::from_str::<Value>(edit) {
            Ok(Value::Object(_)) => {}
            Ok(_) => return Err(wrong()),
            Err(error) => return Err(wrong().cause(&error)),
        }
    }
    let edit: Option<Arc<str>> = args.edit.as_deref().map(Arc::from);
    let answer = tools::Answer::Approve {
        args: edit,
        for_run: args.always,
    };
    give(&args.answering, |_| Ok(answer.clone())).await
}

/// Denies pauses.
pub(super) async fn deny(args: &Deny) -> Result<Exit, Problem> {
    let declined = tools::Answer::Decline {
        message: Some(args.why.as_str().into()).filter(|_| !args.why.is_empty()),
    };
    let deny = |pause: &Pause| {
        Ok(if waits::is_approval(pause) {
            tools::Answer::deny(args.why.as_str())
        } else {
            declined.clone()
        })
    };
    give(&args.answering, deny).await
}

/// Answers a pause.
pub(super) async fn answer(args: &GivenAnswer) -> Result<Exit, Problem> {
    let text = match &args.text {
        Some(text) => text.clone(),
        None => prompt::read(None, &[], false)?,
    };
    give(&args.answering, |pause| {
        answers::value(pause, text.trim_end_matches('\n'))
    })
    .await
}

/// Sends answers to the named pauses, and follows the run.
async fn give(
    args: &Answering,
    answer: impl Fn(&Pause) -> Result<tools::Answer, Problem>,
) -> Result<Exit, Problem> {
    let (entry, client) = connect(&args.this).await?;
    let place = AgentFolder::new(&args.this.homed, Path::new("."));
    let waiting = waiting(&entry, &client, args.session.as_deref()).await?;
    let chosen = chosen(args, &place, &waiting)?;
    let session = chosen.first().map(|it| Arc::clone(&it.session));
    let pauses: Vec<Arc<Pause>> = chosen.iter().map(|it| Arc::clone(&it.pause)).collect();
    let mut given = Vec::with_capacity(pauses.len());
    for pause in &pauses {
        let answer = answer(pause)?;
        let unfit = |error| {
            Problem::new(
                Exit::Usage,
                format!("the answer does not fit: {}", pause.id),
            )
            .cause(&error)
        };
        answer.fits(&pause.ask).map_err(unfit)?;
        given.push(pause.with_answer(answer));
    }
    // Before Ctrl-C is handled, so that Ctrl-C ends the question and the command.
    let named = args
        .ids
        .iter()
        .zip(&pauses)
        .map(|(name, pause)| format!("{}@{}", pause.id, parts(name).1));
    answers::show(&named.collect::<Vec<_>>(), None, &pauses, &given)?;
    for (pause, given) in pauses.iter().zip(&given) {
        let does = match given.answer {
            tools::Answer::Approve { .. } => continue,
            tools::Answer::Deny { .. } | tools::Answer::Decline { .. } => "denies",
            _ => "answers",
        };
        told(&format!("{does}: {}", waits::shown(pause, None).0));
    }
    let (cancel, chatter) = begin(args.quiet, args.json)?;
    let mut request = ResumeRequest::new(given);
    request.session.clone_from(&session);
    let events = client.resume(request).await;
    let events = events.map_err(|error| agent_problem(&entry, &error))?;
    let asking = Asking {
        option: place.option().to_owned(),
        session,
        is_on_terminal: !args.json && is_on_terminal(),
        is_json: args.json,
        owns: false,
    };
    converse(&entry, &client, events, &asking, (&cancel, chatter)).await
}

/// Returns the pauses to answer, which must be in one session.
fn chosen<'a>(
    args: &Answering,
    place: &AgentFolder,
    waiting: &'a [WaitingPause],
) -> Result<Vec<&'a WaitingPause>, Problem> {
    let name = plain::word(&args.this.name);
    let listed = format!(
        "`{}` lists what waits",
        place.command(&format!("agent pauses {name}"))
    );
    let mut chosen: Vec<&WaitingPause> = Vec::new();
    match (&args.ids[..], waiting) {
        ([], []) => {
            return Err(Problem::new(Exit::Usage, format!("nothing waits: {name}")).hint(listed));
        }
        ([], [one]) => chosen.push(one),
        ([], many) => {
            let problem = Problem::new(Exit::Usage, format!("{} things wait: {name}", many.len()));
            return Err(problem.hint(format!("name those that are meant; {listed}")));
        }
        (ids, _) => {
            for id in ids {
                let found = find(id, waiting).map_err(|problem| problem.hint(listed.clone()))?;
                if chosen.iter().any(|it| std::ptr::eq(*it, found)) {
                    return Err(Problem::new(
                        Exit::Usage,
                        format!("{} is named twice", found.pause.id),
                    ));
                }
                chosen.push(found);
            }
        }
    }
    if chosen
        .windows(2)
        .any(|two| two[0].session != two[1].session)
    {
        let problem = Problem::new(Exit::Usage, "they wait in several sessions");
        return Err(problem.hint("answer the pauses of one session at a time"));
    }
    Ok(chosen)
}

/// Returns the unambiguous name of a pause: its session and its id.
fn full(waiting: &WaitingPause) -> String {
    format!("{}/{}", waiting.session, waiting.pause.id)
}

/// Splits a name into the id and the digits of the digest after `@`.
fn parts(name: &str) -> (&str, &str) {
    let is_digest = |digits: &str| {
        !digits.is_empty()
            && digits
                .bytes()
                .all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
    };
    name.rsplit_once('@')
        .filter(|(_, digits)| is_digest(digits))
        .unwrap_or((name, ""))
}

/// Finds the only pause with this name: its id or the end of it, optionally with its session; after `@` the first
/// digits of its digest, which are also sufficient without an id.
fn find<'a>(name: &str, waiting: &'a [WaitingPause]) -> Result<&'a WaitingPause, Problem> {
    let (id, digits) = parts(name);
    let exact = |it: &&WaitingPause| *it.pause.id.0 == *id || full(it) == id;
    let ends = |it: &&WaitingPause| {
        id.is_empty() && !digits.is_empty()
            || full(it)
                .strip_suffix(id)
                .is_some_and(|rest| rest.ends_with('/'))
    };
    let mut fit: Vec<&WaitingPause> = waiting.iter().filter(exact).collect();
    if fit.is_empty() {
        fit.extend(waiting.iter().filter(ends));
    }
    let is_there = !fit.is_empty();
    fit.retain(|it| it.digest.to_string().starts_with(digits));
    match &fit[..] {
        [one] => Ok(one),
        [] if is_there => Err(Problem::new(
            Exit::Usage,
            format!("what waits is not what was shown: {name}"),
        )),
        [] => Err(Problem::new(
            Exit::Usage,
            format!("nothing waits under this id: {name}"),
        )),
        many => {
            let named: Vec<String> = many.iter().map(|it| plain::word(&full(it))).collect();
            let problem = Problem::new(
                Exit::Usage,
                format!("{} things wait under this id: {name}", many.len()),
            );
            Err(problem.hint(format!("name the one that is meant: {}", named.join(", "))))
        }
    }
}

/// Prints the pauses, and how to answer them with another command.
pub(super) fn tell(entry: &Entry, pauses: &[Arc<Pause>], asking: &Asking, screen: &Screen) {
    let (mut question, mut approve, mut is_hidden) = (None, String::new(), false);
    for pause in pauses {
        let (shown, is_whole) = waits::shown(pause, None);
        screen.tell(&format!("waits: {shown}"));
        is_hidden |= !is_whole;
        if waits::is_approval(pause) {
            approve += &format!(" {}", waits::named(pause));
        } else {
            question = Some(pause);
        }
    }
    let name = plain::word(&entry.name);
    let session = asking
        .session
        .as_deref()
        .map(|it| format!(" --session {}", plain::word(it)))
        .unwrap_or_default();
    let session = format!("{session}{}", asking.option);
    screen.tell(&match question {
        _ if is_hidden => format!("hint: adjutant agent pauses {name}{} > FILE", asking.option),
        Some(pause) => format!(
            "hint: adjutant agent answer {name} {}{session} --text TEXT",
            plain::word(&pause.id.0)
        ),
        None => format!("hint: adjutant agent approve {name}{approve}{session}, or deny"),
    });
}

/// Asks on the terminal, until the user leaves a question unanswered.
pub(super) async fn ask(
    pauses: &[Arc<Pause>],
    cancel: &Cancel,
    screen: &Screen,
) -> Result<Vec<Answered>, Problem> {
    let mut given = Vec::with_capacity(pauses.len());
    for pause in pauses {
        let (shown, is_whole) = waits::shown(pause, None);
        screen.insist(&format!("? {shown}"));
        let mut question = how(pause.ask.kind).to_owned();
        let mut edited = false;
        loop {
            let Some(text) = typed(question.clone(), cancel).await? else {
                return Ok(given);
            };
            if pause.ask.kind == AskKind::Approval && !edited && matches!(text.trim(), "e" | "edit")
            {
                let args = pause
                    .call
                    .as_ref()
                    .map_or_else(|| "{}".to_owned(), |call| plain::json(&call.args));
                (question, edited) = (format!("? arguments in place of {args}"), true);
                continue;
            }
            let always = || {
                (
                    tools::Answer::Approve {
                        args: None,
                        for_run: true,
                    },
                    vec![describe_effect(pause)],
                )
            };
            match read(pause, text.trim(), (edited, is_whole), always) {
                Err(why) => screen.insist(&format!("error: {why}")),
                Ok(None) => {}
                Ok(Some((answer, notes))) => match fits(&answer, pause) {
                    Err(why) => screen.insist(&format!("error: {why}")),
                    Ok(()) => {
                        notes.iter().for_each(|note| screen.insist(note));
                        given.push(pause.with_answer(answer));
                        break;
                    }
                },
            }
            (question, edited) = (how(pause.ask.kind).to_owned(), false);
        }
    }
    Ok(given)
}

/// Describes the effect of an approval for the rest of a run.
fn describe_effect(pause: &Pause) -> String {
    let tool = pause
        .call
        .as_ref()
        .map_or_else(|| "it".to_owned(), |call| plain::whole(call.name.as_str()));
    match pause.ask.data.get("why") {
        // The approval request displays the rules that the agent adds.
        Some(_) => format!("{tool} with just this is allowed by a rule from now on"),
        None => format!("{tool} with these arguments is not asked about again in this run"),
    }
}

/// Checks that an answer matches the question, and that its arguments are an object.
fn fits(answer: &tools::Answer, pause: &Pause) -> Result<(), String> {
    if let tools::Answer::Approve {
        args: Some(args), ..
    } = answer
        && !matches!(serde_json::from_str(args), Ok(Value::Object(_)))
    {
        return Err("the arguments of a call are a JSON object".to_owned());
    }
    answer.fits(&pause.ask).map_err(|error| error.to_string())
}

/// Reads a line from the terminal; `None` at the end of the input, or when the run was cancelled.
async fn typed(question: String, cancel: &Cancel) -> Result<Option<String>, Problem> {
    let line = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        let mut stderr = io::stderr();
        write!(stderr, "{question}: ").and_then(|()| stderr.flush())?;
        let read = io::stdin().lock().read_line(&mut line)?;
        Ok::<_, io::Error>((read > 0).then_some(line))
    });
    let line = tokio::select! {
        line = line => line,
        () = cancel.cancelled() => return Ok(None),
    };
    let unread = |error: &dyn std::error::Error| {
        Problem::new(Exit::Failed, format!("the answer cannot be read: {error}"))
    };
    line.map_err(|error| unread(&error))?
        .map_err(|error| unread(&error))
}
