//! The tool, stopped before each of its system calls.

use std::{fs, process::Stdio};

use nix::{
    sys::{
        ptrace::{self, Options},
        signal::Signal,
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::Pid,
};

use super::Tool;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code.
    Exit(i32),
    /// It was killed before a system call.
    Killed,
}

/// A run that was watched.
#[derive(Clone, Debug)]
pub struct Stepped {
    /// How it ended.
    pub end: End,
    /// The system calls that it made, in their order.
    pub calls: Vec<Call>,
}

/// A system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its number.
    pub number: i64,
    /// Its first argument, which for `bpf` is the command.
    pub first: u64,
}

impl Call {
    /// Whether it is `BPF_LINK_UPDATE`, with which the tool puts another program in force at TCX.
    #[must_use]
    pub const fn is_link_update(self) -> bool {
        const BPF_LINK_UPDATE: u64 = 29;
        self.number == libc::SYS_bpf && self.first == BPF_LINK_UPDATE
    }

    /// Whether it is `BPF_MAP_UPDATE_ELEM`.
    #[must_use]
    pub const fn changes_map(self) -> bool {
        const BPF_MAP_UPDATE_ELEM: u64 = 2;
        self.number == libc::SYS_bpf && self.first == BPF_MAP_UPDATE_ELEM
    }

    /// Whether it changes what is pinned, what is in a map, or what packets meet.
    #[must_use]
    pub const fn changes(self) -> bool {
        const BPF_OBJ_PIN: u64 = 6;
        let pins = self.number == libc::SYS_bpf && self.first == BPF_OBJ_PIN || self.number == RENAME;
        pins || self.changes_map() || self.is_link_update() || self.number == libc::SYS_membarrier
    }
}

/// `rename`, by the name that every architecture has.
#[cfg(target_arch = "x86_64")]
const RENAME: i64 = libc::SYS_rename;
#[cfg(not(target_arch = "x86_64"))]
const RENAME: i64 = libc::SYS_renameat;

/// Stops itself, and becomes the tool when it goes on.
const STOPPED: [&str; 4] = ["sh", "-c", "kill -STOP $$; exec \"$@\"", "sh"];

/// The system call before which a process stands.
fn call(pid: Pid) -> Call {
    let line = fs::read_to_string(format!("/proc/{pid}/syscall")).expect("the system call of the tool");
    let mut words = line.split_whitespace();
    let number = words.next().and_then(|word| word.parse().ok()).expect("the number of a system call");
    let first = words.next().and_then(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok());
    Call { number, first: first.expect("the first argument of a system call") }
}

impl Tool<'_> {
    /// Runs a command and kills it (SIGKILL) before system call number `kill_before`, if it comes to that.
    ///
    /// # Panics
    ///
    /// If it cannot be watched.
    #[must_use]
    #[expect(clippy::zombie_processes, reason = "`waitpid` sees it to its end")]
    pub fn step(&self, args: &[&str], kill_before: Option<usize>) -> Stepped {
        let mut command = self.clone().through(&STOPPED).command(args);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = self.there(|| command.spawn()).expect("start the tool");
        let pid = Pid::from_raw(child.id().cast_signed());
        let wait = |flags| waitpid(pid, Some(flags)).expect("wait for the tool");
        assert_eq!(wait(WaitPidFlag::WUNTRACED), WaitStatus::Stopped(pid, Signal::SIGSTOP));
        let options = Options::PTRACE_O_EXITKILL | Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_TRACEEXEC;
        ptrace::seize(pid, options).expect("watch the tool");
        nix::sys::signal::kill(pid, Signal::SIGCONT).expect("let the tool go on");
        let mut calls = Vec::new();
        let (mut running, mut inside) = (false, false);
        loop {
            let mut deliver = None;
            match wait(WaitPidFlag::__WALL) {
                WaitStatus::Exited(_, code) => return Stepped { end: End::Exit(code), calls },
                WaitStatus::Signaled(..) => return Stepped { end: End::Killed, calls },
                WaitStatus::PtraceEvent(_, _, libc::PTRACE_EVENT_EXEC) => running = true,
                WaitStatus::PtraceSyscall(_) if running => {
                    inside = !inside;
                    if inside {
                        if kill_before == Some(calls.len()) {
                            nix::sys::signal::kill(pid, Signal::SIGKILL).expect("kill the tool");
                            continue;
                        }
                        calls.push(call(pid));
                    }
                }
                WaitStatus::Stopped(_, signal) if signal != Signal::SIGCONT => deliver = Some(signal),
                _ => {}
            }
            ptrace::syscall(pid, deliver).expect("let the tool go on");
        }
    }
}
