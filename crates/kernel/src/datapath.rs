//! A flow of the fake kernel: the controller beneath, with the program that reports of it and takes actions.

use headway_cc::{
    Bytes, CongestionControl, Control, Duration, Feedback, NetworkView, PathModel, Probe, Rto,
    RttStats, Sent, Setup, Stamp, Tag, Time,
};
use headway_policy::{AgentSpec, Beneath, Record, SpecError};

use crate::{FakeKernel, TcpSock};

/// A flow of the fake kernel. Any host of congestion controllers runs it; the agent is elsewhere.
#[derive(Debug)]
pub struct Datapath {
    kernel: FakeKernel,
    flow: u32,
    mss: Bytes,
    beneath: Beneath,
    sock: TcpSock,
    rtt: RttStats,
    latest: Record,
    /// Of the last action that was applied.
    sequence: u32,
}

impl Datapath {
    /// A flow that begins, with the controller that `spec` steers.
    ///
    /// # Errors
    /// [`SpecError`] if there is no such controller.
    pub fn new(
        kernel: &FakeKernel,
        spec: &AgentSpec,
        setup: &Setup,
    ) -> Result<Datapath, SpecError> {
        let beneath = Beneath::new(&spec.beneath, &spec.action, setup)?;
        Ok(Datapath {
            flow: kernel.open(setup),
            kernel: kernel.clone(),
            mss: setup.mss,
            beneath,
            sock: TcpSock::new(setup.mss),
            rtt: RttStats::default(),
            latest: Record::default(),
            sequence: 0,
        })
    }

    /// The flow's number.
    pub fn flow(&self) -> u32 {
        self.flow
    }

    /// What the controller takes the path for.
    pub fn model(&self) -> Option<PathModel> {
        self.beneath.model()
    }

    fn report(&mut self, now: Time, acks: u32) {
        self.sock
            .allow(&self.beneath.controller().control(), self.mss);
        let record = self.sock.record(TcpSock::now_ns(now), acks);
        self.latest = record.with_model(self.beneath.model());
        self.kernel.report(self.flow, self.latest);
    }

    fn act(&mut self, now: Time) {
        if !self.beneath.may_act() {
            return;
        }
        let Some(slot) = self.kernel.action(self.flow, self.sequence, now) else {
            return;
        };
        self.sequence = slot.sequence;
        let tunables = match &self.beneath {
            Beneath::Tunable(scheme) => scheme.tunables(),
            Beneath::Rate(_) | Beneath::Base(_) => &[],
        };
        for action in slot.actions(tunables) {
            (self.beneath).act(now, self.mss, &self.rtt, action, None);
        }
    }
}

impl CongestionControl for Datapath {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.sock.on_sent(sent.retransmission);
        self.beneath.controller_mut().on_sent(sent)
    }

    /// The action that is there is applied, then the flow's state reported: an answer to that comes later.
    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        self.beneath.controller_mut().on_feedback(feedback);
        self.rtt = feedback.rtt_stats;
        self.sock.on_feedback(feedback, self.mss);
        self.act(feedback.now);
        self.report(feedback.now, 1);
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        self.beneath.controller_mut().on_rto(rto);
        self.sock.on_rto();
        self.report(rto.now, 0);
    }

    fn on_idle(&mut self, now: Time, idle: Duration) {
        self.beneath.controller_mut().on_idle(now, idle);
    }

    fn on_network(&mut self, now: Time, view: &NetworkView) {
        self.beneath.controller_mut().on_network(now, view);
    }

    fn next_timer(&self) -> Time {
        self.beneath.controller().next_timer()
    }

    fn on_timer(&mut self, now: Time) {
        self.beneath.controller_mut().on_timer(now);
    }

    fn control(&self) -> Control {
        self.beneath.controller().control()
    }

    fn stamp(&self) -> Stamp {
        self.beneath.controller().stamp()
    }

    fn owns_recovery(&self) -> bool {
        self.beneath.controller().owns_recovery()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        self.beneath.controller().probe(probe);
    }
}

impl Drop for Datapath {
    fn drop(&mut self) {
        self.kernel.close(self.flow, self.latest);
    }
}
