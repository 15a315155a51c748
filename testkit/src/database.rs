//! A throw-away PostgreSQL with the schema `outbox` and the roles `relay` and `app`, which may do what they need.

use anyhow::Context as _;
use tokio_postgres::Client;

use super::postgres::{Options, Postgres, login};
use outbox_relay::migrate;

/// The server, and its superuser.
pub(super) async fn start() -> anyhow::Result<(Postgres, Client)> {
    let postgres = Postgres::start(Options::default()).await?;
    let mut owner = postgres.connect("postgres", "postgres").await?;
    owner.batch_execute(&["relay", "app"].map(login).join(";")).await?;
    migrate::up(&mut owner).await.context("Cannot make the schema outbox")?;
    migrate::grant(&owner, &migrate::relay_grants("relay", &[])).await?;
    migrate::grant(&owner, &migrate::app_grants("app")).await?;
    Ok((postgres, owner))
}
