//! The most memory that a learner of a kernel's flow takes.

use headway_cc::{Bytes, Setup};
use headway_policy::Record;
use headway_policy::schemes::{RaxOverRecords, RaxSpec};

/// The packets in flight. A learner follows 4,096 at most.
const FLYING: u32 = 4000;

/// Alternates between few packets a round trip, so that many short segments wait, and many, so that
/// a few long ones do. As many as possible are always in flight.
fn alternate(rax: &mut RaxOverRecords, turns: u32) {
    let mut record = Record {
        mss: 1500,
        acks: 1,
        rtt_us: 50_000,
        srtt_us: 50_000,
        in_flight: FLYING,
        sent: FLYING,
        ..Record::default()
    };
    for turn in 0..turns {
        let gap_ns = match turn % 2 {
            0 => 500_000,
            _ => 10_000,
        };
        for n in 0..10_000 + 1111 * (turn % 7) {
            record.now_ns += gap_ns;
            record.sent += 1;
            record.delivered += 1;
            record.cwnd = 2600;
            // Another controller sets the window, at first until the learner has measured what the
            // path returns.
            let is_set = n % 512 == 0 || (turn == 0 && n < 5000);
            record.flags = if is_set { Record::TRIPPED } else { 0 };
            rax.on_record(&record);
        }
    }
}

/// The systemd unit has 2 GB, and 64 flows may learn at once.
#[test]
fn sixty_four_learners_fit_into_two_gigabytes() {
    let cost = allocation_counter::measure(|| {
        let setup = Setup::new(Bytes::new(1500), 1);
        let mut rax = RaxOverRecords::new(&setup, &RaxSpec::default(), None).expect("the default");
        alternate(&mut rax, 20);
        assert!(rax.updates() > 100, "{}", rax.updates());
    });
    let most = cost.bytes_max;
    assert!(most > 8_000_000, "{most} bytes: thousands of steps waited");
    assert!(most < (2 << 30) / 64, "{most} bytes");
}
