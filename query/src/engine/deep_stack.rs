//! Runs work that recurses over a statement on a thread whose stack fits the deepest statement that the guard accepts.
//!
//! Parsing, planning and optimizing recurse once or several times for each level of a statement. The guard limits the
//! number of levels; `tests/whole_program/hostile_queries.rs` runs every kind of nesting at its limit in a debug build,
//! which has the largest stack frames.

use crate::error::{QueryError, QueryErrorKind};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// The stack size of such a thread. The address space is reserved; only the used part takes memory.
pub(crate) const STACK_BYTES: usize = 64 << 20;

/// The number of these threads that have not ended yet. A thread that is computing outlives the caller that dropped it.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Returns the number of these threads that have not ended yet.
pub(crate) fn running_threads() -> usize {
    RUNNING.load(Ordering::Acquire)
}

/// Counts one thread in [`RUNNING`] until it is dropped.
struct RunningGuard;

impl RunningGuard {
    fn new() -> Self {
        RUNNING.fetch_add(1, Ordering::AcqRel);
        Self
    }
}

impl Drop for RunningGuard {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Runs a future to completion on a thread with a deep stack. Dropping the returned future cancels the work at its next
/// await point.
pub(crate) async fn run<T: Send + 'static>(
    runtime: Handle,
    work: impl Future<Output = Result<T, QueryError>> + Send + 'static,
) -> Result<T, QueryError> {
    let (mut sender, receiver) = oneshot::channel();
    let guard = RunningGuard::new();
    let body = move || {
        let _guard = guard;
        let done = runtime.block_on(async {
            tokio::select! {
                done = work => Some(done),
                () = sender.closed() => None,
            }
        });
        if let Some(done) = done {
            // The caller may have stopped waiting.
            drop(sender.send(done));
        }
    };
    let thread = std::thread::Builder::new().name("planner".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(body).map_err(|error| {
        QueryError::new(QueryErrorKind::Busy, format!("cannot start a thread to plan the query: {error}"))
            .hint("try again in a moment")
    })?;
    receiver.await.unwrap_or_else(|_| {
        Err(QueryError::new(
            QueryErrorKind::Internal,
            "the query planner failed unexpectedly; please report the statement",
        ))
    })
}
