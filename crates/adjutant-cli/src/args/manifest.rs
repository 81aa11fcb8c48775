//! The arguments of `adjutant init` and `adjutant manifest`.

use std::path::PathBuf;

use adjutant::runtime::manifest;
use clap::Subcommand;

/// Writes a manifest with comments, adjutant.yaml, that runs immediately and without a key.
///
/// An existing file is kept unless --force is given.
#[derive(Debug, clap::Args)]
pub(crate) struct Init {
    /// The directory of the new manifest; it is created if it does not exist.
    #[arg(default_value = ".", value_name = "DIR")]
    pub(crate) folder: PathBuf,

    /// Replaces an existing manifest.
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

/// Prints every error of a manifest as file:line:column, and its warnings.
///
/// The exit code is 2 if the manifest has errors.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckManifest {
    /// The manifest.
    #[arg(default_value = manifest::FILE_NAME, value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Prints one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prints the resolved manifest: with everything that it extends and includes, and its variables.
///
/// It never contains credentials: `needs` lists the names of the variables that hold them.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowManifest {
    /// The manifest.
    #[arg(default_value = manifest::FILE_NAME, value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Prints one JSON object instead of YAML.
    #[arg(long)]
    pub(crate) json: bool,
}
