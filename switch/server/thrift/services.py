"""The Thrift services of a switch: requests of `switch/control/`, and those for the switch as a whole.

The interface is `bmv2.thrift`; its argument names are the parameter names of the requests. Resources of a program have
the numbers that BMv2 gives them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import md5
from pathlib import Path
from time import time_ns
from typing import Any

import thriftpy2

from inakit.switch.control.codecs import Call
from inakit.switch.control.control_plane import ARGUMENTS, CALLS, SESSION_CALLS, ControlPlane
from inakit.switch.control.requests import RefusalKind, Refused
from inakit.switch.server.served_switch import ServedSwitch
from inakit.topo.errors import UnsupportedError


@dataclass(frozen=True)
class SwitchIdentity:
    """The number of a switch, its Thrift port, and the address of its notifications."""

    device_id: int
    thrift_port: int
    notifications: str


class Services:
    """Carries out the functions of all services, for one switch."""

    def __init__(self, switch: ServedSwitch, identity: SwitchIdentity) -> None:
        self.switch, self.identity = switch, identity

    def call(self, service: str, function: str, arguments: Mapping[str, Any]) -> Any:
        """Carry out a function. `arguments` are by name; omitted ones are 0 or empty.

        Tables and arrays are those of the program that was loaded last, even before it runs. Groups and sessions
        outlive programs.
        """
        kind, call = FUNCTIONS[service][function]
        if kind == SWITCH:
            return call.request(self, **arguments)
        control: ControlPlane = self.switch.newest.control if service == "standard" else self.switch.control
        given = dict(call.given)
        for name, value in arguments.items():
            given |= ARGUMENTS[name](value, control, given) if name in ARGUMENTS else {name: value}
        return call.answer(description(), call.request(getattr(control, kind), **given))

    @property
    def json(self) -> str:
        """The JSON of the program that was loaded last; empty before the first."""
        loaded = self.switch.pending or self.switch.running
        return self.switch.newest.json if loaded else ""

    def ports(self) -> list[Any]:
        """All ports with their interfaces."""
        ports = self.switch.ports
        return [description().PortInfo(port, name, ports.is_up(port), {}) for port, name in sorted(ports.all().items())]

    def info(self) -> Any:
        known = self.identity
        return description().SwitchInfo(known.device_id, known.thrift_port, known.notifications)

    def serialize(self) -> bytes:
        """Refuse: BMv2's answer is not text, so its own clients cannot read it."""
        raise UnsupportedError("the state cannot be serialized: read tables, profiles and meters one by one")

    def resource_id(self, type: int, name: str) -> int:
        """The compiler's number of a table, an action profile, an array or a learning list."""
        known = resource_ids(self.json)
        if type not in known:
            raise Refused(RefusalKind.INVALID_RESOURCE_TYPE, f"no kind {type}: kinds are 0 to {max(known)}")
        if name not in known[type]:
            raise Refused(RefusalKind.INVALID_RESOURCE_NAME, f"nothing of kind {type} is called '{name}'")
        return known[type][name]

    def set_depth(self, packets: int, port: int | None = None, priority: int | None = None) -> int:
        """Set the depth of queues, in packets; return 0."""
        self.switch.queues.set_depth(packets, port, priority)
        return 0

    def set_rate(self, rate_pps: int, port: int | None = None, priority: int | None = None) -> int:
        """Set the rate of queues, in packets/s; return 0."""
        self.switch.queues.set_rate(rate_pps, port, priority)
        return 0


SWITCH = "switch"
"""The kind of functions for the whole switch."""

OF_SWITCH: Mapping[str, Callable[..., object]] = {
    "bm_dev_mgr_add_port": lambda services, iface_name, port, pcap: services.switch.ports.add(port, iface_name),  # noqa: ARG005
    "bm_dev_mgr_remove_port": lambda services, port: services.switch.ports.remove(port),
    "bm_dev_mgr_show_ports": Services.ports,
    "bm_mgmt_get_info": Services.info,
    "bm_load_new_config": lambda services, config: services.switch.load(config),
    "bm_swap_configs": lambda services: services.switch.swap(fresh=False),
    "bm_reset_state": lambda services: services.switch.newest.control.reset_state(),
    "bm_get_config": lambda services: services.json.encode(),
    "bm_get_config_md5": lambda services: md5(services.json.encode(), usedforsecurity=False).digest(),
    "bm_serialize_state": Services.serialize,
    "bm_get_id_from_name": Services.resource_id,
}

OF_SIMPLE_SWITCH: Mapping[str, Callable[..., object]] = {
    "set_egress_priority_queue_depth": Services.set_depth,
    "set_egress_queue_depth": Services.set_depth,
    "set_all_egress_queue_depths": Services.set_depth,
    "set_egress_priority_queue_rate": Services.set_rate,
    "set_egress_queue_rate": Services.set_rate,
    "set_all_egress_queue_rates": Services.set_rate,
    "get_time_elapsed_us": lambda services: services.switch.now_us(),
    "get_time_since_epoch_us": lambda _: time_ns() // 1000,
}

REPLICATION = {name: each for name, each in CALLS.items() if each[0] == "replication"}
FUNCTIONS: Mapping[str, Mapping[str, tuple[str, Call]]] = {
    "standard": {
        **{name: each for name, each in CALLS.items() if name not in REPLICATION},
        **{name: (SWITCH, Call(request)) for name, request in OF_SWITCH.items()},
    },
    "simple_pre": REPLICATION,
    "simple_pre_lag": REPLICATION,
    "simple_switch": {**SESSION_CALLS, **{name: (SWITCH, Call(request)) for name, request in OF_SIMPLE_SWITCH.items()}},
}
"""The functions of each service by the clients' names, with the kind of entities that each concerns."""


DESCRIPTION = Path(__file__).with_name("bmv2.thrift")


@cache
def description() -> Any:
    """The parsed interface description; its attributes have the names in it."""
    return thriftpy2.load(str(DESCRIPTION), module_name="inakit_bmv2_thrift")


TABLE, PROFILE, COUNTER, METER, REGISTER, LEARNING_LIST = range(6)
"""The kinds of resources in the clients' numbering."""

ARRAYS = {COUNTER: "counter_arrays", METER: "meter_arrays", REGISTER: "register_arrays", LEARNING_LIST: "learn_lists"}
OF_PIPELINES = {TABLE: "tables", PROFILE: "action_profiles"}
"""The place of each kind in a program's JSON."""


@lru_cache(maxsize=2)
def resource_ids(program: str) -> dict[int, dict[str, int]]:
    """The numbers of resources in the JSON of a program, by kind and name."""
    document = json.loads(program)

    def numbers(holders: list[Any], key: str) -> dict[str, int]:
        return {each["name"]: each["id"] for holder in holders for each in holder.get(key, [])}

    found = {kind: numbers([document], key) for kind, key in ARRAYS.items()}
    return found | {kind: numbers(document["pipelines"], key) for kind, key in OF_PIPELINES.items()}
