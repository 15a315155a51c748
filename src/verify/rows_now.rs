//! Rows of ids that differ, as the table has them now.

use std::collections::HashMap;

use super::Error;
use crate::database::Session;
use crate::source::range::{self, FoundRow};
use crate::source::shape::{IdType, Shape};

/// The rows of these ids. Texts that cannot be ids of this table have none.
///
/// # Errors
/// The database's.
pub(super) async fn of_ids(
    session: &Session,
    shape: &Shape,
    ids: &[&str],
) -> Result<HashMap<String, Vec<FoundRow>>, Error> {
    let possible: Vec<&str> = ids.iter().copied().filter(|id| can_be(shape.id_type, id)).collect();
    let mut found: HashMap<String, Vec<FoundRow>> = HashMap::new();
    for row in range::of_ids(session, shape, &possible).await? {
        found.entry(row.id.clone()).or_default().push(row);
    }
    Ok(found)
}

/// Whether a text can be an id of this type.
fn can_be(ids: IdType, id: &str) -> bool {
    match ids {
        IdType::SmallInt => id.parse::<i16>().is_ok(),
        IdType::Integer => id.parse::<i32>().is_ok(),
        IdType::BigInt => id.parse::<i64>().is_ok(),
        IdType::Uuid => id.len() == 36 && id.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit()),
        IdType::Text => !id.contains('\0'),
    }
}
