//! The command sink: what a program gets, what bounds it, and that nothing of it is left.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use outbox_relay::sink::command::{CommandSink, Config, Program};
use outbox_relay::sink::{Class, Failure};

mod bounds;
mod ends;
mod starts;

/// A program under the name `it`, with the reference's limits.
fn program(program: &str, args: &[&str]) -> Program {
    Program {
        program: program.into(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        timeout: Duration::from_secs(60),
        memory: 256 << 20,
        output: 8 << 10,
    }
}

fn script(text: &str) -> Program {
    program("/bin/sh", &["-c", text])
}

fn sink(program: Program) -> CommandSink {
    CommandSink::new(&Config { programs: BTreeMap::from([("it".to_owned(), program)]) }).unwrap()
}

/// Runs it to its end: the result, and what it told.
async fn run(program: Program, stdin: &[u8]) -> (Result<String, Failure>, Vec<String>) {
    let told = Mutex::new(Vec::new());
    let tell = |line: &str| told.lock().unwrap().push(line.to_owned());
    let result = sink(program).run("it", stdin, Duration::from_secs(60), &tell).await;
    (result, told.into_inner().unwrap())
}

async fn failure(program: Program) -> (Class, String, String) {
    let failure = run(program, b"{}").await.0.unwrap_err();
    assert!(!failure.is_outage(), "of one program, not of all: {failure:?}");
    (failure.class, failure.code, failure.message)
}

/// Whether the process runs: one that nobody has reaped does not.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z") && !rest.starts_with(" X"))
}
