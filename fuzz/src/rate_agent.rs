//! Fuzzes the kernel's agent of a rate with a policy and records of any bytes.

use headway_fixed::{Int8, RateAgent, RecordBytes};
use zerocopy::FromBytes;

/// The input is a policy as in the kernel's map, then records. For every input, rates stay within
/// the policy's bounds, and the same records give the same rates.
pub fn rate_agent(input: &[u8]) {
    let Ok((policy, records)) = Int8::read_from_prefix(input) else {
        return;
    };
    let records = records.as_chunks::<{ size_of::<RecordBytes>() }>().0;
    let run = || {
        let mut agent = RateAgent::new(&policy, 0);
        let rates = records.iter().map(|bytes| {
            let record = RecordBytes::read_from_bytes(bytes).expect("its size");
            agent.record(&policy, &record)
        });
        (rates.collect::<Vec<u64>>(), agent.decisions())
    };
    let (rates, decisions) = run();
    let most = policy.max_rate.min(1 << 40);
    let bounds = policy.min_rate.min(most)..=most;
    assert!(rates.iter().all(|rate| bounds.contains(rate)));
    assert!(decisions as usize <= 2 * records.len());
    assert_eq!((rates, decisions), run());
}
