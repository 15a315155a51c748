//! Writing results and talk. A reader that goes away early (`| head`) ends the writing, not with a panic.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use super::table::visible;
use crate::telemetry;

/// Writes a result to standard output.
///
/// # Errors
/// The system's, except a reader that has gone away: that is its own choice, and no failure.
pub fn print(text: &str) -> io::Result<()> {
    write_to(&mut io::stdout().lock(), text)
}

/// The same for a verb that goes on writing: false when the reader has gone away, so that it can end.
///
/// # Errors
/// The system's, except a reader that has gone away.
pub fn print_more(text: &str) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        result => result.map(|()| true),
    }
}

/// Writes talk to standard error, a server's words among it, which must not play tricks on a terminal. Nobody can be
/// told when that fails.
pub fn complain(text: impl Display) {
    let text = text.to_string();
    let lines: Vec<String> = text.lines().map(visible).collect();
    telemetry::say(&lines.join("\n"));
}

fn write_to(writer: &mut impl Write, text: &str) -> io::Result<()> {
    match writer.write_all(text.as_bytes()).and_then(|()| writer.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Failing(ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_goes_away_is_no_failure_and_a_full_disk_is() {
        assert!(write_to(&mut Failing(ErrorKind::BrokenPipe), "x").is_ok());
        assert!(write_to(&mut Failing(ErrorKind::StorageFull), "x").is_err());
    }
}
