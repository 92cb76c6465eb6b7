"""The measurement agent: what switches count becomes Owl's PNC, PNA and known share of paths (docs/netwatch.md)."""
