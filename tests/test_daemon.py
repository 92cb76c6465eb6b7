"""The behaviour of tests if headwayd does not serve. A stand-in gives the reason."""

import pytest

import daemon


@pytest.fixture
def headwayd(monkeypatch, tmp_path):
    """Puts this sh script in place of headwayd."""

    def put(script):
        program = tmp_path / "headwayd"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("HEADWAYD", str(program))

    return put


def test_a_headwayd_that_starts_is_usable(headwayd):
    headwayd("cat")
    assert daemon.refusal() is None


@pytest.mark.parametrize(
    "said",
    [
        "cannot register hw_try_1: not permitted: this user has no CAP_BPF; run it as root (sudo)",
        "headway_owl needs Linux 6.1 or newer; this is 5.15.2",
        "this kernel has no type information, BTF (no /sys/kernel/btf/vmlinux); use one with CONFIG_DEBUG_INFO_BTF",
        "cannot register hw_try_1: this kernel has no bpf(); use one with CONFIG_BPF_SYSCALL",
        "cannot register hw_try_1: the BPF compiler is off (net.core.bpf_jit_enable=0); turn it on",
    ],
)
def test_tests_are_skipped_if_the_machine_lacks_something(headwayd, said):
    headwayd(f"echo 'headwayd: {said}' >&2; exit 1")
    assert daemon.refusal() == f"headwayd: {said}"


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("headwayd: cannot register hw_try_1: the verifier, or a security module, refuses its program", 1),
        ("headwayd: cannot register hw_try_1: Invalid argument (os error 22)", 1),
        ("note: run with RUST_BACKTRACE=1 environment variable to display a backtrace; not permitted:", 101),
        ("", 139),
    ],
)
def test_a_faulty_headwayd_fails_the_tests(headwayd, said, code):
    headwayd(f"echo '{said}' >&2; exit {code}")
    with pytest.raises(RuntimeError, match="headwayd fails") as failed:
        daemon.refusal()
    assert (said or str(code)) in str(failed.value)


def test_a_headwayd_that_was_not_built_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADWAYD", str(tmp_path / "nowhere"))
    assert "nowhere" in (daemon.refusal() or "")
