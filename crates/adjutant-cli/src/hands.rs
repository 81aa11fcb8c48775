//! The tools of the default agent: its toolboxes, and the rules for every call.

use std::{
    fs::OpenOptions,
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use adjutant::{
    agent::{Digest, Journal, LogId, Record, Seq},
    llm::private,
    toolkit::{
        AccessMode, Edits, Fetch, Files, Git, Network, Plan, Rule, Rules, Sandbox, Shell,
        TextFiles, Undo, ask_user,
    },
    tools::{ToolSpec, Toolbox, Tools},
};
use futures_util::StreamExt;

use crate::{
    consent::Trusting,
    exit::Exit,
    file,
    problem::Problem,
    servers::Servers,
    settings::{self, SandboxSettings},
    store,
};

/// The rules of a directory.
const PROJECT: &str = ".adjutant/rules";

/// The tools and the sandbox of an agent in a directory.
#[derive(Debug)]
pub(crate) struct Hands {
    pub(crate) files: Files,
    pub(crate) boxes: Vec<Tools>,
    shell: Shell,
    /// The sandbox of commands.
    pub(crate) sandbox: Sandbox,
    pub(crate) rules: Rules,
    /// The servers of the directory and of the user.
    pub(crate) servers: Servers,
    /// Notices about the rules, one line each.
    pub(crate) warnings: Vec<String>,
    /// The directory, with links resolved.
    pub(crate) root: PathBuf,
    /// The file with the rules that the user approved for this directory. It is in the user's state directory, so that
    /// no project can provide it.
    agreed: Option<PathBuf>,
}

impl Hands {
    /// Creates the tools for a directory, with its rules and the user's. The `allow` rules of the directory apply only
    /// if they are trusted, because their author would decide which calls run without approval.
    ///
    /// # Errors
    /// `Usage` if the directory or its rules cannot be used.
    pub(crate) fn new(
        root: &Path,
        mode: AccessMode,
        settings: SandboxSettings,
        is_trusted: bool,
        lent: Option<Arc<dyn TextFiles>>,
    ) -> Result<Self, Problem> {
        let servers = Servers::find(
            root,
            if is_trusted {
                Trusting::Given
            } else {
                Trusting::Asked
            },
        )?;
        let wrong = |error| {
            Problem::from_error(Exit::Usage, &error).hint("--root names the directory to work on")
        };
        let files = lent
            .into_iter()
            .fold(Files::new(root).map_err(wrong)?, Files::lent_by);
        let place = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let network = settings.network();
        let sandbox = settings.sandbox();
        let git = Git::new(root, sandbox.clone()).map_err(wrong)?;
        let shell = Shell::new(root, sandbox.clone()).map_err(wrong)?;
        let mut shell = settings.env.iter().fold(shell, Shell::variable);
        for port in &settings.publish {
            shell = shell
                .publish(*port)
                .map_err(|error| Problem::from_error(Exit::Usage, &error))?;
        }
        let (plan, ask) = (Plan::new().toolbox(), ask_user());
        let boxes = vec![
            files.toolbox(),
            Edits::new(&files).toolbox(),
            shell.toolbox(),
            git.toolbox(),
            plan,
            ask,
        ];
        let agreed = rules_file(&place);
        let rules = Rules::new(&place).mode(mode).in_sandbox(sandbox.holds());
        let warnings = servers.told.iter().chain(&settings.told).cloned().collect();
        let mut hands = Self {
            files,
            boxes,
            shell,
            rules,
            sandbox,
            servers,
            warnings,
            root: place,
            agreed,
        };
        if let Some(file) = hands.agreed.clone().filter(|file| file.is_file()) {
            hands.read(&file, &file.to_string_lossy(), true)?;
        }
        if let Some(file) = usual().filter(|file| file.is_file()) {
            hands.read(&file, &file.to_string_lossy(), true)?;
        }
        let file = root.join(PROJECT);
        match file.symlink_metadata() {
            Ok(found) if found.is_file() => hands.read(&file, PROJECT, is_trusted)?,
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            // An existing rules file that cannot be read must not be ignored.
            Ok(_) | Err(_) => {
                let problem = Problem::new(
                    Exit::Usage,
                    format!("{PROJECT} is no file that can be read"),
                );
                return Err(problem.hint("rules stand in a plain file, and a link is none"));
            }
        }
        // `fetch` has the same network as commands.
        if network == Network::None {
            let none = "deny fetch(*)".parse::<Rule>().map(|mut rule| {
                rule.from = "--network none, which holds by default; --network all or --network HOST allows more".into();
                rule
            });
            hands
                .rules
                .add(none)
                .map_err(|error| Problem::from_error(Exit::Usage, &error))?;
        }
        let fetch = Fetch::new().rules(hands.rules.clone());
        let fetch = match network {
            Network::All => fetch,
            Network::Hosts(hosts) => fetch.admit(move |host, port| match hosts.has(host, port) {
                true => Ok(()),
                false => Err(format!(
                    "{host}:{port} is not in the list of --network; hint: ask the user to add it"
                )),
            }),
            _ => fetch.admit(|_, _| {
                Err("there is no network; hint: ask the user for --network".to_owned())
            }),
        };
        hands.boxes.push(fetch.toolbox());
        Ok(hands)
    }

    fn read(&mut self, file: &Path, name: &str, is_trusted: bool) -> Result<(), Problem> {
        let text = file::text(file, "the rules")?;
        let is_unused = |line: &&str| !is_trusted && line.trim_start().starts_with("allow");
        let unused = text.lines().filter(is_unused).count();
        // Ignored lines become empty, so that line numbers stay the same.
        let used: String = text
            .lines()
            .map(|line| {
                if is_unused(&line) {
                    "\n".to_owned()
                } else {
                    format!("{line}\n")
                }
            })
            .collect();
        let rules = self.rules.clone().with(&used, name);
        self.rules = rules.map_err(|error| Problem::from_error(Exit::Usage, &error))?;
        if unused > 0 {
            let hint = "hint: read them, then say --trust";
            self.warnings.push(format!(
                "rules: {name}: warning: nobody trusts what it allows: {unused} not used; {hint}"
            ));
        }
        Ok(())
    }

    /// Stores rules that the user approved for this directory.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn keep_rules(&self, rules: &[Rule]) -> io::Result<()> {
        let Some(file) = &self.agreed else {
            return Err(io::Error::other("HOME is not set"));
        };
        private::folder(file.parent().unwrap_or(file))?;
        let mut file = private::file(OpenOptions::new().append(true).create(true)).open(file)?;
        let lines: String = rules.iter().map(|rule| format!("{rule}\n")).collect();
        file.write_all(lines.as_bytes())
    }

    /// Saves the previous content of files before its tools change them.
    pub(crate) fn keep(&mut self, undo: Undo) {
        let edits = Edits::new(&self.files).undo(undo).toolbox();
        if let Some(tools) = self
            .boxes
            .iter_mut()
            .find(|tools| tools.name() == edits.name())
        {
            *tools = edits;
        }
    }

    /// Terminates the background commands of a finished run.
    pub(crate) fn rest(&self) {
        self.shell.end_run();
    }

    /// Returns all tools.
    pub(crate) fn tools(&self) -> impl Iterator<Item = &ToolSpec> {
        self.boxes
            .iter()
            .flat_map(|tools| tools.toolset().iter())
            .map(|tool| tool.spec())
    }

    /// Restores the rules that the user added earlier in a session of this user.
    pub(crate) async fn restore(&self, journal: &dyn Journal, log: &LogId) {
        let mut records = journal.read(log, Seq(0));
        // The process that runs the session reports an unreadable log.
        while let Some(Ok(stamped)) = records.next().await {
            if let Record::App { kind, data, .. } = &stamped.record {
                self.rules.restore(kind, data);
            }
        }
    }
}

/// Returns the file of the rules that the user approved for a directory, below `adjutant/rules` in the user's state
/// directory.
fn rules_file(root: &Path) -> Option<PathBuf> {
    let name = Digest::compute(root.as_os_str().as_encoded_bytes()).to_string();
    let state = store::usual().ok()?.with_file_name("rules");
    Some(state.join(name.get(..32)?))
}

/// Returns the file of the user's own rules.
fn usual() -> Option<PathBuf> {
    settings::folder().map(|folder| folder.join("rules"))
}
