//! Every system call of the kernel's tables, by what it can do to a connection, and what the filter
//! does with it. A call that this list does not have fails the test: the reader of the kernel's
//! release notes decides where it belongs.
//!
//! `socket`, `socketpair` and `accept` make no connection of a client. `setsockopt` makes none of
//! TCP: TCP_FASTOPEN_CONNECT and TCP_REPAIR still need `connect`. `write`, `sendfile`, `splice`,
//! `io_submit` and their kin need a socket that is connected.

use super::tests::{ALLOW, ASK, refused, verdict};
use super::{FilteredCalls, program};
use intact_sys::seccomp::{ARCH, ARCH_32, X32};
use std::collections::{BTreeMap, BTreeSet};

/// They connect.
const CONNECTS: &str = "connect socketcall";
/// They connect with MSG_FASTOPEN.
const SENDS: &str = "sendto sendmsg sendmmsg";
/// They make what connects without a call.
const RINGS: &str = "io_uring_setup";
/// They use a ring that was made outside, or take a descriptor of another process.
const ASKED: &str = "io_uring_enter io_uring_register pidfd_getfd";
/// They receive descriptors with the data. They are asked about where the program was started with
/// a Unix socket of another process; elsewhere scans find these sockets.
const RECEIVE: &str = "recvmsg recvmmsg recvmmsg_time32 recvmmsg_time64";
/// All others.
const NOTHING: &str = "
_llseek _newselect _sysctl accept accept4 access acct add_key adjtimex adjtimex_time32
afs_syscall alarm arch_prctl bdflush bind bpf break brk cachestat capget capset chdir chmod
chown chown16 chown32 chroot clock_adjtime clock_adjtime32 clock_adjtime64 clock_getres
clock_getres_time32 clock_getres_time64 clock_gettime clock_gettime32 clock_gettime64
clock_nanosleep clock_nanosleep_time32 clock_nanosleep_time64 clock_settime clock_settime32
clock_settime64 clone clone3 close close_range copy_file_range creat create_module delete_module
dup dup2 dup3 epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2
epoll_wait epoll_wait_old eventfd eventfd2 execve execveat exit exit_group faccessat faccessat2
fadvise64 fadvise64_64 fallocate fanotify_init fanotify_mark fchdir fchmod fchmodat fchmodat2
fchown fchown16 fchown32 fchownat fcntl fcntl64 fdatasync fgetxattr file_getattr file_setattr
finit_module flistxattr flock fork fremovexattr fsconfig fsetxattr fsmount fsopen fspick fstat
fstat64 fstatat64 fstatfs fstatfs64 fsync ftime ftruncate ftruncate64 futex futex_requeue
futex_time32 futex_time64 futex_wait futex_waitv futex_wake futimesat futimesat_time32
get_kernel_syms get_mempolicy get_robust_list get_thread_area getcpu getcwd getdents getdents64
getegid getegid16 getegid32 geteuid geteuid16 geteuid32 getgid getgid16 getgid32 getgroups
getgroups16 getgroups32 gethostname getitimer getpeername getpgid getpgrp getpid getpmsg getppid
getpriority getrandom getresgid getresgid16 getresgid32 getresuid getresuid16 getresuid32
getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday getuid getuid16 getuid32
getxattr getxattrat gtty ia32_clone ia32_fadvise64 ia32_fadvise64_64 ia32_fallocate ia32_fstat64
ia32_fstatat64 ia32_ftruncate64 ia32_lstat64 ia32_mmap ia32_pread64 ia32_pwrite64 ia32_readahead
ia32_stat64 ia32_sync_file_range ia32_truncate64 idle init_module inotify_add_watch inotify_init
inotify_init1 inotify_rm_watch io_cancel io_destroy io_getevents io_getevents_time32
io_pgetevents io_pgetevents_time32 io_pgetevents_time64 io_setup io_submit ioctl ioperm iopl
ioprio_get ioprio_set ipc kcmp kexec_file_load kexec_load keyctl kill landlock_add_rule
landlock_create_ruleset landlock_restrict_self lchown lchown16 lchown32 lgetxattr link linkat
listen listmount listns listxattr listxattrat llistxattr llseek lock lookup_dcookie lremovexattr
lseek lsetxattr lsm_get_self_attr lsm_list_modules lsm_set_self_attr lstat lstat64 madvise
map_shadow_stack mbind membarrier memfd_create memfd_secret migrate_pages mincore mkdir mkdirat
mknod mknodat mlock mlock2 mlockall mmap mmap2 mmap_pgoff modify_ldt mount mount_setattr
move_mount move_pages mprotect mpx mq_getsetattr mq_notify mq_open mq_timedreceive
mq_timedreceive_time32 mq_timedreceive_time64 mq_timedsend mq_timedsend_time32
mq_timedsend_time64 mq_unlink mremap mseal msgctl msgget msgrcv msgsnd msync munlock munlockall
munmap name_to_handle_at nanosleep nanosleep_time32 newfstat newfstatat newlstat newstat
newuname nfsservctl nice old_getrlimit old_msgctl old_readdir old_select old_semctl old_shmctl
oldfstat oldlstat oldolduname oldstat oldumount olduname open open_by_handle_at open_tree
open_tree_attr openat openat2 pause pciconfig_iobase pciconfig_read pciconfig_write
perf_event_open personality pidfd_open pidfd_send_signal pipe pipe2 pivot_root pkey_alloc
pkey_free pkey_mprotect poll ppoll ppoll_time32 ppoll_time64 prctl pread64 preadv preadv2
preadv64 preadv64v2 prlimit64 process_madvise process_mrelease process_vm_readv
process_vm_writev prof profil pselect6 pselect6_time32 pselect6_time64 ptrace putpmsg pwrite64
pwritev pwritev2 pwritev64 pwritev64v2 query_module quotactl quotactl_fd read readahead readdir
readlink readlinkat readv reboot recv recvfrom remap_file_pages removexattr removexattrat rename
renameat renameat2 request_key restart_syscall rmdir rseq rseq_slice_yield rt_sigaction
rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait
rt_sigtimedwait_time32 rt_sigtimedwait_time64 rt_tgsigqueueinfo rtas s390_ipc s390_pci_mmio_read
s390_pci_mmio_write sched_get_priority_max sched_get_priority_min sched_getaffinity
sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval
sched_rr_get_interval_time32 sched_rr_get_interval_time64 sched_setaffinity sched_setattr
sched_setparam sched_setscheduler sched_yield seccomp security select semctl semget semop
semtimedop semtimedop_time32 semtimedop_time64 send sendfile sendfile64 set_mempolicy
set_mempolicy_home_node set_robust_list set_thread_area set_tid_address setdomainname setfsgid
setfsgid16 setfsgid32 setfsuid setfsuid16 setfsuid32 setgid setgid16 setgid32 setgroups
setgroups16 setgroups32 sethostname setitimer setns setpgid setpriority setregid setregid16
setregid32 setresgid setresgid16 setresgid32 setresuid setresuid16 setresuid32 setreuid
setreuid16 setreuid32 setrlimit setsid setsockopt settimeofday setuid setuid16 setuid32 setxattr
setxattrat sgetmask shmat shmctl shmdt shmget shutdown sigaction sigaltstack signal signalfd
signalfd4 sigpending sigprocmask sigreturn sigsuspend socket socketpair splice spu_create
spu_run ssetmask stat stat64 statfs statfs64 statmount statx stime stime32 stty subpage_prot
swapoff swapon symlink symlinkat sync sync_file_range sync_file_range2 syncfs sysfs sysinfo
syslog tee tgkill time time32 timer_create timer_delete timer_getoverrun timer_gettime
timer_gettime32 timer_gettime64 timer_settime timer_settime32 timer_settime64 timerfd_create
timerfd_gettime timerfd_gettime32 timerfd_gettime64 timerfd_settime timerfd_settime32
timerfd_settime64 times tkill truncate truncate64 tuxcall ugetrlimit ulimit umask umount umount2
uname unlink unlinkat unshare uprobe uretprobe uselib userfaultfd ustat utime utime32 utimensat
utimensat_time32 utimensat_time64 utimes utimes_time32 vfork vhangup vm86 vm86old vmsplice
vserver wait4 waitid waitpid write writev
";

