//! A configuration file as it was read, and the places in it.

use std::{
    fs::File,
    io::{self, Read},
    ops::Range,
    os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _},
};

use crate::{
    error::{Error, Result},
    text,
};

/// Largest file, bytes. A hundred thousand rules take a sixth of it.
const MOST: u64 = 64 << 20;

/// The name that stands for the standard input.
const STDIN: &str = "-";

/// The standard input and other descriptors that the tool was started with, by name: who names one has opened it.
const DESCRIPTORS: [&str; 4] = ["/dev/stdin", "/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/"];

/// A file's text and what people call it.
#[derive(Debug)]
pub struct Source {
    name: String,
    text: String,
    /// Where each line begins.
    lines: Vec<usize>,
    /// Where it ceases to be UTF-8.
    broken_at: Option<usize>,
}

/// Where something stands, counted from one; columns are characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Source {
    /// Reads a file; `-` is the standard input.
    ///
    /// # Errors
    ///
    /// If it is not a regular file, is too large or cannot be read.
    pub fn read(path: &str) -> Result<Self> {
        if path == STDIN {
            Ok(Self::new("standard input", read(path, io::stdin().lock())?))
        } else {
            Ok(Self::new(path, read(path, open(path)?)?))
        }
    }

    /// A file of this name with these bytes.
    #[must_use]
    pub fn new(name: &str, bytes: Vec<u8>) -> Self {
        // A name is part of a line.
        let name = name.replace('\n', "\\n");
        let (text, broken_at) = match String::from_utf8(bytes) {
            // Some editors put a mark before everything else.
            Ok(text) => (text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text), None),
            Err(error) => {
                let broken_at = error.utf8_error().valid_up_to();
                (String::from_utf8_lossy(error.as_bytes()).into_owned(), Some(broken_at))
            }
        };
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect();
        Self { name, text, lines, broken_at }
    }

    /// Where it ceases to be UTF-8.
    pub(super) const fn broken_at(&self) -> Option<usize> {
        self.broken_at
    }

    /// What people call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The number of the line that holds `at`, from one.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|start| *start <= at)
    }

    /// Where that line begins.
    fn line_start(&self, at: usize) -> usize {
        self.lines.get(self.line(at) - 1).copied().unwrap_or_default()
    }

    pub(super) fn position(&self, at: usize) -> Position {
        let at = self.text.floor_char_boundary(at);
        let before = &self.text[self.line_start(at)..at];
        Position { line: self.line(at), column: before.chars().count() + 1 }
    }

    /// The line on which a span starts, in at most `width` columns around it, and which columns the span takes.
    pub(super) fn excerpt(&self, span: &Range<usize>, width: usize) -> (String, Range<usize>) {
        let at = self.text.floor_char_boundary(span.start);
        let start = self.line_start(at);
        let end = self.text[at..].find('\n').map_or(self.text.len(), |len| at + len);
        let end = self.text[..end].strip_suffix('\r').map_or(end, str::len).max(at);
        let stop = self.text.floor_char_boundary(span.end.clamp(at, end));
        let before = shown(self.text[start..at].chars().rev().take(width)).into_iter().rev().collect::<Vec<_>>();
        let marked = shown(self.text[at..stop].chars().take(width));
        let after = shown(self.text[stop..end].chars().take(width));
        let columns = |texts: &[String]| texts.iter().map(|text| text.chars().count()).sum::<usize>();
        let (left, middle) = (columns(&before), columns(&marked).max(1));
        let line: Vec<char> = before.iter().chain(&marked).chain(&after).flat_map(|text| text.chars()).collect();
        let all = |part: Range<usize>| self.text[part].chars().nth(width).is_none();
        cut(&line, left..left + middle, width, all(start..at), all(at..stop) && all(stop..end))
    }
}

/// Cuts a line to `width` columns around `span`; `from_start` and `to_end` say whether all of it is there.
fn cut(line: &[char], span: Range<usize>, width: usize, from_start: bool, to_end: bool) -> (String, Range<usize>) {
    const CUT: &str = "...";
    if from_start && to_end && line.len() <= width {
        return (line.iter().collect(), span);
    }
    // A third of the columns for what stands before, and what is marked wins over what follows.
    let first = if from_start && span.end + CUT.len() <= width { 0 } else { span.start.saturating_sub(width / 3) };
    let left = if first > 0 || !from_start { CUT } else { "" };
    let room = width - left.len();
    let rest = line.get(first..).unwrap_or_default();
    let (shown, right) =
        if to_end && rest.len() <= room { (rest, "") } else { (&rest[..rest.len().min(room - CUT.len())], CUT) };
    let text: String = left.chars().chain(shown.iter().copied()).chain(right.chars()).collect();
    let start = span.start - first + left.len();
    let end = (span.end - first + left.len()).min(left.len() + shown.len()).max(start + 1);
    (text, start..end)
}

