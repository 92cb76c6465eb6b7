"""The REST API: an ASGI application that only reads, and the guard before it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import fastapi
from fastapi import FastAPI, HTTPException, Request
from pydantic import BaseModel
from starlette.responses import Response

from headway import __version__
from headway.from_toml import NAME
from headway.netwatch.limits import Rates, client_of
from headway.netwatch.metrics import Metrics
from headway.netwatch.stream import EventStream
from headway.netwatch.topology import is_loopback
from headway.netwatch.watch import Health, LinkState, PathState, Snapshot, SwitchState

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from headway.netwatch.stream import Broadcast
    from headway.netwatch.tokens import Tokens
    from headway.netwatch.watch import Watch

PATIENCE_S = 5.0
"""Time limit in s for an answer, until its client has taken it. Streams have limits of their
own."""
STREAM = "/v1/stream"


class Problem(BaseModel):
    """The answer to a request that failed."""

    detail: str


class Json(Response):
    """An answer that is JSON text already."""

    media_type = "application/json"


REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": text}
    for status, text in (
        (401, "No token, or an unknown one"),
        (413, "A request has no body here"),
        (421, "Without tokens the name asked for must be one of loopback"),
        (429, "Too many requests of this client; Retry-After says when"),
        (503, "Not in time"),
    )
}
Name = Annotated[str, fastapi.Path(pattern=f"^{NAME.pattern}$", max_length=64)]


@dataclass(frozen=True)
class Limits:
    """The limits of a client, and the tokens of those that may connect."""

    requests_a_second: float = 50.0
    burst: float = 100.0
    tokens: Tokens | None = None
    """The accepted tokens; None accepts every client on this machine."""


def make_app(watch: Watch, broadcast: Broadcast, limits: Limits) -> ASGIApp:
    """Makes the application behind its guard.

    It starts nothing: its owner publishes to `broadcast`.
    """
    responses: Counter[int] = Counter()
    app = FastAPI(
        title="headway netwatch",
        version=__version__,
        description="PNC, PNA and known share of paths (Sacco et al., INFOCOM 2021, section IV) from what switches"
        " count. docs/netwatch.md of Headway describes it.",
        # FastAPI's pages of documentation fetch scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        responses=REFUSALS,
    )
    _add_routes(app, watch, broadcast, Metrics(watch, broadcast, responses))
    plain = app.openapi

    def described() -> dict[str, Any]:
        schema = plain()
        if limits.tokens is not None:
            schema.setdefault("components", {})["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            schema["security"] = [{"token": []}]
        return schema

    app.openapi = described  # type: ignore[method-assign]
    return Guard(app, limits, responses)


def _add_routes(app: FastAPI, watch: Watch, broadcast: Broadcast, metrics: Metrics) -> None:
    @app.get("/v1/health", response_model=Health)
    async def health() -> Json:
        """Reports whether everything runs. It answers 200 when degraded, too."""
        return Json(json.dumps(asdict(watch.health())))

    @app.get("/v1/switches", response_model=list[SwitchState])
    async def switches() -> Json:
        """Returns all switches: state, age, counters."""
        return Json(json.dumps([asdict(switch) for switch in watch.switches()]))

    @app.get("/v1/links", response_model=list[LinkState])
    async def links() -> Json:
        """Returns all links, each direction, with the free share of their capacity."""
        return Json(json.dumps([asdict(link) for link in watch.links()]))

    @app.get("/v1/paths", response_model=Snapshot)
    async def paths() -> Json:
        """Returns all paths, as of the last snapshot; ages are as of now."""
        return Json(broadcast.snapshot() or json.dumps(asdict(watch.paths())))

    @app.get("/v1/paths/{name}", response_model=PathState, responses={404: {"model": Problem}})
    async def path(name: Name) -> Json:
        """Returns one path, as of the last snapshot; its age is as of now."""
        if name not in watch.topology.paths:
            raise HTTPException(404, "no such path; /v1/paths has all")
        if known := broadcast.path(name):
            return Json(known)
        found = next(one for one in watch.paths().paths if one.name == name)
        return Json(json.dumps(asdict(found)))

    @app.get(
        STREAM,
        status_code=200,
        response_class=EventStream,
        responses={
            200: {
                "description": "Server-sent events `paths`, each a snapshot as of /v1/paths; comments between",
                "content": {"text/event-stream": {"schema": {"type": "string"}}},
            }
        },
    )
    async def stream(request: Request) -> Response:
        """Sends every snapshot from now on, the last one first. A slow client misses some."""
        client = client_of(request.client.host if request.client else None)
        if not broadcast.has_room(client):
            raise HTTPException(429, "too many streams", headers={"Retry-After": "10"})
        return EventStream(broadcast, client)

    @app.get(
        "/metrics",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    async def prometheus() -> Response:
        """Returns the metrics for Prometheus."""
        return Response(metrics.text(), media_type="text/plain; version=1.0.0; charset=utf-8")


class Guard:
    """Checks rate, host, token, size and time of a request, in this order."""

    def __init__(self, app: ASGIApp, limits: Limits, responses: Counter[int]) -> None:
        """Wraps an application. It counts answers by status in `responses`."""
        self._app, self._tokens, self._responses = app, limits.tokens, responses
        self._rates = Rates(limits.requests_a_second, limits.burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles a request (ASGI)."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        began = False

        async def counted(message: Any) -> None:
            nonlocal began
            if message["type"] == "http.response.start":
                began = True
                self._responses[message["status"]] += 1
                message["headers"] = [*message.get("headers", []), (b"x-content-type-options", b"nosniff")]
            await send(message)

        if refusal := self._refusal(scope):
            await refusal(scope, receive, counted)
            return
        if scope["path"] == STREAM:
            await self._app(scope, receive, counted)
            return
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._app(scope, receive, counted)
        except TimeoutError:
            if not began:
                await _refused(503, "not in time")(scope, receive, counted)

    def _refusal(self, scope: Scope) -> Response | None:
        client = client_of(scope["client"][0] if scope.get("client") else None)
        # A client with many other requests must still be able to reopen its stream.
        which = f"{client} {STREAM}" if scope["path"] == STREAM else client
        if wait_s := self._rates.wait_s(which):
            return _refused(429, "too many requests", {"Retry-After": str(int(wait_s) + 1)})
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        if self._tokens is None:
            # Otherwise a web page from anywhere, whose host name resolves to this address, could
            # read the answer in a browser.
            if not is_loopback(_host(headers.get(b"host", ""))):
                return _refused(421, "this name is not one of loopback")
        else:
            scheme, _, token = headers.get(b"authorization", "").partition(" ")
            if scheme.lower() != "bearer" or self._tokens.who(token.strip()) is None:
                return _refused(401, "a token is needed", {"WWW-Authenticate": "Bearer"})
        if headers.get(b"content-length", "0") != "0" or b"transfer-encoding" in headers:
            return _refused(413, "a request has no body here", {"Connection": "close"})
        return None


def _refused(status: int, why: str, headers: dict[str, str] | None = None) -> Response:
    return Json(json.dumps({"detail": why}), status, headers)


def _host(text: str) -> str:
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0]
