//! Who may change the schema: what a role is told that may not.

use tokio_postgres::Client;

use super::MigrateError;
use crate::database::{Error, quote_ident};

/// This role, the database, its owner; the owner of the schema, if there is one, and whether it is a superuser.
const WHO: &str = "SELECT current_user::text, d.datname::text, pg_catalog.pg_get_userbyid(d.datdba)::text, o.rolname::text, \
     COALESCE(o.rolsuper, false) FROM pg_catalog.pg_database AS d LEFT JOIN (pg_catalog.pg_namespace AS n \
     JOIN pg_catalog.pg_roles AS o ON o.oid = n.nspowner) ON n.nspname = 'outbox' \
     WHERE d.datname = pg_catalog.current_database()";

/// Adds to a refusal of the server which role may do it, and the SQL with which this one may.
pub(super) async fn explained(client: &Client, error: MigrateError) -> MigrateError {
    let reason = match error {
        MigrateError::Denied { reason, .. } => reason,
        // A right to read is not what a migrator lacks.
        MigrateError::NotGranted { role } => format!("role {role} has no rights on schema outbox"),
        other => return other,
    };
    match fix(client).await {
        Ok(fix) => MigrateError::Denied { reason, fix },
        Err(_) => {
            MigrateError::Denied { reason, fix: "connect as the owner of the database or of schema outbox".to_owned() }
        }
    }
}

async fn fix(client: &Client) -> Result<String, Error> {
    let row = client.query_one(WHO, &[]).await?;
    let (role, database, its_owner): (String, String, String) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    let owner: Option<String> = row.try_get(3)?;
    let (to, superuser) = (quote_ident(&role), row.try_get(4)?);
    Ok(match owner {
        None => format!(
            "role {role} may not create schema outbox in database {database}: run this command with a [postgres] url of its \
             owner, {its_owner}; or have that role run: GRANT CREATE ON DATABASE {} TO {to};",
            quote_ident(&database)
        ),
        // A role should not become a member of a superuser for this.
        Some(owner) if superuser => format!(
            "schema outbox belongs to role {owner}, a superuser: run this command with a [postgres] url of that role"
        ),
        Some(owner) => format!(
            "schema outbox belongs to role {owner}: run this command with a [postgres] url of that role; or have a superuser \
             run: GRANT {} TO {to};",
            quote_ident(&owner)
        ),
    })
}
