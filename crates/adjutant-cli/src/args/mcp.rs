//! The arguments of `adjutant mcp`.

use std::{net::SocketAddr, path::PathBuf};

use clap::Subcommand;

use super::agent::pair;

/// The commands for servers of the Model Context Protocol.
#[derive(Debug, Subcommand)]
pub(crate) enum Mcp {
    List(ListServers),
    Add(AddServer),
    Remove(RemoveServer),
    Test(TestServer),
    Login(Login),
    Serve(Serve),
}

/// Lists the servers of the directory and of the user: whether they are used, whether they answer, their revision and tools.
///
/// The servers of the directory are in its .mcp.json, in the form that editors and other agents read too; those of
/// the user are in $XDG_CONFIG_HOME/adjutant/mcp.json, else $HOME/.config/adjutant/mcp.json. Used servers are started
/// for the list.
#[derive(Debug, clap::Args)]
pub(crate) struct ListServers {
    #[command(flatten)]
    pub(crate) whose: OfServers,

    /// One JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Adds a server to .mcp.json of the directory: a program, or an address. The rest of the file is unchanged.
///
/// A program runs in a sandbox: it has network access, may change the directory (without bubblewrap it only reads it)
/// and the directories in its arguments, and has its own home directory. --read, --write and --no-network change this.
#[derive(Debug, clap::Args)]
pub(crate) struct AddServer {
    /// The name of the server, which is the prefix of its tools.
    pub(crate) name: String,

    /// The program and its arguments, behind `--`.
    #[arg(
        last = true,
        value_name = "COMMAND",
        required_unless_present = "url",
        conflicts_with = "url"
    )]
    pub(crate) command: Vec<String>,

    /// The address of the server, in the place of a program.
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,

    /// A header of every request; may be given several times. `Authorization=Bearer ${NAME}` takes the value of a variable.
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = pair, requires = "url")]
    pub(crate) headers: Vec<(String, String)>,

    /// A variable of the program; may be given several times. `TOKEN=${NAME}` takes the value of a variable.
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, conflicts_with = "url")]
    pub(crate) env: Vec<(String, String)>,

    /// A file or directory that the program may read, beside its directory; may be given several times.
    #[arg(long, value_name = "PATH", conflicts_with = "url")]
    pub(crate) read: Vec<PathBuf>,

    /// A file or directory that the program may change, beside its directory; may be given several times.
    #[arg(long, value_name = "PATH", conflicts_with = "url")]
    pub(crate) write: Vec<PathBuf>,

    /// The program has no network.
    #[arg(long, conflicts_with = "url")]
    pub(crate) no_network: bool,

    /// Trusts the server's description of its tools: read-only tools run without a question.
    #[arg(long)]
    pub(crate) trusted: bool,

    #[command(flatten)]
    pub(crate) place: OfFile,
}

/// Takes a server out of .mcp.json of the directory, or of the user's own file.
#[derive(Debug, clap::Args)]
pub(crate) struct RemoveServer {
    /// The name of the server.
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) place: OfFile,
}

/// Starts a server, and shows its revision, its tools with their hints, its prompts, and its problems.
#[derive(Debug, clap::Args)]
pub(crate) struct TestServer {
    /// The name of the server.
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) whose: OfServers,

    /// One JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Signs in to a server at an address: opens no browser, but shows the address to open in one.
///
/// The tokens are kept in $XDG_STATE_HOME/adjutant/mcp, else $HOME/.local/state/adjutant/mcp, for their owner alone.
#[derive(Debug, clap::Args)]
pub(crate) struct Login {
    /// The name of the server.
    pub(crate) name: String,

    /// A scope of the token; may be given several times. By default, the scopes that the server requires.
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Vec<String>,

    #[command(flatten)]
    pub(crate) whose: OfServers,
}

/// Serves a manifest to clients of the protocol: its agent as a tool, on standard input and output.
///
/// Questions of a call are sent to the client. With --http, callers on this machine reach the server at
/// http://ADDRESS/mcp with the token on standard error.
#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// The manifest; adjutant.yaml without it.
    #[arg(value_name = "MANIFEST")]
    pub(crate) file: Option<PathBuf>,

    /// Serves over HTTP at this address of this machine, as 127.0.0.1:7100.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<SocketAddr>,

    /// Trusts what the manifest wants, after it was listed; with a digest, only that.
    #[arg(long, value_name = "DIGEST", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) trust: Vec<String>,
}

/// Whose servers are looked at.
#[derive(Debug, clap::Args)]
pub(crate) struct OfServers {
    /// The directory whose .mcp.json is looked into.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) root: PathBuf,

    /// Uses the servers that came with the directory.
    #[arg(long)]
    pub(crate) trust: bool,
}

/// Which file is changed.
#[derive(Debug, clap::Args)]
pub(crate) struct OfFile {
    /// The user's own file.
    #[arg(long, conflicts_with = "project")]
    pub(crate) user: bool,

    /// .mcp.json of the directory, as without it.
    #[arg(long)]
    pub(crate) project: bool,

    /// The directory.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) root: PathBuf,
}
