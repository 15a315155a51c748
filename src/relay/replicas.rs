//! Who relays: the replicas that are connected to this database.

use tokio_postgres::Client;

use crate::database::Error;

/// Names of the replicas with a session in this database. Verbs of the command line call themselves otherwise.
///
/// # Errors
/// The database's.
pub async fn running(client: &Client) -> Result<Vec<String>, Error> {
    let rows = client
        .query(
            "SELECT DISTINCT pg_catalog.substr(a.application_name, 14) AS replica FROM pg_catalog.pg_stat_activity AS a \
             WHERE a.datname = pg_catalog.current_database() AND a.application_name LIKE 'outbox-relay/%' ORDER BY 1",
            &[],
        )
        .await?;
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}
