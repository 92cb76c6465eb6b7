//! Verus (Zaki, Pötsch, Chen, Subramanian and Görg, SIGCOMM 2015): every 5 ms it sets a target
//! delay by whether delays rise or fall, finds the window for that delay in a learned profile, and
//! sends the difference. Windows are in packets, delays in milliseconds.

mod profile;
mod spline;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use profile::Profile;

use crate::{
    Acked, Bytes, CongestionControl, Control, Duration, Family, Feedback, Kind, Lost, Need, Param,
    Probe, Rto, Scheme, Sent, Setup, Tag, Time,
};

const R: Param = Param {
    name: "r",
    help: "multiple of the minimum delay above which it backs off at once",
    kind: Kind::Number {
        default: 6.0,
        min: 1.5,
        max: 20.0,
    },
};
const DELTA1: Param = Param {
    name: "delta1",
    help: "decrease of the target delay every 5 ms while delays rise",
    kind: Kind::Time {
        default: Duration::from_millis(1),
        min: Duration::from_micros(100),
        max: Duration::from_millis(20),
    },
};
const DELTA2: Param = Param {
    name: "delta2",
    help: "increase of the target delay every 5 ms while delays fall, and decrease above r",
    kind: Kind::Time {
        default: Duration::from_millis(2),
        min: Duration::from_micros(100),
        max: Duration::from_millis(20),
    },
};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "verus",
    family: Family::Delay,
    summary: "learns which window gives which delay; changes its target delay a little every 5 ms",
    source: "Zaki et al., SIGCOMM 2015; constants and details as in yzaki/verus",
    deviations: &[
        "the profile's curve is a penalised cubic spline like ALGLIB's, whose scale of the penalty is that of \
         points spread evenly",
        "a packet is missing once three later ones have arrived (the transport's rule) rather than one, and \
         is then lost after 150 ms as in yzaki/verus",
        "retransmissions count like any packet: yzaki/verus does not retransmit",
        "yzaki/verus takes a full socket buffer for a loss, which bounds its bursts on a slow network card; hosts \
         have no such buffer here. Nothing else bounds the window in a short drop-tail buffer, there or here: it \
         runs away and loses most of what it sends",
        "the curve is drawn as slow start ends and every second from then on, always before it is read: \
         yzaki/verus has a thread for it",
    ],
    needs: &[Need::PerPacket],
    params: &[R, DELTA1, DELTA2],
    build: |setup, values| {
        Box::new(Verus::new(
            setup,
            values.number(&R),
            values.time(&DELTA1).as_millis_f64(),
            values.time(&DELTA2).as_millis_f64(),
        ))
    },
    receiver: None,
    router: None,
};

/// The state that a restart clears: slow start, epochs and losses.
#[derive(Debug)]
struct FlowState {
    slow_start: bool,
    /// The missing packets: when each will be taken for lost, its number, and its window.
    missing: VecDeque<(Time, u64, usize)>,
    /// Does a loss phase last? It lasts from a loss until a packet returns that was sent under the
    /// smaller window.
    loss_phase: bool,
    /// Did slow start end because of delay? Then r is ignored until the loss phase is over.
    left_for_delay: bool,
    /// W: the window.
    window: f64,
    /// W_i: the packets on the way, by Verus's own count.
    under_way: u64,
    /// The number of the first packet of this state.
    began_with: u64,
    /// The number of the first packet that counts. The flight before it was given up.
    counted_from: u64,
    /// D_min, the minimum delay.
    d_min: f64,
    /// D_max of the current epoch: the largest delay of its acknowledgements.
    d_epoch: Option<f64>,
    /// D_max,i, smoothed.
    d_max: Option<f64>,
    /// D_est: the target delay.
    d_est: f64,
    /// The mean RTT.
    rtt: Option<f64>,
    last_delay: f64,
    last_ack: Time,
    profile: Profile,
    next_epoch: Time,
    next_fit: Time,
}

/// The state of one flow.
#[derive(Debug)]
pub struct Verus {
    mss: Bytes,
    r: f64,
    delta1: f64,
    delta2: f64,
    state: FlowState,
    /// S: the number of packets that may be sent now.
    budget: u64,
    in_flight: Bytes,
    next_number: u64,
    timeout: Time,
}

impl FlowState {
    /// An empty state, in which packets from `number` on count.
    fn new(number: u64) -> FlowState {
        FlowState {
            slow_start: true,
            missing: VecDeque::new(),
            loss_phase: false,
            left_for_delay: false,
            window: 1.0,
            under_way: 0,
            began_with: number,
            counted_from: number,
            d_min: 1000.0,
            d_epoch: None,
            d_max: None,
            d_est: 0.0,
            rtt: None,
            last_delay: 0.0,
            last_ack: Time::ZERO,
            profile: Profile::default(),
            next_epoch: Time::NEVER,
            next_fit: Time::NEVER,
        }
    }
}

