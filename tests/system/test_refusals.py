"""The refusals of a machine are reported in one line, with cause and remedy.

Nothing stays behind. Each test turns this machine into such a machine, with separate namespaces
that have fewer rights or files. tests of crates/machine use folders for cases that cannot be made
here.
"""

import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import daemon
import enclosure
import needs
from headway._native import UsageError, find_headwayd
from waiting import HANGS_S, until

pytestmark = pytest.mark.system

HEADWAY = (sys.executable, "-m", "headway")
SCENARIO = """
schema = 1
name = "one"
seconds = 1

[bottleneck]
rate = "10Mbps"
delay = "5ms"
queue = "100pkt"
"""

NOBODY = (
    *("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"),
    # This Python may be in a folder that only root can read. Reading is the one capability that
    # this user keeps.
    *("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"),
)
POWERLESS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
"""Root without capabilities, as a container's is."""
CALLS = {"x86_64": {"unshare": 272, "bpf": 321}, "aarch64": {"unshare": 97, "bpf": 280}}
"""The numbers of the system calls."""

LOAD = "load the module ('sudo modprobe tun')"
NOT_TUN = (
    "it is not the character device 10:200; make it again: "
    "'sudo rm -r /dev/net/tun; sudo mknod -m 0666 /dev/net/tun c 10 200'"
)
TO_CONTAINER = "start the container with --privileged, or with"
IP = "install iproute2 (sudo apt-get install -y iproute2)"
V2 = "give one of version 2, such as "


def mounted(prepare, *who):
    """Runs in a separate mount namespace, after this sh script has changed it."""
    return ("unshare", "--mount", "sh", "-ec", f'{prepare}; exec "$@"', "sh", *who)


def as_user_root(prepare):
    """Runs as the root of a user namespace, in which the script has run."""
    return ("unshare", "--user", "--map-root-user", "sh", "-ec", f'{prepare}; exec "$@"', "sh")


def filtered(call, *who):
    """Runs with a filter that refuses a system call."""
    number = CALLS.get(platform.machine(), {}).get(call) or needs.skip("seccomp", "its number is not known here")
    return (*who, sys.executable, str(Path(__file__).with_name("without_call.py")), str(number))


def tun(node, options="", *who):
    """Runs with a /dev/net/tun that is made this way, or with none."""
    return mounted(f"mount -t tmpfs {options} tmpfs /dev/net; {node}", *who)


def no_ip():
    """Runs with an empty PATH. Python is called by its absolute path."""
    return ("env", "PATH=/nowhere")


MACHINES = {
    "no TUN device": (
        lambda: tun("true"),
        f"cannot open /dev/net/tun: there is no such device; {LOAD}; start a container with --device /dev/net/tun",
    ),
    "another device in its place": (
        lambda: tun("mknod /dev/net/tun c 10 249"),
        f"cannot open /dev/net/tun: {NOT_TUN}",
    ),
    "a folder in its place": (lambda: tun("mkdir /dev/net/tun"), f"cannot open /dev/net/tun: {NOT_TUN}"),
    # Root opens the file.
    "a file in its place": (lambda: tun("touch /dev/net/tun"), f"cannot make TUN device 'headway0': {NOT_TUN}"),
    "a TUN device of mode 0600": (
        lambda: tun("mknod -m 600 /dev/net/tun c 10 200", "-o mode=755", *NOBODY),
        "cannot open /dev/net/tun: its mode is 0600; let users open it: 'sudo chmod 0666 /dev/net/tun', or run it "
        "as root",
    ),
    "a TUN device on a mount without devices": (
        lambda: tun("mknod -m 666 /dev/net/tun c 10 200", "-o nodev"),
        "cannot open /dev/net/tun: it is on a mount with the option 'nodev'; mount it again without that "
        "option ('sudo mount -o remount,dev'); start a container with --device /dev/net/tun",
    ),
    "no user namespaces": (
        lambda: as_user_root("echo 0 > /proc/sys/user/max_user_namespaces"),
        "cannot make namespaces: no user namespaces are permitted (user.max_user_namespaces=0); permit them: "
        "'sudo sysctl user.max_user_namespaces=15000'",
    ),
    "no network namespaces": (
        lambda: as_user_root("echo 0 > /proc/sys/user/max_net_namespaces"),
        "cannot make namespaces: no network namespaces are permitted (user.max_net_namespaces=0); permit "
        "them: 'sudo sysctl user.max_net_namespaces=15000'",
    ),
    "a filter of system calls": (
        lambda: filtered("unshare", *NOBODY),
        "cannot make namespaces: a filter of system calls (seccomp) forbids user namespaces, as in a "
        f"container; {TO_CONTAINER} --security-opt seccomp=unconfined, or run it as root",
    ),
    "root without capabilities": (
        lambda: POWERLESS,
        "cannot write /proc/self/uid_map: this root has no CAP_SYS_ADMIN and no CAP_NET_ADMIN, as in a container; "
        f"{TO_CONTAINER} --cap-add SYS_ADMIN --cap-add NET_ADMIN",
    ),
    "root without capabilities behind a filter": (
        lambda: filtered("unshare", *POWERLESS),
        "cannot make namespaces: this root has no CAP_SYS_ADMIN and no CAP_NET_ADMIN, as in a container; "
        f"{TO_CONTAINER} --cap-add SYS_ADMIN --cap-add NET_ADMIN",
    ),
    "no ip": (
        no_ip,
        f"cannot run 'ip': there is no 'ip' on the PATH; {IP}, or put its folder, such as /usr/sbin, on the PATH",
    ),
    "a read-only /proc/sys": (
        lambda: mounted("mount --bind /proc/sys /proc/sys; mount -o remount,ro,bind /proc/sys"),
        "cannot set /proc/sys/net/ipv4/[a-z_]+: /proc/sys is mounted read-only, as in a container; "
        f"{TO_CONTAINER} --security-opt systempaths=unconfined",
    ),
}


