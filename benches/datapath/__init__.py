"""The measurements of the Linux datapath (benches/kernel.py)."""
