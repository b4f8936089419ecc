//! A small machine for one test: a mount and a PID namespace with an empty /run, an empty bpffs, and a first process.
//!
//! ```text
//!  test process                      sandbox
//!  +--------------------+            +-------------------------------------------+
//!  | Sandbox::run(..) --|-- setns -->| PID 1: `cat`, until the test closes its    |
//!  |                    |            | input; /run, /proc and /sys/fs/bpf of its  |
//!  +--------------------+            | own; here run ip, tc and the tool          |
//!                                    +-------------------------------------------+
//! ```
//!
//! PID 1 is there because the tool asks for the mounts of process 1, which are those that stay. When the test process
//! ends, however it ends, `cat` ends, and the kernel takes everything away: mounts, named network namespaces, pins.

use std::{
    ffi::OsStr,
    fmt,
    fs::{self, File},
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use nix::{
    mount::{MntFlags, MsFlags, mount, umount2},
    sched::{CloneFlags, setns, unshare},
    sys::statfs::{BPF_FS_MAGIC, statfs},
};

use super::thread::apart;

/// Where a bpffs belongs.
pub const BPFFS: &str = "/sys/fs/bpf";

/// Runs on as PID 1 until its input is closed.
const INIT: &str = "mount -t proc proc /proc && echo ready && exec cat";

/// A handle on the small machine, which lasts as long as one of them.
#[derive(Clone)]
pub struct Sandbox(Arc<Machine>);

struct Machine {
    init: Child,
    mounts: File,
    pids: File,
}

/// Network tests measure time, so they run one after another even if the test runner starts them side by side.
#[derive(Debug)]
pub struct Alone {
    _running: MutexGuard<'static, ()>,
}

impl Alone {
    /// Waits for the test that runs now.
    #[must_use]
    pub fn wait() -> Self {
        static RUNNING: Mutex<()> = Mutex::new(());
        Self { _running: RUNNING.lock().unwrap_or_else(PoisonError::into_inner) }
    }
}

impl Sandbox {
    /// Starts one.
    ///
    /// # Panics
    ///
    /// If the caller is not root, or the kernel has no bpffs.
    #[must_use]
    pub fn start() -> Self {
        let mut init = apart(|| {
            let kinds = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID;
            unshare(kinds).expect("network tests must run as root (CAP_SYS_ADMIN)");
            prepare_mounts();
            let mut command = Command::new("sh");
            command.args(["-c", INIT]).stdin(Stdio::piped()).stdout(Stdio::piped());
            command.spawn().expect("start the first process of a sandbox")
        });
        let mut ready = String::new();
        let stdout = init.stdout.take().expect("its output is a pipe");
        BufReader::new(stdout).read_line(&mut ready).expect("hear from the first process of a sandbox");
        assert_eq!(ready, "ready\n", "the first process of a sandbox did not start");
        let namespace = |kind| File::open(format!("/proc/{}/ns/{kind}", init.id())).expect("its namespace");
        let (mounts, pids) = (namespace("mnt"), namespace("pid"));
        Self(Arc::new(Machine { init, mounts, pids }))
    }

    /// Does `work` on a thread that sees the sandbox's files and starts its programs there. It cannot start threads.
    ///
    /// # Panics
    ///
    /// If `work` does.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let Machine { mounts, pids, .. } = &*self.0;
        apart(|| {
            // Threads share their root directory, and whoever does cannot change the mount namespace.
            unshare(CloneFlags::CLONE_FS).expect("a root directory of one's own");
            setns(mounts, CloneFlags::CLONE_NEWNS).expect("enter the sandbox's mounts");
            setns(pids, CloneFlags::CLONE_NEWPID).expect("enter the sandbox's PIDs");
            work()
        })
    }

    /// Runs a program of the system there and returns its standard output. The words of the line are set apart by spaces.
    ///
    /// # Panics
    ///
    /// If it cannot be started or fails; the message is the command line and what it said.
    pub fn command(&self, line: &str) -> String {
        self.run(|| command(line))
    }

    /// Takes the bpffs away, as on a machine where nobody mounted one.
    ///
    /// # Panics
    ///
    /// If it stays.
    pub fn remove_bpffs(&self) {
        self.run(|| {
            while is_bpffs(Path::new(BPFFS)) {
                umount2(BPFFS, MntFlags::MNT_DETACH).expect("unmount the bpffs");
            }
        });
    }

    /// Everything in the places where pins may lie, directories too, for comparison before and after.
    #[must_use]
    pub fn pins(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.run(|| {
            for root in [BPFFS, "/run/shaper/bpf"] {
                collect(Path::new(root), &mut found);
            }
        });
        found.sort();
        found
    }
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sandbox(PID {})", self.0.init.id())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        drop(self.init.stdin.take());
        if let Err(error) = self.init.wait() {
            eprintln!("the first process of a sandbox: {error}");
        }
    }
}

/// Runs a program where the calling thread is.
pub(super) fn command(line: &str) -> String {
    let mut words = line.split_whitespace();
    let program = words.next().expect("a program");
    match Command::new(program).args(words).output() {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
        Ok(output) => panic!("`{line}` failed: {}", String::from_utf8_lossy(&output.stderr).trim()),
        Err(error) => panic!("cannot start `{program}` (network tests need iproute2 and util-linux): {error}"),
    }
}

fn prepare_mounts() {
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).expect("private mounts");
    mount(Some("tmpfs"), "/run", Some("tmpfs"), MsFlags::empty(), Some("mode=755")).expect("tmpfs on /run");
    fs::create_dir("/run/netns").expect("/run/netns");
    mount(Some("bpf"), BPFFS, Some("bpf"), MsFlags::empty(), Some("mode=1777")).expect("bpffs on /sys/fs/bpf");
}

fn is_bpffs(path: &Path) -> bool {
    statfs(path).expect("statfs").filesystem_type() == BPF_FS_MAGIC
}

/// Adds everything under `dir`, but not the iterators that the kernel itself puts into each bpffs.
fn collect(dir: &Path, found: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.map_while(Result::ok) {
        let path = entry.path();
        if matches!(path.file_name().and_then(OsStr::to_str), Some("maps.debug" | "progs.debug")) {
            continue;
        }
        found.push(path.display().to_string());
        if path.is_dir() {
            collect(&path, found);
        }
    }
}
