"""Runs kept one by one as they finish.

So whatever asks for many can be interrupted and goes on.
"""
