//! The live figures that a person at the terminal sees while a shell runs.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use headway_cc::{Duration, Time};
use nix::sys::termios::{LocalFlags, tcgetattr};

use super::meter::{Reading, Sums};

/// Where the live figures are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Live {
    /// In a line of standard error, as long as no program uses the whole screen.
    Line,
    /// In the title of the terminal's window.
    Title,
    /// Nowhere.
    Off,
}

impl Live {
    /// The words for these.
    pub const WORDS: [(&'static str, Live); 3] = [
        ("line", Live::Line),
        ("title", Live::Title),
        ("off", Live::Off),
    ];

    /// The default: the title if `is_shell`, else a line; nothing without a terminal.
    pub fn suiting(is_shell: bool) -> Live {
        match (io::stderr().is_terminal(), is_shell) {
            (false, _) => Live::Off,
            (true, true) => Live::Title,
            (true, false) => Live::Line,
        }
    }
}

/// Shows live figures, four times a second.
#[derive(Debug)]
pub struct Display {
    live: Live,
    sums: [Arc<Sums>; 2],
    last: [Reading; 2],
    at: Time,
    is_shown: bool,
}

impl Display {
    /// The time between two updates.
    pub const PERIOD: Duration = Duration::from_millis(250);

    const CLEAR_LINE: &str = "\r\x1b[2K";
    const KEEP_TITLE: &str = "\x1b[22;2t";
    const OLD_TITLE: &str = "\x1b[23;2t";

    /// Shows `sums` of the link up and the link down.
    pub fn new(live: Live, sums: [Arc<Sums>; 2]) -> Display {
        Display {
            live,
            sums,
            last: Default::default(),
            at: Time::ZERO,
            is_shown: false,
        }
    }

    /// Shows what has happened since the last update, up to `now`.
    pub fn show(&mut self, now: Time) {
        let read = [0, 1].map(|link| self.sums[link].read());
        let seconds = now.since(self.at).as_secs_f64();
        let [up, down] = [0, 1].map(|link| figures(self.last[link], read[link], seconds));
        (self.last, self.at) = (read, now);
        match self.live {
            Live::Off => {}
            // A program that reads keys one by one uses the whole screen.
            Live::Line if reads_keys() => self.hide(),
            Live::Line => {
                // The program's own output writes over this line. A line that wraps could not be
                // cleared.
                let line = format!("up {up}   down {down}");
                self.write(&format!("{}{line:.79}\r", Self::CLEAR_LINE));
            }
            Live::Title => {
                let keep = if self.is_shown { "" } else { Self::KEEP_TITLE };
                self.write(&format!("{keep}\x1b]2;up {up} | down {down}\x07"));
            }
        }
    }

    /// Takes the figures away.
    pub fn hide(&mut self) {
        if self.is_shown {
            self.write(match self.live {
                Live::Title => Self::OLD_TITLE,
                _ => Self::CLEAR_LINE,
            });
            self.is_shown = false;
        }
    }

    fn write(&mut self, text: &str) {
        // The terminal may be gone; the shell goes on.
        let mut to = io::stderr().lock();
        let _ = to.write_all(text.as_bytes()).and_then(|()| to.flush());
        self.is_shown = true;
    }
}

/// Rate, mean queueing delay, and packets dropped so far.
fn figures(before: Reading, now: Reading, seconds: f64) -> String {
    let mbps = (now.bytes - before.bytes) as f64 * 8e-6 / seconds.max(1e-3);
    let packets = now.packets - before.packets;
    let queue = match packets {
        0 => "0".to_owned(),
        _ => {
            let waited = now.queueing.saturating_sub(before.queueing);
            format!("{:.1}", waited.as_secs_f64() * 1e3 / packets as f64)
        }
    };
    format!("{mbps:.2} Mbit/s +{queue} ms {} dropped", now.drops)
}

fn reads_keys() -> bool {
    let flags = tcgetattr(io::stdin()).map(|t| t.local_flags);
    flags.is_ok_and(|flags| !flags.contains(LocalFlags::ICANON))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_cover_the_time_since_the_last_update() {
        let before = Reading {
            packets: 10,
            bytes: 15_000,
            queueing: Duration::from_millis(100),
            drops: 1,
        };
        let now = Reading {
            packets: 260,
            bytes: 15_000 + 250 * 1500,
            queueing: Duration::from_millis(100 + 250 * 8),
            drops: 3,
        };
        // 375 kB in a quarter of a second; 250 packets waited for 2 s in all.
        assert_eq!(figures(before, now, 0.25), "12.00 Mbit/s +8.0 ms 3 dropped");
        assert_eq!(figures(now, now, 0.25), "0.00 Mbit/s +0 ms 3 dropped");
    }
}
