"""A congestion controller in Python: slow start, one packet a round trip, half on loss.

headway bench --schemes python:examples/aimd.py,cubic --scenario low-bdp --against cubic
"""


class Aimd:
    """The window `self.cwnd` is in bytes; Headway reads it after each call."""

    def __init__(self, setup):
        self.mss = setup.mss  # bytes of a full packet
        self.cwnd = setup.initial_cwnd
        self.ssthresh = float("inf")

    def on_feedback(self, f):
        if f.congestion:  # the first loss in a window: reduce once
            self.ssthresh = max(f.prior_in_flight_bytes / 2, 2 * self.mss)
            self.cwnd = self.ssthresh
        elif f.cwnd_limited and f.recovery in ("open", "loss"):  # the window is in use: grow
            if self.cwnd < self.ssthresh:
                self.cwnd += f.acked_bytes
            else:
                self.cwnd += self.mss * f.acked_bytes / self.cwnd

    def on_rto(self, rto):
        if rto.consecutive == 1:  # the first of a series; the others add no information
            self.ssthresh = max(rto.prior_in_flight_bytes / 2, 2 * self.mss)
        self.cwnd = self.mss