@pytest.fixture(scope="module", autouse=True)
def is_root():
    """Only root can make most of these machines."""
    if os.geteuid() != 0:
        needs.skip("users", "machines that refuse something are made by root")


@pytest.fixture
def tmp_path():
    """A folder that every user can reach, in a user namespace too.

    pytest's own folder belongs to root.
    """
    with tempfile.TemporaryDirectory(prefix="headway-") as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@pytest.fixture
def commands(tmp_path):
    """Every command that makes namespaces, with the folder in which it could leave something."""
    scenario = tmp_path / "one.toml"
    scenario.write_text(SCENARIO)
    short = ["--schemes", "newreno", "--scenario", str(scenario), "--runs", "1", "--seconds", "1"]
    return {
        "shell": (["shell", "--delay", "1ms", "--log", str(tmp_path / "shell"), "--", "/bin/true"], "shell"),
        "emu": (["bench", *short, "--world", "emu", "--out", str(tmp_path / "emu")], "emu"),
        "kernel": (["bench", *short, "--world", "kernel", "--out", str(tmp_path / "kernel")], "kernel"),
        "gap": (["gap", *short, "--out", str(tmp_path / "gap")], "gap"),
    }


def refused(command, code=1):
    """The single line of a command that was refused something."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANGS_S, env=environment)
    assert done.returncode == code, (command, done)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr.removesuffix("\n")


def left_over(before):
    """The additional objects. Controllers may belong to another test."""
    found = enclosure.Census.take().more_than(before)
    return [one for one in found if not one.startswith("controllers:")]


def matches(line, *words):
    """Whether the line has these words. For a setting or a mount each of several is correct."""
    parts = (re.escape(word).replace(re.escape("[a-z_]+"), "[a-z_]+") for word in words)
    return re.fullmatch("".join(parts), line)


# Benches try it as a shell does, in a separate process, and report its message.
CASES = [
    *(("shell", machine, 1) for machine in MACHINES),
    *(
        ("emu", machine, 2)
        for machine in ("no TUN device", "a TUN device of mode 0600", "no ip", "a read-only /proc/sys")
    ),
    *((command, "no TUN device", 2) for command in ("kernel", "gap")),
]


@pytest.mark.parametrize(("command", "machine", "code"), CASES)
def test_commands_that_make_namespaces_report_what_the_machine_refuses(commands, tmp_path, command, machine, code):
    within, expected = MACHINES[machine]
    words, folder = commands[command]
    before = enclosure.Census.take()
    line = refused([*within(), *HEADWAY, *words], code)
    where = "" if command == "shell" else "scenario 'one': "
    assert matches(line, f"headway: {where}", expected), line
    # A gap may have made its folder, because it first looks there for finished runs.
    left = tmp_path / folder
    assert not left.exists() or [(f.name, f.stat().st_size) for f in left.iterdir()] == [("runs.jsonl", 0)]
    until(lambda: not left_over(before), lambda: left_over(before))


def test_a_tun_device_that_a_cgroup_forbids(commands):
    """This is version 1, whose rules are files. The rules of version 2 are programs."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    found = [Path(row[1]) for row in mounts if row[2] == "cgroup" and "devices" in row[3].split(",")]
    if not found:
        needs.skip("cgroups", "no cgroups of version 1 with rules for devices are mounted")
    own = found[0] / f"headway-test-{os.getpid()}"
    own.mkdir()
    try:
        (own / "devices.deny").write_text("c 10:200 rwm")
        join = ("sh", "-ec", f'echo $$ > {own}/cgroup.procs; exec "$@"', "sh")
        line = refused([*join, *HEADWAY, *commands["shell"][0]])
    finally:
        own.rmdir()
    assert line == (
        "headway: cannot open /dev/net/tun: the cgroup's rules for devices forbid it, as in a container; start the "
        "container with --device /dev/net/tun (a unit of systemd: DeviceAllow=/dev/net/tun rw)"
    )


