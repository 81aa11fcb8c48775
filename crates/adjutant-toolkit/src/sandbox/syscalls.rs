//! The system calls that are denied to a command: they bypass the rules for files, or lead out of the sandbox.

use std::{collections::BTreeMap, sync::OnceLock};

use rustix::process::{getegid, geteuid};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, sock_filter,
};

/// Calls that are refused whatever their arguments are: looking into other processes, mounting, namespaces, keys, programs in
/// the kernel, modules, clocks, files by handle, owners and attributes of files (no rule for paths covers those).
const REFUSED: &[libc::c_long] = &[
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    QUOTACTL_FD,
    STATMOUNT,
    LISTMOUNT,
    LSM_SET_SELF_ATTR,
    OPEN_TREE_ATTR,
    FILE_SETATTR,
];
/// Calls that are refused without namespaces. With them, a call sees only its own processes, shared memory, semaphores and
/// queues: debuggers, leak checkers, `fakeroot` and database servers work.
const SHARED: &[libc::c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_shmget,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];
/// Calls that change the owner of a file, with the position of the user among their arguments; the group follows. With
/// namespaces, a command may set its own user and group, as `cp -a` and `install` do: they reach only files that it can write.
const OWNERS: &[(libc::c_long, u8)] = &[
    (libc::SYS_fchown, 1),
    (libc::SYS_fchownat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chown, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_lchown, 1),
];
/// The user or group that a change of the owner leaves as it is.
const UNCHANGED: u64 = 0xffff_ffff;
/// Calls that change extended attributes: they fail as on a file system without these, and programs that copy files
/// continue.
const UNSUPPORTED: &[libc::c_long] = &[
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
];
/// The newest call that was reviewed: `file_setattr` of Linux 6.18. Newer ones are reported as missing: `listns` (470, Linux 6.19) lists
/// namespaces of others, and no program needs `rseq_slice_yield` (471, Linux 7.0).
/// Source: arch/x86/entry/syscalls/syscall_64.tbl and scripts/syscall.tbl, Linux 6.18 and 6.19, compared with the numbers below on
/// 2026-11-28. From 424 on, calls have the same numbers on all architectures that are supported here.
const NEWEST: u32 = 469;
const QUOTACTL_FD: libc::c_long = 443;
const STATMOUNT: libc::c_long = 457;
const LISTMOUNT: libc::c_long = 458;
const LSM_SET_SELF_ATTR: libc::c_long = 460;
const SETXATTRAT: libc::c_long = 463;
const REMOVEXATTRAT: libc::c_long = 466;
const OPEN_TREE_ATTR: libc::c_long = 467;
const FILE_SETATTR: libc::c_long = 469;
/// Denied calls of a single architecture, and equivalents with other numbers.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[libc::c_long] = &[
    libc::SYS_kexec_file_load,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[libc::c_long] = &[libc::SYS_kexec_file_load];
/// Calls that are reported as missing, because a filter cannot see their arguments: programs then use the older ones.
const MISSING: &[libc::c_long] = &[libc::SYS_clone3, libc::SYS_openat2];
/// The flags of `clone` that make namespaces.
const NAMESPACES: [u64; 7] = [
    0x0002_0000, // CLONE_NEWNS
    0x0200_0000, // CLONE_NEWCGROUP
    0x0400_0000, // CLONE_NEWUTS
    0x0800_0000, // CLONE_NEWIPC
    0x1000_0000, // CLONE_NEWUSER
    0x2000_0000, // CLONE_NEWPID
    0x4000_0000, // CLONE_NEWNET
];
/// Requests to a terminal that type into it, or take it over, and requests to a file system that set attributes of files, freeze it
/// or label it. Source: ioctl_fs and ioctl_tty, include/uapi/linux/fs.h, Linux 6.18.
const REQUESTS: [u64; 9] = [
    0x5412,      // TIOCSTI
    0x541C,      // TIOCLINUX
    0x4008_6602, // FS_IOC_SETFLAGS
    0x4004_6602, // FS_IOC32_SETFLAGS
    0x401C_5820, // FS_IOC_FSSETXATTR
    0x4080_6685, // FS_IOC_ENABLE_VERITY
    0x4100_9432, // FS_IOC_SETFSLABEL
    0xC004_5877, // FIFREEZE
    0xC004_5878, // FITHAW
];
/// Calls that change the scheduling of a process, and the argument for the process; 0 is the caller. The kernel only checks its user.
const SCHEDULING: [(libc::c_long, u8); 6] = [
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setscheduler, 0),
];
/// The first argument of `setpriority` and of `ioprio_set` that means all processes of a user. Source: include/uapi/linux/resource.h
/// and ioprio.h, Linux 6.18.
const PRIORITY_OF_USER: u64 = 2;
const IO_PRIORITY_OF_USER: u64 = 3;
/// The bits of a mode that make a program run as its file's owner or group.
const SET_ID: [u64; 2] = [0o4000, 0o2000];
const INTERNET: [u64; 2] = [2, 10];
const UNIX: u64 = 1;
const NETLINK: u64 = 16;
/// The protocol of netlink that lists interfaces and routes.
const ROUTES: u64 = 0;
const RAW: u64 = 3;
const DATAGRAM: u64 = 2;
/// The bits of a socket's type without its flags.
const SOCKET_TYPE: u64 = 0xf;
/// The limit that marks the processes of a call: a process that could set it would not be found any more.
pub(super) const MARKED: u64 = 15;

