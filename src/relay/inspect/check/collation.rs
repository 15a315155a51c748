//! Whether text ids still have the order that the indexes over them were built in.
//!
//! The order is a library's: another version of it, after an upgrade of the operating system for example, can have another.

use crate::database::{Error, Session, quote_ident};
use crate::source::finding::{Finding, Level};
use crate::source::shape::{IdType, Shape};

/// A collation, and the versions of the library that gives its order.
#[derive(Debug)]
struct Collation {
    /// Its name as SQL, or the database's of a default.
    name: String,
    is_default: bool,
    /// When it was made, or last refreshed; none where the order is PostgreSQL's own.
    recorded: Option<String>,
    /// Now.
    actual: Option<String>,
}

/// Warns of ids that are compared by another version than their indexes were built by.
pub(super) async fn finding(session: &Session, shape: &Shape) -> Result<Option<Finding>, Error> {
    if shape.id_type != IdType::Text {
        return Ok(None);
    }
    let sql = include_str!("../sql/check_collation.sql");
    let Some(row) = session.query_opt(sql, &[&shape.root, &shape.config.id]).await? else { return Ok(None) };
    let (is_default, is_recorded): (bool, bool) = (row.try_get(0)?, row.try_get(5)?);
    let collation = match (is_default, is_recorded) {
        (false, _) => {
            Collation { name: row.try_get(1)?, is_default, recorded: row.try_get(2)?, actual: row.try_get(3)? }
        }
        (true, true) => {
            let versions = session.query_one(include_str!("../sql/check_default_collation.sql"), &[]).await?;
            Collation {
                name: row.try_get(4)?,
                is_default,
                recorded: versions.try_get(0)?,
                actual: versions.try_get(1)?,
            }
        }
        (true, false) => return Ok(None),
    };
    Ok(judge(&collation, shape))
}

fn judge(collation: &Collation, shape: &Shape) -> Option<Finding> {
    let Collation { name, is_default, recorded, actual } = collation;
    let (recorded, actual) = recorded.as_ref().zip(actual.as_ref()).filter(|(recorded, actual)| recorded != actual)?;
    let (table, id) = (&shape.config.table, &shape.config.id);
    let whose =
        if *is_default { format!("the default collation of database {name}") } else { format!("collation {name}") };
    let message = format!(
        "{table}.{id} is ordered by {whose}, whose order was that of version {recorded} and is that of version {actual} now: indexes may \
         have the order of before, and rows of one instant be passed by it"
    );
    let sql = if *is_default {
        let name = quote_ident(name);
        format!("REINDEX DATABASE CONCURRENTLY {name}; ALTER DATABASE {name} REFRESH COLLATION VERSION;")
    } else {
        format!("REINDEX TABLE CONCURRENTLY {}; ALTER COLLATION {name} REFRESH VERSION;", table.quoted())
    };
    Some(Finding::new(Level::Warn, "collation_version", message).sql(sql))
}
