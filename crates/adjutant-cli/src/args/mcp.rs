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

/// Lists the servers of the project and of the user: whether they are used, whether they answer, their revision and
/// tools.
///
/// The project's servers are in its .mcp.json, in the format that editors and other agents also read; the user's
/// servers are in $XDG_CONFIG_HOME/adjutant/mcp.json, else $HOME/.config/adjutant/mcp.json. Used servers are started
/// for the list.
#[derive(Debug, clap::Args)]
pub(crate) struct ListServers {
    #[command(flatten)]
    pub(crate) whose: OfServers,

    /// Prints one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Adds a server to .mcp.json of the project: a program or an address. The rest of the file is unchanged.
///
/// A program runs in a sandbox: it has network access, its own home directory, and may change the project (without
/// bubblewrap it only reads it) and the directories in its arguments. --read, --write and --no-network change this.
#[derive(Debug, clap::Args)]
pub(crate) struct AddServer {
    /// The name of the server, which is the prefix of its tools.
    pub(crate) name: String,

    /// The program and its arguments, after `--`.
    #[arg(
        last = true,
        value_name = "COMMAND",
        required_unless_present = "url",
        conflicts_with = "url"
    )]
    pub(crate) command: Vec<String>,

    /// The address of the server, instead of a program.
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,

    /// A header of every request; can be repeated. `Authorization=Bearer ${NAME}` uses the value of a variable.
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = pair, requires = "url")]
    pub(crate) headers: Vec<(String, String)>,

    /// An environment variable of the program; can be repeated. `TOKEN=${NAME}` uses the value of a variable.
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, conflicts_with = "url")]
    pub(crate) env: Vec<(String, String)>,

    /// An additional file or directory that the program may read; can be repeated.
    #[arg(long, value_name = "PATH", conflicts_with = "url")]
    pub(crate) read: Vec<PathBuf>,

    /// An additional file or directory that the program may change; can be repeated.
    #[arg(long, value_name = "PATH", conflicts_with = "url")]
    pub(crate) write: Vec<PathBuf>,

    /// Disables the network of the program.
    #[arg(long, conflicts_with = "url")]
    pub(crate) no_network: bool,

    /// Trusts the server's description of its tools: read-only tools run without approval.
    #[arg(long)]
    pub(crate) trusted: bool,

    #[command(flatten)]
    pub(crate) place: OfFile,
}

/// Removes a server from .mcp.json of the project, or from the user's own file.
#[derive(Debug, clap::Args)]
pub(crate) struct RemoveServer {
    /// The name of the server.
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) place: OfFile,
}

/// Starts a server, and shows its revision, its tools with their hints, its prompts, and its errors.
#[derive(Debug, clap::Args)]
pub(crate) struct TestServer {
    /// The name of the server.
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) whose: OfServers,

    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Signs in to a server at an address. Prints the address to open in a browser.
///
/// The tokens are stored in $XDG_STATE_HOME/adjutant/mcp, else $HOME/.local/state/adjutant/mcp, readable only by their
/// owner.
#[derive(Debug, clap::Args)]
pub(crate) struct Login {
    /// The name of the server.
    pub(crate) name: String,

    /// A scope of the token; can be repeated. By default, the scopes that the server requires.
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Vec<String>,

    #[command(flatten)]
    pub(crate) whose: OfServers,
}

/// Serves a manifest to MCP clients: its agent as a tool, on standard input and output.
///
/// Questions of a call are sent to the client. With --http, clients on this machine reach the server at
/// http://ADDRESS/mcp with the token that is printed on standard error.
#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// The manifest; by default adjutant.yaml.
    #[arg(value_name = "MANIFEST")]
    pub(crate) file: Option<PathBuf>,

    /// Serves over HTTP at this loopback address, as 127.0.0.1:7100.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<SocketAddr>,

    /// Trusts the permissions that the manifest requests, after listing them; with a digest, only that content.
    #[arg(long, value_name = "DIGEST", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) trust: Vec<String>,
}

/// The choice of servers.
#[derive(Debug, clap::Args)]
pub(crate) struct OfServers {
    /// The project, whose .mcp.json is read.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) root: PathBuf,

    /// Trusts the servers of the project.
    #[arg(long)]
    pub(crate) trust: bool,
}

/// The choice of the file to change.
#[derive(Debug, clap::Args)]
pub(crate) struct OfFile {
    /// Changes the user's own file.
    #[arg(long, conflicts_with = "project")]
    pub(crate) user: bool,

    /// Changes .mcp.json of the project; this is the default.
    #[arg(long)]
    pub(crate) project: bool,

    /// The project directory.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) root: PathBuf,
}
