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
    /// Numbers of the system calls that it made, in their order.
    pub calls: Vec<i64>,
}

/// Stops itself, and becomes the tool when it goes on.
const STOPPED: [&str; 4] = ["sh", "-c", "kill -STOP $$; exec \"$@\"", "sh"];

/// The system call before which a process stands.
fn number(pid: Pid) -> i64 {
    let call = fs::read_to_string(format!("/proc/{pid}/syscall")).expect("the system call of the tool");
    call.split_whitespace().next().and_then(|word| word.parse().ok()).expect("the number of a system call")
}

impl Tool<'_> {
    /// Runs a command and kills it (SIGKILL) before system call number `kill_before`, if it comes to that.
    ///
    /// # Panics
    ///
    /// If it cannot be watched.
    #[must_use]
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
                        calls.push(number(pid));
                    }
                }
                WaitStatus::Stopped(_, signal) if signal != Signal::SIGCONT => deliver = Some(signal),
                _ => {}
            }
            ptrace::syscall(pid, deliver).expect("let the tool go on");
        }
    }
}
