//! The arguments for the sandbox of commands.

use std::path::PathBuf;

use adjutant::toolkit::{CommandLimits, Hosts, Network, Sandbox};

/// The options of the sandbox of commands.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SandboxArgs {
    /// The sandbox of commands: auto (the strongest one of this machine), bwrap (bubblewrap) or landlock. If it cannot
    /// work, no command runs.
    #[arg(
        long = "sandbox",
        value_enum,
        value_name = "auto|bwrap|landlock",
        default_value = "auto"
    )]
    pub(crate) kind: SandboxKind,

    /// The network of commands: none, all, or a list of hosts, for example example.org,*.example.net:443 (needs
    /// bubblewrap). By default, the setting of settings.yaml, else none. It also applies to fetched pages.
    #[arg(long, value_name = "none|all|HOST[,HOST…]", value_parser = network)]
    pub(crate) network: Option<Network>,

    /// Lets commands read this file or directory; can be repeated.
    ///
    /// Settings for every run: `sandbox:` with network, read, write, env and limits in $XDG_CONFIG_HOME/adjutant/settings.yaml,
    /// else $HOME/.config/adjutant/settings.yaml. Without --trust, the file .adjutant/settings.yaml of a directory can
    /// only restrict them.
    #[arg(long, value_name = "PATH")]
    pub(crate) allow_read: Vec<PathBuf>,

    /// Lets commands read and change this file or directory; can be repeated.
    #[arg(long, value_name = "PATH")]
    pub(crate) allow_write: Vec<PathBuf>,

    /// Passes this variable on to commands; can be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) env: Vec<String>,

    /// Opens this port of the commands' network on 127.0.0.1 for you: a server that the agent starts is reached there. Needs
    /// bubblewrap and no `--network`; can be repeated.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) publish: Vec<u16>,
    /// Sets a limit of each command: memory=4G, disk=50G (all files that it writes), file=20G (each file), cpu=10m or
    /// processes=1000. `none` removes one. Can be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = limit)]
    pub(crate) limit: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum SandboxKind {
    #[default]
    Auto,
    Bwrap,
    Landlock,
}

impl SandboxKind {
    /// Returns the sandbox with this network.
    pub(crate) fn sandbox(self, network: Network) -> Sandbox {
        let sandbox = match (self, &network) {
            (Self::Auto, Network::Hosts(_)) | (Self::Bwrap, _) => Sandbox::bwrap(),
            (Self::Auto, _) => Sandbox::new(),
            (Self::Landlock, _) => Sandbox::landlock(),
        };
        sandbox.network(network)
    }
}

/// Checks a limit of commands.
pub(crate) fn limit(text: &str) -> Result<String, String> {
    CommandLimits::default().set(text)?;
    Ok(text.to_owned())
}

/// Parses the network of commands.
pub(crate) fn network(text: &str) -> Result<Network, String> {
    let is_word = |host: &str| {
        ["none", "all"]
            .iter()
            .any(|word| host.trim().eq_ignore_ascii_case(word))
    };
    Ok(match text.trim() {
        "none" => Network::None,
        "all" => Network::All,
        hosts if hosts.split(',').any(is_word) => {
            return Err("`none` and `all` stand alone, in small letters".into());
        }
        hosts => Network::Hosts(Hosts::new(hosts.split(',')).map_err(|error| error.to_string())?),
    })
}
