//! Time limits for slow clients, and pauses of listeners that cannot accept.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use headway_cc::Time;

use crate::system::clock;

/// The pause of a listener that cannot accept: there may be no descriptors left for a while.
const REST: Duration = Duration::from_millis(100);

/// The clients that a listener accepts. After an error the listener rests, so that an error that
/// lasts does not use up a processor.
pub fn accepted<C>(incoming: impl Iterator<Item = io::Result<C>>) -> impl Iterator<Item = C> {
    incoming.filter_map(|client| {
        let failed = |error| {
            tracing::debug!(%error, "cannot accept a client");
            thread::sleep(REST);
        };
        client.map_err(failed).ok()
    })
}

/// The most clients of a listener that are answered at once.
pub const MOST_CLIENTS: usize = 8;

/// Answers each client in a thread of its own, so that no client waits for another. While
/// [`MOST_CLIENTS`] are being answered, the next client waits.
pub fn answered_apart<C: Send>(clients: impl Iterator<Item = C>, answer: impl Fn(C) + Sync) {
    let (busy, has_ended) = (Mutex::new(0), Condvar::new());
    let count = || busy.lock().unwrap_or_else(PoisonError::into_inner);
    // A drop runs even if `answer` panics.
    struct Ends<F: Fn()>(F);
    impl<F: Fn()> Drop for Ends<F> {
        fn drop(&mut self) {
            (self.0)();
        }
    }
    thread::scope(|scope| {
        for client in clients {
            let is_full = |busy: &mut usize| *busy >= MOST_CLIENTS;
            let waited = has_ended.wait_while(count(), is_full);
            *waited.unwrap_or_else(PoisonError::into_inner) += 1;
            let ends = Ends(|| {
                *count() -= 1;
                has_ended.notify_one();
            });
            let answer = &answer;
            let started = thread::Builder::new().spawn_scoped(scope, move || {
                let _ends = ends;
                answer(client);
            });
            if let Err(error) = started {
                tracing::debug!(%error, "no thread is left to answer a client");
            }
        }
    });
}

/// The most bytes of one write: the kernel's timeout starts again with each part of a longer write.
const PART: usize = 16 << 10;

/// A connection whose reads and writes can be bounded.
pub trait Connection {
    /// Sets the longest time that the next read or write may take.
    fn set_timeouts(&self, most: Duration) -> io::Result<()>;
}

impl Connection for &UnixStream {
    fn set_timeouts(&self, most: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(most))?;
        self.set_write_timeout(Some(most))
    }
}

impl Connection for &TcpStream {
    fn set_timeouts(&self, most: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(most))?;
        self.set_write_timeout(Some(most))
    }
}

/// A connection with one time limit for all reads and writes together.
pub struct Patient<C> {
    client: C,
    begun: Time,
    patience: Duration,
}

impl<C: Connection> Patient<C> {
    pub fn new(client: C, patience: Duration) -> Patient<C> {
        Patient {
            client,
            begun: clock::now(),
            patience,
        }
    }

    fn prepare(&self) -> io::Result<()> {
        let passed = Duration::from_nanos(clock::now().since(self.begun).as_nanos());
        let left = self.patience.saturating_sub(passed);
        match left.is_zero() {
            true => Err(ErrorKind::TimedOut.into()),
            false => self.client.set_timeouts(left),
        }
    }
}

impl<C: Connection + Read> Read for Patient<C> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.prepare()?;
        self.client.read(into)
    }
}

impl<C: Connection + Write> Write for Patient<C> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.prepare()?;
        self.client.write(&bytes[..bytes.len().min(PART)])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.client.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_listener_rests_after_each_error_and_goes_on() {
        let begun = clock::now();
        let incoming = [
            Err(ErrorKind::Other.into()),
            Ok(1),
            Err(ErrorKind::Other.into()),
            Ok(2),
        ];
        let clients: Vec<i32> = accepted(incoming.into_iter()).collect();
        assert_eq!(clients, [1, 2]);
        assert!(clock::now().since(begun).as_nanos() >= 2 * REST.as_nanos() as u64);
    }

    /// Each answer waits until all clients are being answered.
    #[test]
    fn clients_are_answered_at_the_same_time() {
        let all = Barrier::new(MOST_CLIENTS);
        let answered = AtomicUsize::new(0);
        answered_apart(0..MOST_CLIENTS, |_| {
            all.wait();
            answered.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(answered.into_inner(), MOST_CLIENTS);
    }

    #[test]
    fn the_number_of_clients_answered_at_once_is_limited() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        answered_apart(0..50, |_| {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(1));
            now.fetch_sub(1, Ordering::SeqCst);
        });
        assert!(most.into_inner() <= MOST_CLIENTS);
        assert_eq!(now.into_inner(), 0);
    }

    /// Each byte comes in time, and the word never ends.
    #[test]
    fn the_time_limit_holds_for_a_client_that_writes_slowly() {
        let (client, mut slow) = UnixStream::pair().expect("a pair");
        let patience = Duration::from_millis(100);
        let writes = thread::spawn(move || {
            while slow.write_all(b"s").is_ok() {
                thread::sleep(patience / 20);
            }
        });
        let mut word = Vec::new();
        // Without a time limit the read would end at this length, which is no error.
        let read = Patient::new(&client, patience)
            .take(10_000)
            .read_to_end(&mut word);
        assert!(read.is_err(), "{} bytes", word.len());
        drop(client);
        writes.join().expect("it ends");
    }

    /// The client takes each part of the answer in time, and never all of it.
    #[test]
    fn the_time_limit_holds_for_a_client_that_reads_slowly() {
        let (client, mut slow) = UnixStream::pair().expect("a pair");
        let patience = Duration::from_millis(100);
        let reads = thread::spawn(move || {
            let mut part = [0; 4096];
            while slow.read(&mut part).is_ok_and(|read| read > 0) {
                thread::sleep(patience / 20);
            }
        });
        let answer = vec![0; 32 << 20];
        assert!(Patient::new(&client, patience).write_all(&answer).is_err());
        drop(client);
        reads.join().expect("it ends");
    }
}
