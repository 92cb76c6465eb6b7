"""Flows of a kernel, for the tests."""