/// The sockets that a command may open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sockets {
    /// Only pairs.
    None,
    /// Sockets of its network namespace, and Unix sockets by path: nothing outside has an address there.
    Own,
    /// Internet sockets.
    Internet,
}

/// Returns the programs for denied calls and for missing ones. `has_namespaces` is true if a call has its own processes and IPC, and
/// reads other files only through read-only mounts.
///
/// # Errors
/// If no filter exists for this architecture.
pub(super) fn filters(
    sockets: Sockets,
    has_namespaces: bool,
) -> Result<&'static [BpfProgram], String> {
    type Compiled = OnceLock<Result<Vec<BpfProgram>, String>>;
    static CELLS: [[Compiled; 2]; 3] = [const { [const { OnceLock::new() }; 2] }; 3];
    let [shared, isolated] = match sockets {
        Sockets::None => &CELLS[0],
        Sockets::Own => &CELLS[1],
        Sockets::Internet => &CELLS[2],
    };
    let cell = if has_namespaces { isolated } else { shared };
    let filters = cell.get_or_init(|| {
        let refused = compile(
            refused(sockets, has_namespaces).map_err(|error| error.to_string())?,
            libc::EPERM,
        )?;
        let missing = compile(
            MISSING.iter().map(|call| (*call, Vec::new())).collect(),
            libc::ENOSYS,
        )?;
        let unsupported = compile(
            UNSUPPORTED.iter().map(|call| (*call, Vec::new())).collect(),
            libc::EOPNOTSUPP,
        )?;
        Ok(vec![refused, missing, unsupported, newer()])
    });
    filters.as_deref().map_err(Clone::clone)
}

/// Returns the program that reports calls above the newest reviewed one as missing, and with them the x32 interface.
fn newer() -> BpfProgram {
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    // Load the number; greater than: the next step, otherwise the one after it.
    vec![
        step(0x20, 0, 0, 0),
        step(0x25, 0, 1, NEWEST),
        step(0x06, 0, 0, 0x0005_0000 | libc::ENOSYS.unsigned_abs()),
        step(0x06, 0, 0, 0x7fff_0000),
    ]
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn compile(rules: Rules, code: i32) -> Result<BpfProgram, String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| error.to_string())?;
    let refuse = SeccompAction::Errno(code.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)
        .map_err(|error| error.to_string())?;
    BpfProgram::try_from(filter).map_err(|error| error.to_string())
}

/// One call, and the conditions of its arguments that all hold.
type ArgumentRule = (libc::c_long, Vec<(u8, Op, u64)>);

