"""The measurement agent (docs/netwatch.md).

It makes Owl's PNC, PNA and known share of paths from switches' counters.
"""
