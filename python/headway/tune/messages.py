"""Messages between hosts and agents, and between agents.

Messages are MessagePack, checked field by field.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Annotated

import msgspec
from msgspec import Meta

SCHEMA = 1
"""Rises when a field changes its meaning; a reader refuses any other."""

LARGEST = 1 << 20
"""The most bytes of a message."""

MOST_FLOWS = 2048
"""The most flows of one message. With the longest ids they fit into `LARGEST`."""

Name = Annotated[str, Meta(min_length=1, max_length=128)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Seconds = Annotated[float, Meta(gt=0, le=1e6)]
Columns = Annotated[list[Name], Meta(max_length=64)]
Values = Annotated[list[float | None], Meta(max_length=64)]
Flows = Annotated[dict[Name, Values], Meta(max_length=MOST_FLOWS)]
Values32 = Annotated[list[float], Meta(max_length=65536)]


class Message(msgspec.Struct, tag_field="type", kw_only=True, frozen=True):
    """The fields of all messages; `schema` is the version of the fields."""

    schema: int = SCHEMA


class Hello(Message, tag="hello", frozen=True):
    """The first message of a host, or of a neighbour, on each connection."""

    name: Name
    """The sender's name, the same after a restart."""
    instance: Name
    """A new text after each start. Each instance counts its messages from 1."""
    controller: str = ""
    """The controller whose flows are tuned."""
    t1_s: Seconds = 0.02
    t2_s: Seconds = 1.0
    parameters: Annotated[list[Name], Meta(max_length=64)] = []
    """What the host can set."""


class Stats(Message, tag="stats", frozen=True):
    """A host's flows in the interval that has ended: a row for each."""

    host: Name
    instance: Name
    sequence: Count
    """Counts the messages of this kind from 1."""
    columns: Columns
    flows: Flows
    """Values by the flow's id, in the order of `columns`; None for an unknown value."""


class Settings(Message, tag="settings", frozen=True):
    """An agent's answer to `Stats`."""

    sequence: Count
    """The sequence number of the `Stats` that it answers."""
    policy: Annotated[str, Meta(max_length=256)]
    """The id of the model that decided."""
    flows: Annotated[
        dict[Name, Annotated[dict[Name, float], Meta(max_length=64)]],
        Meta(max_length=MOST_FLOWS),
    ]
    """Parameters and their values by the flow's id, or `*` for all flows; times are in seconds."""


class Heartbeat(Message, tag="heartbeat", frozen=True):
    """A host asks whether its agent is there; the agent answers with the same."""

    sequence: Count


class Goodbye(Message, tag="goodbye", frozen=True):
    """The sender ends on purpose."""

    name: Name
    reason: Annotated[str, Meta(max_length=256)] = ""


class Error(Message, tag="error", frozen=True):
    """A message that cannot be answered, and why."""

    code: Name
    """refused, policy, schema, unknown or invalid."""
    text: Annotated[str, Meta(max_length=1024)]
    sequence: Count = 0


class Observations(Message, tag="observations", frozen=True):
    """Rows that an agent shares with its neighbours: shared sensation (section III-A)."""

    agent: Name
    instance: Name
    sequence: Count
    columns: Columns
    flows: Flows


class Step(msgspec.Struct, kw_only=True, frozen=True):
    """A step of a trajectory: [state, action, reward]."""

    state: Values32
    action: Annotated[list[float], Meta(max_length=64)]
    """The settings, in the order of the agent's parameters."""
    reward: float
    log_prob: float
    """Log-probability of the action, by the policy that drew it."""


class Episode(Message, tag="episode", frozen=True):
    """A trajectory that an agent shares with its neighbours."""

    agent: Name
    instance: Name
    sequence: Count
    policy: Annotated[str, Meta(max_length=256)]
    """The policy that acted."""
    agent_hash: Annotated[str, Meta(max_length=128)]
    """Hash of features and actions. An agent with another hash cannot use it."""
    steps: Annotated[list[Step], Meta(max_length=4096)]
    """The steps of one flow, one after another."""
    after: Values32
    """The state after the last."""


class Weights(Message, tag="weights", frozen=True):
    """A learned policy that an agent shares with its neighbours: tensors by PyTorch's names."""

    agent: Name
    instance: Name
    sequence: Count
    policy: Annotated[str, Meta(max_length=256)]
    agent_hash: Annotated[str, Meta(max_length=128)]
    """Hash of features and actions. An agent with another hash cannot use it."""
    safetensors: Annotated[bytes, Meta(max_length=LARGEST)]


AnyMessage = Hello | Stats | Settings | Heartbeat | Goodbye | Error | Observations | Episode | Weights

_encoder = msgspec.msgpack.Encoder()


class _Head(msgspec.Struct):
    """The fields of every version."""

    type: str
    schema: int


class Refused(Exception):  # noqa: N818
    """A malformed message, with the reason in a word: large, garbage, schema, type or invalid."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def encode(message: AnyMessage) -> bytes:
    """Returns the message's bytes. Raises ValueError beyond `LARGEST`."""
    data: bytes = _encoder.encode(message)
    if len(data) > LARGEST:
        raise ValueError(f"a message of {len(data)} bytes, must be at most {LARGEST}")
    return data


class Reader:
    """Decodes messages, and counts by reason those that it refused."""

    def __init__(self) -> None:
        self.refused: Counter[str] = Counter()
        self._head = msgspec.msgpack.Decoder(_Head)
        self._any: msgspec.msgpack.Decoder[AnyMessage] = msgspec.msgpack.Decoder(AnyMessage)
        self._types = {str(kind.__struct_config__.tag) for kind in AnyMessage.__args__}

    def decode(self, data: bytes) -> AnyMessage:
        """Returns the message. Raises Refused, and never another error, whatever the bytes."""
        try:
            return self._decode(data)
        except Refused as refused:
            self.refused[refused.reason] += 1
            raise

    def _decode(self, data: bytes) -> AnyMessage:
        if len(data) > LARGEST:
            raise Refused("large", f"{len(data)} bytes, must be at most {LARGEST}")
        try:
            head = self._head.decode(data)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            raise Refused("garbage", "not a message of Headway's") from None
        if head.schema != SCHEMA:
            raise Refused("schema", f"schema {head.schema}, must be {SCHEMA}; update the older side")
        if head.type not in self._types:
            raise Refused("type", f"type '{head.type[:32]}' is not known")
        try:
            message = self._any.decode(data)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise Refused("invalid", str(error)) from None
        _check(message)
        return message


def _check(message: AnyMessage) -> None:
    """Checks what field types do not say."""
    if isinstance(message, Stats | Observations):
        wanted = len(message.columns)
        for flow, values in message.flows.items():
            if len(values) != wanted:
                raise Refused("invalid", f"flow {flow}: {len(values)} values, must be {wanted}")
            if not all(value is None or math.isfinite(value) for value in values):
                raise Refused("invalid", f"flow {flow}: a value is not finite")
    elif isinstance(message, Settings):
        for flow, settings in message.flows.items():
            if not all(map(math.isfinite, settings.values())):
                raise Refused("invalid", f"flow {flow}: a setting is not finite")


def rows_of(message: Stats | Observations) -> dict[str, dict[str, float | None]]:
    """Returns the rows by flow, with their features by name."""
    return {flow: dict(zip(message.columns, values, strict=True)) for flow, values in message.flows.items()}
