//! The thread that starts all programs.
//!
//! The kernel ends a program (`setpriv --pdeathsig`) with the thread that has started it, not with that thread's process. The runtime's
//! threads come and go: `block_in_place` turns a worker into one of its spare threads, which end when they have nothing to do. This one
//! ends with the process.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

type Start = Box<dyn FnOnce() + Send>;

/// Where the thread takes its work from; none before the first program.
static STARTS: Mutex<Option<Sender<Start>>> = Mutex::new(None);

/// Starts something on that thread, within the caller's runtime, which serves its pipes and reaps it. What was started when the caller
/// is gone is dropped there.
///
/// # Errors
/// Those of the start, and of the thread.
pub(super) async fn start<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    let runtime = Handle::try_current().map_err(io::Error::other)?;
    let (tell, told) = oneshot::channel();
    hand_over(Box::new(move || {
        // Also for what is dropped here: it is reaped by the runtime.
        let _within = runtime.enter();
        if !tell.is_closed() {
            let _ = tell.send(work());
        }
    }))?;
    told.await.unwrap_or_else(|_| Err(io::Error::other("the start has panicked")))
}

fn hand_over(start: Start) -> io::Result<()> {
    let mut standing = STARTS.lock().unwrap_or_else(PoisonError::into_inner);
    // Without a thread, when the system has none left, the next start tries to make one.
    let starts = match standing.take() {
        Some(starts) => starts,
        None => begin()?,
    };
    starts.send(start).map_err(|_| io::Error::other("the thread that starts programs has ended"))?;
    *standing = Some(starts);
    Ok(())
}

fn begin() -> io::Result<Sender<Start>> {
    let (starts, waiting) = channel::<Start>();
    std::thread::Builder::new().name("programs".to_owned()).spawn(move || {
        for start in waiting {
            // Its caller is told. A thread that ended by it would end all programs that run.
            let _ = catch_unwind(AssertUnwindSafe(start));
        }
    })?;
    Ok(starts)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread::{self, ThreadId};
    use std::time::Duration;

    use super::*;

    async fn starter() -> ThreadId {
        start(|| Ok(thread::current().id())).await.expect("starts")
    }

    // Guarantee: commands.parent
    #[tokio::test]
    async fn all_programs_are_started_by_one_thread_also_after_a_start_that_panics() {
        let first = starter().await;
        assert_ne!(first, thread::current().id());
        let error = start(|| -> io::Result<()> { panic!("a start that panics") }).await.expect_err("panics");
        assert_eq!(error.to_string(), "the start has panicked");
        assert_eq!(starter().await, first);
    }

    #[tokio::test]
    async fn error_of_a_start_is_handed_back_as_it_is() {
        let error = start(|| -> io::Result<()> { Err(io::Error::from_raw_os_error(11)) }).await.expect_err("fails");
        assert_eq!(error.raw_os_error(), Some(11));
    }

    // Guarantee: commands.cleanup
    #[tokio::test]
    async fn what_was_started_for_a_caller_that_is_gone_is_dropped() {
        let (proceed, wait) = channel::<()>();
        let program = Arc::new(());
        let started = Arc::clone(&program);
        let starting = start(move || {
            wait.recv().map_err(io::Error::other)?;
            Ok(started)
        });
        assert!(tokio::time::timeout(Duration::from_millis(50), starting).await.is_err());
        // Not heard if the thread was busy until the caller was gone.
        let _ = proceed.send(());
        starter().await;
        assert_eq!(Arc::strong_count(&program), 1);
    }
}