fn refused(sockets: Sockets, has_namespaces: bool) -> Result<Rules, seccompiler::BackendError> {
    let shared = if has_namespaces { &[] } else { SHARED };
    let mut rules: Rules = REFUSED
        .iter()
        .chain(REFUSED_HERE)
        .chain(shared)
        .map(|call| (*call, Vec::new()))
        .collect();
    let has = |bits: u64| Op::MaskedEq(bits);
    let mut some: Vec<ArgumentRule> = Vec::new();
    some.extend(NAMESPACES.map(|flag| (libc::SYS_clone, vec![(0, has(flag), flag)])));
    some.extend(REQUESTS.map(|request| (libc::SYS_ioctl, vec![(1, Op::Eq, request)])));
    for bit in SET_ID {
        some.push((libc::SYS_fchmod, vec![(1, has(bit), bit)]));
        some.push((libc::SYS_fchmodat, vec![(2, has(bit), bit)]));
        some.push((libc::SYS_fchmodat2, vec![(2, has(bit), bit)]));
        some.push((libc::SYS_mknodat, vec![(2, has(bit), bit)]));
        some.push((
            libc::SYS_openat,
            vec![(2, has(0o100), 0o100), (3, has(bit), bit)],
        ));
        #[cfg(target_arch = "x86_64")]
        {
            some.push((libc::SYS_chmod, vec![(1, has(bit), bit)]));
            some.push((libc::SYS_creat, vec![(1, has(bit), bit)]));
            some.push((libc::SYS_mknod, vec![(1, has(bit), bit)]));
            some.push((
                libc::SYS_open,
                vec![(1, has(0o100), 0o100), (2, has(bit), bit)],
            ));
        }
    }
    let own = [geteuid().as_raw(), getegid().as_raw()];
    for (call, user) in OWNERS {
        if !has_namespaces {
            rules.insert(*call, Vec::new());
            continue;
        }
        for (argument, id) in (*user..).zip(own) {
            let other = vec![
                (argument, Op::Ne, u64::from(id)),
                (argument, Op::Ne, UNCHANGED),
            ];
            some.push((*call, other));
        }
    }
    some.push((
        libc::SYS_prlimit64,
        vec![(1, Op::Eq, MARKED), (2, Op::Ne, 0)],
    ));
    // Limits of other processes: the kernel only checks their user.
    some.push((libc::SYS_prlimit64, vec![(0, Op::Ne, 0)]));
    if !has_namespaces {
        some.extend(SCHEDULING.map(|(call, argument)| (call, vec![(argument, Op::Ne, 0)])));
        some.push((libc::SYS_setpriority, vec![(0, Op::Eq, PRIORITY_OF_USER)]));
        some.push((libc::SYS_ioprio_set, vec![(0, Op::Eq, IO_PRIORITY_OF_USER)]));
    }
    #[cfg(target_arch = "x86_64")]
    some.push((libc::SYS_setrlimit, vec![(0, Op::Eq, MARKED)]));
    if sockets != Sockets::Own {
        // A pair of stream sockets is private. A datagram socket of a pair can send to any named socket.
        some.extend(
            [DATAGRAM, RAW].map(|kind| (libc::SYS_socketpair, vec![(1, has(SOCKET_TYPE), kind)])),
        );
    }
    let [four, six] = INTERNET;
    let other = vec![(0, Op::Ne, four), (0, Op::Ne, six)];
    match sockets {
        Sockets::None => {
            rules.insert(libc::SYS_socket, Vec::new());
        }
        Sockets::Own => {
            // Programs list the network's interfaces by netlink, whose sockets are always raw ones.
            let other = [&other[..], &[(0, Op::Ne, UNIX), (0, Op::Ne, NETLINK)]].concat();
            some.push((libc::SYS_socket, other));
            for family in INTERNET {
                let raw = vec![(0, Op::Eq, family), (1, has(SOCKET_TYPE), RAW)];
                some.push((libc::SYS_socket, raw));
            }
            let other_netlink = vec![(0, Op::Eq, NETLINK), (2, Op::Ne, ROUTES)];
            some.push((libc::SYS_socket, other_netlink));
        }
        Sockets::Internet => {
            some.push((libc::SYS_socket, other));
            some.push((libc::SYS_socket, vec![(1, has(SOCKET_TYPE), RAW)]));
        }
    }
    for (call, conditions) in some {
        let conditions = conditions.into_iter().map(|(argument, op, value)| {
            // `prlimit`'s pointer is the one argument that has all 64 bits.
            let len = if call == libc::SYS_prlimit64 && matches!(op, Op::Ne) {
                Len::Qword
            } else {
                Len::Dword
            };
            SeccompCondition::new(argument, len, op, value)
        });
        let rule = SeccompRule::new(conditions.collect::<Result<_, _>>()?)?;
        rules.entry(call).or_default().push(rule);
    }
    Ok(rules)
}
