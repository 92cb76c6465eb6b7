"""Temporary: two modules of `headway.reproduce` still import `install` from here, not from `headway.extras`."""

from headway.extras import install as install  # noqa: PLC0414
