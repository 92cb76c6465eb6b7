"""Congestion-control parameters tuned over many hosts by cooperating agents (docs/tuning.md).

After Ketabi et al., "A Deep Reinforcement Learning Framework for Optimizing Congestion Control in
Data Centers", sections III to V. On each host a monitor samples flows every T1, and a tuner applies
an agent's settings every T2.
"""
