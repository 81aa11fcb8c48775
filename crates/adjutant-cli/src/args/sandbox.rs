//! The arguments for the sandbox of commands.

use adjutant::toolkit::{Hosts, Network, Sandbox};

/// The options for what holds commands.
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
    kind: SandboxKind,

    /// What commands may reach: none, all, or the hosts of a list, as example.org,*.example.net:443 (needs bubblewrap).
    #[arg(long, value_name = "none|all|HOST[,HOST…]", default_value = "none", value_parser = network)]
    network: Network,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum SandboxKind {
    Auto,
    Bwrap,
    Landlock,
}

impl SandboxArgs {
    /// Returns the sandbox that they describe.
    pub(crate) fn sandbox(&self) -> Sandbox {
        let sandbox = match (self.kind, &self.network) {
            (SandboxKind::Auto, Network::Hosts(_)) | (SandboxKind::Bwrap, _) => Sandbox::bwrap(),
            (SandboxKind::Auto, _) => Sandbox::new(),
            (SandboxKind::Landlock, _) => Sandbox::landlock(),
        };
        sandbox.network(self.network.clone())
    }
}

/// Reads the network that commands have.
fn network(text: &str) -> Result<Network, String> {
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
