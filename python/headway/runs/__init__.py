"""Keeps runs one by one as they finish.

So a command that needs many can be interrupted and continue.
"""
