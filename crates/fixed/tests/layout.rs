//! Compares the C compiler's layout of the headers' types with Rust's.

use std::fmt::Write;
use std::mem::{offset_of, size_of};
use std::path::{Path, PathBuf};
use std::process::Command;

use headway_fixed::{Cubic, Guard, Int8, Limits, Mlp, MlpValues, RateAgent, Reason, RecordBytes};
use headway_fixed::{FEATURES, HIDDEN1, HIDDEN2, HISTORY, INPUTS};

/// C expressions, each with its value in Rust.
fn expressions() -> Vec<(String, usize)> {
    let mut all = Vec::new();
    macro_rules! layout {
        ($c:literal, $rust:ty: $($field:ident),+) => {
            all.push((format!("sizeof(struct {})", $c), size_of::<$rust>()));
            $(all.push((
                format!("offsetof(struct {}, {})", $c, stringify!($field)),
                offset_of!($rust, $field),
            ));)+
        };
    }
    layout!("headway_mlp", Mlp: multipliers, shifts, biases1, biases2, bias3, unused, weights1, weights2, weights3);
    layout!("headway_mlp_values", MlpValues: inputs, unused, hidden1, hidden2);
    layout!("headway_int8", Int8: generation, interval, initial_rate, min_rate, max_rate, limit, delta, offsets,
        steps, blank, unused, net);
    layout!("headway_limits", Limits: max_rate, rate_gain, min_cwnd, max_cwnd, wild_answers, answer_us, answer_rtts, answer_most_us,
        answer_keeps_ms, stale_answers, return_patiences, epoch_us, epoch_min_rtts, epoch_srtts,
        queue_share, queue_us, few_packets, peak_ms, mean_shift, initial_window, shadow_gain,
        shadow_packets, beyond, ahead, loss, loss_packets, epochs, inflation, inflation_us, full_rtts,
        slow_epochs, weight, margin, share, long_margin, long_epochs, probation_ms, undoubled, doublings,
        pardon_ms, spared_rtts, least_ssthresh, unused);
    for (c, rust) in [("cubic", size_of::<Cubic>()), ("guard", size_of::<Guard>())] {
        all.push((format!("sizeof(struct headway_{c})"), rust));
    }
    let reasons = [
        "FINE",
        "TOO_STALE",
        "TOO_LOSSY",
        "TOO_SLOW",
        "TOO_POOR",
        "TOO_WILD",
    ];
    for (c, rust) in reasons.iter().zip(Reason::ALL) {
        assert_eq!(Reason::of(rust as u32), Some(rust));
        all.push((format!("HEADWAY_{c}"), rust as usize));
    }
    all.push(("HEADWAY_REASONS".to_owned(), Reason::ALL.len()));
    all.push((
        "sizeof(struct headway_rate_agent)".to_owned(),
        size_of::<RateAgent>(),
    ));
    all.push((
        "sizeof(struct headway_record)".to_owned(),
        size_of::<RecordBytes>(),
    ));
    for (c, rust) in [
        ("HEADWAY_MLP_INPUTS", INPUTS),
        ("HEADWAY_MLP_HIDDEN1", HIDDEN1),
        ("HEADWAY_MLP_HIDDEN2", HIDDEN2),
        ("HEADWAY_RATE_FEATURES", FEATURES),
        ("HEADWAY_RATE_HISTORY", HISTORY),
    ] {
        all.push((c.to_owned(), rust));
    }
    all
}

#[test]
fn c_and_rust_layouts_agree() {
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernel/bpf");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (folder.join("layout.c"), folder.join("layout"));
    let mut c =
        "#include <stdio.h>\n#include <stddef.h>\n#include \"rate_agent.h\"\n#include \"guard.h\"\nint main(void) {\n"
            .to_owned();
    for (expression, _) in expressions() {
        writeln!(c, "printf(\"%zu\\n\", (size_t)({expression}));").expect("text");
    }
    c += "return 0; }\n";
    std::fs::write(&source, c).expect("a file");
    let built = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Wpadded", "-Werror", "-I"])
        .arg(&headers)
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .output()
        .expect("the C compiler that built this crate");
    let complaints = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{complaints}");
    let said = Command::new(&program).output().expect("it runs").stdout;
    let said = String::from_utf8(said).expect("numbers");
    let said: Vec<usize> = said.lines().map(|n| n.parse().expect("a number")).collect();
    assert_eq!(said.len(), expressions().len());
    for (c, (expression, rust)) in said.iter().zip(expressions()) {
        assert_eq!(*c, rust, "{expression}: C says {c}, Rust {rust}");
    }
    // The most that a flow may take of the kernel's memory.
    assert!(size_of::<RateAgent>() < 512);
}
