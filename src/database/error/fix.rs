//! What an operator can do about an error of PostgreSQL.

use super::super::auth::Method;
use super::super::sqlstate;
use super::Error;

/// What to look at when no server answers.
pub const UNREACHABLE: &str =
    "Check host, port and sslmode of [postgres] url, and that the server runs and can be reached from here.";

/// How the system says that this process, or the whole system, may open no more files; the driver keeps no kind of it.
const TOO_MANY_FILES: &str = "Too many open files";
/// How the driver says that the server offers no mechanism that it has.
const NO_MECHANISM: &str = "unsupported SASL mechanism";

impl Error {
    /// What is wrong, without what [`Self::fix`] says: for who prints that below it.
    #[must_use]
    pub fn without_fix(&self) -> String {
        if let Self::Tls { target, reason, .. } = self {
            return format!("cannot trust PostgreSQL at {target}: {reason}");
        }
        let text = self.to_string();
        // The messages of a standby and of a pooler end with it.
        match text.split_once("; point [postgres] url at ") {
            Some((what, _)) if matches!(self, Self::Standby(_) | Self::Pooler(_)) => what.to_owned(),
            _ => text,
        }
    }

    /// What an operator can do about it.
    #[must_use]
    pub fn fix(&self) -> &'static str {
        match self {
            Self::PasswordFile { .. } => {
                "Write the password into that file, or correct [postgres] password_file: a relative path counts from the \
                 directory that the program is started in."
            }
            Self::PasswordCommand { .. } => {
                "Run it by hand, as the relay's user: it must print the password as one line within 10 seconds, and exit with 0."
            }
            Self::Identity(_) => {
                "Correct [postgres] cert_file and key_file, which are read at every connection, or the authorities that the server trusts (ssl_ca_file)."
            }
            Self::Authorities(_) => "Correct [postgres] ca_file.",
            Self::PasswordEmpty { .. } => "Write the password into that file.",
            Self::PasswordMissing(_) => "Write it into the file of [postgres] password_file, or set PGPASSWORD.",
            Self::Method { method: Method::Password, .. } => {
                "Set sslmode=verify-full in [postgres] url, or scram-sha-256 in the server's pg_hba.conf. Only where the \
                 network cannot be listened to, add require_auth=password to the URL."
            }
            Self::Method { .. } => "Change require_auth in [postgres] url, or the server's pg_hba.conf.",
            Self::Connect { state: None, reason, .. } if reason.contains(TOO_MANY_FILES) => {
                "This process has too many files open, sockets among them: raise its limit (`ulimit -n`, LimitNOFILE= of systemd)."
            }
            Self::Connect { state: None, reason, .. } if reason.contains(NO_MECHANISM) => {
                "The server asks for a way to log in that the relay does not have, for example OAuth: let its pg_hba.conf ask this role \
                 for scram-sha-256 or a certificate."
            }
            Self::Connect { state: None, .. } | Self::Opening { .. } => UNREACHABLE,
            Self::Silent { .. } => {
                "See whether the server hangs or is overloaded. A connection pooler in between is silent, too, while none of its \
                 own sessions is free: give its pool room for pool_size sessions of each replica, or point [postgres] url at \
                 PostgreSQL itself."
            }
            Self::Tls { fix, .. } => fix,
            Self::Standby(_) => "Point [postgres] url at the primary.",
            Self::TwoServers { .. } => {
                "No action needed during a failover: the relay reconnects until all its connections are on one server. If it \
                 persists, point [postgres] url at one primary."
            }
            Self::Answer { .. } => "Drop the triggers and rules of that table: the relay makes none.",
            Self::Vanished(_) => {
                "If `outbox-relay cursor show NAME` still shows the cursor, a trigger or a rule on outbox.cursor refuses the change: drop it. \
                 Otherwise the row was deleted: use `outbox-relay cursor remove` for that, with the cursor's replicas stopped."
            }
            Self::Pooler(_) | Self::Setting { .. } => "Point [postgres] url at PostgreSQL itself.",
            Self::Connect { .. } | Self::Statement(_) | Self::Pool(_) | Self::Unreadable(_) | Self::Timeout(_) => {
                sqlstate::meaning(self).hint
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_matter_of_reaching_the_server_has_its_own_fix() {
        let fix = |reason: &str| {
            Error::Connect { target: "db:5432".to_owned(), reason: reason.to_owned(), state: None }.fix()
        };
        assert!(fix("error connecting to server: Too many open files (os error 24)").contains("ulimit -n"));
        assert!(fix("authentication error: unsupported SASL mechanism").contains("pg_hba.conf"));
        assert_eq!(fix("error connecting to server: Connection refused (os error 111)"), UNREACHABLE);
    }

    #[test]
    fn server_that_is_silent_behind_the_sign_in_may_be_a_pooler_without_a_free_session() {
        let limit = std::time::Duration::from_secs(12);
        let fix = Error::Silent { target: "db:6432".to_owned(), limit }.fix();
        assert!(fix.contains("pooler") && fix.contains("pool_size"), "{fix}");
        assert_eq!(Error::Timeout(limit).fix(), sqlstate::SILENT.hint, "a statement that takes long is no sign of one");
    }

    #[test]
    fn fix_is_told_once_where_it_stands_below() {
        let (target, reason) = ("db:5432".to_owned(), "certificate has expired".to_owned());
        let fix = "Correct [postgres] ca_file.";
        let db = || "db".to_owned();
        for error in [Error::Tls { target, reason, fix }, Error::Standby(db()), Error::Pooler(db())] {
            let (what, fix) = (error.without_fix(), error.fix().trim_end_matches('.').to_lowercase());
            assert!(!what.to_lowercase().contains(&fix) && error.to_string().starts_with(&what), "{what:?}, {fix:?}");
            assert!(error.to_string().to_lowercase().contains(&fix), "without it below, the message says it");
        }
        assert_eq!(Error::Pool("closed".to_owned()).without_fix(), "connection pool: closed");
    }
}
