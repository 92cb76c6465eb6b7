"""headwayd and flows that it serves, for the tests."""
