//! What each error of the statement means: one table of PostgreSQL's classes, and of codes that differ from their class's.

use tokio_postgres::error::{Severity, SqlState};

use crate::sink::{Class, Failure, KnownError, Phase, Subject};
use crate::visible::visible;

/// A line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Meaning {
    /// Classes (two characters) and codes (five).
    states: &'static [&'static str],
    class: Class,
    hint: &'static str,
}

const TABLE: &[Meaning] = &[
    Meaning {
        states: &["22", "54"],
        class: Class::Poison,
        hint: "A value of the row does not fit the statement or its tables: fix the row, or the statement.",
    },
    Meaning {
        states: &["23", "27", "44"],
        class: Class::Poison,
        hint: "A constraint refuses what this row changes: fix the row, the read model, or the statement.",
    },
    Meaning {
        states: &["P0", "20", "2F", "38", "39"],
        class: Class::Poison,
        hint: "A function or a trigger raised this for the row: fix the row, or what raised it.",
    },
    Meaning {
        states: &["42", "3F", "28"],
        class: Class::Fatal,
        hint: "Correct the statement, or grant the relay's role what it needs. The relay's search_path is empty: every \
               table, type and function must be written with its schema, also inside functions.",
    },
    Meaning {
        states: &["21"],
        class: Class::Fatal,
        hint: "The statement meets a row of the read model twice, or several rows where one is needed: aggregate in the \
               statement, with GROUP BY for each = \"batch\".",
    },
    Meaning {
        states: &["2D", "24", "34", "3B", "0L"],
        class: Class::Fatal,
        hint: "The statement or a procedure that it calls ends a transaction or a savepoint that is not its own: take that \
               out; the relay commits.",
    },
    Meaning {
        states: &["40", "55P03", "55006", "55P04"],
        class: Class::Retry,
        hint: "The statement collided with another transaction; the relay retries by itself. When it lasts, see with \
               whom in the server's log and in pg_locks.",
    },
    Meaning {
        states: &["55"],
        class: Class::Fatal,
        hint: "The statement needs what is not in the state that it needs: a materialized view without data, a sequence not \
               yet used, a replica identity. Set that right, or correct the statement.",
    },
    Meaning {
        states: &["25006"],
        class: Class::Retry,
        hint: "The transaction is read-only. Either a function or a trigger has made it so (transaction_read_only): take that \
               out. Or the server has become a standby: the relay retries by itself.",
    },
    Meaning {
        states: &["57", "25", "08", "53", "58", "72", "XX", "F0"],
        class: Class::Retry,
        hint: "The server ended the statement: restart, failover, time limit or lack of resources; the relay retries by \
               itself. A statement has 3/5 of turn.deadline.",
    },
    Meaning {
        states: &["0A", "26"],
        class: Class::Retry,
        hint: "The relay prepares the statement again by itself; when it lasts, correct the statement.",
    },
];

/// A code of the user's own, or of an extension.
const UNLISTED: Meaning = Meaning {
    states: &[],
    class: Class::Poison,
    hint: "A function, a trigger or an extension raised this for the row: fix the row, or what raised it.",
};

/// What row security refuses (a 42501 of this routine): the relay's sessions have it off, so that a policy hides no row from them.
const ROW_SECURITY: (&str, &str) = (
    "check_enable_rls",
    "A policy would hide rows of this table from the relay's role, and the statement would pass them by. Let the role see all \
     (ALTER ROLE … BYPASSRLS), or have the statement call a SECURITY DEFINER function of the table's owner; then resume the \
     cursor.",
);

fn of(code: &str) -> &'static Meaning {
    let find = |state: &str| TABLE.iter().find(|meaning| meaning.states.contains(&state));
    find(code).or_else(|| find(code.get(..2)?)).unwrap_or(&UNLISTED)
}

/// What an error of the statement means.
pub(super) fn judge(error: &tokio_postgres::Error) -> Failure {
    let Some(db) = error.as_db_error() else {
        let hint = "Nothing was changed; the relay retries by itself.";
        return Failure::of(Class::Retry, "sql_no_answer", error.to_string(), hint).about(Subject::Elsewhere);
    };
    let meaning = of(db.code().code());
    let class = if ends_session(error) { Class::Retry } else { meaning.class };
    let message = visible(&format!("The statement failed: {} ({})", db.message(), db.code().code()));
    let (routine, policy) = ROW_SECURITY;
    let hint = if db.routine() == Some(routine) { policy } else { meaning.hint };
    let subject = if *db.code() == SqlState::QUERY_CANCELED { Subject::TooSlow } else { Subject::Message };
    Failure::of(class, &format!("sql_{}", db.code().code()), message, hint).about(subject)
}

/// Whether the transaction is gone with its connection.
pub(super) fn ends_session(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_none_or(|db| matches!(db.parsed_severity(), Some(Severity::Fatal | Severity::Panic)))
}

/// The table, for people.
#[must_use]
pub fn known_errors() -> Vec<KnownError> {
    let known =
        |codes: String, class, hint: &str| KnownError { codes, class, phase: Phase::Answered, hint: hint.into() };
    let line = |meaning: &Meaning| {
        let code = |state: &&str| if state.len() == 5 { format!("`sql_{state}`") } else { format!("`sql_{state}…`") };
        let codes = meaning.states.iter().map(code).collect::<Vec<_>>().join(", ");
        known(codes, meaning.class, meaning.hint)
    };
    TABLE.iter().map(line).chain([known("any other `sql_…`".to_owned(), UNLISTED.class, UNLISTED.hint)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_judged_and_codes_of_the_users_own_are_the_rows() {
        for (code, class) in [
            ("22P02", Class::Poison),
            ("23505", Class::Poison),
            ("P0001", Class::Poison),
            ("44000", Class::Poison),
            ("27000", Class::Poison),
            ("U0001", Class::Poison),
            ("40P01", Class::Retry),
            ("40001", Class::Retry),
            ("55P03", Class::Retry),
            ("55006", Class::Retry),
            ("55P04", Class::Retry),
            ("55000", Class::Fatal),
            ("57014", Class::Retry),
            ("25006", Class::Retry),
            ("57P01", Class::Retry),
            ("42P01", Class::Fatal),
            ("42501", Class::Fatal),
            ("2D000", Class::Fatal),
            ("21000", Class::Fatal),
        ] {
            assert_eq!(of(code).class, class, "{code}");
        }
    }

    #[test]
    fn no_state_stands_in_the_table_twice() {
        let mut states: Vec<_> = TABLE.iter().flat_map(|meaning| meaning.states).collect();
        let all = states.len();
        states.sort_unstable();
        states.dedup();
        assert_eq!(states.len(), all);
    }
}
