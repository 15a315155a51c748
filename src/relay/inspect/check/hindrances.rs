//! What an administrator can have done to the schema `outbox` or to functions of PostgreSQL, so that the relay fails although all
//! tables and rights are there.

use crate::database::{Error, Session, quote_ident};
use crate::source::finding::{Finding, Level};

/// By these the relay finds open transactions, and knows the server. Every role may call them unless that was revoked.
const FUNCTIONS: [&str; 4] = [
    "pg_catalog.pg_lock_status()",
    "pg_catalog.pg_stat_get_activity(integer)",
    "pg_catalog.pg_prepared_xact()",
    "pg_catalog.pg_control_system()",
];

pub(super) async fn findings(session: &Session) -> Result<Vec<Finding>, Error> {
    let rows = session.query(include_str!("../sql/check_hindrances.sql"), &[&FUNCTIONS.as_slice()]).await?;
    let role: String = session.query_one("SELECT current_user::text", &[]).await?.try_get(0)?;
    let mut findings = Vec::new();
    for row in rows {
        let (what, name): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let foreign = what.split_once(' ').filter(|(kind, _)| ["trigger", "rule"].contains(kind));
        findings.push(match foreign {
            Some((kind, own)) => {
                let message = format!("{kind} {own} on outbox.{name} can change or refuse what the relay records");
                let sql = format!("DROP {} {own} ON outbox.{};", kind.to_uppercase(), quote_ident(&name));
                Finding::new(Level::Warn, "foreign_trigger", message).sql(sql)
            }
            None if what == "function" => {
                let message = format!("role {role} may not call {name}");
                let sql = format!("GRANT EXECUTE ON FUNCTION {name} TO {};", quote_ident(&role));
                Finding::new(Level::Error, "privilege_missing", message).sql(sql)
            }
            None => {
                let message = format!("row security of outbox.{name} binds role {role}: the relay cannot read it");
                let sql = format!("ALTER TABLE outbox.{} DISABLE ROW LEVEL SECURITY;", quote_ident(&name));
                Finding::new(Level::Error, "row_security", message).sql(sql)
            }
        });
    }
    Ok(findings)
}
