//! The trigger that wakes relays: on the user's own tables, so never made without being asked for.

use tokio_postgres::Client;

use super::{GrantedTable, MigrateError};
use crate::database::quote_ident;

/// Makes the trigger on these tables; those that have it keep it.
#[must_use]
pub fn notify_triggers(tables: &[GrantedTable<'_>]) -> String {
    let mut sql = String::new();
    for (schema, name) in tables {
        let table = format!("{}.{}", quote_ident(schema), quote_ident(name));
        sql.push_str(&format!(
            "CREATE OR REPLACE TRIGGER outbox_notify AFTER INSERT ON {table} FOR EACH STATEMENT EXECUTE FUNCTION outbox.notify();\n\
             COMMENT ON TRIGGER outbox_notify ON {table} IS 'Wakes relays that have notify = true. Transactions that insert here \
             commit one after another, with all others of the server that notify, and cannot be prepared (PREPARE TRANSACTION).';\n"
        ));
    }
    sql
}

/// Creates the triggers.
///
/// # Errors
/// The database's, for example that this role does not own the tables; nothing was created then.
pub async fn make_triggers(client: &Client, sql: &str) -> Result<(), MigrateError> {
    Ok(client.batch_execute(&format!("BEGIN; {sql} COMMIT;")).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_table_names_stay_names() {
        let sql = notify_triggers(&[("we\"ird", "Select\"; DROP TABLE x; --")]);
        assert_eq!(sql.matches("ON \"we\"\"ird\".\"Select\"\"; DROP TABLE x; --\" ").count(), 2, "{sql}");
    }
}
