"""Runs `headway` on a cluster of two nodes of Ray, and kills the processes that run its tasks.

It runs in a network namespace and a process namespace of its own, as root there: nothing that it
starts can be reached from outside, and nothing of it is left over.

Usage: ray_cluster.py KILL OUTPUT headway's arguments

KILL is `workers` (two of them, one after the other) or `node` (the second one, with its workers).
Prints the numbers of the processes that it has killed. Exits with the command's code.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

DEADLINE_S = 300.0
AT_WORK = "ray::carry_out"
HEAD = "127.0.0.1:6399"


def processes(beginning: str) -> set[int]:
    """Processes whose command line begins with this, or whose program has this name."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if line.startswith(beginning) or line.split(" ", 1)[0].endswith(f"/{beginning}"):
            found.add(int(folder.name))
    return found


def wait_for(beginning: str, among: set[int] | None = None) -> int:
    """One of the processes that is not in `among`, as soon as there is one.

    Raises TimeoutError if none comes.
    """
    until = time.monotonic() + DEADLINE_S
    while time.monotonic() < until:
        if more := processes(beginning) - (among or set()):
            return more.pop()
        time.sleep(0.005)
    raise TimeoutError(f"no process {beginning}")


def start(temporary: str, *options: str) -> None:
    """Starts a node with one core.

    On a busy machine Ray gives up after some seconds, so it is started again.
    """
    ray = [sys.executable, "-c", "from ray.scripts.scripts import main; main()"]
    node = [*ray, "start", "--num-cpus=1", "--disable-usage-stats", *options]
    log = Path(temporary, "start.log")
    with log.open("a") as said:
        for _ in range(3):
            before = processes("raylet") | processes("gcs_server")
            if subprocess.run(node, stdout=said, stderr=said, check=False).returncode == 0:
                return
            for process in (processes("raylet") | processes("gcs_server")) - before:
                os.kill(process, signal.SIGKILL)
    sys.exit(log.read_text())


def main() -> int:
    """Runs the command. Returns its exit code."""
    kill, output, *arguments = sys.argv[1:]
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    # No other program reaches this namespace, so Ray needs no token.
    os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
    # A path to a socket has at most 107 characters.
    with TemporaryDirectory(prefix="ray-", dir="/tmp") as temporary:
        os.environ["HOME"] = temporary
        host, port = HEAD.split(":")
        of_head = [f"--node-ip-address={host}", f"--port={port}", "--include-dashboard=false"]
        start(temporary, "--head", *of_head, f"--temp-dir={temporary}")
        head = processes("raylet")
        start(temporary, f"--address={HEAD}")
        command = [sys.executable, "-m", "headway", *arguments, "--ray", HEAD]
        with Path(output).open("w") as said, subprocess.Popen(command, stdout=said) as running:
            killed: set[int] = set()
            for _ in range(2 if kill == "workers" else 1):
                worker = wait_for(AT_WORK, killed)
                killed.add(worker if kill == "workers" else wait_for("raylet", head))
                for process in killed:
                    try:
                        os.kill(process, signal.SIGKILL)
                    except ProcessLookupError:
                        # The process was killed in an earlier turn.
                        continue
            print(*killed, flush=True)
            return running.wait()


if __name__ == "__main__":
    sys.exit(main())
