//! Files that the configuration names: read without waiting for anyone, and up to a limit.
//!
//! A pipe that nothing writes to would block the thread that opens it, and with it the end of the process.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read as _, Result};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::{OFlags, fcntl_setfl};

/// Larger than every certificate store, list of tokens and configuration.
const LARGEST: u64 = 8 << 20;

/// What a file holds.
///
/// # Errors
/// When it cannot be read, is no regular file (a pipe, a device), or larger than 8 MiB.
pub fn bytes(path: &Path) -> Result<Vec<u8>> {
    let file = open(path)?;
    let kind = file.metadata()?;
    if kind.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if !kind.is_file() {
        return Err(Error::other("it is a pipe or a device, not a file"));
    }
    contents(&file)
}

/// The same as text.
///
/// # Errors
/// As for [`bytes`], and when it is not UTF-8.
pub fn text(path: &Path) -> Result<String> {
    utf8(bytes(path)?)
}

/// A text that may come by a pipe, as long as a program writes to it: for what is read once, at start.
///
/// # Errors
/// When it cannot be read, is not UTF-8, or larger than 8 MiB.
pub fn piped_text(path: &Path) -> Result<String> {
    let file = open(path)?;
    // A pipe without a writer is open by now, and ends.
    fcntl_setfl(&file, OFlags::empty())?;
    utf8(contents(&file)?)
}

fn open(path: &Path) -> Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

fn contents(file: &File) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(Error::other("it is larger than 8 MiB"));
    }
    Ok(bytes)
}

fn utf8(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| Error::new(ErrorKind::InvalidData, "stream did not contain valid UTF-8"))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    // Guarantee: secrets.files
    #[test]
    fn pipes_and_endless_files_are_errors() {
        let dir = tempfile::tempdir().expect("made");
        let pipe = dir.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("made");
        let large = dir.path().join("large");
        File::create(&large).and_then(|file| file.set_len(1 << 40)).expect("made");
        let why = |result: Result<String>| result.expect_err("refused").to_string();
        for path in [pipe.as_path(), Path::new("/dev/zero")] {
            assert_eq!(why(text(path)), "it is a pipe or a device, not a file");
        }
        assert_eq!(why(text(&large)), "it is larger than 8 MiB");
        for path in [large.as_path(), Path::new("/dev/zero")] {
            assert_eq!(why(piped_text(path)), "it is larger than 8 MiB");
        }
        assert_eq!(piped_text(&pipe).expect("it ends"), "", "without a writer");
        assert_eq!(text(dir.path()).expect_err("refused").kind(), ErrorKind::IsADirectory);
    }

    #[test]
    fn texts_of_files_and_written_pipes_are_read() {
        let dir = tempfile::tempdir().expect("made");
        let (path, pipe) = (dir.path().join("file"), dir.path().join("pipe"));
        std::fs::write(&path, "a = 1\n").expect("written");
        assert_eq!(text(&path).expect("read"), "a = 1\n");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("made");
        // With both ends open, opening waits for nobody.
        let mut writer = OpenOptions::new().read(true).write(true).open(&pipe).expect("opened");
        writer.write_all(b"a = 2\n").expect("room");
        let reader = std::thread::spawn(move || piped_text(&pipe));
        let written = || matches!(rustix::io::ioctl_fionread(&writer), Ok(1..));
        while written() {
            std::thread::yield_now();
        }
        drop(writer);
        assert_eq!(reader.join().expect("no panic").expect("read"), "a = 2\n");
    }
}
