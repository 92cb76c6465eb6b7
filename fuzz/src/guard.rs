//! Fuzzes the guard with limits, records, requests and answers of any bytes.

use headway_fixed::{Guard, Limits, Reason, RecordBytes, Verdict};
use zerocopy::FromBytes;

use super::Bytes;

/// The input begins with whether the limits are the usual ones, and with limits. Steps follow: the
/// events before a record, and the record. For every input, windows and rates stay within bounds, a
/// flow always has a controller, and an agent that answers gets the flow back in the end.
pub fn guard(input: &[u8]) {
    let mut input = Bytes(input);
    let limits = match input.byte() % 2 {
        0 => Limits::default(),
        _ => wild(input.array()),
    };
    let mut guard = Guard::new(u64::from_le_bytes(input.array()), 10, 0);
    let mut last: RecordBytes = [0; 12];
    while !input.0.is_empty() {
        let now = last[0];
        match input.byte() % 4 {
            0 => guard.ask(now),
            1 => {
                let decided = now.wrapping_sub(u64::from(u32::from_le_bytes(input.array())) << 8);
                let answered = decided.saturating_add(u64::from(input.byte()) << 20);
                let is_allowed = guard.answer(&limits, decided, answered, now);
                assert!(!is_allowed || guard.reason() == Reason::Fine);
            }
            2 => {
                let wanted = i64::from_le_bytes(input.array());
                let cwnd = guard.cwnd(&limits, wanted);
                assert!((limits.min_cwnd..=limits.max_cwnd).contains(&cwnd));
                assert!(guard.rate(&limits, wanted as u64) <= limits.max_rate);
            }
            _ => {}
        }
        last = next(&last, &mut input);
        judge(&mut guard, &limits, &last);
    }
    comes_back(&mut guard, &limits, last);
}

/// Any limits whose bounds are in order.
fn wild(bytes: [u8; size_of::<Limits>()]) -> Limits {
    let mut limits = Limits::read_from_bytes(&bytes).expect("its size");
    limits.min_cwnd = limits.min_cwnd.min(limits.max_cwnd);
    // It stays below the value that means none, also for a path of 2^32 packets.
    limits.least_ssthresh &= 15;
    limits
}

/// A record of any bytes, or one that continues the last.
fn next(last: &RecordBytes, input: &mut Bytes<'_>) -> RecordBytes {
    if input.byte() == 0 {
        return RecordBytes::read_from_bytes(&input.array::<{ size_of::<RecordBytes>() }>())
            .expect("its size");
    }
    let mut record = *last;
    let [ms, delivered, lost, in_flight, cwnd, srtt, acks, flags] = input.array().map(u64::from);
    // The layout is that of abi.h, as in headway_fixed::vectors.
    record[0] = record[0].wrapping_add(ms * 1_000_000);
    record[3] = u64::from((record[3] as u32).wrapping_add(delivered as u32));
    record[4] = u64::from((record[4] as u32).wrapping_add(lost as u32 / 16)) | in_flight << 32;
    record[5] = cwnd | 1500 << 32;
    record[6] = (srtt * 1000) | ((srtt * 1000) << 32);
    record[7] = 20_000 << 32;
    record[9] = (acks % 2) | ((flags % 8) << 32);
    record
}

fn judge(guard: &mut Guard, limits: &Limits, record: &RecordBytes) -> Verdict {
    let trips = guard.trips();
    let judgement = guard.judge(limits, record);
    let policy_acts = matches!(judgement, Verdict::Policy | Verdict::Resume);
    assert_eq!(guard.reason() == Reason::Fine, policy_acts);
    let is_counted = guard.trips() != trips;
    assert_eq!(is_counted, judgement == Verdict::Trip);
    assert!(guard.restart(limits, record) >= limits.least_ssthresh);
    assert!((1.0..=1e6).contains(&guard.cubic().cwnd()));
    judgement
}

/// After the probation, an answer and a record are enough.
fn comes_back(guard: &mut Guard, limits: &Limits, mut last: RecordBytes) {
    if guard.reason() == Reason::Fine || guard.until_ns() > u64::MAX / 2 || last[0] > u64::MAX / 2 {
        return;
    }
    last[0] = guard.until_ns().max(last[0]);
    guard.ask(last[0]);
    guard.answer(limits, last[0], last[0], last[0]);
    assert_eq!(judge(guard, limits, &last), Verdict::Resume);
}
