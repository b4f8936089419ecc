//! Running other programs, with errors that name the command.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

/// Runs a command that prints for itself.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run `{}`", line(command)))?;
    if !status.success() {
        bail!("`{}` failed ({status})", line(command));
    }
    Ok(())
}

/// Runs a command for what it prints on stdout; what it prints on stderr becomes part of the error.
pub(crate) fn stdout(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run `{}`", line(command)))?;
    if !output.status.success() {
        bail!("`{}` failed: {}", line(command), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The command as one would type it.
pub(crate) fn line(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for arg in command.get_args().map(|arg| arg.to_string_lossy()) {
        let plain = !arg.is_empty() && arg.chars().all(|c| c.is_ascii_alphanumeric() || "-_=+./:,@%".contains(c));
        let written = if plain { write!(line, " {arg}") } else { write!(line, " '{arg}'") };
        written.expect("writing to a string cannot fail");
    }
    line
}

/// Where a program is, if it is on the PATH or where Debian keeps what only root needs.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|dir| dir.join(program))
        .find(|candidate| is_executable(candidate))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Whether this process may do what root may.
pub(crate) fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_quotes_what_a_shell_would_split() {
        let mut command = Command::new("ip");
        command.args(["-n", "a b", "link", ""]);
        assert_eq!(line(&command), "ip -n 'a b' link ''");
    }

    #[test]
    fn a_failure_names_the_command_and_what_it_said() {
        let error = stdout(Command::new("sh").args(["-c", "echo why >&2; exit 3"])).expect_err("it exits with 3");
        assert_eq!(error.to_string(), "`sh -c 'echo why >&2; exit 3'` failed: why");
    }
}
