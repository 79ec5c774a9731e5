//! Runs work that recurses over a statement on a thread whose stack fits the deepest statement that the guard admits.
//!
//! Parsing, planning and optimising recurse once or several times for each level of a statement. The guard bounds the
//! levels; `tests/whole_program/hostile_queries.rs` runs every shape at its bound in a debug build, whose frames are the
//! largest.

use crate::error::{Kind, QueryError};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Memory for the stack. It is reserved, and only what is used of it is taken.
pub(crate) const STACK_BYTES: usize = 64 << 20;

/// Such threads that have not ended yet: one that computes is not stopped by whoever lets go of it.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// How many of these threads there are.
pub(crate) fn running() -> usize {
    RUNNING.load(Ordering::Acquire)
}

/// Counts a thread while it is there.
struct Counted;

impl Counted {
    fn new() -> Self {
        RUNNING.fetch_add(1, Ordering::AcqRel);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Runs a future to its end on such a thread. Whoever drops this lets go of it at its next pause.
pub(crate) async fn run<T: Send + 'static>(
    runtime: Handle,
    work: impl Future<Output = Result<T, QueryError>> + Send + 'static,
) -> Result<T, QueryError> {
    let (mut sender, receiver) = oneshot::channel();
    let counted = Counted::new();
    let body = move || {
        let _counted = counted;
        let done = runtime.block_on(async {
            tokio::select! {
                done = work => Some(done),
                () = sender.closed() => None,
            }
        });
        if let Some(done) = done {
            // Whoever waited may have gone.
            drop(sender.send(done));
        }
    };
    let thread = std::thread::Builder::new().name("planner".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(body).map_err(|error| {
        QueryError::new(Kind::Busy, format!("no thread can be started for planning: {error}"))
            .hint("try again in a moment")
    })?;
    receiver.await.unwrap_or_else(|_| {
        Err(QueryError::new(Kind::Internal, "planning the query failed; please report the statement"))
    })
}
