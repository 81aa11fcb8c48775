//! The rules of the kernel for files, TCP and signals. A thread puts them on itself and starts the command, which inherits them.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
    thread,
};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};

use rustix::thread::{
    CapabilitySet, CapabilitySets, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities,
};

use super::{
    Network, places,
    secrets::{self, Opened},
    syscalls::{self, Sockets},
};

/// The requested versions, the best first. Before the third, files outside could be truncated.
const VERSIONS: [ABI; 4] = [ABI::V6, ABI::V5, ABI::V4, ABI::V3];

/// The permissions of one call.
#[derive(Debug, Clone)]
pub(super) struct ThreadRules {
    pub(super) abi: u8,
    pub(super) read: Vec<PathBuf>,
    pub(super) write: Vec<PathBuf>,
    pub(super) network: Network,
    /// The directory that the command works with.
    pub(super) root: PathBuf,
}

/// The version of the kernel's rules, tested once on a separate thread.
///
/// # Errors
/// Why nothing can be held.
pub(super) fn probe() -> Result<u8, Arc<str>> {
    static FOUND: OnceLock<Result<u8, Arc<str>>> = OnceLock::new();
    let probe = || {
        let able = VERSIONS.into_iter().find(|abi| {
            handled(*abi, &Network::None)
                .and_then(Ruleset::create)
                .is_ok()
        });
        let Some(abi) = able else {
            return Err(
                "this kernel has no Landlock of version 3 or newer, or it is turned off".into(),
            );
        };
        let plan = ThreadRules {
            abi: abi as u8,
            read: Vec::new(),
            write: Vec::new(),
            network: Network::None,
            root: PathBuf::from("/"),
        };
        let tried = thread::Builder::new().spawn(move || restrict(&plan));
        match tried.map(thread::JoinHandle::join) {
            Ok(Ok(Ok(()))) => Ok(abi as u8),
            Ok(Ok(Err(why))) => Err(why.into()),
            Ok(Err(_)) | Err(_) => Err("no thread can be started to try Landlock".into()),
        }
    };
    FOUND.get_or_init(probe).clone()
}

/// Puts the rules on this thread, for ever.
///
/// # Errors
/// The kernel's refusal: nothing may be started then.
pub(super) fn restrict(plan: &ThreadRules) -> Result<(), String> {
    let sockets = match plan.network {
        Network::None => Sockets::None,
        Network::All | Network::Hosts(_) => Sockets::Internet,
    };
    let filters = syscalls::filters(sockets, false)?;
    drop_capabilities().map_err(|error| format!("capabilities: {error}"))?;
    files(plan).map_err(|error| format!("Landlock: {error}"))?;
    for filter in filters {
        seccompiler::apply_filter(filter).map_err(|error| format!("seccomp: {error}"))?;
    }
    Ok(())
}

/// Drops what root may do beyond other users, for this thread and every program that it starts.
fn drop_capabilities() -> rustix::io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    clear_ambient_capability_set()?;
    for capability in CapabilitySet::all().iter() {
        // Older kernels lack some of them; without the right to drop capabilities, none are left to drop.
        if capability_is_in_bounding_set(capability).unwrap_or(false) {
            match remove_capability_from_bounding_set(capability) {
                Err(rustix::io::Errno::PERM) => {}
                dropped => dropped?,
            }
        }
    }
    let none = CapabilitySet::empty();
    set_capabilities(
        None,
        CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        },
    )
}

fn files(plan: &ThreadRules) -> Result<(), RulesetError> {
    let abi = VERSIONS
        .into_iter()
        .find(|abi| *abi as u8 == plan.abi)
        .unwrap_or(ABI::V3);
    let execute = AccessFs::from_read(abi);
    let read: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::ReadDir;
    let device: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::WriteFile;
    // No devices: root could create one for the disk.
    let write = AccessFs::from_all(abi) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let handled = handled(abi, &plan.network)?.create()?;
    // A rule for a directory covers everything below it, so a directory with credentials is opened in parts.
    let tools = places::tools();
    let bound = tools.iter().chain(&plan.read).chain(&plan.write);
    let opened = Opened::new(bound, secrets::hidden(&plan.root));
    let read_only = opened.around(tools.iter().chain(&plan.read));
    let status = handled
        .add_rules(path_beneath_rules(places::SYSTEM, execute))?
        .add_rules(path_beneath_rules(&read_only, execute))?
        .add_rules(path_beneath_rules(places::settings(), read))?
        .add_rules(path_beneath_rules(places::MACHINE, read))?
        .add_rules(path_beneath_rules(places::DEVICES, device))?
        .add_rules(path_beneath_rules(&plan.write, write))?
        .restrict_self()?;
    debug_assert_eq!(status.ruleset, landlock::RulesetStatus::FullyEnforced);
    Ok(())
}

/// The kinds of access that need a rule from now on.
fn handled(abi: ABI, network: &Network) -> Result<Ruleset, RulesetError> {
    let files = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))?;
    let tcp = AccessNet::from_all(abi);
    let files = if tcp.is_empty() || *network == Network::All {
        files
    } else {
        files.handle_access(tcp)?
    };
    let scope = Scope::from_all(abi);
    if scope.is_empty() {
        Ok(files)
    } else {
        files.scope(scope)
    }
}
