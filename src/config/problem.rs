//! What is wrong with a configuration: everything at once, each with its place, key, value and fix.

use std::cell::RefCell;
use std::fmt;

/// Where a problem stands. Ordered as they are printed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The file as a whole.
    File,
    /// A line and a column of the file, both counted from 1.
    Line(usize, usize),
    /// An environment variable.
    Variable(String),
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// The key's path, for example `relay[booking_sms].turn.deadline`; empty when the text is no TOML.
    pub key: String,
    /// The value as written, secrets hidden; absent when there is none to show.
    pub value: Option<String>,
    /// What is wrong.
    pub what: String,
    /// What to write instead.
    pub fix: String,
    /// Whether something is not there: after a syntax error nobody can tell.
    pub missing: bool,
}

/// Everything that is wrong with a configuration; never empty. Printing it needs no terminal and shows no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    file: Option<String>,
    list: Vec<Problem>,
}

impl Problems {
    /// Sorts the problems by place. `file` is the name to print; `None` when only the environment was read.
    #[must_use]
    pub fn new(file: Option<String>, mut list: Vec<Problem>) -> Self {
        list.sort();
        list.dedup();
        Self { file, list }
    }

    /// The same where no file was read, which may be all that is wrong: `looked_for` is not there, and none is named.
    #[must_use]
    pub(super) fn without_file(mut self, looked_for: &str) -> Self {
        let place =
            std::env::current_dir().map_or_else(|_| "this directory".to_owned(), |dir| dir.display().to_string());
        let what = format!("no configuration file: there is no {looked_for} in {place}, and none is named");
        let fix = "start it where the file is, or name the file by --config FILE or OUTBOX_RELAY_CONFIG".to_owned();
        let (key, value) = (String::new(), None);
        self.file = Some("configuration".to_owned());
        self.list.insert(0, Problem { place: Place::File, key, value, what, fix, missing: true });
        self
    }

    /// The problems, by place.
    #[must_use]
    pub fn list(&self) -> &[Problem] {
        &self.list
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.as_deref().unwrap_or("environment");
        match self.list.len() {
            1 => write!(f, "1 problem in the configuration")?,
            count => write!(f, "{count} problems in the configuration")?,
        }
        for problem in &self.list {
            writeln!(f)?;
            match &problem.place {
                Place::File => write!(f, "{file}: ")?,
                Place::Line(line, column) => write!(f, "{file}:{line}:{column}: ")?,
                Place::Variable(name) => write!(f, "{name}: ")?,
            }
            match (problem.key.as_str(), &problem.value) {
                ("", _) => {}
                (key, None) => write!(f, "{key}: ")?,
                (key, Some(value)) => write!(f, "{key} = {value}: ")?,
            }
            write!(f, "{}\n    fix: {}", problem.what, problem.fix)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// What is wrong with one value, and its fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) what: String,
    pub(super) fix: String,
}

impl Wrong {
    pub(super) fn new(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { what: what.into(), fix: fix.into() }
    }
}

/// What is said of a key that stands in a text twice.
pub(super) const TWIN: &str = "this key stands here for the second time";

/// Takes the problems of all sections while the whole configuration is read.
#[derive(Debug, Default)]
pub(super) struct Report(RefCell<Vec<Problem>>);

impl Report {
    pub(super) fn add(&self, problem: Problem) {
        self.0.borrow_mut().push(problem);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Of one bracket where two are needed, only that: what follows from it, keys that seem to stand there twice, is no problem.
    pub(super) fn keep_first_cause(&self) {
        let mut list = self.0.borrow_mut();
        if list.iter().any(|problem| problem.key == "relay" && problem.fix.contains("[[relay]]")) {
            list.retain(|problem| !(problem.what == TWIN && problem.key.split('.').next() == Some("relay")));
        }
    }

    pub(super) fn into_list(self) -> Vec<Problem> {
        self.0.into_inner()
    }
}

/// After a syntax error the rest of the file is in doubt: what it seems to lack, or to hold, is not worth a line. Of two
/// problems of one value the reader's is kept, because it knows what is wanted there.
pub(super) fn without_guesses(mut list: Vec<Problem>, certain: usize) -> Vec<Problem> {
    if certain != usize::MAX {
        list.retain(|problem| match &problem.place {
            Place::Line(line, _) => problem.what.starts_with("not valid TOML") || *line <= certain && !problem.missing,
            Place::File => false,
            Place::Variable(_) => !problem.missing,
        });
    }
    let bare = |problem: &Problem| problem.what.starts_with("a value without quotation marks");
    let told: Vec<Place> = list.iter().filter(|problem| !bare(problem)).map(|problem| problem.place.clone()).collect();
    list.retain(|problem| !bare(problem) || !told.contains(&problem.place));
    list
}
