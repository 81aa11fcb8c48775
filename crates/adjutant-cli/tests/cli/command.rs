//! Starts the command with nothing of the surroundings but what a test gives, and reads what it wrote.

use std::{
    io::Write,
    process::{Child, Command, Output, Stdio},
};

use adjutant::llm::{Script, ScriptedModel, Usage};
use adjutant_testing::Loopback;
use serde_json::Value;

/// A key that must never be seen.
pub(crate) const KEY: &str = "sk-very-secret-0123456789";

/// Which vendor's wire is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vendor {
    Anthropic,
    OpenAi,
    Gemini,
    /// OpenAI's older wire, which most others speak.
    Chat,
}

/// One of each wire.
pub(crate) const WIRES: [Vendor; 4] = [
    Vendor::Anthropic,
    Vendor::OpenAi,
    Vendor::Gemini,
    Vendor::Chat,
];
/// Two that differ in everything, for what is not a matter of the wire.
pub(crate) const VENDORS: [Vendor; 2] = [Vendor::Anthropic, Vendor::OpenAi];

/// What the user saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The bytes of the directory of the tests and of the kernel's name.
fn place_bytes() -> u64 {
    let directory = std::env::current_dir().expect("a directory");
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    (directory.as_os_str().len() + kernel.trim().len()) as u64
}

impl Vendor {
    pub(crate) fn model(self) -> &'static str {
        match self {
            Vendor::Anthropic => "anthropic/claude-sonnet-5",
            Vendor::OpenAi => "openai/gpt-5",
            Vendor::Gemini => "gemini/gemini-3.5-flash",
            Vendor::Chat => "openai-chat/gpt-5",
        }
    }

    /// How many bytes, and how many frames, end a short answer in its middle.
    pub(crate) fn middle(self) -> (u64, u64) {
        match self {
            Vendor::Anthropic => (700, 5),
            // Two frames repeat the instructions, with the directory and the kernel in them.
            Vendor::OpenAi => (3_514 + 2 * place_bytes(), 6),
            Vendor::Gemini => (700, 2),
            Vendor::Chat => (1_000, 3),
        }
    }

    /// The key, and where a server is.
    pub(crate) fn variables(self, server: &Loopback) -> [(&'static str, String); 2] {
        match self {
            Vendor::Anthropic => [
                ("ANTHROPIC_API_KEY", KEY.into()),
                ("ANTHROPIC_BASE_URL", server.anthropic_base_url()),
            ],
            Vendor::Gemini => [
                ("GEMINI_API_KEY", KEY.into()),
                ("GEMINI_BASE_URL", server.gemini_base_url()),
            ],
            Vendor::OpenAi | Vendor::Chat => [
                ("OPENAI_API_KEY", KEY.into()),
                ("OPENAI_BASE_URL", server.openai_base_url()),
            ],
        }
    }
}

/// The command in an empty environment, without input.
pub(crate) fn adjutant(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_adjutant"));
    command
        .env_clear()
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// `run` against a server, with its key, on this wire; nothing is tried again.
pub(crate) fn run(vendor: Vendor, server: &Loopback, args: &[&str]) -> Command {
    let mut command = run_again(vendor, server, args);
    command.args(["--retries", "0"]);
    command
}

/// `run` against a server, with its key, on this wire; what fails is tried again.
pub(crate) fn run_again(vendor: Vendor, server: &Loopback, args: &[&str]) -> Command {
    let mut command = adjutant(&["run", "--model", vendor.model()]);
    command.envs(vendor.variables(server)).args(args);
    command
}

pub(crate) fn seen(mut command: Command) -> Seen {
    command.output().expect("the command starts").into()
}

/// Runs the command with this input.
pub(crate) fn seen_with(mut command: Command, input: &str) -> Seen {
    let mut child = command
        .stdin(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin
        .write_all(input.as_bytes())
        .expect("the command reads its input");
    drop(stdin);
    end(child)
}

/// Waits for the end of a command that runs.
pub(crate) fn end(child: Child) -> Seen {
    child.wait_with_output().expect("the command ends").into()
}

impl From<Output> for Seen {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the outputs are UTF-8");
        // The servers of tests are on this machine, so that this is told by nearly all runs; `wires` looks at it.
        let is_told = |line: &&str| !line.contains(" goes to 127.0.0.1:");
        let stderr = text(output.stderr)
            .split_inclusive('\n')
            .filter(is_told)
            .collect();
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr,
        }
    }
}

impl Seen {
    #[track_caller]
    pub(crate) fn check(&self, code: i32, stdout: &str, stderr: &str) {
        let expect = Seen {
            code: Some(code),
            stdout: stdout.into(),
            stderr: stderr.into(),
        };
        assert_eq!(*self, expect, "\n{}\n{}", self.stdout, self.stderr);
    }

    /// Every line of standard output as JSON.
    #[track_caller]
    pub(crate) fn events(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).expect("every line is JSON"))
            .collect()
    }

    /// The same without what differs from run to run: the server's address and how long calls took.
    pub(crate) fn normal(mut self, server: &Loopback) -> Self {
        let text = self.stderr.replace(&server.addr().to_string(), "HOST");
        let words = |line: &str| {
            let mut words: Vec<&str> = line.split(' ').collect();
            for at in 1..words.len() {
                if words[at].trim_end_matches(':') == "ms" {
                    words[at - 1] = "N";
                }
            }
            words.join(" ")
        };
        self.stderr = text.lines().map(|line| words(line) + "\n").collect();
        self
    }
}

/// What every scripted reply of these tests uses.
pub(crate) fn usage() -> Usage {
    Usage {
        input_uncached: 1_000,
        output: 50,
        ..Usage::default()
    }
}

pub(crate) fn says(text: &str) -> Script {
    Script::new().text(text).usage(usage())
}

pub(crate) fn serve(scripts: impl IntoIterator<Item = Script>) -> Loopback {
    Loopback::start_blocking(ScriptedModel::new(scripts)).expect("a port")
}
