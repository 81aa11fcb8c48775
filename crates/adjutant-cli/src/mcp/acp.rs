//! `adjutant acp`: the agent of a directory, or of a manifest, for an editor, on standard input and output.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use adjutant::{
    Cancel,
    agent::{LogId, Run, Seq},
    protocols::acp::{self as protocol, OpenSession, SessionWish},
    runtime::{Engine, Lead},
    toolkit::Lasting,
};
use uuid::Uuid;

use super::{acp_list, serve};
use crate::{
    args::{Acp, How},
    chosen_model::{ChosenModel, Tape},
    exit::Exit,
    job::Job,
    named, plain,
    problem::Problem,
    run,
    run_manifest::RunManifest,
    screen::{Chatter, Screen, tell},
    store::{Store, StoredRun},
    talk::{self, ask},
    trouble,
    work::work,
};

/// Serves an editor until it disconnects.
pub(crate) fn acp(args: &Acp) -> Result<Exit, Problem> {
    let how = &args.how;
    let shown = [
        ("--json", how.json),
        ("--final", how.last),
        ("--show-thinking", how.show_thinking),
    ];
    let set = [
        ("--root", how.root.is_some()),
        ("--schema", how.schema.is_some()),
    ];
    if let Some((option, _)) = shown.into_iter().chain(set).find(|(_, is_said)| *is_said) {
        let problem = Problem::new(Exit::Usage, format!("{option} is not for editors"));
        return Err(problem.hint("the editor sends the prompts, and displays everything"));
    }
    work(async {
        let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
        let served = match &args.manifest {
            Some(file) => {
                let given = if how.taught.trust {
                    vec![String::new()]
                } else {
                    Vec::new()
                };
                let engine = serve::engine(file, "acp", &given).await?;
                let (sessions, place) = (engine.sessions(), engine.workspace().work());
                let list = |wish| told(acp_list::list(&sessions, wish, Some(&place)));
                protocol::serve(
                    input,
                    output,
                    |wish| told(open_manifest_session(&engine, wish)),
                    list,
                )
                .await
            }
            None => {
                let store = Store::open(&how.at).await?;
                store.notice().iter().for_each(|line| tell(line));
                let opened = Mutex::new(Vec::new());
                let sessions = store.sessions();
                let open = |wish| told(open_directory_session(how, &store, &opened, wish));
                let list = |wish| told(acp_list::list(&sessions, wish, None));
                let served = protocol::serve(input, output, open, list).await;
                for name in opened.into_inner().unwrap_or_else(PoisonError::into_inner) {
                    store.settle(&name).await;
                }
                served
            }
        };
        let failed = |error| {
            Problem::new(Exit::Failed, "the editor's messages cannot be read").cause(&error)
        };
        served.map(|()| Exit::Finished).map_err(failed)
    })
}

/// Converts the result of an operation for the editor.
async fn told<T>(done: impl Future<Output = Result<T, Problem>>) -> Result<T, String> {
    done.await.map_err(|problem| {
        problem
            .to_string()
            .trim_start_matches("error: ")
            .trim_end()
            .to_owned()
    })
}

/// A session of the agent of `adjutant run`, in the directory that the editor has open.
async fn open_directory_session(
    how: &How,
    store: &Store,
    opened: &Mutex<Vec<LogId>>,
    wish: SessionWish,
) -> Result<Option<OpenSession>, Problem> {
    let (root, sessions) = (&wish.cwd, store.sessions());
    let mut made = RunManifest::with(how, root, Some(&wish))?;
    let mut model = made.model().map(str::to_owned);
    let name = match &wish.session {
        None => run::new_name(root),
        Some(name) => {
            let Some(info) = named::known(&sessions, name).await? else {
                return Ok(None);
            };
            talk::must_be_free(&info)?;
            must_be_of(named::directory(&info)?, root)?;
            made = made.asking(named::asked(&info).map(str::to_owned))?;
            // The restrictions of the session stay in force.
            named::mode(&info)
                .into_iter()
                .for_each(|mode| made.hands.rules.set_mode(mode));
            let left = sessions
                .transcript(name, Seq(u64::MAX))
                .await
                .map_err(|error| trouble::journal_problem(&error))?;
            model = Run::config(&left)
                .map(|config| config.model.to_string())
                .or(model);
            name.clone()
        }
    };
    let model = ChosenModel::new(
        how,
        model.as_deref(),
        Tape {
            record: None,
            played: None,
        },
    )
    .await?;
    let screen = Screen::new(if how.quiet {
        Chatter::None
    } else {
        Chatter::Lines
    });
    model.notices.iter().for_each(|line| screen.tell(line));
    made.tell(&screen);
    if wish.session.is_none() {
        let about = run::about(root, &made)?;
        sessions
            .create(&name, about)
            .await
            .map_err(|error| trouble::session_problem(&error, &name.0))?;
    }
    named::keep_mode(&sessions, &name, made.hands.rules.current_mode()).await?;
    opened
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(name.clone());
    let kept = StoredRun {
        store: store.clone(),
        name: name.clone(),
    };
    let Job { agent, hands, .. } =
        Job::new(how, made, model, Cancel::new(), Some(store), Some(kept)).await?;
    let (rules, again, hands) = (hands.rules.clone(), hands.rules.clone(), Arc::new(hands));
    let resting = Arc::clone(&hands);
    let modes = [
        ["plan", "Plan", "Looks at files; all else is denied."],
        ["ask", "Ask", "Looks at files, and asks before all else."],
        [
            "edits",
            "Accept edits",
            "Changes files too, and asks before commands and addresses.",
        ],
        ["all", "All", "Asks nothing; commands run in the sandbox."],
    ];
    let current = move || rules.current_mode().to_string();
    let set = move |mode: &str| {
        mode.parse()
            .into_iter()
            .for_each(|mode| again.set_mode(mode));
        let (sessions, name, mode) = (sessions.clone(), name.clone(), again.current_mode());
        told(async move { named::keep_mode(&sessions, &name, mode).await })
    };
    let mut open = OpenSession::new(agent)
        .modes(modes, current, set)
        .on_always(move |pause| {
            let (answer, told) = ask::lasting(pause, &hands, Lasting::Call);
            told.iter().for_each(|line| tell(line));
            answer
        });
    open.rest = Arc::new(move || resting.rest());
    Ok(Some(open))
}

fn must_be_of(directory: Option<&str>, root: &Path) -> Result<(), Problem> {
    let place = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    match directory {
        Some(directory) if Path::new(directory) != place => {
            let text = format!(
                "the session is about another directory: {}",
                plain::line(directory)
            );
            Err(Problem::new(Exit::Usage, text))
        }
        _ => Ok(()),
    }
}

/// A session of the agent of a manifest.
async fn open_manifest_session(
    engine: &Engine,
    wish: SessionWish,
) -> Result<Option<OpenSession>, Problem> {
    if !wish.mcp_servers.is_empty() {
        tell(
            "mcp: warning: the servers of the editor are not used; the manifest names the agent's",
        );
    }
    let name = match &wish.session {
        Some(name) => match named::known(&engine.sessions(), name).await? {
            Some(info) => info.log,
            None => return Ok(None),
        },
        None => Uuid::new_v4().to_string().as_str().into(),
    };
    match engine
        .lead(&name.0)
        .map_err(|error| trouble::runtime_problem(&error))?
    {
        Lead::Agent(agent) => {
            let mut open = OpenSession::new(agent);
            open.root = Some(engine.workspace().work());
            Ok(Some(open))
        }
        _ => Err(Problem::new(
            Exit::Usage,
            "agents that hand the conversation on cannot be served to an editor",
        )),
    }
}
