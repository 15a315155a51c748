//! What each class of PostgreSQL's error codes means for a turn: one table, every class of the manual's appendix
//! "PostgreSQL Error Codes" once, and the codes whose meaning differs from their class's.
//!
//! No error of the database is a message's fault as far as can be told: none is poison. Retrying delays and never skips,
//! so that is what follows unless reading on could lose rows.

use tokio_postgres::error::SqlState;

use super::Error;

/// What follows from an error of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cure {
    /// Back off and try again, indefinitely.
    Again,
    /// Back off and make the relay's checks again: they name what is missing.
    Recheck,
    /// Stand still until somebody has looked.
    Halt,
}

impl Cure {
    /// The word in `docs/ERRORS.md`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Again => "retry",
            Self::Recheck => "retry, checks first",
            Self::Halt => "fatal",
        }
    }
}

/// A line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// Classes (two characters) and codes (five).
    pub states: &'static [&'static str],
    /// What they are about.
    pub about: &'static str,
    /// What follows.
    pub cure: Cure,
    /// What an operator can do.
    pub hint: &'static str,
}

const TABLE: &[Meaning] = &[
    Meaning {
        states: &["08"],
        about: "the connection",
        cure: Cure::Again,
        hint: "The relay connects again by itself; see the server's log for why it closed the connection.",
    },
    Meaning {
        states: &["57014"],
        about: "the statement was cancelled: it took longer than 3/5 of the longest turn.deadline, or an administrator cancelled it",
        cure: Cure::Again,
        hint: "The relay retries. If it persists, PostgreSQL takes too long to read a row, the first after the position that \
               `outbox-relay cursor show NAME` prints, or to plan a statement over thousands of partitions, or it waits for a lock (pg_locks): raise turn.deadline, publish fewer columns, \
               or end the session that holds the lock.",
    },
    Meaning {
        states: &["57"],
        about: "the server or an administrator ended the session: restart, failover, termination",
        cure: Cure::Again,
        hint: "The relay retries by itself; when it lasts, see the server's log for why it ended the session.",
    },
    Meaning {
        states: &["25"],
        about: "the transaction's state: read-only (25006) after a failover, or ended by a time limit (25P03, 25P04)",
        cure: Cure::Again,
        hint: "The relay retries by itself; when the server is read-only for long, point [postgres] url at the primary.",
    },
    Meaning {
        states: &["40"],
        about: "deadlock or serialization",
        cure: Cure::Again,
        hint: "The relay retries by itself; when it lasts, see in the server's log with whom it collides.",
    },
    Meaning {
        states: &["55000"],
        about: "a database, view or slot is not in the state that the statement needs",
        cure: Cure::Again,
        hint: "The message names what is not ready. A database that accepts no connections: as a superuser, `ALTER DATABASE NAME \
               ALLOW_CONNECTIONS true`; a materialized view without rows: `REFRESH MATERIALIZED VIEW`.",
    },
    Meaning {
        states: &["55"],
        about: "something is locked or in use",
        cure: Cure::Again,
        hint: "A session holds a lock on the table or on outbox.*, a migration perhaps: see pg_locks, and end it or wait.",
    },
    Meaning {
        states: &["53", "58", "72"],
        about: "the server's resources: disk, memory, connections, files, old snapshots",
        cure: Cure::Again,
        hint: "Free the resource that the message names; too many connections: raise max_connections or lower pool_size.",
    },
    Meaning {
        states: &["28"],
        about: "credentials",
        cure: Cure::Again,
        hint: "Correct the role, its password (the message says where it is from) or pg_hba.conf.",
    },
    Meaning {
        states: &["3D"],
        about: "the database's name",
        cure: Cure::Again,
        hint: "Correct the database's name in [postgres] url, or create the database.",
    },
    Meaning {
        states: &["42", "3F", "0A", "26"],
        about: "a table, column, schema or privilege is missing, or the table is another than it was when the statement was \
                prepared",
        cure: Cure::Recheck,
        hint: "Run `outbox-relay check`: it names what is missing and the SQL that fixes it.",
    },
    Meaning {
        states: &["22", "54"],
        about: "a value cannot be read: out of range, not in the client's encoding, or larger than the server can send",
        cure: Cure::Again,
        hint: "PostgreSQL cannot work out a value of a row, in a stream of one after the position that `outbox-relay cursor show NAME` tells: correct it, or publish other columns.",
    },
    Meaning {
        states: &["23", "27", "44", "P0"],
        about: "a constraint or a trigger refused a write: the relay writes to outbox.* only",
        cure: Cure::Again,
        hint: "Take triggers and constraints of your own off the tables of the schema outbox.",
    },
    Meaning {
        states: &["XX001", "XX002"],
        about: "a damaged table or index: reading on could pass rows in silence",
        cure: Cure::Halt,
        hint: "Check the table and its index with amcheck, REINDEX or restore, then `outbox-relay cursor resume NAME`.",
    },
    Meaning {
        states: &["XX", "F0"],
        about: "an internal error or a damaged file of settings",
        cure: Cure::Again,
        hint: "See the server's log for this moment; the relay retries by itself.",
    },
    Meaning {
        states: &[
            "00", "01", "02", "03", "09", "0B", "0F", "0L", "0P", "0Z", "10", "20", "21", "24", "2B", "2D", "2F", "34",
            "38", "39", "3B", "HV",
        ],
        about: "features that the relay does not use",
        cure: Cure::Again,
        hint: "A view, a rule, a policy or a default of the table may raise it; the relay retries: please report it.",
    },
];

