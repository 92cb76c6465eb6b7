//! Records a run as it goes on: pcap at each host, qlog of each flow, a log of each link.

mod capture;
mod flow_log;
mod tcp;

use std::io;
use std::path::{Path, PathBuf};

use headway_cc::{Router, Time};
use headway_net::transport::Sender;
use headway_net::{Ack, Link, Packet};
use headway_record::recording::{File, safe_name};
use headway_scenario::{LinkSpec, Network};
use headway_world::{LinkLogs, Recorded, Recordings};

use crate::Observer;
use capture::Captures;
use flow_log::FlowLog;

/// Records one run. The first error ends its recordings, not the run.
#[derive(Debug, Default)]
pub struct Recorder {
    captures: Option<Captures>,
    /// The log of each flow, by its index; empty if they are not requested.
    flows: Vec<FlowLog>,
    links: Option<LinkLogs>,
    files: Vec<PathBuf>,
    failure: Option<io::Error>,
}

impl Recorder {
    /// Begins the recordings of a run over `network`. A file's name is `stem`, a dot, the recorded
    /// part, and the ending: `run-0.sender.pcap`, `run-0.flow-0.sqlog`, `run-0.bottleneck.log`.
    /// `title` describes the run in words; `router` is the one that its schemes need.
    pub fn new(
        stem: &Path,
        wanted: &Recordings,
        network: &Network,
        router: Option<Router>,
        title: &str,
    ) -> Recorder {
        let mut recorder = Recorder::default();
        if let Err(error) = recorder.open(stem, wanted, network, router, title) {
            recorder.fail(error);
        }
        recorder
    }

    fn open(
        &mut self,
        stem: &Path,
        wanted: &Recordings,
        network: &Network,
        router: Option<Router>,
        title: &str,
    ) -> io::Result<()> {
        let mut create = |what: &str, ending: &str| {
            let path = PathBuf::from(format!("{}.{}.{ending}", stem.display(), safe_name(what)));
            let file = File::create(&path)?;
            self.files.push(path);
            Ok(file)
        };
        if wanted.pcap {
            let host = |node: usize| create(&network.nodes[node], "pcap");
            self.captures = Some(Captures::new(network, host)?);
        }
        if wanted.qlog {
            for flow in 0..network.flows.len() {
                let file = create(&format!("flow-{flow}"), "sqlog")?;
                let title = format!("{title}, flow {flow}");
                self.flows.push(FlowLog::new(file, network, &title)?);
            }
        }
        if wanted.logs {
            let link = |link: &LinkSpec| create(&link.name, "log");
            self.links = Some(LinkLogs::new(network, router, title, link)?);
        }
        Ok(())
    }

    /// Ends the recordings.
    pub fn finish(mut self) -> Recorded {
        let mut done = self.captures.take().map_or(Ok(()), Captures::finish);
        for flow in std::mem::take(&mut self.flows) {
            done = done.and(flow.finish());
        }
        done = done.and(self.links.take().map_or(Ok(()), LinkLogs::finish));
        self.check(done);
        Recorded {
            files: self.files,
            failure: self.failure.map(|error| error.to_string()),
        }
    }

    #[inline]
    fn check(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.fail(error);
        }
    }

    #[cold]
    fn fail(&mut self, error: io::Error) {
        self.failure.get_or_insert(error);
        self.captures = None;
        self.flows.clear();
        self.links = None;
    }

    fn capture(&mut self, record: impl FnOnce(&mut Captures) -> io::Result<()>) {
        if let Some(captures) = &mut self.captures {
            let result = record(captures);
            self.check(result);
        }
    }

    fn log(&mut self, flow: u32, record: impl FnOnce(&mut FlowLog) -> io::Result<()>) {
        if let Some(log) = self.flows.get_mut(flow as usize) {
            let result = record(log);
            self.check(result);
        }
    }
}

impl Observer for Recorder {
    fn on_data_sent(&mut self, now: Time, packet: &Packet) {
        self.capture(|c| c.data_sent(now, packet));
        self.log(packet.flow, |l| l.data_sent(now, packet));
    }

    fn on_data_arrived(&mut self, now: Time, packet: &Packet) {
        self.capture(|c| c.data_arrived(now, packet));
    }

