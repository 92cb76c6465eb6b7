//! An observer sees what the metrics count, and changes nothing.

use std::cell::Cell;

use headway_cc::{Duration, NetworkView, Registry, Time, schemes};
use headway_net::transport::Sender;
use headway_net::{Ack, Link, Packet};
use headway_scenario::{Scenario, TraceSpec, Transport};
use headway_sim::{Observer, Options, Simulation};

use crate::networks::{options, run};

#[derive(Debug, Default)]
struct Counts {
    data_sent: u64,
    data_arrived: u64,
    acks_sent: u64,
    acks_arrived: u64,
    acks_handled: u64,
    network: u64,
    cross_sent: u64,
    cross_arrived: u64,
    links_asked: Cell<u64>,
    pauses: u64,
}

impl Observer for Counts {
    fn on_data_sent(&mut self, _: Time, _: &Packet) {
        self.data_sent += 1;
    }

    fn on_data_arrived(&mut self, _: Time, _: &Packet) {
        self.data_arrived += 1;
    }

    fn on_ack_sent(&mut self, _: Time, _: &Packet) {
        self.acks_sent += 1;
    }

    fn on_ack_arrived(&mut self, _: Time, _: &Packet) {
        self.acks_arrived += 1;
    }

    fn on_sender(&mut self, _: Time, _: u32, ack: Option<&Ack>, _: &mut Sender) {
        self.acks_handled += u64::from(ack.is_some());
    }

    fn on_network(&mut self, _: Time, _: u32, _: &NetworkView) {
        self.network += 1;
    }

    fn on_cross_sent(&mut self, _: Time, _: &Packet) {
        self.cross_sent += 1;
    }

    fn on_cross_arrived(&mut self, _: Time, _: &Packet) {
        self.cross_arrived += 1;
    }

    fn observes_link(&self, _: usize) -> bool {
        self.links_asked.update(|n| n + 1);
        false
    }

    fn on_pause(&mut self, _: Time, _: &mut [Link]) {
        self.pauses += 1;
    }
}

#[test]
fn observing_a_run_changes_nothing() {
    let options = Options {
        grid: Some(headway_cc::Duration::from_millis(500)),
        ..options(10.0, 0.0)
    };
    // The scenario has several flows, cross traffic and host jitter.
    let scenario = Scenario::load("parking-lot").expect("it ships");
    for transport in [Transport::Simple, Transport::Linux] {
        let mut network = scenario.draw(1);
        network.transport = transport;
        let registry = Registry::new(schemes::SCHEMES);
        let selection = registry.select("cubic").expect("a scheme");
        let mut counts = Counts::default();
        let none = |_: &TraceSpec| Err("no traces".to_owned());
        let watched =
            Simulation::observed(&network, &selection, &registry, &none, options, &mut counts)
                .and_then(Simulation::finish)
                .expect("a whole run");
        assert_eq!(watched, run(&network, "cubic", options), "{transport:?}");

        let flows = || watched.rows.iter().filter(|r| r.flow >= 0);
        let sent: u64 = flows().map(|r| r.metrics.sent_packets).sum();
        let delivered: u64 = flows().map(|r| r.metrics.delivered_packets).sum();
        assert_eq!((counts.data_sent, counts.data_arrived), (sent, delivered));
        assert!(counts.acks_arrived <= counts.acks_sent);
        assert!(counts.acks_handled <= counts.acks_arrived);
        assert!(
            counts.acks_handled > counts.acks_sent * 9 / 10,
            "{counts:?}"
        );
    }
}

/// Batches pass their observers by `&mut`, which must forward every method.
#[test]
fn a_borrowed_observer_gets_every_event() {
    let network = Scenario::load("owl-nsfnet:known=7")
        .expect("it ships")
        .draw(1);
    let registry = Registry::new(schemes::SCHEMES);
    let selection = registry.select("newreno").expect("a scheme");
    let mut counts = Counts::default();
    let none = |_: &TraceSpec| Err("no traces".to_owned());
    let options = options(5.0, 0.0);
    let mut run =
        Simulation::observed(&network, &selection, &registry, &none, options, &mut counts)
            .expect("a run");
    for second in 1..=5 {
        run.run_until(Time::ZERO + Duration::from_secs(second))
            .expect("it goes on");
    }
    drop(run);
    let Counts {
        data_sent,
        data_arrived,
        acks_sent,
        acks_arrived,
        acks_handled,
        network: views,
        cross_sent,
        cross_arrived,
        links_asked,
        pauses,
    } = &counts;
    for count in [
        data_sent,
        data_arrived,
        acks_sent,
        acks_arrived,
        acks_handled,
        cross_sent,
        cross_arrived,
    ] {
        assert!(*count > 100, "{counts:?}");
    }
    assert_eq!(
        (*views, links_asked.get(), *pauses),
        (4, network.links.len() as u64, 5) // a reading of the fifth second arrives 50 ms later
    );
}
