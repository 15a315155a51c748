//! The program `outbox-relay`. Everything it can do is in the library; see `cli`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    // The Kafka client has threads of its own, and every thread of ours that is not needed costs wake-ups: on two
    // cores one was as quick at a backlog, and cheaper at single rows. Who sets tokio's own variable knows better.
    if std::env::var_os("TOKIO_WORKER_THREADS").is_none() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        builder.worker_threads((cores / 2).max(1));
    }
    match builder.enable_all().build() {
        Ok(runtime) => runtime.block_on(outbox_relay::cli::main()),
        Err(error) => {
            eprintln!("outbox-relay: cannot start its threads: {error}");
            ExitCode::FAILURE
        }
    }
}
