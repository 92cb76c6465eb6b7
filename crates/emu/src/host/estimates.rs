//! BBR's model of the path: the kernel's own BBR shows it at the socket, one in BPF through
//! `headwayd`.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, sleep};
use std::time::Duration as Wait;

use headway_machine::connect_within;
use serde::Deserialize;

/// BBR's model of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub(super) struct Estimate {
    pub btlbw_mbps: Option<f64>,
    pub rtprop_ms: Option<f64>,
}

/// Asks a `headwayd` for one flow's estimate, again and again, until it is dropped.
#[derive(Debug)]
pub(super) struct Watch {
    last: Arc<Mutex<Estimate>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    const EVERY: Wait = Wait::from_millis(100);
    /// The longest time that a daemon which hangs delays the end of a flow.
    const PATIENCE: Wait = Wait::from_millis(200);
    /// A longer answer is not a status.
    const LONGEST: u64 = 64 << 20;

    /// Watches the flow with these ends; `path` is the daemon's control socket.
    pub fn of(path: PathBuf, local: SocketAddr, remote: SocketAddr) -> Watch {
        let last: Arc<Mutex<Estimate>> = Arc::default();
        let is_over: Arc<AtomicBool> = Arc::default();
        let (found, ends) = (Arc::clone(&last), Arc::clone(&is_over));
        let thread = thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                // Without an answer the estimate is unknown.
                let status = ask(&path).unwrap_or_default();
                let own = status.find(local, remote);
                *found.lock().unwrap_or_else(PoisonError::into_inner) = own;
                sleep(Self::EVERY);
            }
        });
        Watch {
            last,
            is_over,
            thread: Some(thread),
        }
    }

    /// The latest estimate.
    pub fn last(&self) -> Estimate {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[derive(Debug, Default, Deserialize)]
struct Status {
    flows: Vec<Flow>,
}

#[derive(Debug, Deserialize)]
struct Flow {
    local: SocketAddr,
    remote: SocketAddr,
    #[serde(flatten)]
    estimate: Estimate,
}

impl Status {
    /// The estimate of one flow; empty if there is none or if two have the same ends.
    fn find(&self, local: SocketAddr, remote: SocketAddr) -> Estimate {
        let mut own = self
            .flows
            .iter()
            .filter(|f| (f.local, f.remote) == (local, remote));
        match (own.next(), own.next()) {
            (Some(one), None) => one.estimate,
            _ => Estimate::default(),
        }
    }
}

/// Asks a daemon for its status.
fn ask(path: &Path) -> io::Result<Status> {
    let mut daemon = connect_within(path, Watch::PATIENCE)?;
    daemon.set_read_timeout(Some(Watch::PATIENCE))?;
    daemon.write_all(b"status\n")?;
    daemon.shutdown(Shutdown::Write)?;
    let mut text = String::new();
    daemon.take(Watch::LONGEST).read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_flow_is_known_by_both_ends() {
        let text = r#"{"flows":[
            {"local":"10.0.0.1:4000","remote":"10.1.0.1:5201","btlbw_mbps":9.5,"rtprop_ms":40.2,"cwnd_packets":3},
            {"local":"10.0.0.1:4001","remote":"10.1.0.1:5201","btlbw_mbps":null,"rtprop_ms":null},
            {"local":"10.0.0.1:4002","remote":"10.1.0.1:5201","btlbw_mbps":1.0,"rtprop_ms":1.0},
            {"local":"10.0.0.1:4002","remote":"10.1.0.1:5201","btlbw_mbps":2.0,"rtprop_ms":2.0}],
            "counters":{}}"#;
        let status: Status = serde_json::from_str(text).unwrap();
        let of = |port: u16| {
            let found = status.find(
                SocketAddr::new(at("10.0.0.1:1").ip(), port),
                at("10.1.0.1:5201"),
            );
            (found.btlbw_mbps, found.rtprop_ms)
        };
        assert_eq!(of(4000), (Some(9.5), Some(40.2)));
        for port in [4001, 4002, 4003] {
            assert_eq!(of(port), (None, None), "{port}");
        }
    }

    #[test]
    fn watch_polls_until_dropped() {
        let folder =
            std::env::temp_dir().join(format!("headway-test-watch-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        let path = folder.join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let daemon = thread::spawn(move || {
            let mut rtprop = 0;
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut word = String::new();
                stream.read_to_string(&mut word).unwrap();
                if word != "status\n" {
                    return;
                }
                rtprop += 10;
                let text = format!(
                    r#"{{"flows":[{{"local":"10.0.0.1:1","remote":"10.1.0.1:2","rtprop_ms":{rtprop}}}]}}"#
                );
                let _ = stream.write_all(text.as_bytes());
            }
        });
        let watch = Watch::of(path.clone(), at("10.0.0.1:1"), at("10.1.0.1:2"));
        while watch.last().rtprop_ms.is_none_or(|ms| ms < 20.0) {
            sleep(Wait::from_millis(5));
        }
        drop(watch);
        // An empty request ends the stand-in for the daemon.
        drop(UnixStream::connect(&path).unwrap());
        daemon.join().unwrap();
        fs::remove_dir_all(&folder).unwrap();
    }
}