def test_the_ip_of_busybox(commands, tmp_path):
    """The `ip` of busybox has no -batch."""
    program = tmp_path / "ip"
    program.write_text(
        "#!/bin/sh\necho 'ip: unrecognized option: b\nBusyBox v1.36.1 multi-call binary.' >&2; exit 1\n"
    )
    program.chmod(0o755)
    line = refused(["env", f"PATH={tmp_path}:/usr/bin:/bin", *HEADWAY, *commands["shell"][0]])
    assert line == f"headway: ip: the 'ip' on the PATH is BusyBox's; {IP}"


def test_a_read_only_sys_is_sufficient(commands):
    within = mounted("mount -o remount,ro,bind /sys")
    done = subprocess.run([*within, *HEADWAY, *commands["shell"][0]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


AGENTS = {
    "root without capabilities": (
        lambda: POWERLESS,
        "cannot register headway_owl: not permitted: this root has no CAP_BPF and no CAP_PERFMON, as in a "
        f"container; {TO_CONTAINER} --cap-add BPF --cap-add PERFMON",
    ),
    "a user": (
        lambda: NOBODY,
        "cannot register headway_owl: not permitted: this user has no CAP_BPF and no CAP_PERFMON; run it as root "
        "(sudo)",
    ),
    "the root of a user namespace": (
        lambda: as_user_root("true"),
        "cannot register headway_owl: not permitted: BPF needs the machine's root, and this is a user namespace; "
        "run it outside, as root (sudo): without 'unshare -r', and in no rootless container",
    ),
    "a filter of system calls": (
        lambda: filtered("bpf"),
        "cannot register headway_owl: not permitted: a filter of system calls (seccomp) forbids bpf(), as in a "
        f"container; {TO_CONTAINER} --security-opt seccomp=unconfined",
    ),
    "a kernel without types": (
        lambda: mounted("mount -t tmpfs tmpfs /sys/kernel"),
        "this kernel has no type information, BTF (no /sys/kernel/btf/vmlinux); use one with CONFIG_DEBUG_INFO_BTF",
    ),
    "no /sys": (
        lambda: mounted("mount -t tmpfs tmpfs /sys"),
        "/sys is not mounted (no /sys/kernel/btf/vmlinux); mount it: 'sudo mount -t sysfs sysfs /sys'",
    ),
}


@pytest.fixture
def headwayd():
    """The program. None of these tests registers anything."""
    try:
        return find_headwayd()
    except UsageError as missing:
        needs.skip("bpf", str(missing))


@pytest.mark.parametrize("machine", AGENTS)
def test_headwayd_reports_what_the_machine_refuses(headwayd, tmp_path, machine):
    """The file of an earlier agent is kept, too."""
    tmp_path.chmod(0o777)
    shadow = tmp_path / "shadow.jsonl"
    shadow.write_text("earlier\n")
    shadow.chmod(0o666)
    within, expected = AGENTS[machine]
    run = [headwayd, "run", "--policy", "owl", "--socket", str(tmp_path / "socket"), "--shadow", str(shadow)]
    assert refused([*within(), *run]) == f"headwayd: {expected}"
    assert {file.name for file in tmp_path.iterdir()} == {"shadow.jsonl"}
    assert shadow.read_text() == "earlier\n"


@pytest.mark.usefixtures("headwayd")
def test_a_bench_reports_the_error_of_its_headwayd(tmp_path):
    scenario = tmp_path / "one.toml"
    scenario.write_text(SCENARIO)
    bench = [*HEADWAY, "bench", "--schemes", "owl", "--scenario", str(scenario), "--runs", "1", "--seconds", "1"]
    bench += ["--world", "kernel", "--out", str(tmp_path / "out")]
    line = refused([*filtered("bpf"), *bench], code=2)
    assert line.startswith("headway: scenario 'one': headwayd: cannot register hw_")
    assert line.endswith(f"as in a container; {TO_CONTAINER} --security-opt seccomp=unconfined")
    assert not (tmp_path / "out").exists()


def test_a_socket_in_a_folder_without_write_permission(headwayd, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "roots").mkdir(mode=0o755)
    socket = tmp_path / "roots" / "socket"
    line = refused([*NOBODY, headwayd, "run", "--policy", "owl", "--socket", str(socket)], code=2)
    assert line == (
        f"headwayd: --socket {socket}: Permission denied (os error 13); run it as root (sudo), or give a --socket "
        "where you may make one"
    )


def test_cgroups_that_take_no_program(headwayd, tmp_path):
    run = [headwayd, "run", "--policy", "owl", "--socket", str(tmp_path / "socket"), "--cgroup"]
    of_version_1 = f"mkdir {tmp_path}/one; mount -t cgroup -o none,name=headway-test none {tmp_path}/one"
    for name, prepare, why in [
        ("nowhere", "true", "there is no such cgroup"),
        (".", "true", "it is not a cgroup's folder"),
        ("one", of_version_1, "it is of cgroup version 1"),
    ]:
        if name == "one" and "cgroup\n" not in Path("/proc/filesystems").read_text().expandtabs(1):
            needs.skip("cgroups", "this kernel has no cgroups of version 1")
        line = refused([*mounted(prepare), *run, str(tmp_path / name)], code=2)
        assert line.startswith(f"headwayd: --cgroup {tmp_path / name}: {why}; "), line
        assert V2 in line or "version 2 is not mounted here: 'sudo mount -t cgroup2 none /mnt'" in line
    assert not (tmp_path / "socket").exists()


@pytest.mark.usefixtures("bpf")
def test_a_default_that_cannot_be_set(headwayd, tmp_path):
    """The controller is registered by then, and not any more afterwards."""
    within = mounted("mount --bind /proc/sys /proc/sys; mount -o remount,ro,bind /proc/sys")
    run = [headwayd, "run", "--policy", "owl", "--name", "hw_readonly", "--socket", str(tmp_path / "socket")]
    line = refused([*within, *run, "--default"])
    assert line == (
        "headwayd: --default: cannot set /proc/sys/net/ipv4/tcp_congestion_control: /proc/sys is mounted "
        f"read-only, as in a container; {TO_CONTAINER} --security-opt systempaths=unconfined"
    )
    assert list(tmp_path.iterdir()) == []
    until(lambda: "hw_readonly" not in daemon.registered())


@pytest.mark.parametrize(
    "code",
    [
        "from headway.tune.namespaces import Namespaces; Namespaces()",
        "from headway.netwatch.netlink import Interfaces; Interfaces('/proc/self/ns/net')",
    ],
)
def test_namespaces_of_others_need_a_capability(code):
    said = f"from headway._native import RunError\ntry:\n    {code}\nexcept RunError as why:\n    print(why)"
    done = subprocess.run(
        [*POWERLESS, sys.executable, "-c", said], capture_output=True, text=True, check=True, timeout=HANGS_S
    )
    assert re.fullmatch(
        r"network namespaces?( /proc/self/ns/net)?: this root has no CAP_SYS_ADMIN, as in a container; "
        f"{re.escape(TO_CONTAINER)} --cap-add SYS_ADMIN\n",
        done.stdout,
    ), done


def test_system_tests_make_a_tun_device_if_there_is_none():
    look = "import sys; sys.path.insert(0, sys.argv[1]); import enclosure; print(enclosure.refusal())"
    scripts = str(Path(enclosure.__file__).parent)
    done = subprocess.run(
        [*tun("true"), sys.executable, "-c", look, scripts], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("None\n", "")
