"""The measurement agent (docs/netwatch.md).

What switches count becomes Owl's PNC, PNA and known share of paths.
"""
