"""Runs kept one by one as they finish, so that whatever asks for many can be interrupted and goes on."""
