//! The program `outbox-relay`. Everything it can do is in the library; see `cli`.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    outbox_relay::cli::main().await
}
