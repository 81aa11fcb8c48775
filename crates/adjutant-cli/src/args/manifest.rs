//! The arguments of `adjutant init` and `adjutant manifest`.

use std::path::PathBuf;

use adjutant::runtime::manifest;
use clap::Subcommand;

/// Writes a manifest with comments, adjutant.yaml, that runs at once and without a key.
///
/// A file that is there is kept, unless --force is given.
#[derive(Debug, clap::Args)]
pub(crate) struct Init {
    /// The directory that it is written into; it is made if it is not there.
    #[arg(default_value = ".", value_name = "DIR")]
    pub(crate) folder: PathBuf,

    /// Replaces a manifest that is there.
    #[arg(long)]
    pub(crate) force: bool,
}

/// The commands for manifests.
#[derive(Debug, Subcommand)]
pub(crate) enum ManifestCommand {
    Check(CheckManifest),
    Show(ShowManifest),
    /// Prints the JSON Schema of manifests, for editors.
    Schema,
}

/// Shows every error in a manifest as file:line:column, and its warnings.
///
/// The exit code is 2 if something is wrong.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckManifest {
    /// The manifest.
    #[arg(default_value = manifest::FILE_NAME, value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// One JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prints what will run: the manifest with everything that it extends and includes, and its variables.
///
/// Credentials are never part of it: `needs` lists the names of the variables that hold them.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowManifest {
    /// The manifest.
    #[arg(default_value = manifest::FILE_NAME, value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// One JSON object instead of YAML.
    #[arg(long)]
    pub(crate) json: bool,
}