fn has(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|one| one == name)
}

fn is_listed(name: &str) -> bool {
    [CONNECTS, SENDS, RINGS, ASKED, RECEIVE, NOTHING]
        .iter()
        .any(|list| has(list, name))
}

/// The calls of the kernel that runs, by the names of its functions.
fn of_this_kernel() -> BTreeSet<String> {
    const PREFIXES: [&str; 5] = [
        "__x64_sys_",
        "__ia32_sys_",
        "__ia32_compat_sys_",
        "__arm64_sys_",
        "__arm64_compat_sys_",
    ];
    let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let names = symbols.lines().filter_map(|line| {
        let symbol = line.split(' ').nth(2)?;
        let mut names = PREFIXES
            .iter()
            .filter_map(|prefix| symbol.strip_prefix(prefix));
        // a part of a function has its name with a suffix
        names.next()?.split('.').next().map(str::to_owned)
    });
    // no call: the function of those that are missing
    names.filter(|name| name != "ni_syscall").collect()
}

/// The names and numbers of a table, by the headers of this machine; empty without headers.
fn of_header(name: &str) -> BTreeMap<String, u32> {
    let machine = std::env::consts::ARCH;
    let folders = [
        format!("/usr/include/{machine}-linux-gnu/asm"),
        "/usr/include/asm".to_owned(),
    ];
    let mut texts = folders
        .iter()
        .map(|folder| std::fs::read_to_string(format!("{folder}/{name}")));
    let text = texts.find_map(Result::ok).unwrap_or_default();
    let defined = text.lines().filter_map(|line| {
        let (name, number) = line.strip_prefix("#define __NR_")?.split_once(' ')?;
        let digits = number
            .trim_start_matches("(__X32_SYSCALL_BIT + ")
            .trim_end_matches(')');
        Some((name.to_owned(), digits.parse().ok()?))
    });
    defined.collect()
}

