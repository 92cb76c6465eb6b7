"""A TCP receiver that is a script: it meets a kernel socket packet by packet (docs/packet-scripts.md)."""
