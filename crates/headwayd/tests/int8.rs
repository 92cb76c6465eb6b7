//! Tests that an int8 policy inside BPF computes the same bits as the native build, and measures
//! how long it takes. To run it as root:
//! `cargo test -p headwayd --test int8 -- --ignored --nocapture`.
#![cfg(target_os = "linux")]

mod bpf;

use bpf::Loaded;
use headway_fixed::vectors::Draw;
use headway_fixed::{Int8, MlpValues, RateAgent, RecordBytes};
use headway_policy::model::{Shipped, shipped};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

const OBJECT: &[u8] = include_bytes!("../../kernel/bpf/tests/int8_test.bpf.o");
const NETS: u64 = 2_000;
const FLOWS: u64 = 40;
const RECORDS: u64 = 500;
const REPEAT: u32 = 20_000;
const ROUNDS: usize = 7;

/// `struct asked` of the program: the inputs of a call, and its results.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
struct Asked {
    repeat: u32,
    decisions: u32,
    ns: u64,
    result: i64,
}

impl Asked {
    const ONCE: Asked = Asked {
        repeat: 1,
        decisions: 0,
        ns: 0,
        result: 0,
    };
}

/// Compares BPF with the native build.
struct Both(Loaded);

impl Both {
    /// Compares the outputs and the inner values of one evaluation of random inputs.
    fn compare_net(&self, policy: &Int8, draw: &mut Draw, what: &str) {
        let mut values = draw.values();
        self.0.put("policy", policy);
        self.0.put("values", &values);
        let found = self.0.run("test_net", Asked::ONCE);
        assert_eq!(found.result, policy.net.run(&mut values), "{what}");
        assert_eq!(self.0.get::<MlpValues>("values"), values, "{what}");
    }

    /// Compares the rates and states for a flow's records. Returns how often it decided.
    fn compare_flow(&self, policy: &Int8, draw: &mut Draw, what: &str) -> u64 {
        let start = draw.below(1 << 40);
        let mut last: RecordBytes = [start, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let mut native = RateAgent::new(policy, start);
        self.0.put("policy", policy);
        self.0.put("record", &last);
        self.0.put("agent", &RateAgent::new_zeroed());
        self.0.run("test_open", Asked::ONCE);
        assert_eq!(self.0.get::<RateAgent>("agent"), native, "{what} opens");
        for record in 0..RECORDS {
            last = draw.record(&last);
            self.0.put("record", &last);
            let found = self.0.run("test_record", Asked::ONCE);
            let rate = native.record(policy, &last);
            assert_eq!(found.result as u64, rate, "{what}, record {record}");
            let after: RateAgent = self.0.get("agent");
            assert_eq!(after, native, "{what}, record {record}");
        }
        native.decisions().into()
    }

    /// The time of a repetition in ns, the median of some rounds.
    fn ns(&self, program: &str, decisions: bool) -> f64 {
        let asked = Asked {
            repeat: REPEAT,
            decisions: decisions.into(),
            ..Asked::ONCE
        };
        let mut rounds: Vec<u64> = (0..ROUNDS).map(|_| self.0.run(program, asked).ns).collect();
        rounds.sort_unstable();
        rounds[ROUNDS / 2] as f64 / f64::from(REPEAT)
    }
}

/// The shipped int8 policies, with their names.
fn shipped_nets() -> Vec<(&'static str, Int8)> {
    let whole = |one: &Shipped| {
        let model = one.model().expect(one.title);
        model.int8().map(|policy| (one.title, policy.clone()))
    };
    shipped().iter().filter_map(whole).collect()
}

#[test]
#[ignore = "needs root: make test-system"]
fn bpf_computes_what_the_native_build_does() {
    let Some(loaded) = Loaded::new(OBJECT) else {
        return;
    };
    let bpf = Both(loaded);
    let mut draw = Draw::new(1);
    let mut decisions = 0;
    for net in 0..NETS {
        let policy = draw.policy();
        bpf.compare_net(&policy, &mut draw, &format!("net {net}"));
    }
    for flow in 0..FLOWS {
        let policy = draw.policy();
        decisions += bpf.compare_flow(&policy, &mut draw, &format!("flow {flow}"));
    }
    assert!(decisions > FLOWS * RECORDS / 100, "{decisions} decisions");
    let shipped = shipped_nets();
    assert!(!shipped.is_empty(), "models/ has no int8 policy");
    for (title, policy) in &shipped {
        for _ in 0..NETS {
            bpf.compare_net(policy, &mut draw, title);
        }
        let flows = (0..FLOWS).map(|_| bpf.compare_flow(policy, &mut draw, title));
        let decided: u64 = flows.sum();
        assert!(decided > FLOWS * RECORDS / 100, "{title}: {decided}");
        decisions += decided;
    }

    // The times are those of a flow that goes on.
    bpf.0.put("policy", &Draw::new(2).policy());
    let last: RecordBytes = [1 << 40, 0, 2, 2, 0, 0, 20_000, 20_000 << 32, 0, 1, 0, 0];
    bpf.0.put("record", &last);
    let [net, agent, record] = [
        ("test_net", false),
        ("test_record", true),
        ("test_record", false),
    ]
    .map(|(p, d)| bpf.ns(p, d));
    let policies = 1 + shipped.len() as u64;
    let [nets, records] = [NETS, FLOWS * RECORDS].map(|of_one| of_one * policies);
    println!(
        r#"int8 {{"net_ns": {net:.1}, "agent_ns": {agent:.1}, "record_ns": {record:.1}, "nets": {nets}, "records": {records}, "decisions": {decisions}}}"#
    );
}
