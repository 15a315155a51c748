//! What a reader may take for one input. A thread beside it looks: one that never returns is found as well.
//!
//! CPU time is that of the reader's thread, so a busy machine convicts no reader. Memory is that of the process, which other tests
//! share: the limit is well above what those take together.

use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// Short enough that memory does not run out between two looks.
const LOOK: Duration = Duration::from_millis(20);
/// The exit code of a failed test.
const FAILED: i32 = 101;

/// The most of an input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) cpu: Duration,
    /// In bytes.
    pub(super) memory: u64,
}

impl Default for Limits {
    /// A template may take 2 s in each of the eight forms that an input is tried in.
    fn default() -> Self {
        Self { cpu: Duration::from_secs(40), memory: 2 << 30 }
    }
}

/// What the reader has now.
#[derive(Debug, Default)]
pub(super) struct Input {
    pub(super) target: &'static str,
    pub(super) seed: u64,
    pub(super) number: usize,
    pub(super) bytes: Vec<u8>,
}

impl Input {
    /// Where the input is kept.
    fn keep(&self, why: &str) -> String {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/garbled");
        let path = dir.join(format!("{}-{why}-{}-{}", self.target, self.seed, self.number));
        match std::fs::create_dir_all(&dir).and_then(|()| std::fs::write(&path, &self.bytes)) {
            Ok(()) => path.display().to_string(),
            Err(error) => format!("not kept: {error}"),
        }
    }
}

/// Looks at the thread that began it, until dropped.
#[derive(Debug)]
pub(super) struct Watch(Arc<Mutex<Input>>);

impl Watch {
    pub(super) fn begin(limits: Limits) -> Self {
        let input = Arc::default();
        let watched = Arc::downgrade(&input);
        let thread = std::fs::read_link("/proc/thread-self").expect("Linux names the thread");
        std::thread::spawn(move || look(&watched, &Path::new("/proc").join(thread), limits));
        Self(input)
    }

    /// The reader is given this now.
    pub(super) fn see(&self, input: Input) {
        *lock(&self.0) = input;
    }

    pub(super) fn keep(&self, why: &str) -> String {
        lock(&self.0).keep(why)
    }
}

fn lock(input: &Mutex<Input>) -> MutexGuard<'_, Input> {
    input.lock().unwrap_or_else(PoisonError::into_inner)
}

fn look(watched: &Weak<Mutex<Input>>, thread: &Path, limits: Limits) {
    // Since this input was seen for the first time.
    let (mut number, mut begun) = (0, (Duration::ZERO, 0));
    while let Some(input) = watched.upgrade() {
        let (input, now) = (lock(&input), (cpu(thread), memory()));
        if number != input.number {
            (number, begun) = (input.number, now);
        }
        let (cpu, memory) = (now.0.saturating_sub(begun.0), now.1.saturating_sub(begun.1));
        if cpu > limits.cpu {
            convict(&input, "slow", &format!("{cpu:?} of CPU time; the limit is {:?}", limits.cpu));
        }
        if memory > limits.memory {
            convict(&input, "memory", &format!("{} MiB; the limit is {}", memory >> 20, limits.memory >> 20));
        }
        drop(input);
        std::thread::sleep(LOOK);
    }
}

/// No thread can end another one, so the process ends. Past the test's captured output, which nothing would print any more.
fn convict(input: &Input, why: &str, took: &str) -> ! {
    let kept = input.keep(why);
    let said = format!("{}: input {} of seed {} took {took}: {kept}\n", input.target, input.number, input.seed);
    let _ = std::io::stderr().write_all(said.as_bytes());
    std::process::exit(FAILED);
}

/// The fields of `stat` after the name of the program, which may hold anything.
fn cpu(thread: &Path) -> Duration {
    let stat = std::fs::read_to_string(thread.join("stat")).unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1_000 / rustix::param::clock_ticks_per_second())
}

fn memory() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or_default();
    pages * rustix::param::page_size() as u64
}