/// The tables of this machine's kernel: architecture, the bit that all numbers have, header.
const TABLES: [(u32, u32, &str); 3] = [
    (ARCH, 0, "unistd_64.h"),
    (ARCH, X32, "unistd_x32.h"),
    (ARCH_32, 0, "unistd_32.h"),
];

#[test]
fn every_call_of_the_kernel_is_listed() {
    let mut names = of_this_kernel();
    let headers = TABLES.map(|(.., header)| of_header(header));
    names.extend(headers.into_iter().flat_map(BTreeMap::into_keys));
    assert!(
        names.len() > 300,
        "neither the kernel nor a header names its calls"
    );
    let new: Vec<_> = names.iter().filter(|name| !is_listed(name)).collect();
    assert!(
        new.is_empty(),
        "can they open a connection, or send on one? {new:?}"
    );
}

/// By the numbers of the headers: a machine without a C compiler may have none.
#[test]
fn the_filter_does_with_each_call_what_the_list_says() {
    let code = program(FilteredCalls {
        relayed: false,
        sockets: false,
        ends: false,
        receives: false,
    });
    for (arch, bit, header) in TABLES {
        for (name, number) in of_header(header) {
            let says = |argument: u64, first: u64| {
                let mut arguments = [argument; 6];
                arguments[0] = first;
                verdict(&code, arch, (number | bit).into(), arguments)
            };
            let flag = libc::MSG_FASTOPEN as u64;
            // the sub-calls of `socketcall` that connect, and that send
            let subs: &[u64] = if name == "socketcall" {
                &[3, 11, 16, 20]
            } else {
                &[5]
            };
            let expected = if has(CONNECTS, &name) || has(ASKED, &name) {
                ASK
            } else if has(SENDS, &name) {
                refused(libc::EOPNOTSUPP)
            } else if has(RINGS, &name) {
                refused(libc::ENOSYS)
            } else {
                ALLOW
            };
            for first in subs {
                assert_eq!(says(flag, *first), expected, "{header}: {name} {first}");
            }
            if expected == refused(libc::EOPNOTSUPP) {
                assert_eq!(says(0, 5), ALLOW, "{header}: {name}");
            }
        }
    }
}
