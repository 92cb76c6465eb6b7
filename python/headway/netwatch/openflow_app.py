"""The process that os-ken is in: asks each known switch for its ports' counters once a period.

It is a controller in the slave's role (OpenFlow 1.3.5, 6.3.6): it reads, changes nothing, and no
packet comes. A switch accepts that role only with the generation of its last election of a master,
so the app first asks for it. A slow switch delays only itself: each has threads of its own, and one
request under way at most.

os-ken calls an app's handlers in one thread, which a queue of 128 events feeds. Closing a
connection waits for room in that queue, and sending waits for room in the switch's queue. So
neither handlers nor the thread that asks all switches do them: each close and each send has a
thread of its own.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any

# Before os-ken is imported, so that it uses Python's own threads.
os.environ["OSKEN_HUB_TYPE"] = "native"

from os_ken import cfg
from os_ken.base.app_manager import AppManager, OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.event import EventBase
from os_ken.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib import hub
from os_ken.ofproto import ofproto_v1_3

MOST_PORTS = 4096
GIVES_UP_AFTER_S = 15.0
"""A switch that has not answered for this time is disconnected; it may come again."""
UNDEFINED = (1 << 64) - 1
"""A switch's generation if there was no election yet."""
_WRITING = threading.Lock()


class Alive(EventBase):
    """An event that comes once a period through the queue, and shows that the app's threads run."""


@dataclass
class ConnectedSwitch:
    """A connected switch, and the requests that it was sent."""

    datapath: Any
    xid: int | None = None
    asked_s: float = 0.0
    answered_s: float = field(default_factory=time.monotonic)
    ports: list[list[int]] = field(default_factory=list)
    role: int = ofproto_v1_3.OFPCR_ROLE_NOCHANGE
    """The role in the last request about the role."""
    role_xid: int | None = None
    """The id of that request, until it is answered."""
    is_stale: bool = False
    """Whether an election came between our two requests."""


