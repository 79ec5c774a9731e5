//! Room for records that the log has not made durable yet.
//!
//! Workers can be faster than the disk, and a record can be far larger than the body it came from. Whoever
//! would hand over more than fits waits here, which fills the queue, the room for bodies, and so reaches the
//! senders.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Lets records through while they fit together, and a giant alone.
#[derive(Debug)]
pub(super) struct Gate {
    limit: usize,
    inside: Mutex<usize>,
    left: Condvar,
}

/// The room of one record; given back when dropped.
#[derive(Debug)]
pub(super) struct Inside {
    gate: Arc<Gate>,
    bytes: usize,
}

impl Gate {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, inside: Mutex::new(0), left: Condvar::new() })
    }

    /// Waits until there is room. What is inside leaves by itself, so this ends.
    pub(super) fn enter(self: &Arc<Self>, bytes: usize) -> Inside {
        let inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |inside: &mut usize| *inside > 0 && *inside + bytes > self.limit;
        let mut inside = self.left.wait_while(inside, is_full).unwrap_or_else(PoisonError::into_inner);
        *inside += bytes;
        Inside { gate: Arc::clone(self), bytes }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        *self.gate.inside.lock().unwrap_or_else(PoisonError::into_inner) -= self.bytes;
        self.gate.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn a_giant_goes_alone_and_the_rest_waits() {
        let gate = Gate::new(10);
        let first = gate.enter(100);
        let (sender, receiver) = channel();
        let waiting = Arc::clone(&gate);
        let thread = std::thread::spawn(move || {
            let both = (waiting.enter(4), waiting.enter(6));
            sender.send(()).unwrap();
            both
        });
        assert!(receiver.recv_timeout(Duration::from_millis(100)).is_err(), "it waits");
        drop(first);
        receiver.recv_timeout(Duration::from_secs(10)).expect("room for both");
        drop(thread.join());
        assert_eq!(*gate.inside.lock().unwrap(), 0);
    }
}
