//! The attacks. Each is a script of `sh` in the root that says ESCAPED when it has done what it must not, or leaves a trace outside.
//!
//! `{out}` is a folder beside the root with `secret`, `tool`, `echo` and sockets, `{pid}` a process outside, `{port}` a port that
//! listens, `{id}` a number of this attack alone. `{sys …}` makes a system call and says ESCAPED unless it is refused.

/// Group, attack, script.
pub(super) const ROWS: &[(&str, &str, &str)] = &[
    (
        "files",
        "read by an absolute path",
        "grep -q s3cret {out}/secret && echo ESCAPED",
    ),
    (
        "files",
        "read by ..",
        "grep -q s3cret ../outside/secret && echo ESCAPED",
    ),
    (
        "files",
        "read through a link to a file",
        "grep -q s3cret link && echo ESCAPED",
    ),
    (
        "files",
        "read through a link to a folder",
        "grep -q s3cret folder/secret && echo ESCAPED",
    ),
    (
        "files",
        "read through a chain of links",
        "ln -s folder chain; grep -q s3cret chain/secret && echo ESCAPED",
    ),
    (
        "files",
        "read through a link of its own",
        "ln -s {out}/secret own; grep -q s3cret own && echo ESCAPED",
    ),
    (
        "files",
        "read through a hard link of its own",
        "ln {out}/secret hard && grep -q s3cret hard && echo ESCAPED",
    ),
    (
        "files",
        "read by /proc/self/root",
        "grep -q s3cret /proc/self/root{out}/secret && echo ESCAPED",
    ),
    (
        "files",
        "read by /proc/self/cwd",
        "grep -q s3cret /proc/self/cwd/../outside/secret && echo ESCAPED",
    ),
    (
        "files",
        "read by the root of another process",
        "grep -q s3cret /proc/{pid}/root{out}/secret && echo ESCAPED",
    ),
    (
        "files",
        "read by the folder of another process",
        "grep -q s3cret /proc/{pid}/cwd/secret && echo ESCAPED",
    ),
    (
        "files",
        "read by a descriptor of a path",
        "perl -e 'sysopen(F,\"{out}/secret\",010000000); open(G,\"/proc/self/fd/\".fileno(F)); print \"ESCAPED\" if <G> =~ /s3cret/'",
    ),
    (
        "files",
        "read by an archive",
        "tar cf - -C {out} secret | grep -q s3cret && echo ESCAPED",
    ),
    (
        "files",
        "read where a link outside leads",
        "[ \"$(readlink {out}/mark)\" = s3cret ] && echo ESCAPED",
    ),
    (
        "files",
        "watch when a file outside is used",
        "perl -e '$p=\"{out}/secret\"; $f=syscall(294,0); print \"ESCAPED\" if syscall(254,$f,$p,1)>=0'",
    ),
    (
        "files",
        "list a folder",
        "ls {out} | grep -q secret && echo ESCAPED",
    ),
    (
        "files",
        "list through a link",
        "ls folder/ | grep -q secret && echo ESCAPED",
    ),
    (
        "files",
        "list the folder above",
        "ls .. | grep -q outside && echo ESCAPED",
    ),
    (
        "files",
        "see that a file is there by its name",
        "test -e {out}/secret && echo ESCAPED",
    ),
    (
        "files",
        "move a file in",
        "mv {out}/secret got && grep -q s3cret got && echo ESCAPED",
    ),
    (
        "files",
        "exchange by rename",
        "perl -e 'print \"ESCAPED\" if rename(\"{out}/secret\",\"got\")'",
    ),
    ("files", "run a program", "{out}/tool"),
    ("files", "run a script by its interpreter", "sh {out}/tool"),
    (
        "files",
        "run a program by the loader",
        "/lib64/ld-linux-x86-64.so.2 {out}/echo ESCAPED",
    ),
    (
        "files",
        "read the passwords of the machine",
        "test -s /etc/shadow && head -c1 /etc/shadow >/dev/null && echo ESCAPED",
    ),
    (
        "files",
        "add to a file",
        "echo more >> {out}/secret && echo ESCAPED",
    ),
    (
        "files",
        "add through a link",
        "echo more >> link && echo ESCAPED",
    ),
    (
        "files",
        "make a file",
        "echo more > {out}/new && echo ESCAPED",
    ),
    (
        "files",
        "make a file through a link",
        "echo more > folder/new && echo ESCAPED",
    ),
    ("files", "make a folder", "mkdir {out}/new && echo ESCAPED"),
    ("files", "make a link", "ln -s x {out}/new && echo ESCAPED"),
    ("files", "make a pipe", "mkfifo {out}/new && echo ESCAPED"),
    (
        "files",
        "link a file out",
        "echo a > a; ln a {out}/new && echo ESCAPED",
    ),
    (
        "files",
        "move a file out",
        "echo a > a; mv a {out}/new && echo ESCAPED",
    ),
    (
        "files",
        "rename a file",
        "mv {out}/secret {out}/new && echo ESCAPED",
    ),
    ("files", "remove a file", "rm {out}/secret && echo ESCAPED"),
    (
        "files",
        "empty a file",
        "perl -e 'print \"ESCAPED\" if truncate(\"{out}/secret\",0)'",
    ),
    (
        "files",
        "change the mode of a file",
        "chmod 777 {out}/secret && echo ESCAPED",
    ),
    (
        "files",
        "change the times of a file",
        "touch -d 2001-01-01 {out}/secret && echo ESCAPED",
    ),
    (
        "files",
        "change the owner of a file",
        "chown $(id -u) {out}/secret && echo ESCAPED",
    ),
    (
        "files",
        "write for the whole machine",
        "echo a > /var/tmp/adj-{id} && echo ESCAPED",
    ),
    (
        "files",
        "write to the temporary files of others",
        "echo a > /tmp/adj-{id}",
    ),
    (
        "files",
        "write to shared memory",
        "echo a > /dev/shm/adj-{id}",
    ),
    (
        "files",
        "plant a hook of git",
        "echo a > .git/hooks/post-commit && echo ESCAPED",
    ),
    (
        "files",
        "change the settings of git",
        "echo a >> .git/config && echo ESCAPED",
    ),
    (
        "files",
        "put another folder in the place of .git",
        "mv .git .moved && mkdir .git && echo ESCAPED",
    ),
    (
        "files",
        "make a program that runs as its owner",
        "cp /bin/true s; chmod u+s s && test -u s && echo ESCAPED",
    ),
    ("files", "make a device", "mknod d b 254 0 && echo ESCAPED"),
    (
        "files",
        "read a disk",
        "for d in /dev/vda /dev/sda /dev/nvme0n1; do head -c1 $d >/dev/null && echo ESCAPED; done",
    ),
    (
        "races",
        "swap a folder for a link",
        "mkdir a; echo no > a/secret; (for i in $(seq 100); do ln -sfn a d; ln -sfn {out} d; done) & for i in $(seq 100); do grep -q s3cret d/secret && echo ESCAPED && break; done; wait",
    ),
    (
        "races",
        "swap a file for a link",
        "perl -e 'if(!fork){for(1..3000){symlink(\"{out}/secret\",\"t\");rename(\"t\",\"f\");open(O,\">u\");close(O);rename(\"u\",\"f\")} exit} for(1..3000){open(F,\"f\") or next; if(<F>=~/s3cret/){print \"ESCAPED\";last}} wait'",
    ),
    (
        "races",
        "move the folder that it stands in",
        "mkdir -p s/t; cd s/t; mv ../../s ../../r; cd -P ..; grep -q s3cret ../../outside/secret && echo ESCAPED",
    ),
    (
        "network",
        "connect to loopback",
        "perl -MIO::Socket::INET -e 'print \"ESCAPED\" if IO::Socket::INET->new(\"127.0.0.1:{port}\")'",
    ),
    (
        "network",
        "connect by bash",
        "bash -c 'exec 5<>/dev/tcp/127.0.0.1/{port}' && echo ESCAPED",
    ),
    (
        "network",
        "listen",
        "perl -MIO::Socket::INET -e 'print \"ESCAPED\" if IO::Socket::INET->new(Listen=>1,LocalAddr=>\"127.0.0.1\")'",
    ),
    (
        "network",
        "send a datagram",
        "perl -MSocket -e 'socket(S,AF_INET,SOCK_DGRAM,0) and send(S,\"x\",0,sockaddr_in({port},inet_aton(\"127.0.0.1\"))) and print \"ESCAPED\"'",
    ),
    ("network", "a socket of IPv6", "{sys 41 10,1,0}"),
    ("network", "a raw socket", "{sys 41 2,3,1}"),
    ("network", "a packet socket", "{sys 41 17,3,0}"),
    ("network", "a netlink socket", "{sys 41 16,3,0}"),
    ("network", "a socket of the host", "{sys 41 40,1,0}"),
    (
        "network",
        "a socket of the kernel's ciphers",
        "{sys 41 38,5,0}",
    ),
    (
        "network",
        "a socket by the x32 interface",
        "{sys 0x40000000+41 2,1,0}",
    ),
    (
        "sockets",
        "connect to a socket of the machine",
        "perl -MIO::Socket::UNIX -e 'print \"ESCAPED\" if IO::Socket::UNIX->new(Peer=>\"{out}/sock\")'",
    ),
    (
        "sockets",
        "connect to an abstract socket",
        "perl -MSocket -e 'socket(S,AF_UNIX,SOCK_STREAM,0) and connect(S,pack(\"Sxa*\",AF_UNIX,\"adj-{id}\")) and print \"ESCAPED\"'",
    ),
    (
        "sockets",
        "send from a pair to a socket of the machine",
        "perl -MSocket -e 'socketpair(A,B,AF_UNIX,SOCK_DGRAM,0) and send(A,\"x\",0,sockaddr_un(\"{out}/gram\")) and print \"ESCAPED\"'",
    ),
    (
        "sockets",
        "listen on a socket",
        "perl -MIO::Socket::UNIX -e 'print \"ESCAPED\" if IO::Socket::UNIX->new(Listen=>1,Local=>\"s\")'",
    ),
    ("sockets", "io_uring, which no filter sees", "{sys 425 1,0}"),
    (
        "signals",
        "ask whether a process is there",
        "kill -0 {pid} && echo ESCAPED",
    ),
    (
        "signals",
        "end a process",
        "kill -TERM {pid} && echo ESCAPED",
    ),
    (
        "signals",
        "stop a group",
        "perl -e 'print \"ESCAPED\" if kill(\"STOP\",-{pid})'",
    ),
    (
        "signals",
        "end this program",
        "kill -0 {me} && echo ESCAPED",
    ),
    (
        "signals",
        "by a thread",
        "perl -e 'print \"ESCAPED\" if syscall(234,{pid},{pid},0)==0'",
    ),
    (
        "signals",
        "by a descriptor",
        "perl -e '$f=syscall(434,{pid},0); print \"ESCAPED\" if $f>=0 && syscall(424,$f,0,0,0)==0'",
    ),
    (
        "signals",
        "with a word of its own",
        "perl -e '$b=pack(\"iiix100\",0,0,-1); print \"ESCAPED\" if syscall(129,{pid},0,$b)==0'",
    ),
    (
        "signals",
        "set a limit",
        "perl -e '$b=pack(\"QQ\",9,9); print \"ESCAPED\" if syscall(302,{pid},7,$b,0)==0'",
    ),
    (
        "proc",
        "read the environment of a process",
        "grep -q s3cret /proc/{pid}/environ && echo ESCAPED",
    ),
    (
        "proc",
        "read the command line of a process",
        "grep -q sleep /proc/{pid}/cmdline && echo ESCAPED",
    ),
    (
        "proc",
        "read the state of a process",
        "grep -q sleep /proc/{pid}/status && echo ESCAPED",
    ),
    (
        "proc",
        "read the map of a process",
        "grep -q . /proc/{pid}/maps && echo ESCAPED",
    ),
    (
        "proc",
        "open the memory of a process",
        "perl -e 'print \"ESCAPED\" if open(F,\"+<\",\"/proc/{pid}/mem\")'",
    ),
    (
        "proc",
        "list the files of a process",
        "ls /proc/{pid}/fd | grep -q . && echo ESCAPED",
    ),
    (
        "proc",
        "list all processes",
        "ls /proc | grep -qx {pid} && echo ESCAPED",
    ),
    (
        "proc",
        "see them by ps",
        "ps -e -o pid= | grep -qw {pid} && echo ESCAPED",
    ),
    (
        "proc",
        "set the kernel",
        "v=$(cat /proc/sys/vm/swappiness) && echo $v > /proc/sys/vm/swappiness && echo ESCAPED",
    ),
    (
        "proc",
        "open what restarts the machine",
        "perl -e 'print \"ESCAPED\" if sysopen(F,\"/proc/sysrq-trigger\",1)'",
    ),
    (
        "proc",
        "make a control group",
        "mkdir /sys/fs/cgroup/pids/adj-{id} && rmdir /sys/fs/cgroup/pids/adj-{id} && echo ESCAPED",
    ),
    (
        "privileges",
        "gain them by a program",
        "perl -e 'print \"ESCAPED\" unless syscall(157,39,0,0,0,0)==1'",
    ),
    (
        "privileges",
        "a user namespace",
        "unshare -U true && echo ESCAPED",
    ),
    (
        "privileges",
        "a mount namespace",
        "unshare -m true && echo ESCAPED",
    ),
    (
        "privileges",
        "a namespace by clone",
        "perl -e '$r=syscall(56,0x10000000|17,0,0,0,0); exit if $r==0; print \"ESCAPED\" if $r>0'",
    ),
    ("privileges", "a namespace by clone3", "{sys 435 0,0}"),
    ("privileges", "join a namespace", "{sys 308 -1,0}"),
    (
        "privileges",
        "mount",
        "mkdir m; mount -t tmpfs x m && echo ESCAPED; umount m",
    ),
    ("privileges", "mount by the new calls", "{sys 430 0,0}"),
    ("privileges", "another root", "{sys 161 0}"),
    (
        "privileges",
        "follow a process",
        "perl -e 'print \"ESCAPED\" if syscall(101,0x4206,{pid},0,0)==0'",
    ),
    (
        "privileges",
        "read the memory of a process",
        "perl -e 'print \"ESCAPED\" if syscall(310,{pid},0,0,0,0,0)==0'",
    ),
    (
        "privileges",
        "write the memory of a process",
        "perl -e 'print \"ESCAPED\" if syscall(311,{pid},0,0,0,0,0)==0'",
    ),
    (
        "privileges",
        "take a file of a process",
        "perl -e '$f=syscall(434,{pid},0); print \"ESCAPED\" if $f>=0 && syscall(438,$f,0,0)>=0'",
    ),
    ("privileges", "keys of the session", "{sys 250 0,-3,0}"),
    ("privileges", "add a key", "{sys 248 0,0,0,0,0}"),
    ("privileges", "a program in the kernel", "{sys 321 -1,0,0}"),
    (
        "privileges",
        "counters of the machine",
        "{sys 298 0,0,-1,-1,0}",
    ),
    ("privileges", "faults of memory by hand", "{sys 323 -1}"),
    ("privileges", "a module", "{sys 175 0,0,0}"),
    ("privileges", "another kernel", "{sys 246 0,99999,0,0}"),
    ("privileges", "open by a handle", "{sys 304 -1,0,0}"),
    ("privileges", "watch all files", "{sys 300 -1,0}"),
    ("privileges", "set the clock", "{sys 164 0,0}"),
    ("privileges", "the name of the machine", "{sys 170 0,-1}"),
    (
        "privileges",
        "memory shared with the machine",
        "perl -e 'syscall(29,{id},1,01600)'",
    ),
    ("privileges", "type into a terminal", "{sys 16 0,0x5412,0}"),
    (
        "privileges",
        "take off the mark of its call",
        "perl -e '$b=pack(\"QQ\",5,5); print \"ESCAPED\" if syscall(302,0,15,$b,0)==0 || syscall(160,15,$b)==0'",
    ),
    (
        "processes",
        "stay in the background",
        "sleep 9{id} >/dev/null 2>&1 & ",
    ),
    (
        "processes",
        "stay in another session",
        "setsid sleep 9{id} & sleep 0.05",
    ),
    (
        "processes",
        "stay without an environment",
        "setsid env -i sleep 9{id} >/dev/null 2>&1 & sleep 0.05",
    ),
    (
        "processes",
        "stay as a child of nobody, deaf to signals",
        "perl -MPOSIX -e '$SIG{$_}=\"IGNORE\" for qw(TERM HUP INT); if(!fork){setsid; if(!fork){%ENV=();exec \"sleep\",\"9{id}\"} exit} wait'",
    ),
    (
        "processes",
        "stay and hold the output",
        "setsid sleep 9{id} & echo held",
    ),
];