    fn on_ack_sent(&mut self, now: Time, packet: &Packet) {
        self.capture(|c| c.ack_sent(now, packet));
    }

    fn on_ack_arrived(&mut self, now: Time, packet: &Packet) {
        self.capture(|c| c.ack_arrived(now, packet));
    }

    fn on_sender(&mut self, now: Time, flow: u32, ack: Option<&Ack>, sender: &mut Sender) {
        self.log(flow, |l| l.on_sender(now, ack, sender));
    }

    fn on_cross_sent(&mut self, now: Time, packet: &Packet) {
        self.capture(|c| c.cross_sent(now, packet));
    }

    fn on_cross_arrived(&mut self, now: Time, packet: &Packet) {
        self.capture(|c| c.cross_arrived(now, packet));
    }

    fn observes_link(&self, link: usize) -> bool {
        self.links.as_ref().is_some_and(|l| l.has(link))
    }

    fn on_pause(&mut self, now: Time, links: &mut [Link]) {
        if let Some(logs) = &mut self.links {
            let result = logs.on_pause(now, links);
            self.check(result);
        }
        if self.failure.is_some() {
            // Nothing takes the links' events any more.
            links.iter_mut().for_each(Link::stop_log);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::simulation::router_of_schemes;
    use crate::{Options, Simulation};
    use headway_cc::{Duration, Registry, schemes};
    use headway_scenario::Scenario;

    /// How many events links still hold after the recorder has taken them.
    struct Leftover<'a> {
        recorder: &'a mut Recorder,
        events: usize,
    }

    impl Observer for Leftover<'_> {
        fn observes_link(&self, link: usize) -> bool {
            self.recorder.observes_link(link)
        }

        fn on_pause(&mut self, now: Time, links: &mut [Link]) {
            self.recorder.on_pause(now, links);
            let left = links.iter_mut().map(|l| l.take_events(now).len());
            self.events += left.sum::<usize>();
        }
    }

    #[test]
    fn after_an_error_links_keep_no_events() {
        let folder = std::env::temp_dir().join(format!("headway-full-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let log = folder.join("run-0.bottleneck.log");
        std::os::unix::fs::symlink("/dev/full", &log).unwrap();
        let network = Scenario::load("rax-1").unwrap().draw(1);
        let wanted = Recordings {
            logs: true,
            ..Recordings::default()
        };
        let mut recorder = Recorder::new(&folder.join("run-0"), &wanted, &network, None, "full");
        assert!(recorder.observes_link(0), "it has begun");
        let mut leftover = Leftover {
            recorder: &mut recorder,
            events: 0,
        };
        let registry = Registry::new(schemes::SCHEMES);
        let scheme = registry.select("newreno").unwrap();
        let none = |_: &_| Err("no traces".to_owned());
        let options = Options {
            duration: Duration::from_secs(20),
            warmup: Duration::ZERO,
            seed: 1,
            grid: None,
        };
        let run = Simulation::observed(&network, &scheme, &registry, &none, options, &mut leftover);
        let mut run = run.unwrap();
        for second in 1..=20 {
            run.run_until(Time::ZERO + Duration::from_secs(second))
                .unwrap();
        }
        drop(run);
        assert_eq!(leftover.events, 0);
        let failure = recorder.finish().failure.expect("the device is full");
        assert!(failure.contains("run-0.bottleneck.log"), "{failure}");
        std::fs::remove_dir_all(folder).unwrap();
    }

    /// A log's head names the actual queue: the scheme's router where the scenario asks for it.
    #[test]
    fn a_link_log_names_the_schemes_router() {
        let folder = std::env::temp_dir().join(format!("headway-router-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let network = Scenario::load("lte-verizon").unwrap().draw(1);
        let registry = Registry::new(schemes::SCHEMES);
        let wanted = Recordings {
            logs: true,
            ..Recordings::default()
        };
        for (scheme, queue) in [("abc", "abc [packets="), ("cubic", "droptail [packets=")] {
            let test = registry.select(scheme).unwrap();
            let router = router_of_schemes(&network, &test, &registry);
            let recorded =
                Recorder::new(&folder.join(scheme), &wanted, &network, router, "x").finish();
            let log = std::fs::read_to_string(&recorded.files[0]).unwrap();
            assert!(log.contains(queue), "{scheme}: {log}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
