//! Aurora: a rate that a small network raises and lowers.

use headway_cc::{Family, Need, Param, Scheme};

use super::{GUARD, LATENCY, build, model_of, trained};

const MODEL: Param = trained("one of v2, v1, int8-v1", "v2", |text| {
    model_of("aurora", text)
});

/// Jay et al. 2019.
pub const SCHEME: Scheme = Scheme {
    name: "aurora",
    family: Family::Learned,
    summary: "a small network scales the rate every half RTT by how RTTs, sending and delivery have changed",
    source: "Jay, Rotman, Godfrey, Schapira and Tamar, ICML 2019; recipe v1 as in PCC-RL (docs/training.md)",
    deviations: &[
        "v1 was trained by the authors' recipe in our simulator, not with their weights; it serves 1.2 to 6 Mbit/s, as theirs",
        "int8-v1 is v2 as the kernel evaluates it: whole numbers, six intervals in the place of ten, and answers that wait for the next acknowledgement, as there is no timer (docs/int8.md)",
        "v2 was trained on 0.5 to 200 Mbit/s and round trips of 5 to 400 ms; its features and its reward have no scale, it also sees loss and how many packets an interval had, and an action may change the rate by four times as much",
    ],
    needs: &[Need::RateSample, Need::Pacing],
    params: &[MODEL, LATENCY, GUARD],
    build: |setup, values| build(setup, values, &MODEL),
    receiver: None,
    router: None,
};
