//! Room for records that the log has not made durable yet.
//!
//! Workers can be faster than the disk, and a record can be far larger than the body it came from. Whoever
//! would hand over more than fits waits here, which fills the queue, the room for bodies, and so reaches the
//! senders.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Lets records through while they fit together, and a giant alone.
#[derive(Debug)]
pub(super) struct Admission {
    limit: usize,
    admitted_bytes: Mutex<usize>,
    released: Condvar,
}

/// The room of one record; given back when dropped.
#[derive(Debug)]
pub(super) struct AdmissionPermit {
    admission: Arc<Admission>,
    bytes: usize,
}

impl Admission {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, admitted_bytes: Mutex::new(0), released: Condvar::new() })
    }

    /// Waits until there is room. What is `admitted_bytes` leaves by itself, so this ends.
    pub(super) fn admit(self: &Arc<Self>, bytes: usize) -> AdmissionPermit {
        let admitted_bytes = self.admitted_bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full =
            |admitted_bytes: &mut usize| *admitted_bytes > 0 && *admitted_bytes + bytes > self.limit;
        let mut admitted_bytes =
            self.released.wait_while(admitted_bytes, is_full).unwrap_or_else(PoisonError::into_inner);
        *admitted_bytes += bytes;
        AdmissionPermit { admission: Arc::clone(self), bytes }
    }
}

impl Drop for AdmissionPermit {
    fn drop(&mut self) {
        *self.admission.admitted_bytes.lock().unwrap_or_else(PoisonError::into_inner) -= self.bytes;
        self.admission.released.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn a_giant_goes_alone_and_the_rest_waits() {
        let admission = Admission::new(10);
        let first = admission.admit(100);
        let (sender, receiver) = channel();
        let waiting = Arc::clone(&admission);
        let thread = std::thread::spawn(move || {
            let both = (waiting.admit(4), waiting.admit(6));
            sender.send(()).unwrap();
            both
        });
        assert!(receiver.recv_timeout(Duration::from_millis(100)).is_err(), "it waits");
        drop(first);
        receiver.recv_timeout(Duration::from_secs(10)).expect("room for both");
        drop(thread.join());
        assert_eq!(*admission.admitted_bytes.lock().unwrap(), 0);
    }
}
