//! Admission of records to the WAL: bounds the memory of those that are not durable yet.
//!
//! Workers can be faster than the disk, and a record can be far larger than the body it came from. A worker whose
//! record does not fit waits here. That fills the queue and uses up the permits for bodies, so the backpressure
//! reaches the senders.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Admits records while their total is within the limit; a record that exceeds the limit is admitted alone.
#[derive(Debug)]
pub(super) struct Admission {
    limit: usize,
    admitted_bytes: Mutex<usize>,
    released: Condvar,
}

/// The admission of one record; releases its bytes when dropped.
#[derive(Debug)]
pub(super) struct AdmissionPermit {
    admission: Arc<Admission>,
    bytes: usize,
}

impl Admission {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, admitted_bytes: Mutex::new(0), released: Condvar::new() })
    }

    /// Waits until the bytes fit, and admits them. The wait ends, because the WAL always completes the admitted
    /// records.
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
