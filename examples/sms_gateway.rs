//! The local stack's SMS provider: speaks Twilio's API, sends nothing, says how many it has accepted.
//!
//! `sms_gateway 0.0.0.0:8088`, with the account and the token of [`outbox_testkit::gateway`].

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::StreamExt as _;
use outbox_testkit::gateway::Gateway;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook_tokio::Signals;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let address: SocketAddr = std::env::args().nth(1).context("usage: sms_gateway ADDRESS:PORT")?.parse()?;
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let gateway = Gateway::listen(address).await?;
    println!("The SMS gateway listens on {}", gateway.base_url());
    let mut accepted = 0;
    loop {
        tokio::select! {
            _ = signals.next() => return Ok(()),
            () = tokio::time::sleep(Duration::from_secs(10)) => {
                // It runs for days: what it has told about is forgotten.
                let new = gateway.take().len();
                accepted += new;
                println!("{accepted} messages accepted, {new} of them in the last 10 s");
            }
        }
    }
}
