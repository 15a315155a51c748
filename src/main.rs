//! The program `outbox-relay`. Everything it can do is in the library; see `Program`.

use std::process::ExitCode;

fn main() -> ExitCode {
    outbox_relay::Program::new().run()
}