/// §4.4, Eq. 5: S = max(0, W_(i+1) + (2 - n)/(n - 1) W_i), where n epochs make a round trip.
fn to_send(next: f64, under_way: u64, rtt_ms: f64) -> u64 {
    let n = libm::ceil(rtt_ms / Verus::EPOCH.as_millis_f64()).min(1e6) as i64;
    let under_way = under_way as i64;
    let kept = match n > 1 {
        true => under_way * (2 - n) / (n - 1),
        false => -under_way,
    };
    (next + kept as f64).max(0.0) as u64
}

impl Verus {
    const EPOCH: Duration = Duration::from_millis(5);
    /// `verus.hpp`: the time from a gap until the packet counts as lost.
    const MISSING: Duration = Duration::from_millis(150);
    const FIT_EVERY: Duration = Duration::from_secs(1);
    /// The weight of the old D_max.
    const KEEP_MAX: f64 = 0.2;
    const KEEP_RTT: f64 = 0.875;
    /// The factor of the window after a loss, applied to the lost packet's window.
    const DECREASE: f64 = 0.7;
    const SLOW_START_DELAY_MS: f64 = 500.0;
    /// The largest window at which slow start goes on after a loss.
    const SLOW_START_WINDOW: f64 = 20.0;
    /// The windows up to this one whose delays of slow start are always kept.
    const KEPT_WINDOWS: usize = 100;
    /// The step by which D_min is raised if hardly anything is on the way and the delay is still
    /// too large.
    const D_MIN_STEP_MS: f64 = 10.0;
    const FIRST_TIMEOUT: Duration = Duration::from_secs(1);

    /// A flow in slow start, with one packet to send.
    pub fn new(setup: &Setup, r: f64, delta1: f64, delta2: f64) -> Verus {
        Verus {
            mss: setup.mss,
            r,
            delta1,
            delta2,
            state: FlowState::new(0),
            budget: 1,
            in_flight: Bytes::ZERO,
            next_number: 0,
            timeout: Time::NEVER,
        }
    }

    /// Starts again, because the profile is not usable.
    fn restart(&mut self) {
        self.state = FlowState::new(self.next_number);
        self.budget = 1;
    }

    /// §5.1: slow start is over, and epochs begin.
    fn leave_slow_start(&mut self, now: Time) {
        self.state.slow_start = false;
        self.state.next_epoch = now + Self::EPOCH;
        self.fit(now);
    }

    fn fit(&mut self, now: Time) {
        self.state.next_fit = now + Self::FIT_EVERY;
        if !self.state.profile.fit() {
            self.restart();
        }
    }

    fn on_acked(&mut self, now: Time, packet: &Acked) {
        let window = packet.tag.0 as f64;
        let delay = now.since(packet.sent).as_millis_f64();
        let v = &mut self.state;
        if packet.number < v.began_with {
            return;
        }
        v.last_delay = delay;
        if v.slow_start && delay > Self::SLOW_START_DELAY_MS {
            v.window = (Self::DECREASE * window).max(1.0);
            v.d_est = v.profile.delay_ms(v.window).unwrap_or(v.d_min);
            (v.loss_phase, v.left_for_delay) = (true, true);
            self.leave_slow_start(now);
        }
        let v = &mut self.state;
        if v.loss_phase && window <= v.window {
            v.d_epoch = None;
            (v.loss_phase, v.left_for_delay) = (false, false);
        }
        if packet.number < v.counted_from {
            return;
        }
        if let Ok(place) = v.missing.binary_search_by_key(&packet.number, |m| m.1) {
            v.missing.remove(place);
        }
        v.under_way = v.under_way.saturating_sub(1);
        v.d_epoch = Some(v.d_epoch.unwrap_or(0.0).max(delay));
        v.rtt = Some(v.rtt.map_or(delay, |rtt| {
            rtt * Self::KEEP_RTT + delay * (1.0 - Self::KEEP_RTT)
        }));
        v.d_min = v.d_min.min(delay.max(1e-3));
        v.last_ack = now;
        if v.loss_phase {
            // §5.3: the window grows as in congestion avoidance, and the profile stays the same.
            v.window += 1.0 / v.window;
            v.d_est = v.d_est.min(v.profile.delay_ms(v.window).unwrap_or(v.d_est));
        } else {
            v.profile.note(packet.tag.0 as usize, delay);
        }
        if v.slow_start {
            v.window += 1.0;
            self.budget = (v.window as u64).saturating_sub(v.under_way);
        }
    }

    /// §5.3: a missing packet may still come.
    fn on_missing(&mut self, now: Time, packet: &Lost) {
        let v = &mut self.state;
        if packet.number >= v.counted_from {
            let due = now + Self::MISSING;
            v.missing
                .push_back((due, packet.number, packet.tag.0 as usize));
        }
    }

    /// §5.3: the packet did not come. The first loss of a loss phase reduces the window.
    fn on_lost(&mut self, now: Time, lost_window: usize) {
        let v = &mut self.state;
        v.under_way = v.under_way.saturating_sub(1);
        if v.loss_phase {
            return;
        }
        v.loss_phase = true;
        v.window = v.window.min(Self::DECREASE * lost_window as f64).max(1.0);
        v.d_est = v.profile.delay_ms(v.window).unwrap_or(v.d_min);
        if v.slow_start && v.window > Self::SLOW_START_WINDOW {
            v.profile.forget_from(lost_window.max(Self::KEPT_WINDOWS));
            self.give_up_flight();
            self.leave_slow_start(now);
        }
    }

