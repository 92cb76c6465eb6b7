//! Aurora: a small network raises and lowers a sending rate.

use headway_cc::{Family, Need, Param, Scheme};

use super::{GUARD, LATENCY, build, model_of, trained};

const MODEL: Param = trained("one of v2, v1, cellular-v1, int8-v1", "v2", |text| {
    model_of("aurora", text)
});

/// Aurora, by Jay et al. 2019.
pub const SCHEME: Scheme = Scheme {
    name: "aurora",
    family: Family::Learned,
    summary: "every half RTT a small network scales the rate, from changes of the RTT, the sending rate and the delivery rate",
    source: "Jay, Rotman, Godfrey, Schapira and Tamar, ICML 2019; recipe v1 as in PCC-RL (docs/training.md)",
    deviations: &[
        "v1 does not have the authors' weights: it was trained by their recipe in our simulator. Like theirs it is for 1.2 to 6 Mbit/s",
        "int8-v1 is v2 for the kernel: whole numbers, six intervals instead of ten, and actions that wait for the next acknowledgement, because there is no timer (docs/int8.md)",
        "cellular-v1 is v2's recipe with recorded 3G among its training links. It does not stop on slow links that vary, as v2 may, and loses more on short queues (docs/training.md)",
        "v2 was trained on 0.5 to 200 Mbit/s and RTTs of 5 to 400 ms. Its features and its reward do not depend on the link's scale. It also sees the loss and the number of packets of an interval. An action may change the rate four times as much",
    ],
    needs: &[Need::RateSample, Need::Pacing],
    params: &[MODEL, LATENCY, GUARD],
    build: |setup, values| build(setup, values, &MODEL),
    receiver: None,
    router: None,
};
