"""A network of Open vSwitch bridges in network namespaces, and a program in it (docs/testbed.md)."""
