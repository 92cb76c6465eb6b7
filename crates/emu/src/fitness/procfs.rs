//! Counters that the kernel shows in /proc.

use std::{fs, io};

use headway_cc::{Duration, Time};

/// How busy the whole machine was, second by second.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    last: Option<Ticks>,
    /// When the next second is over.
    next: Time,
    /// The idle share of each second.
    idle: Vec<f64>,
}

/// Time of all CPUs since the machine was started, in ticks of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    idle: u64,
    all: u64,
}

impl Machine {
    /// Slightly less than a second, so that a run of one second has one, whenever the caller looks.
    const SECOND: Duration = Duration::from_millis(900);

    /// Looks at the machine once a second. Call it as a run begins, then often, and as it ends.
    ///
    /// # Errors
    /// If `/proc/stat` cannot be read.
    pub fn look(&mut self, now: Time) -> io::Result<()> {
        if self.last.is_none() || now >= self.next {
            self.next = now + Self::SECOND;
            self.add(&fs::read_to_string("/proc/stat")?);
        }
        Ok(())
    }

    fn add(&mut self, stat: &str) {
        let now = Ticks::of(stat);
        if let (Some(last), Some(now)) = (self.last, now)
            && now.all > last.all
        {
            let idle = now.idle.saturating_sub(last.idle);
            self.idle.push(idle as f64 / (now.all - last.all) as f64);
        }
        self.last = now;
    }

    /// The mean idle share of all CPUs in the busiest tenth of the seconds, 0 to 1; `None` before
    /// the first is over.
    pub fn idle(&self) -> Option<f64> {
        let mut shares = self.idle.clone();
        shares.sort_by(f64::total_cmp);
        let busiest = &shares[..shares.len().div_ceil(10)];
        (!busiest.is_empty()).then(|| busiest.iter().sum::<f64>() / busiest.len() as f64)
    }
}

impl Ticks {
    /// Reads the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal.
    /// User and nice include the two columns of guests that follow. Time that other virtual
    /// machines steal is not idle.
    fn of(stat: &str) -> Option<Ticks> {
        let fields = stat
            .lines()
            .next()?
            .strip_prefix("cpu ")?
            .split_whitespace();
        let fields: Vec<u64> = fields.take(8).map_while(|f| f.parse().ok()).collect();
        Some(Ticks {
            idle: fields.get(3)? + fields.get(4)?,
            all: fields.iter().sum(),
        })
    }
}

/// The mean time that the calling thread has waited for a CPU each time it was to run, since its
/// start. `None` where the kernel does not say.
pub fn cpu_wait() -> Option<Duration> {
    wait_of(&fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// Reads three numbers: ns on a CPU, ns of waiting for one, and how often.
fn wait_of(schedstat: &str) -> Option<Duration> {
    let fields = schedstat.split_whitespace().map(str::parse::<u64>);
    let fields: Vec<u64> = fields.collect::<Result<_, _>>().ok()?;
    let (waited, times) = (*fields.get(1)?, *fields.get(2)?);
    (times > 0).then(|| Duration::from_nanos(waited / times))
}

/// Packets that the sockets of the calling thread's network namespace have lost since it was made,
/// in full buffers and queues, both ways.
///
/// # Errors
/// If `/proc` cannot be read.
pub fn socket_drops() -> io::Result<u64> {
    let read = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}"));
    // Without IPv6 there is no snmp6.
    let v6 = read("snmp6").unwrap_or_default();
    Ok(drops_of(&read("snmp")?) + drops_of(&read("netstat")?) + drops_of_v6(&v6))
}

const DROPS: [(&str, &str); 7] = [
    ("Ip", "InDiscards"),
    ("Ip", "OutDiscards"),
    ("Udp", "RcvbufErrors"),
    ("Udp", "SndbufErrors"),
    ("Udp", "MemErrors"),
    ("TcpExt", "TCPBacklogDrop"),
    ("TcpExt", "TCPRcvQDrop"),
];

/// Reads pairs of lines: names, then values, each after the protocol's name.
fn drops_of(table: &str) -> u64 {
    let lines: Vec<(&str, &str)> = table.lines().filter_map(|l| l.split_once(':')).collect();
    let pairs = lines.chunks_exact(2).flat_map(|pair| {
        let (protocol, names) = pair[0];
        let values = pair[1].1.split_whitespace();
        let named = names.split_whitespace().zip(values);
        named.filter(move |(name, _)| DROPS.contains(&(protocol, *name)))
    });
    pairs
        .filter_map(|(_, value)| value.parse::<u64>().ok())
        .sum()
}

/// Reads one counter a line: `Udp6RcvbufErrors 0`.
fn drops_of_v6(table: &str) -> u64 {
    let fields = table
        .lines()
        .filter_map(|l| l.split_once(char::is_whitespace));
    let of = |(name, value): (&str, &str)| {
        let is_drop = |(protocol, drop): (&str, &str)| name == format!("{protocol}6{drop}");
        DROPS
            .into_iter()
            .any(is_drop)
            .then(|| value.trim().parse::<u64>().ok())?
    };
    fields.filter_map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_tenth_counts() {
        let mut machine = Machine::default();
        assert_eq!(machine.idle(), None);
        // Eleven seconds of two CPUs at 100 ticks: two seconds with 10% idle and iowait, the others
        // with 80%.
        let (mut busy, mut idle) = (1000, 500);
        for second in 0..12 {
            machine.add(&format!(
                "cpu  {busy} 0 0 {idle} 70 0 0 0 0 0\ncpu0 1 2 3\n"
            ));
            let spare = if second < 2 { 20 } else { 160 };
            (busy, idle) = (busy + 200 - spare, idle + spare);
        }
        assert!((machine.idle().unwrap() - 0.1).abs() < 1e-12);
        machine.add("nothing that is known");
        assert_eq!(machine.idle.len(), 11);
    }

    #[test]
    fn this_machine_has_the_files() {
        let mut machine = Machine::default();
        machine.look(Time::ZERO).unwrap();
        let first = machine.last;
        assert!(first.is_some_and(|t| t.idle > 0 && t.all > t.idle));
        machine.look(Time::from_millis(800)).unwrap();
        assert_eq!(machine.last, first, "the second is not over");
        socket_drops().unwrap();
    }

    #[test]
    fn cpu_waits_are_read_from_schedstat() {
        let wait = wait_of("93000000 6000000 4\n");
        assert_eq!(wait, Some(Duration::from_micros(1500)));
        assert_eq!(wait_of("0 0 0\n"), None);
        assert_eq!(wait_of("unknown"), None);
    }

    #[test]
    fn socket_drops_are_read_from_proc() {
        let snmp = "Ip: Forwarding InReceives InDiscards OutDiscards\nIp: 2 900 3 4\n\
             Tcp: RtoMin InErrs\nTcp: 200 50\n\
             Udp: InDatagrams NoPorts InErrors RcvbufErrors SndbufErrors MemErrors\nUdp: 800 9 9 10 20 100\n\
             UdpLite: RcvbufErrors\nUdpLite: 7000\n";
        assert_eq!(drops_of(snmp), 137);
        let netstat = "TcpExt: SyncookiesSent TCPBacklogDrop TCPRcvQDrop\nTcpExt: 9 1 2\n";
        assert_eq!(drops_of(netstat), 3);
        let snmp6 = "Ip6InDiscards   \t5\nUdp6InErrors \t70\nUdp6RcvbufErrors                \t6\n";
        assert_eq!(drops_of_v6(snmp6), 11);
    }
}
