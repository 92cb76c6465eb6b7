"""The control socket of an agent and of a host.

Only its owner can use it, and it ends with them.
"""

import asyncio
import errno
import socket
from contextlib import ExitStack

import pytest

from headway._native import RunError, UsageError
from headway.tune.control import Control, ask, default_path
from test_tune_hosts import run


def test_only_the_owner_can_use_the_control_socket(tmp_path):
    async def body(_):
        path = tmp_path / "x.sock"
        door = await Control(path, lambda: {"role": "agent"}).open()
        assert path.stat().st_mode & 0o777 == 0o600
        assert await asyncio.to_thread(ask, path) == {"role": "agent"}
        with pytest.raises(UsageError, match="another process listens"):
            await Control(path, dict).open()
        await door.close()
        assert not path.exists()
        with pytest.raises(RunError, match="headway tune agent"):
            await asyncio.to_thread(ask, path)

    run(body)
    # `headway tune status` looks there, for any name.
    assert default_path("host", "rack/1").parent == default_path("host", "h").parent


def test_a_busy_control_socket_is_kept_and_a_stale_one_is_replaced(tmp_path):
    async def body(_):
        path, clients = tmp_path / "x.sock", ExitStack()
        with clients, socket.socket(socket.AF_UNIX) as busy:
            busy.bind(str(path))
            busy.listen(0)
            before = path.stat().st_ino
            # Connections are opened until no more can wait there.
            code = 0
            while code == 0:
                one = clients.enter_context(socket.socket(socket.AF_UNIX))
                one.setblocking(False)
                code = one.connect_ex(str(path))
            assert code == errno.EAGAIN
            with pytest.raises(UsageError, match="another process listens"):
                await Control(path, dict).open()
            assert path.stat().st_ino == before
        door = await Control(path, lambda: {"role": "agent"}).open()
        assert await asyncio.to_thread(ask, path) == {"role": "agent"}
        await door.close()

    run(body)
