"""A TCP receiver that is a script (docs/packet-scripts.md).

It meets a kernel socket packet by packet.
"""
