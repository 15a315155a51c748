//! A program of one's own: the whole command line, with further sinks.

use std::ffi::OsString;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::Cli;
use crate::config::{self, Config, Environment, Problems};
use crate::sink::InvalidSetting;
use crate::sink::custom::{CustomSink, Kinds, Table};
use crate::telemetry;

/// The program `outbox-relay`, and whatever is built on it: all commands (`run`, `check`, `migrate`, `status`, …), with the
/// built-in sinks and those that are registered here.
#[derive(Clone, Debug, Default)]
pub struct Program {
    kinds: Kinds,
}

impl Program {
    /// The program as it is shipped.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with a kind of sinks of its own, which a configuration uses by `[relay.sink.custom] kind = "…"`. `make` is given
    /// the other keys of that section while the configuration is read: it asks no server.
    ///
    /// # Panics
    /// When `kind` is not 1 to 40 of `a-z`, `0-9` and `_`, beginning with a letter, or is taken.
    #[must_use]
    pub fn sink<S: CustomSink>(
        mut self,
        kind: &'static str,
        make: impl Fn(&Table) -> Result<S, InvalidSetting> + Send + Sync + 'static,
    ) -> Self {
        self.kinds.add(kind, make);
        self
    }

    /// Reads the configuration of the file that `path` names, as every command does; see [`Config::load`].
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load(&self, path: Option<&Path>, environment: &Environment) -> Result<Config, Problems> {
        Config::load_with(path, environment, &self.kinds)
    }

    /// Reads the text of a configuration; `file` is its name in problems.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(&self, text: &str, file: &str, environment: &Environment) -> Result<Config, Problems> {
        Config::parse_with(text, file, environment, &self.kinds)
    }

    /// Does what the process's arguments ask for, on a runtime of its own; the answer is how the process should end. Wrong usage
    /// ends the process here, with 2.
    #[must_use]
    pub fn run(self) -> ExitCode {
        if let Some(problem) = unusable(|variable| std::env::var_os(variable)) {
            eprintln!("error: {problem}");
            return ExitCode::from(2);
        }
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        // The Kafka client has threads of its own, and every thread of ours that is not needed costs wake-ups: on two
        // cores one was as quick at a backlog, and cheaper at single rows. Who sets tokio's own variable knows better.
        if std::env::var_os("TOKIO_WORKER_THREADS").is_none() {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            builder.worker_threads((cores / 2).max(1));
        }
        match builder.enable_all().build() {
            Ok(runtime) => {
                let code = runtime.block_on(self.execute(std::env::args_os(), &config::of_process()));
                // A look-up of a name that is still asked about would be waited for, however long it takes.
                runtime.shutdown_background();
                code
            }
            Err(error) => {
                eprintln!("outbox-relay: cannot start its threads: {error}");
                ExitCode::FAILURE
            }
        }
    }

    /// Does what these arguments ask for; the first is the program's name. For programs with a runtime of their own: it is to be
    /// one of several threads, and logs, metrics and signals of the process are this program's while it runs.
    pub async fn execute(&self, arguments: impl IntoIterator<Item = OsString>, environment: &Environment) -> ExitCode {
        let code = Cli::parse_from(arguments).execute(environment, &self.kinds).await;
        telemetry::flush();
        code
    }
}

/// The most threads of [`THREADS`]: more only cost memory, and a million of them the start.
const MOST_THREADS: usize = 1024;
const THREADS: &str = "TOKIO_WORKER_THREADS";
const CERTIFICATES: &str = "SSL_CERT_FILE";

/// What libraries read of the environment and would panic at, or wait for without end.
fn unusable(variable: impl Fn(&str) -> Option<OsString>) -> Option<String> {
    let is_number = |text: OsString| text.to_str().and_then(|text| text.parse().ok());
    if let Some(threads) = variable(THREADS)
        && !is_number(threads).is_some_and(|threads: usize| (1..=MOST_THREADS).contains(&threads))
    {
        return Some(format!(
            "{THREADS}: expected a whole number from 1 to {MOST_THREADS}\n    fix: correct it, or remove it"
        ));
    }
    let file = variable(CERTIFICATES).and_then(|file| std::fs::metadata(file).ok());
    if file.is_some_and(|file| file.file_type().is_fifo()) {
        return Some(format!("{CERTIFICATES}: it is a pipe, not a file\n    fix: name a file of certificates"));
    }
    None
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn variables_that_end_or_block_libraries_are_refused() {
        let set = |name: &'static str, value: OsString| unusable(|asked| (asked == name).then(|| value.clone()));
        for threads in ["0", "-1", "", "x", "1025", "99999999999999999999"] {
            let problem = set(THREADS, threads.into()).expect(threads);
            assert!(problem.starts_with("TOKIO_WORKER_THREADS: expected a whole number from 1 to 1024"), "{problem}");
        }
        assert_eq!((set(THREADS, "1".into()), set(THREADS, "1024".into())), (None, None));
        let dir = tempfile::tempdir().expect("made");
        let pipe = dir.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).expect("made");
        assert!(set(CERTIFICATES, pipe.into()).is_some_and(|problem| problem.contains("it is a pipe")));
        assert_eq!((set(CERTIFICATES, "/nonesuch".into()), set(CERTIFICATES, "/etc/passwd".into())), (None, None));
    }
}
