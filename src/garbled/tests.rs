//! Broken readers, each in a process of its own, because a conviction ends it.

use std::hint::black_box;
use std::process::Command;
use std::time::Duration;

use super::{Garbled, Limits};

/// Which reader the process plays.
const READER: &str = "OUTBOX_RELAY_BROKEN_READER";
const LIMITS: Limits = Limits { cpu: Duration::from_secs(1), memory: 256 << 20 };

/// Reads as [`READER`] says; without it, it is no reader.
#[test]
fn reader() {
    let Ok(reader) = std::env::var(READER) else { return };
    let mut hoard = Vec::new();
    for (number, bytes) in Garbled::new("recurrence").within(LIMITS).take(20).enumerate() {
        match reader.as_str() {
            _ if number != 7 => {}
            "panics" => panic!("{} bytes", bytes.len()),
            "quadratic" => {
                let long = bytes.repeat(100_000);
                let pairs = (0..long.len()).flat_map(|a| (a..long.len()).map(move |b| (a, b)));
                println!("{}", pairs.filter(|(a, b)| black_box(long[*a]) == long[*b]).count());
            }
            "endless" => loop {
                black_box(&bytes);
            },
            "hoards" => loop {
                hoard.push(vec![1_u8; 1 << 20]);
            },
            "waits" => std::thread::sleep(LIMITS.cpu * 2),
            sound => println!("{sound}: {}", black_box(bytes).len()),
        }
    }
}

/// How its process ends, and what it says.
fn ends(reader: &str) -> (Option<i32>, String) {
    let program = std::env::current_exe().expect("the test's own");
    let mut command = Command::new(program);
    command
        .args(["--exact", "garbled::tests::reader"])
        .env(READER, reader)
        .env("OUTBOX_RELAY_FUZZ_SEED", reader.len().to_string());
    let output = command.output().expect("starts");
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code(), said)
}

/// It fails with these words and names the file with its input.
fn is_convicted(reader: &str, words: &str) {
    let (code, said) = ends(reader);
    assert_eq!(code, Some(101), "{said}");
    let line = said.lines().find(|line| line.contains("input 8 of seed") && line.contains(words)).expect(&said);
    let kept = line.rsplit(' ').next().expect("a path");
    assert!(std::fs::remove_file(kept).is_ok(), "{line}");
}

#[test]
fn reader_that_panics_is_convicted_by_its_input() {
    is_convicted("panics", "panic");
}

#[test]
fn slow_reader_is_convicted_by_its_input() {
    is_convicted("quadratic", "of CPU time; the limit is 1s");
    is_convicted("endless", "of CPU time; the limit is 1s");
}

#[test]
fn reader_that_hoards_memory_is_convicted_by_its_input() {
    is_convicted("hoards", "MiB; the limit is 256");
}

#[test]
fn sound_reader_passes_on_busy_machine() {
    for reader in ["sound", "waits"] {
        assert_eq!(ends(reader).0, Some(0), "{reader}");
    }
}
