"""Messages: written ones are read back, and malformed ones are refused and counted."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.tune import messages
from headway.tune.messages import Reader, Refused, encode
from headway.tune.table import COLUMNS

EACH = [
    messages.Hello(name="h", instance="1", controller="headway_bbr", t1_s=0.02, t2_s=1.0, parameters=["a"]),
    messages.Stats(host="h", instance="1", sequence=7, columns=["rtt_ms", "loss"], flows={"f": [1.5, None]}),
    messages.Settings(
        sequence=7, policy="p-v1@00", flows={"f": {"rtprop_window": 2.0}, "*": {"btlbw_window": 4.0}}
    ),
    messages.Heartbeat(sequence=1),
    messages.Goodbye(name="h", reason="ends"),
    messages.Error(code="policy", text="no"),
    messages.Observations(agent="a", instance="1", sequence=1, columns=["rtt_ms"], flows={"h/f": [2.0]}),
    messages.Episode(
        agent="a",
        instance="1",
        sequence=1,
        policy="p",
        agent_hash="00",
        steps=[messages.Step(state=[1.0], action=[0.0], reward=0.4, log_prob=-0.7)],
        after=[0.5],
    ),
    messages.Weights(agent="a", instance="1", sequence=1, policy="p", agent_hash="00", safetensors=b"\0" * 9),
]


@pytest.mark.parametrize("message", EACH, ids=lambda message: type(message).__name__)
def test_an_encoded_message_is_decoded_unchanged(message):
    assert Reader().decode(encode(message)) == message


@pytest.mark.parametrize("message", EACH, ids=lambda message: type(message).__name__)
def test_another_schema_is_refused_and_named(message):
    reader = Reader()
    for schema in (0, messages.SCHEMA + 1):
        other = msgspec.msgpack.decode(encode(message)) | {"schema": schema}
        with pytest.raises(Refused, match=f"schema {schema}, must be {messages.SCHEMA}"):
            reader.decode(msgspec.msgpack.encode(other))
    assert reader.refused == {"schema": 2}


@pytest.mark.parametrize(
    ("reason", "data"),
    [
        ("garbage", b""),
        ("garbage", b"\xc1"),
        ("garbage", b"GET / HTTP/1.1\r\n"),
        ("garbage", msgspec.msgpack.encode([1, 2])),
        ("garbage", msgspec.msgpack.encode({"type": "heartbeat"})),
        ("garbage", b"\x91" * 5000),
        ("large", b"\0" * (messages.LARGEST + 1)),
        ("type", msgspec.msgpack.encode({"type": "shutdown", "schema": 1})),
        ("invalid", msgspec.msgpack.encode({"type": "heartbeat", "schema": 1})),
        ("invalid", msgspec.msgpack.encode({"type": "heartbeat", "schema": 1, "sequence": -1})),
        ("invalid", msgspec.msgpack.encode({"type": "goodbye", "schema": 1, "name": "x" * 1000})),
        (
            "invalid",
            encode(messages.Stats(host="h", instance="1", sequence=1, columns=["a"], flows={"f": [1.0, 2.0]})),
        ),
        (
            "invalid",
            encode(messages.Stats(host="h", instance="1", sequence=1, columns=["a"], flows={"f": [math.nan]})),
        ),
        ("invalid", encode(messages.Settings(sequence=1, policy="p", flows={"f": {"a": math.inf}}))),
    ],
)
def test_malformed_messages_are_refused_with_a_reason(reason, data):
    reader = Reader()
    with pytest.raises(Refused):
        reader.decode(data)
    assert reader.refused == {reason: 1}


def test_fields_added_by_a_later_version_are_ignored():
    more = msgspec.msgpack.decode(encode(EACH[3])) | {"mood": "good"}
    assert Reader().decode(msgspec.msgpack.encode(more)) == EACH[3]


def test_the_maximum_number_of_flows_fits_into_a_message():
    flows = {f"{n:0128}": [1.0] * len(COLUMNS) for n in range(messages.MOST_FLOWS)}
    whole = messages.Stats(host="h" * 128, instance="1", sequence=1, columns=list(COLUMNS), flows=flows)
    assert Reader().decode(encode(whole)) == whole
    windows = {"rtprop_window": 2.0, "btlbw_window": 4.0}
    encode(messages.Settings(sequence=1, policy="p" * 256, flows=dict.fromkeys(flows, windows)))


def test_a_message_that_is_too_large_is_not_written():
    flows = {f"{n:0100}": [1.0] * 64 for n in range(2048)}
    with pytest.raises(ValueError, match="at most"):
        encode(messages.Stats(host="h", instance="1", sequence=1, columns=["c"] * 64, flows=flows))


@given(st.binary(max_size=300))
def test_random_bytes_do_not_crash_the_reader_of_messages(data):
    reader = Reader()
    reasons = []
    try:
        reader.decode(data)
    except Refused as refused:
        reasons.append(refused.reason)
    assert list(reader.refused) == reasons


def mangled(draw_from):
    return st.tuples(draw_from, st.integers(0, 10**6), st.binary(max_size=4), st.integers(0, 8))


@given(mangled(st.sampled_from(EACH)))
def test_damaged_messages_do_not_crash_the_reader(damage):
    message, where, by, cut = damage
    data = encode(message)
    at = where % len(data)
    data = data[:at] + by + data[at + cut :]
    reader = Reader()
    try:
        found = reader.decode(data)
    except Refused:
        assert sum(reader.refused.values()) == 1
    else:
        assert found.schema == messages.SCHEMA


scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=5)
values = st.recursive(
    scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=5), v, max_size=3)
)


@given(st.sampled_from(EACH), st.data())
def test_fields_of_another_type_do_not_crash_the_reader(message, data):
    plain = msgspec.msgpack.decode(encode(message))
    field = data.draw(st.sampled_from(sorted(plain)))
    plain[field] = data.draw(values)
    reader = Reader()
    try:
        reader.decode(msgspec.msgpack.encode(plain))
    except Refused:
        assert sum(reader.refused.values()) == 1