    /// §5.3: nothing was acknowledged for long. Everything on the way is given up.
    fn time_out(&mut self, now: Time) {
        if self.state.rtt.is_none() {
            return self.restart();
        }
        if self.state.slow_start {
            self.leave_slow_start(now);
            return;
        }
        let v = &mut self.state;
        v.loss_phase = true;
        v.d_est = v.d_min;
        self.give_up_flight();
    }

    /// What is on the way no longer counts, whether it arrives or not.
    fn give_up_flight(&mut self) {
        let v = &mut self.state;
        (v.under_way, v.counted_from) = (0, self.next_number);
        v.missing.clear();
    }

    /// `verus_server.cpp`: the timeout is five round trips, from 150 ms to a second.
    fn timeout(&self) -> Duration {
        match self.state.rtt {
            None => Self::FIRST_TIMEOUT,
            Some(_) => {
                Duration::from_secs_f64((5.0 * self.state.last_delay).clamp(150.0, 1000.0) / 1e3)
            }
        }
    }

    /// §4.3: sets the target delay. §4.4: computes what to send for it.
    fn on_epoch(&mut self, now: Time) {
        let v = &mut self.state;
        // However late the timer is, epochs are counted from the end of slow start.
        let late = now.since(v.next_epoch).as_nanos() / Self::EPOCH.as_nanos();
        v.next_epoch += Self::EPOCH * (late + 1);
        let silence = now.since(v.last_ack).as_millis_f64();
        let d_max = v
            .d_epoch
            .take()
            .unwrap_or_else(|| v.d_max.unwrap_or(0.0).max(silence));
        let before = *v.d_max.get_or_insert(d_max);
        let mut pause = false;
        // Eq. 4.
        if before / v.d_min > self.r {
            if !v.left_for_delay {
                v.d_est = v.d_min.max(v.d_est - self.delta2);
                if v.d_est == v.d_min && v.under_way < 2 {
                    v.d_min += Self::D_MIN_STEP_MS;
                } else if v.d_est == v.d_min {
                    pause = true;
                }
            }
        } else if d_max - before > 0.0001 {
            v.d_est = v.d_min.max(v.d_est - self.delta1);
        } else {
            v.d_est += self.delta2;
        }
        let Some(window) = v.profile.window(v.d_est) else {
            return self.restart();
        };
        v.window = (window as f64).max(1.0);
        v.d_max = Some(before * Self::KEEP_MAX + d_max * (1.0 - Self::KEEP_MAX));
        self.budget = match pause {
            true => 0,
            false => to_send(v.window, v.under_way, v.rtt.unwrap_or(0.0)),
        };
    }
}

impl CongestionControl for Verus {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.next_number = sent.number + 1;
        self.in_flight = sent.in_flight;
        self.budget = self.budget.saturating_sub(1);
        self.state.under_way += 1;
        if self.timeout == Time::NEVER {
            self.timeout = sent.now + self.timeout();
        }
        Tag(self.state.window as u64)
    }

    fn on_feedback(&mut self, f: &Feedback<'_>) {
        self.in_flight = f.in_flight;
        self.next_number = f.next_number.max(self.next_number);
        for packet in f.lost {
            self.on_missing(f.now, packet);
        }
        for packet in f.acked {
            self.on_acked(f.now, packet);
        }
        if !f.acked.is_empty() {
            self.timeout = f.now + self.timeout();
        }
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        self.in_flight = Bytes::ZERO;
        self.time_out(rto.now);
    }

    fn next_timer(&self) -> Time {
        let v = &self.state;
        let missing = v.missing.front().map_or(Time::NEVER, |m| m.0);
        self.timeout.min(v.next_epoch).min(v.next_fit).min(missing)
    }

    fn on_timer(&mut self, now: Time) {
        if self.timeout <= now {
            self.timeout = Time::NEVER;
            if self.state.under_way > 0 {
                self.time_out(now);
                self.timeout = now + self.timeout();
            }
        }
        while let Some(&(due, _, window)) = self.state.missing.front()
            && due <= now
        {
            self.state.missing.pop_front();
            self.on_lost(now, window);
        }
        if self.state.next_fit <= now {
            self.fit(now);
        }
        if self.state.next_epoch <= now {
            self.on_epoch(now);
        }
    }

    fn control(&self) -> Control {
        let cwnd = self.in_flight + self.mss * self.budget;
        Control::window(cwnd.max(self.mss))
    }

    /// It handles loss itself.
    fn owns_recovery(&self) -> bool {
        true
    }

    fn probe(&self, probe: &mut dyn Probe) {
        let v = &self.state;
        probe.value("window_packets", v.window);
        probe.value("d_est_ms", v.d_est);
        probe.value("d_max_ms", v.d_max.unwrap_or(0.0));
        probe.value("d_min_ms", v.d_min);
        probe.value("loss_phase", f64::from(u8::from(v.loss_phase)));
    }
}
