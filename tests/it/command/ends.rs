use std::sync::Arc;

use super::*;
use crate::support::{PATIENCE, Process, database, eventually, toml};
use rustix::process::Signal;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::sync::mpsc::unbounded_channel;

#[tokio::test]
async fn how_a_program_ends_decides_what_follows() {
    let (class, code, message) = failure(script("echo first >&2; echo no server >&2; exit 3")).await;
    assert_eq!((class, code.as_str()), (Class::Poison, "command_failed"));
    assert_eq!(message, "The command it ended with exit code 3; it said: no server");

    let (class, code, _) = failure(script("exit 75")).await;
    assert_eq!((class, code.as_str()), (Class::Retry, "command_busy"));

    let (class, code, message) = failure(script("kill -SEGV $$")).await;
    assert_eq!((class, code.as_str()), (Class::Poison, "command_failed"));
    assert_eq!(message, "The command it was ended by signal 11");

    let (class, code, message) = failure(script("/no/such/tool")).await;
    assert_eq!((class, code.as_str()), (Class::Fatal, "command_unavailable"));
    assert!(message.contains("exit code 127"), "{message}");
}

/// Ignores SIGTERM, and so does what it starts; tells the numbers of both.
const STUBBORN: &str = "trap '' TERM; sleep 1000 & echo $$ $! >&2; sleep 1000; sleep 1000";

async fn gone(pids: &str) {
    for pid in pids.split(' ') {
        eventually(PATIENCE, async || !is_alive(pid)).await;
    }
}

// Guarantee: commands.cleanup
#[tokio::test]
async fn after_its_time_a_program_that_ignores_sigterm_and_what_it_started_are_gone() {
    let (result, told) = run(Program { timeout: Duration::from_secs(3), ..script(STUBBORN) }, b"{}").await;
    let failure = result.unwrap_err();
    assert_eq!((failure.class, failure.code.as_str()), (Class::Poison, "command_timeout"));
    assert_eq!(told.len(), 1);
    assert_eq!(failure.message, format!("The command it was ended after 3s; it said: {}", told[0]));
    gone(&told[0]).await;
}

#[tokio::test]
async fn a_program_can_tidy_up_when_its_time_is_over() {
    let tidy = "trap 'echo tidied >&2; exit 0' TERM; sleep 1000 & wait";
    let (result, told) = run(Program { timeout: Duration::from_secs(3), ..script(tidy) }, b"{}").await;
    assert_eq!(result.unwrap_err().code, "command_timeout");
    assert_eq!(told, ["tidied"]);
}

// Guarantee: commands.cleanup
#[tokio::test]
async fn what_a_program_leaves_behind_ends_with_it() {
    let (result, _) = run(script("sleep 1000 & echo $!"), b"{}").await;
    gone(&result.unwrap()).await;
}

// Guarantee: commands.cleanup
#[tokio::test]
async fn what_leaves_the_process_group_ends_with_it() {
    let (result, _) = run(script("setsid sleep 1000 & echo $!"), b"{}").await;
    gone(&result.unwrap()).await;
    let forked = "setsid -f sh -c 'echo $$ >&2; exec sleep 1000'; while :; do :; done";
    let (_, told) = run(Program { timeout: Duration::from_secs(2), ..script(forked) }, b"{}").await;
    gone(&told[0]).await;
}

// Guarantee: commands.cleanup
/// A subreaper inherits orphans, as process 1 of a container does.
#[tokio::test]
async fn a_relay_that_is_process_1_keeps_no_zombie_of_what_a_program_left_behind() {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    let (result, _) = run(script("sleep 1000 & echo $!"), b"{}").await;
    let process = format!("/proc/{}", result.unwrap());
    assert!(!std::path::Path::new(&process).exists(), "{process} is a zombie");
    rustix::process::set_child_subreaper(None).unwrap();
}

// Guarantee: commands.cleanup
#[tokio::test]
async fn a_cut_run_leaves_no_process() {
    let (tell, mut told) = unbounded_channel();
    let sink = sink(script(STUBBORN));
    let tell = |line: &str| tell.send(line.to_owned()).unwrap();
    let pids = {
        let run = sink.run("it", b"{}", Duration::from_secs(60), &tell);
        tokio::select! {
            result = run => panic!("it ended: {result:?}"),
            pids = told.recv() => pids.unwrap(),
        }
    };
    gone(&pids).await;
}

// Guarantee: commands.parent
/// After SIGKILL nothing of the relay runs any more, no destructor either.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_ends_with_the_relay_however_that_ends() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    let relay = "[[relay]]\nname = \"jobs\"\n[relay.source.schedule]\n[relay.sink.command.programs.endless]\nprogram = \"/bin/sh\"\n\
                 args = [\"-c\", \"echo $$ >&2; while :; do sleep 0.1; done\"]\n";
    let mut process = Process::spawn(&toml(&database, "relay", None, relay), &["run"]);
    let schedule =
        "INSERT INTO outbox.schedule (name, relay, starts_at, command) VALUES ('endless', 'jobs', now(), 'endless')";
    owner.batch_execute(schedule).await.unwrap();
    let told = "SELECT progress FROM outbox.action WHERE progress IS NOT NULL";
    let mut pid = None;
    eventually(PATIENCE * 2, async || {
        pid = owner.query_opt(told, &[]).await.unwrap().map(|row| row.get::<_, String>(0));
        pid.is_some()
    })
    .await;
    let pid = pid.unwrap();
    assert!(is_alive(&pid), "{}", process.log());
    process.signal(Signal::KILL);
    process.wait().await;
    gone(&pid).await;
}

// Guarantee: commands.parent
/// Threads of a runtime end, too: a worker after it was blocked in place, when there is nothing to do for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_does_not_end_with_the_thread_that_asked_for_it() {
    let (sink, begun) = (sink(script("echo begun >&2; sleep 1; echo done")), Arc::new(Notify::new()));
    let mut running = Box::pin({
        let begun = Arc::clone(&begun);
        async move {
            let told = |_: &str| begun.notify_one();
            sink.run("it", b"{}", Duration::from_secs(60), &told).await
        }
    });
    let runtime = Handle::current();
    let thread = std::thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                result = &mut running => panic!("it ended: {result:?}"),
                () = begun.notified() => {}
            }
        });
        running
    });
    let running = thread.join().unwrap();
    assert_eq!(running.await.unwrap(), "done");
}
