//! Whether the server that listens is the one that was started. Another user of the machine sees the port among its arguments, may listen
//! there first, and would be told the superuser's password at the first connection.

use std::path::Path;

use anyhow::ensure;

/// The server with this number says in its own directory that it accepts connections. It does so only once it has its port.
pub(super) fn has_started(data: &Path, pid: u32) -> anyhow::Result<()> {
    let file = std::fs::read_to_string(data.join("postmaster.pid"))?;
    let mut lines = file.lines().map(str::trim);
    let is_own = lines.next().and_then(|line| line.parse().ok()) == Some(pid);
    // The eighth line is its state.
    let listens = matches!(lines.nth(6), Some("ready" | "standby"));
    ensure!(is_own && listens, "the server does not accept connections yet");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::net::TcpListener;

    use crate::postgres::{Options, Postgres};

    #[tokio::test(flavor = "multi_thread")]
    async fn another_server_at_the_port_is_told_no_password() -> anyhow::Result<()> {
        let mut postgres = Postgres::start(Options::default()).await?;
        postgres.kill9().await?;
        let other = TcpListener::bind(("127.0.0.1", postgres.port())).await?;
        let restarted = tokio::time::timeout(Duration::from_secs(3), postgres.restart());
        tokio::select! {
            _ = other.accept() => panic!("connected to another server"),
            restarted = restarted => assert!(!matches!(restarted, Ok(Ok(()))), "it cannot have its port"),
        }
        drop(other);
        postgres.restart().await?;
        postgres.stop().await
    }
}
