"""A TCP receiver that is controlled by a script (docs/packet-scripts.md).

It exchanges packets with a kernel socket one by one.
"""
