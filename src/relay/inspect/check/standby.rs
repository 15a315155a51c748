//! Whether rows can wait for standbys, as `durability` asks.

use crate::database::{Error, Session};
use crate::source::finding::{Finding, Level};

/// Reads what the watcher will.
const WAL: &str = include_str!("../../../source/sql/wal.sql");

pub(super) async fn connected(session: &Session, standbys: u8) -> Result<Finding, Error> {
    let may_read = "SELECT pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE'), current_user::text";
    let row = session.query_one(may_read, &[]).await?;
    let role: String = row.try_get(1)?;
    if !row.try_get(0)? {
        let message = format!(
            "durability waits for standbys, and role {role} may not see how far they are: nothing is delivered"
        );
        let sql = session.query_one("SELECT format('GRANT pg_read_all_stats TO %I;', current_user)", &[]).await?;
        return Ok(Finding::new(Level::Error, "standby_unreadable", message).sql(sql.try_get::<_, String>(0)?));
    }
    let rows = session.query(WAL, &[]).await?;
    let mut names = Vec::new();
    for row in &rows {
        if row.try_get::<_, Option<i32>>(3)?.is_some() {
            names.push(row.try_get::<_, Option<String>>(4)?.unwrap_or_default());
        }
    }
    if names.len() >= usize::from(standbys) {
        let stream = if names.len() == 1 { "standby streams" } else { "standbys stream" };
        let message = format!("{} {stream} from this server: {}", names.len(), names.join(", "));
        return Ok(Finding::new(Level::Ok, "standby_connected", message));
    }
    let message = format!(
        "durability waits for {standbys} {}, and {} from this server: nothing is delivered until then",
        if standbys == 1 { "standby" } else { "standbys" },
        match names.len() {
            0 => "none streams".to_owned(),
            1 => "1 streams".to_owned(),
            more => format!("{more} stream"),
        }
    );
    let fix = "Start the standbys, or lower durability; \"local\" waits for none.";
    Ok(Finding::new(Level::Warn, "standby_missing", message).setting(fix))
}
