//! Who may change the schema: what a role is told that may not.

use tokio_postgres::Client;

use super::MigrateError;
use crate::database::{Error, quote_ident};

const WHO: &str = include_str!("sql/owner.sql");

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
    let to = quote_ident(&role);
    if !row.try_get::<_, bool>(3)? {
        return Ok(format!(
            "role {role} may not create schema outbox in database {database}: run this command with a [postgres] url of its \
             owner, {its_owner}; or have that role run: GRANT CREATE ON DATABASE {} TO {to};",
            quote_ident(&database)
        ));
    }
    let Some(what) = row.try_get::<_, Option<String>>(4)? else {
        return Ok("connect as a superuser".to_owned());
    };
    let (owner, superuser): (String, bool) = (row.try_get(5)?, row.try_get(6)?);
    let theirs = format!("{what} belongs to role {owner}");
    let connect = "run this command with a [postgres] url of that role";
    let grant = format!("GRANT {} TO {to}", quote_ident(&owner));
    // The option exists from PostgreSQL 16 on; before, it is the member that inherits or does not.
    let inherits =
        if row.try_get(8)? { format!("{grant} WITH INHERIT TRUE;") } else { format!("ALTER ROLE {to} INHERIT;") };
    Ok(match (superuser, row.try_get(7)?) {
        // A role should not become a member of a superuser for this.
        (true, _) => format!("{theirs}, a superuser: {connect}"),
        (false, true) => {
            format!("{theirs}, whose rights {role} does not inherit: {connect}; or have a superuser run: {inherits}")
        }
        (false, false) => format!("{theirs}: {connect}; or have a superuser run: {grant};"),
    })
}