class PortCounters(OSKenApp):
    """Asks switches, and writes their answers on standard output."""

    OFP_VERSIONS = (ofproto_v1_3.OFP_VERSION,)
    period_s = 1.0
    datapaths: frozenset[int] = frozenset()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Starts asking."""
        super().__init__(*args, **kwargs)
        self._connected: dict[int, ConnectedSwitch] = {}
        self._lock = threading.Lock()
        self.register_handler(Alive, lambda _: _say(what="alive"))
        hub.spawn(self._ask_forever)

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def on_state(self, event: Any) -> None:
        """Handles a switch that has come or gone."""
        datapath = event.datapath
        if datapath.id is None:
            return
        with self._lock:
            one = self._connected.get(datapath.id)
            if event.state == DEAD_DISPATCHER:
                if one is not None and one.datapath is datapath:
                    del self._connected[datapath.id]
                    _say(what="disconnected", datapath=datapath.id)
                return
            if datapath.id not in self.datapaths:
                _say(what="stranger", datapath=datapath.id)
                hub.spawn(datapath.close)
                return
            # A switch that has restarted comes before its old connection is missed.
            self._connected[datapath.id] = new = ConnectedSwitch(datapath)
            request = self._about_role(new, datapath.ofproto.OFPCR_ROLE_NOCHANGE, 0)
        if one is not None:
            hub.spawn(one.datapath.close)
        _say(what="connected", datapath=datapath.id)
        hub.spawn(datapath.send_msg, request)

    @set_ev_cls(ofp_event.EventOFPRoleReply, MAIN_DISPATCHER)
    def on_role(self, event: Any) -> None:
        """Handles an answer about the role: the first has the generation, the second the role."""
        message = event.msg
        ofproto, request = message.datapath.ofproto, None
        with self._lock:
            if (one := self._of_role(message)) is None:
                return
            if one.role == ofproto.OFPCR_ROLE_NOCHANGE:
                generation = 0 if message.generation_id == UNDEFINED else message.generation_id
                request = self._about_role(one, ofproto.OFPCR_ROLE_SLAVE, generation)
        if request is not None:
            hub.spawn(message.datapath.send_msg, request)
        elif message.role != ofproto.OFPCR_ROLE_SLAVE:
            _say(what="role refused", datapath=message.datapath.id)

    @set_ev_cls(ofp_event.EventOFPErrorMsg, MAIN_DISPATCHER)
    def on_error(self, event: Any) -> None:
        """Handles a refusal of the role; the switch is read all the same."""
        message = event.msg
        ofproto = message.datapath.ofproto
        stale = (ofproto.OFPET_ROLE_REQUEST_FAILED, ofproto.OFPRRFC_STALE)
        with self._lock:
            if (one := self._of_role(message)) is None:
                return
            one.is_stale = (message.type, message.code) == stale
        _say(what="role refused", datapath=message.datapath.id)

    def _of_role(self, message: Any) -> ConnectedSwitch | None:
        """Returns the switch whose request about the role this answers."""
        one = self._connected.get(message.datapath.id)
        if one is None or one.datapath is not message.datapath or message.xid != one.role_xid:
            return None
        one.role_xid = None
        return one

    def _about_role(self, one: ConnectedSwitch, role: int, generation: int) -> Any:
        """Sends a request about the role."""
        request = one.datapath.ofproto_parser.OFPRoleRequest(one.datapath, role, generation)
        one.datapath.set_xid(request)
        one.role, one.role_xid, one.is_stale = role, request.xid, False
        return request

    @set_ev_cls(ofp_event.EventOFPPortStatsReply, MAIN_DISPATCHER)
    def on_ports(self, event: Any) -> None:
        """Handles a part of an answer, or all of it."""
        message = event.msg
        now_s = time.monotonic()
        with self._lock:
            one = self._connected.get(message.datapath.id)
            if one is None or one.datapath is not message.datapath or message.xid != one.xid:
                _say(what="unasked", datapath=message.datapath.id)
                return
            most = message.datapath.ofproto.OFPP_MAX
            one.ports += [
                [
                    *(p.port_no, p.rx_packets, p.rx_bytes, p.tx_packets, p.tx_bytes),
                    p.duration_sec * 1_000_000_000 + p.duration_nsec,
                ]
                for p in message.body
                # The switch's own port is not a link.
                if p.port_no <= most
            ]
            if len(one.ports) > MOST_PORTS:
                hub.spawn(message.datapath.close)
                return
            if message.flags & message.datapath.ofproto.OFPMPF_REPLY_MORE:
                return
            ports, one.ports, one.xid = one.ports, [], None
            one.answered_s = now_s
            asked_s = one.asked_s
        _say(what="ports", datapath=message.datapath.id, asked_s=asked_s, took_s=now_s - asked_s, ports=ports)

    def _ask_forever(self) -> None:
        due_s = time.monotonic()
        while True:
            self.send_event(self.name, Alive())
            with self._lock:
                all_of_them = list(self._connected.items())
            for number, one in all_of_them:
                self._ask(number, one)
            due_s = max(due_s + self.period_s, time.monotonic())
            time.sleep(max(due_s - time.monotonic(), 0.0))

    def _ask(self, number: int, one: ConnectedSwitch) -> None:
        datapath = one.datapath
        now_s = time.monotonic()
        if one.is_stale:
            with self._lock:
                about_role = self._about_role(one, datapath.ofproto.OFPCR_ROLE_NOCHANGE, 0)
            hub.spawn(datapath.send_msg, about_role)
        if one.xid is not None:
            # The older request is still under way, so no further one is sent.
            _say(what="timeout", datapath=number)
            if now_s - one.answered_s > GIVES_UP_AFTER_S:
                hub.spawn(datapath.close)
                # A switch that hangs does not notice that its connection is closed.
                datapath.socket.close()
            return
        request = datapath.ofproto_parser.OFPPortStatsRequest(datapath, 0, datapath.ofproto.OFPP_ANY)
        with self._lock:
            datapath.set_xid(request)
            one.xid, one.asked_s, one.ports = request.xid, now_s, []
        hub.spawn(datapath.send_msg, request)


def _say(**said: Any) -> None:
    line = json.dumps(said).encode() + b"\n"
    try:
        # A full pipe takes a line in parts.
        with _WRITING:
            while line:
                line = line[os.write(1, line) :]
    except OSError:
        os._exit(1)


def _end_with_parent() -> None:
    # A thread that waits in a buffered read would abort the interpreter if `main` fails.
    while os.read(0, 4096):
        pass
    # os-ken's threads never end.
    os._exit(0)


def main() -> None:
    """Runs until standard input closes. The argument has address, switches and period as JSON."""
    asked = json.loads(sys.argv[1])
    PortCounters.period_s = asked["period_s"]
    PortCounters.datapaths = frozenset(asked["datapaths"])
    threading.Thread(target=_end_with_parent, daemon=True).start()
    host, port = asked["listen"]
    options = [f"--ofp-listen-host={host}"]
    if asked["key"]:
        options += [f"--ofp-ssl-listen-port={port}", f"--ctl-privkey={asked['key']}"]
        options += [f"--ctl-cert={asked['cert']}", f"--ca-certs={asked['ca']}"]
    else:
        options.append(f"--ofp-tcp-listen-port={port}")
    cfg.CONF(args=options, project="os_ken")
    cfg.CONF.set_override("echo_request_interval", 5.0)
    cfg.CONF.set_override("maximum_unreplied_echo_requests", 3)
    manager = AppManager.get_instance()
    # By its module's name: os-ken finds the app there.
    manager.load_apps(["os_ken.controller.ofp_handler", __name__])
    contexts = manager.create_contexts()
    hub.joinall(manager.instantiate_apps(**contexts))
