//! A session that hears notifications (`LISTEN`). It begins no transaction and runs nothing else: the server keeps for it
//! what was notified, and a listener that held a transaction open would make the server keep it indefinitely.

use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_postgres::{AsyncMessage, Client};

use super::{Config, Error, Limits, connect, quote_ident};

/// How often the session says again that it listens, which changes nothing: a connection that nothing is sent on does not
/// notice its end.
const PULSE: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Debug)]
pub struct Ear {
    client: Client,
    heard: UnboundedReceiver<String>,
    listen: String,
    deadline: Duration,
}

pub(super) async fn open(
    config: &Config,
    limits: &Limits,
    application_name: &str,
    channel: &str,
) -> Result<Ear, Error> {
    let (client, mut wire) = connect::dial(config, limits, application_name).await?;
    let (sender, heard) = unbounded_channel();
    tokio::spawn(async move {
        while let Some(message) = wire.next().await {
            // When nobody hears any more, the connection ends.
            if let AsyncMessage::Notification(notification) = message
                && sender.send(notification.payload().to_owned()).is_err()
            {
                break;
            }
        }
    });
    let listen = format!("LISTEN {}", quote_ident(channel));
    let ear = Ear { client, heard, listen, deadline: limits.statement };
    ear.listen().await?;
    Ok(ear)
}

impl Ear {
    /// The payload of the next notification; none when the connection has ended.
    ///
    /// # Errors
    /// When the server is silent.
    pub async fn next(&mut self) -> Result<Option<String>, Error> {
        loop {
            match tokio::time::timeout(PULSE, self.heard.recv()).await {
                Ok(payload) => return Ok(payload),
                Err(_) => self.listen().await?,
            }
        }
    }

    async fn listen(&self) -> Result<(), Error> {
        let said = tokio::time::timeout(self.deadline, self.client.batch_execute(&self.listen)).await;
        Ok(said.map_err(|_| Error::Timeout(self.deadline))??)
    }
}