/// What follows from a class that PostgreSQL's manual does not list.
const UNLISTED: Meaning = Meaning {
    states: &["any other"],
    about: "a code of a function or an extension of yours",
    cure: Cure::Again,
    hint: "See who raises it in the server's log; the relay retries by itself.",
};

/// What follows when the server gave no code.
pub const SILENT: Meaning = Meaning {
    states: &["no code"],
    about: "the server cannot be reached, cannot be trusted, or does not answer in time",
    cure: Cure::Again,
    hint: "The relay retries by itself; check that the server runs and can be reached from here.",
};

/// What follows from an error of the database.
#[must_use]
pub fn meaning(error: &Error) -> &'static Meaning {
    error.state().map_or(&SILENT, |state| of(state.code()))
}

fn of(code: &str) -> &'static Meaning {
    let find = |state: &str| TABLE.iter().find(|meaning| meaning.states.contains(&state));
    find(code).or_else(|| find(code.get(..2)?)).unwrap_or(&UNLISTED)
}

/// A short stable word for an error, as in `last_error.code`: `postgres_` and the server's code.
#[must_use]
pub fn word(error: &Error) -> String {
    if matches!(error, Error::TwoServers { .. }) {
        return "postgres_two_servers".to_owned();
    }
    error.state().map_or_else(|| "postgres".to_owned(), |state| format!("postgres_{}", state.code()))
}

/// The table, for people.
pub fn known_errors() -> impl Iterator<Item = &'static Meaning> {
    TABLE.iter().chain([&UNLISTED, &SILENT])
}

/// Whether a statement has ended because it took too long, by the server's clock or by ours.
#[must_use]
pub fn is_too_slow(error: &Error) -> bool {
    matches!(error, Error::Timeout(_)) || error.state() == Some(&SqlState::QUERY_CANCELED)
}

/// Classes whose errors are those of the session or the server, or pass by themselves: they are the same for all rows.
const OF_ALL_ROWS: [&str; 12] = ["08", "25", "26", "28", "34", "3D", "40", "53", "55", "57", "58", "72"];

/// Whether the server refuses to write for what a row, a table or the application's own code is: it may accept other rows. A damaged table
/// is no row's fault.
#[must_use]
pub fn is_about_a_row(error: &Error) -> bool {
    error.state().is_some_and(|state| is_code_about_a_row(state.code()))
}

fn is_code_about_a_row(code: &str) -> bool {
    code == SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE.code()
        || code.get(..2).is_some_and(|class| !OF_ALL_ROWS.contains(&class)) && of(code).cure != Cure::Halt
}

/// Whether a lock was not given in time.
#[must_use]
pub fn is_lock_timeout(error: &Error) -> bool {
    error.state() == Some(&SqlState::LOCK_NOT_AVAILABLE)
}

/// Whether a constraint, a trigger or a function of the application refuses, with a code of its own perhaps.
#[must_use]
pub fn is_of_application(error: &Error) -> bool {
    error.state().is_some_and(|state| is_code_of_application(state.code()))
}

/// Whether one row cannot be read for what is in it, or for what the application's own code, a view's function or a policy, makes of it.
#[must_use]
pub fn is_about_a_read_row(error: &Error) -> bool {
    error.state().is_some_and(|state| {
        let code = state.code();
        ["22", "42"].iter().any(|class| code.starts_with(class)) || is_code_of_application(code)
    })
}

fn is_code_of_application(code: &str) -> bool {
    let class = code.get(..2).unwrap_or_default();
    ["09", "21", "23", "27", "2F", "38", "39", "44", "P0"].contains(&class) || of(code) == &UNLISTED
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The classes in the appendix of the manuals of PostgreSQL 14 to 18.
    const CLASSES: &str = "00 01 02 03 08 09 0A 0B 0F 0L 0P 0Z 10 20 21 22 23 24 25 26 27 28 2B 2D 2F 34 38 39 3B 3D 3F 40 42 \
                           44 53 54 55 57 58 72 F0 HV P0 XX";

    #[test]
    fn every_class_of_the_manual_stands_in_the_table_once() {
        let listed =
            |class: &&str| TABLE.iter().flat_map(|meaning| meaning.states).filter(|state| *state == class).count();
        for class in CLASSES.split(' ') {
            assert_eq!(listed(&class), 1, "{class}");
        }
        let classes = TABLE.iter().flat_map(|meaning| meaning.states).filter(|state| state.len() == 2).count();
        assert_eq!(classes, CLASSES.split(' ').count());
    }

    #[test]
    fn refusals_of_one_row_are_told_from_what_is_the_same_for_all() {
        // A trigger's own codes are any that PostgreSQL has not.
        for code in ["P0001", "23514", "50001", "U0001", "38001", "21000"] {
            assert!(is_code_about_a_row(code) && is_code_of_application(code), "{code}");
        }
        for code in ["22003", "42501", "54000", "55000", "XX000"] {
            assert!(is_code_about_a_row(code) && !is_code_of_application(code), "{code}");
        }
        for code in ["08006", "25006", "28P01", "40P01", "53100", "55P03", "57014", "57P01", "58030", "XX001"] {
            assert!(!is_code_about_a_row(code) && !is_code_of_application(code), "{code}");
        }
    }

    #[test]
    fn a_code_goes_before_its_class_and_a_strange_one_is_tried_again() {
        assert_eq!(of("XX001").cure, Cure::Halt);
        assert_eq!(of("XX000").cure, Cure::Again);
        assert_eq!(of("42501").cure, Cure::Recheck);
        assert_eq!(of("U0001"), &UNLISTED);
        assert_eq!(of(""), &UNLISTED);
    }
}
