//! One long flow against the fluid model of algorithms.md §14.4.

use crate::networks::fixed;
use crate::sawtooth;

/// The model's figure and how far ours may be from it, in percent.
type Cell = (f64, f64);

/// Buffer in packets, utilisation, mean queue in ms, its 95th percentile in ms, period in s.
type Row = (u64, Cell, Cell, Cell, Cell);

/// 12 Mbit/s, 60 ms each way: 120 packets of 1500 bytes fit the path, one leaves each millisecond.
///
/// All cells are held to 5%; queues at least to one packet, which the model, having none, cannot
/// resolve. Where more is allowed the model is too quick: it reduces the moment the buffer is
/// full and grows again at once, while a sender hears of a drop one round trip later and repairs
/// it in another, growing in neither. That lengthens a period by 0.24 s to 0.66 s, the most in
/// proportion where periods are short or round trips long, and leaves the queue low meanwhile.
#[test]
fn newreno() {
    check(
        "newreno",
        &[
            (12, (0.821, 5.0), (1.0, 5.0), (10.0, 5.0), (8.1, 6.0)),
            (30, (0.894, 5.0), (7.0, 5.0), (28.0, 5.0), (9.7, 5.0)),
            (60, (0.965, 5.0), (23.0, 5.0), (57.0, 5.0), (13.0, 5.0)),
            (120, (1.0, 5.0), (67.0, 5.0), (116.0, 5.0), (23.1, 5.0)),
            (240, (1.0, 5.0), (159.0, 5.0), (234.0, 5.0), (50.0, 5.0)),
        ],
    );
}

/// Without fast convergence, which the model has not.
#[test]
fn cubic() {
    check(
        "cubic:fast_convergence=off",
        &[
            (12, (0.969, 5.0), (7.0, 5.0), (13.0, 5.0), (4.7, 5.0)),
            (30, (0.993, 5.0), (21.0, 7.0), (31.0, 5.0), (4.9, 5.0)),
            (60, (1.0, 5.0), (47.0, 5.0), (61.0, 5.0), (5.2, 5.0)),
            (120, (1.0, 5.0), (103.0, 5.0), (121.0, 5.0), (5.8, 5.0)),
            (240, (1.0, 5.0), (214.0, 5.0), (241.0, 5.0), (6.5, 9.0)),
        ],
    );
}

fn check(scheme: &str, rows: &[Row]) {
    let mut missed = Vec::new();
    for &(buffer, utilisation, mean, p95, period) in rows {
        let ours = sawtooth::run(&fixed(12.0, 60, buffer, 1500), scheme, 200, 600);
        let cells: [(&str, f64, Cell, f64); 4] = [
            ("utilisation", ours.utilisation, utilisation, 0.0),
            ("mean queue, ms", ours.mean_queue_ms, mean, 1.0),
            ("p95 queue, ms", ours.p95_queue_ms, p95, 1.0),
            ("period, s", ours.period_s, period, 0.0),
        ];
        for (what, ours, (model, percent), packet) in cells {
            let line = format!(
                "{scheme}, buffer {buffer}, {what}: {ours:.3}, model {model}: {:+.1}%",
                100.0 * (ours / model - 1.0)
            );
            println!("{line}");
            if (ours - model).abs() > packet.max(model * percent / 100.0) {
                missed.push(line);
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}
