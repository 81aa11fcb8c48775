//! `adjutant view`: serves the web UI for sessions, in a browser of this machine.

use std::{
    env, fs,
    io::{self, IsTerminal},
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use adjutant::{
    Cancel,
    agent::LogInfo,
    llm::private,
    runtime::{
        Error, ErrorKind, Prompter,
        control::{ControlClient, ControlFile},
        prompt::StoredPrompter,
    },
    toolkit::{Files, Undo},
};
use adjutant_server::View;
use tokio::time::sleep;

use crate::{
    agent::place::AgentFolder,
    args,
    exit::Exit,
    interrupt, named,
    problem::Problem,
    screen::{Chatter, tell, write},
    store::Store,
    trouble::runtime_problem,
    up,
    work::work,
};

/// The name of the store in the view.
const STORE: &str = "store";
/// The time for a browser to read the file that redirects it to the web UI.
const OPENS_WITHIN: Duration = Duration::from_secs(10);

/// A file that redirects a browser to the web UI. Only the user can read the file; the arguments of a process are
/// visible to all users.
struct Opener(PathBuf);

/// Serves the web UI for the sessions of a store, until Ctrl-C.
pub(crate) fn view(args: &args::ViewPage) -> Result<Exit, Problem> {
    work(perform(args))
}

async fn perform(args: &args::ViewPage) -> Result<Exit, Problem> {
    if args.agents {
        return agents(args).await;
    }
    let store = Store::find(&args.at).await?;
    let stop = Cancel::new();
    interrupt::listen(stop.clone(), Chatter::Lines)
        .map_err(|error| Problem::new(Exit::Failed, "cannot listen for Ctrl-C").cause(&error))?;
    let asked = up::asked_to_end(stop.clone())?;
    let prompter: Arc<dyn Prompter> = Arc::new(prompter(&store));
    let view = View::bind([(STORE.into(), prompter)], args.port)
        .await
        .map_err(|error| runtime_problem(&error))?;
    let opened = shown(&view.url(), args.no_open)?;
    tell(
        "the page is there until Ctrl-C; the address holds its token: whoever has it can do what you can",
    );
    view.serve(async { stop.cancelled().await }).await;
    drop(opened);
    Ok(if *asked.borrow() {
        Exit::Finished
    } else {
        Exit::Cancelled
    })
}

/// Prints the address at which `adjutant up` serves the web UI.
async fn agents(args: &args::ViewPage) -> Result<Exit, Problem> {
    let place = AgentFolder::new(&args.homed, &args.directory);
    let up = || place.command("up");
    let file = ControlFile::read(&place.home)
        .map_err(|error| runtime_problem(&error).hint(format!("`{}` first", up())))?;
    let there = ControlClient::new(file.address, file.token.as_str())
        .map_err(|error| runtime_problem(&error))?;
    // It may have ended in the meantime.
    there
        .agents()
        .await
        .map_err(|error| runtime_problem(&error).hint(format!("`{}` first", up())))?;
    let opened = shown(
        &adjutant_server::url(file.address, &file.token),
        args.no_open,
    )?;
    if opened.is_some() {
        sleep(OPENS_WITHIN).await;
    }
    Ok(Exit::Finished)
}

/// Prints the address of the web UI, and opens it for a user at a terminal.
fn shown(url: &str, no_open: bool) -> Result<Option<Opener>, Problem> {
    write(&format!("{url}\n"))?;
    Ok((!no_open && io::stdout().is_terminal())
        .then(|| Opener::open(url))
        .flatten())
}

/// Returns the sessions of a store; files can be restored in sessions with a local directory.
pub(crate) fn prompter(store: &Store) -> StoredPrompter {
    let prompter = match store.opened().due_work() {
        Ok(due) => StoredPrompter::with_queue(due),
        Err(_) => StoredPrompter::new(store.journal()),
    };
    let store = store.clone();
    prompter.undo(move |info| restoring(&store, info))
}

fn restoring(store: &Store, info: &LogInfo) -> Result<(Undo, Files), Error> {
    let refused = |problem: Problem| Error::new(ErrorKind::Invalid, problem.line());
    let none = || {
        Error::new(
            ErrorKind::Invalid,
            format!("the session has no directory: {}", info.log),
        )
    };
    let directory = named::directory(info).map_err(refused)?.ok_or_else(none)?;
    let files =
        Files::new(directory).map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))?;
    Ok((store.undo().map_err(refused)?, files))
}

impl Opener {
    /// Opens an address in the user's browser; `None` without a desktop.
    fn open(url: &str) -> Option<Self> {
        let program = match env::consts::OS {
            "macos" => "open",
            "windows" => "explorer",
            _ if env::var_os("DISPLAY")
                .or_else(|| env::var_os("WAYLAND_DISPLAY"))
                .is_some() =>
            {
                "xdg-open"
            }
            _ => return None,
        };
        let folder = env::temp_dir().join(format!("adjutant-view-{}", uuid::Uuid::new_v4()));
        private::folder(&folder).ok()?;
        let opener = Self(folder);
        let file = opener.0.join("open.html");
        let page = format!(
            "<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0; url={url}\">"
        );
        fs::write(&file, page).ok()?;
        let quiet = Command::new(program)
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        quiet.is_ok().then_some(opener)
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        // The system also cleans its directory of temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
