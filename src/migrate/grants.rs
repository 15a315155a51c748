//! What roles may do: exactly what they need.

use super::MigrateError;
use crate::database::{self, quote_ident, quote_literal};

/// A table that the relay's role shall read: schema and name.
pub type Table<'a> = (&'a str, &'a str);

/// The grants of the relay's role: exactly what its turns need. No DDL, and of the application's tables reading only.
#[must_use]
pub fn relay_grants(role: &str, tables: &[Table<'_>]) -> String {
    let role = quote_ident(role);
    let mut sql = include_str!("../../schema/grants.sql").replace(":\"relay_role\"", &role);
    let mut schemas: Vec<&str> = tables.iter().map(|(schema, _)| *schema).collect();
    schemas.sort_unstable();
    schemas.dedup();
    for schema in schemas {
        sql.push_str(&format!("GRANT USAGE ON SCHEMA {} TO {role};\n", quote_ident(schema)));
    }
    for (schema, name) in tables {
        sql.push_str(&format!("GRANT SELECT ON {}.{} TO {role};\n", quote_ident(schema), quote_ident(name)));
    }
    sql
}

/// The grants of the relay's role for due work: setting the columns that say what was sent, and no others.
#[must_use]
pub fn mark_grants(role: &str, marks: &[(Table<'_>, &str)]) -> String {
    let role = quote_ident(role);
    let mut sql = String::new();
    for ((schema, name), column) in marks {
        let (schema, name, column) = (quote_ident(schema), quote_ident(name), quote_ident(column));
        sql.push_str(&format!("GRANT UPDATE ({column}) ON {schema}.{name} TO {role};\n"));
    }
    sql
}

/// The grants of a role that writes the ready-made outbox and asks for requests.
#[must_use]
pub fn app_grants(role: &str) -> String {
    include_str!("../../schema/app_grants.sql").replace(":\"app_role\"", &quote_ident(role))
}

/// Runs grants.
///
/// # Errors
/// The database's, for example that this role does not own the tables.
pub async fn grant(client: &tokio_postgres::Client, sql: &str) -> Result<(), MigrateError> {
    client.batch_execute(&format!("BEGIN; {sql} COMMIT;")).await.map_err(|error| {
        tracing::debug!(error = database::error::describe(&error), sql = quote_literal(sql), "grants failed");
        MigrateError::from(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_role_and_table_names_stay_names() {
        let tables = [("public", "user"), ("we\"ird", "Select")];
        let sql = relay_grants("r\"; DROP TABLE x; --", &tables);
        let marks = mark_grants("r", &[(tables[1], "Se\"nt")]);
        assert!(marks.contains("GRANT UPDATE (\"Se\"\"nt\") ON \"we\"\"ird\".\"Select\" TO"));
        assert!(sql.contains("TO \"r\"\"; DROP TABLE x; --\";"));
        assert!(sql.contains("GRANT SELECT ON \"public\".\"user\" TO"));
        assert!(sql.contains("GRANT USAGE ON SCHEMA \"we\"\"ird\" TO"));
    }
}
