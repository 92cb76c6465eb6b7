"""A network of Open vSwitch bridges in network namespaces, and a program in it.

See docs/testbed.md.
"""
