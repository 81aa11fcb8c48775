//! The state that the commands of a session share.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

#[cfg(target_os = "linux")]
use super::{guard::Guard, holder::SessionNetwork};

/// The state that the commands of a session share: `/tmp`, `/dev/shm`, a network, and the check of protected files.
#[derive(Debug)]
pub struct Session {
    folder: PathBuf,
    #[cfg(target_os = "linux")]
    guard: Arc<Guard>,
    #[cfg(target_os = "linux")]
    network: SessionNetwork,
}

impl Session {
    /// A session of commands below `root`, in a directory that contains `tmp` and `shm`.
    pub(crate) fn new(root: &Path, folder: &Path) -> Arc<Self> {
        #[cfg(not(target_os = "linux"))]
        let _ = root;
        Arc::new(Self {
            folder: folder.to_owned(),
            #[cfg(target_os = "linux")]
            guard: Guard::new(root),
            #[cfg(target_os = "linux")]
            network: SessionNetwork::default(),
        })
    }

    /// The directory whose `tmp` and `shm` are `/tmp` and `/dev/shm`.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    #[cfg(target_os = "linux")]
    pub(super) fn guard(&self) -> &Arc<Guard> {
        &self.guard
    }

    #[cfg(target_os = "linux")]
    pub(super) fn network(&self) -> &SessionNetwork {
        &self.network
    }
}
