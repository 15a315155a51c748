//! What roles may do: exactly what they need.

use std::collections::BTreeSet;
use std::fmt;

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::MigrateError;
use super::rights::{Right, rights, statements};
use crate::database::{self, quote_ident};

/// What PostgreSQL says of a table, a schema, a column or a role that is not there.
const ABSENT: [SqlState; 4] =
    [SqlState::UNDEFINED_TABLE, SqlState::INVALID_SCHEMA_NAME, SqlState::UNDEFINED_COLUMN, SqlState::UNDEFINED_OBJECT];

/// A table that the relay's role shall read: schema and name.
pub type GrantedTable<'a> = (&'a str, &'a str);

/// The grants of the relay's role: exactly what its turns need. No DDL, and of the application's tables reading only.
#[must_use]
pub fn relay_grants(role: &str, tables: &[GrantedTable<'_>]) -> String {
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
pub fn mark_grants(role: &str, marks: &[(GrantedTable<'_>, &str)]) -> String {
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

/// Runs grants, and verifies that they have taken effect: of what a role may not grant, PostgreSQL only warns. A right that
/// its role has already needs no grant. Migrators that grant at the same time wait for each other: PostgreSQL refuses the second of two
/// who change one object (`tuple concurrently updated`).
///
/// # Errors
/// [`MigrateError::Ungranted`] when a right is missing afterwards, or the database's; nothing was granted then.
pub async fn grant(client: &Client, sql: &str) -> Result<(), MigrateError> {
    client.batch_execute("BEGIN").await?;
    let granted = match super::wait_for_others(client).await {
        Ok(()) => granted(client, sql).await,
        Err(error) => Err(error.into()),
    };
    match granted {
        Ok(()) => Ok(client.batch_execute("COMMIT").await?),
        Err(error) => {
            client.batch_execute("ROLLBACK").await?;
            Err(error)
        }
    }
}

async fn granted(client: &Client, sql: &str) -> Result<(), MigrateError> {
    for statement in statements(sql) {
        client.batch_execute("SAVEPOINT before").await?;
        if let Err(error) = client.batch_execute(statement).await {
            tracing::debug!(error = database::error::describe(&error), sql = statement, "grant failed");
            if error.code().is_some_and(|code| ABSENT.contains(code)) {
                return Err(MigrateError::Absent(database::error::describe(&error)));
            }
            let refused = error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE);
            if !refused || rights(statement).is_empty() {
                return Err(error.into());
            }
            client.batch_execute("ROLLBACK TO before").await?;
        }
    }
    let lacking = lacking(client, sql).await?;
    if lacking.objects.is_empty() { Ok(()) } else { Err(MigrateError::Ungranted(Box::new(lacking))) }
}

/// Which of the rights that these grants give are missing.
///
/// # Errors
/// The database's.
pub async fn lacking(client: &Client, sql: &str) -> Result<Lacking, tokio_postgres::Error> {
    let by = client.query_one("SELECT current_user::text", &[]).await?.try_get(0)?;
    let mut lacking = Lacking { objects: Vec::new(), statements: Vec::new(), by };
    for statement in statements(sql) {
        for right in rights(statement) {
            let (held, owner) = right.held(client).await?;
            if !held {
                lacking.add(&right, owner, statement);
            }
        }
    }
    Ok(lacking)
}

/// The rights that roles lack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lacking {
    objects: Vec<Object>,
    /// The statements that would give them.
    statements: Vec<String>,
    /// The role that looked, or ran the grants.
    by: String,
}

/// An object that a role lacks privileges on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Object {
    role: String,
    name: String,
    /// None when there is no such object.
    owner: Option<String>,
    privileges: Vec<String>,
}

impl Lacking {
    /// The privileges by object, in words; those on objects that do not exist are left out.
    #[must_use]
    pub fn privileges(&self) -> Vec<String> {
        self.objects.iter().filter(|object| object.owner.is_some()).map(Object::lacks).collect()
    }

    /// The statements that would give them, to be run by an owner.
    #[must_use]
    pub fn sql(&self) -> String {
        self.statements.iter().map(|statement| format!("{statement};\n")).collect()
    }

    fn add(&mut self, right: &Right, owner: Option<String>, statement: &str) {
        let column = right.column.as_ref().map(|column| format!(" ({column})")).unwrap_or_default();
        let (role, name, privilege) = (right.role.clone(), right.on(), format!("{}{column}", right.privilege));
        match self.objects.iter_mut().find(|object| object.role == role && object.name == name) {
            Some(object) => object.privileges.push(privilege),
            None => self.objects.push(Object { role, name, owner, privileges: vec![privilege] }),
        }
        if self.statements.last().is_none_or(|last| last != statement) {
            self.statements.push(statement.to_owned());
        }
    }
}

impl Object {
    fn lacks(&self) -> String {
        format!("{} on {}", self.privileges.join(", "), self.name)
    }
}

impl fmt::Display for Lacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "role {} may not grant all of them, so none was granted", self.by)?;
        for object in &self.objects {
            let owner =
                object.owner.as_ref().map_or_else(|| "does not exist".to_owned(), |owner| format!("owner {owner}"));
            writeln!(f, "  role {} lacks {} ({owner})", object.role, object.lacks())?;
        }
        let owners: BTreeSet<&str> = self.objects.iter().filter_map(|object| object.owner.as_deref()).collect();
        let owners = owners.into_iter().collect::<Vec<_>>().join(" and ");
        writeln!(f, "  -> run this command again as a superuser, or as a role that has the rights of {owners}")?;
        write!(f, "  -> or let each owner run its statements, then run this command again:")?;
        for statement in &self.statements {
            write!(f, "\n     {statement};")?;
        }
        Ok(())
    }
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