/// Each character as a terminal may have it. A tab is a space, so that what stands below it stays below it.
fn shown(chars: impl Iterator<Item = char>) -> Vec<String> {
    chars
        .map(|c| match c {
            '\t' => " ".to_owned(),
            c if text::is_unsafe(c) => c.escape_unicode().to_string(),
            c => c.to_string(),
        })
        .collect()
}

/// Opens a file without waiting for anybody: a FIFO that nobody writes to would make the tool hang.
fn open(path: &str) -> Result<File> {
    let inherited = DESCRIPTORS.iter().any(|descriptor| path.starts_with(descriptor));
    let mut options = File::options();
    options.read(true);
    if !inherited {
        options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    }
    let file = options.open(path).map_err(|source| cannot_read(path, &source))?;
    let metadata = file.metadata().map_err(|source| cannot_read(path, &source))?;
    let kind = metadata.file_type();
    if kind.is_dir() {
        return Err(Error::usage(path, "is a directory", "name a file"));
    }
    if !(kind.is_file() || inherited && kind.is_fifo()) {
        return Err(Error::usage(
            path,
            "is neither a file nor an open pipe",
            "name a file, or `-` for the standard input",
        ));
    }
    if metadata.len() > MOST {
        return Err(too_large(path));
    }
    Ok(file)
}

fn read(path: &str, from: impl Read) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MOST + 1).read_to_end(&mut bytes).map_err(|source| cannot_read(path, &source))?;
    if bytes.len() as u64 > MOST { Err(too_large(path)) } else { Ok(bytes) }
}

fn too_large(path: &str) -> Error {
    Error::usage(path, format!("is larger than {} MiB", MOST >> 20), "a file of a hundred thousand rules takes 10 MiB")
}

fn cannot_read(path: &str, source: &io::Error) -> Error {
    let hint = match source.kind() {
        io::ErrorKind::NotFound => "see that the path is right; `shaper save` writes such a file",
        io::ErrorKind::PermissionDenied => "see who may read it",
        _ => "name a file that can be read, or `-` for the standard input",
    };
    Error::usage(path, format!("cannot be read: {source}"), hint)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use std::{fs, os::unix::fs::symlink, path::PathBuf};

    use nix::{sys::stat::Mode, unistd::mkfifo};

    use super::*;

    /// A directory that goes with the test.
    struct Directory(PathBuf);

    impl Directory {
        fn new() -> Self {
            let path = std::env::temp_dir().join(format!("shaper-source-{}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Self(path)
        }

        fn path(&self, name: &str) -> String {
            self.0.join(name).to_str().unwrap().to_owned()
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).ok();
        }
    }

    #[test]
    fn only_files_are_read_and_nothing_is_waited_for() {
        let directory = Directory::new();
        let path = |name: &str| directory.path(name);
        fs::write(path("file"), "\u{feff}version = 1").unwrap();
        symlink(path("file"), path("link")).unwrap();
        symlink(path("loop"), path("loop")).unwrap();
        mkfifo(path("fifo").as_str(), Mode::S_IRWXU).unwrap();
        File::create(path("large")).unwrap().set_len(MOST + 1).unwrap();
        for name in ["file", "link"] {
            assert_eq!(Source::read(&path(name)).unwrap().text(), "version = 1");
        }
        for (name, cause) in [
            ("", "is a directory"),
            ("fifo", "is neither a file nor an open pipe"),
            ("large", "is larger than 64 MiB"),
            ("absent", "cannot be read: No such file or directory (os error 2)"),
            ("file/x", "cannot be read: Not a directory (os error 20)"),
            ("loop", "cannot be read: Too many levels of symbolic links (os error 40)"),
            ("nul\0", "cannot be read: file name contained an unexpected NUL byte"),
        ] {
            let error = Source::read(&path(name)).unwrap_err();
            assert_eq!((error.exit_code(), error.to_string()), (1, format!("`{}`: {cause}", path(name))));
        }
        let error = Source::read("/dev/zero").unwrap_err();
        assert_eq!(error.to_string(), "`/dev/zero`: is neither a file nor an open pipe");
        // What is endless is cut short, and what is longer than it says is, too.
        let error = read("-", io::repeat(0)).unwrap_err();
        assert_eq!(error.to_string(), "`-`: is larger than 64 MiB");
        assert!(Source::read("/proc/self/status").unwrap().text().starts_with("Name:"));
    }

    #[test]
    fn an_open_pipe_is_read_by_its_name() {
        use std::{io::Write as _, os::fd::AsRawFd as _};
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"version = 1").unwrap();
        drop(writer);
        let source = Source::read(&format!("/dev/fd/{}", reader.as_raw_fd())).unwrap();
        assert_eq!(source.text(), "version = 1");
    }

    #[test]
    fn places_are_counted_from_one() {
        let source = Source::new("a\nb", "ab\nä\r\n\nz".into());
        assert_eq!(source.name(), "a\\nb");
        for (at, line, column) in
            [(0, 1, 1), (2, 1, 3), (3, 2, 1), (5, 2, 2), (7, 3, 1), (8, 4, 1), (9, 4, 2), (99, 4, 2)]
        {
            assert_eq!(source.position(at), Position { line, column }, "{at}");
        }
    }
}
