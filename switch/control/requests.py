"""The base of control planes: refusals, one lock, and handles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import wraps
from heapq import heappop, heappush
from threading import RLock
from typing import Concatenate, Generic, ParamSpec, Protocol, TypeVar

from inakit.switch.control.data_plane import DataPlane
from inakit.topo.errors import InputError, UnsupportedError


class RefusalKind(StrEnum):
    """Reasons for refusals, as `group.code`, with the names of BMv2's services.

    A protocol maps the group to its exception and the code to its number.
    """

    TABLE_FULL = "table.table_full"
    INVALID_HANDLE = "table.invalid_handle"
    EXPIRED_HANDLE = "table.expired_handle"
    COUNTERS_DISABLED = "table.counters_disabled"
    METERS_DISABLED = "table.meters_disabled"
    AGEING_DISABLED = "table.ageing_disabled"
    INVALID_TABLE_NAME = "table.invalid_table_name"
    INVALID_ACTION_NAME = "table.invalid_action_name"
    WRONG_TABLE_TYPE = "table.wrong_table_type"
    INVALID_MBR_HANDLE = "table.invalid_mbr_handle"
    MBR_STILL_USED = "table.mbr_still_used"
    MBR_ALREADY_IN_GRP = "table.mbr_already_in_grp"
    MBR_NOT_IN_GRP = "table.mbr_not_in_grp"
    INVALID_GRP_HANDLE = "table.invalid_grp_handle"
    GRP_STILL_USED = "table.grp_still_used"
    EMPTY_GRP = "table.empty_grp"
    DUPLICATE_ENTRY = "table.duplicate_entry"
    BAD_MATCH_KEY = "table.bad_match_key"
    INVALID_METER_OPERATION = "table.invalid_meter_operation"
    DEFAULT_ACTION_IS_CONST = "table.default_action_is_const"
    DEFAULT_ENTRY_IS_CONST = "table.default_entry_is_const"
    NO_DEFAULT_ENTRY = "table.no_default_entry"
    INVALID_ACTION_PROFILE_NAME = "table.invalid_action_profile_name"
    NO_ACTION_PROFILE_SELECTION = "table.no_action_profile_selection"
    IMMUTABLE_TABLE_ENTRIES = "table.immutable_table_entries"
    BAD_ACTION_DATA = "table.bad_action_data"
    NO_TABLE_KEY = "table.no_table_key"
    TABLE_ERROR = "table.error"

    INVALID_COUNTER_NAME = "counter.invalid_counter_name"
    INVALID_COUNTER_INDEX = "counter.invalid_index"
    COUNTER_ERROR = "counter.error"

    INVALID_METER_NAME = "meter.invalid_meter_name"
    INVALID_METER_INDEX = "meter.invalid_index"
    BAD_RATES_LIST = "meter.bad_rates_list"
    INVALID_INFO_RATE_VALUE = "meter.invalid_info_rate_value"
    INVALID_BURST_SIZE_VALUE = "meter.invalid_burst_size_value"
    METER_ERROR = "meter.error"

    INVALID_REGISTER_NAME = "register.invalid_register_name"
    INVALID_REGISTER_INDEX = "register.invalid_index"
    REGISTER_ERROR = "register.error"

    INVALID_PARSE_VSET_NAME = "parse_vset.invalid_parse_vset_name"
    PARSE_VSET_ERROR = "parse_vset.error"

    INVALID_LIST_ID = "learn.invalid_list_id"
    INVALID_LIST_NAME = "learn.invalid_list_name"
    LEARN_ERROR = "learn.error"

    MC_TABLE_FULL = "mc.table_full"
    INVALID_MGID = "mc.invalid_mgid"
    INVALID_MGRP_HANDLE = "mc.invalid_mgrp_handle"
    INVALID_L1_HANDLE = "mc.invalid_l1_handle"
    MC_ERROR = "mc.error"

    SESSION_NOT_FOUND = "mirroring.session_not_found"

    CONFIG_SWAP_DISABLED = "swap.config_swap_disabled"
    ONGOING_SWAP = "swap.ongoing_swap"
    NO_ONGOING_SWAP = "swap.no_ongoing_swap"

    DEV_MGR_ERROR = "dev_mgr.error"

    INVALID_CALCULATION_NAME = "crc.invalid_calculation_name"
    WRONG_TYPE_CALCULATION = "crc.wrong_type_calculation"
    INVALID_CRC_CONFIG = "crc.invalid_config"

    INVALID_RESOURCE_TYPE = "id_lookup.invalid_resource_type"
    INVALID_RESOURCE_NAME = "id_lookup.invalid_resource_name"

    @property
    def code(self) -> str:
        """The code within its group, such as `table_full`."""
        return self.value.partition(".")[2]


class Refused(InputError):  # noqa: N818, it is an answer
    """The refusal of a request; a refused request changes nothing. `kind` is the reason."""

    def __init__(self, kind: RefusalKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


Params = ParamSpec("Params")
Answer = TypeVar("Answer")


class Core:
    """A data plane, with a lock that makes requests run one after the other.

    `fall_back` can replace the data plane if it does not support a request. A `retired` control plane refuses every
    request.
    """

    def __init__(self, data_plane: DataPlane) -> None:
        self.data_plane = data_plane
        self.program = data_plane.program
        self.lock = RLock()
        self.fall_back: Callable[[UnsupportedError], object] | None = None
        self.retired = False

    def carry_out(self, request: Callable[Params, Answer], *args: Params.args, **kwargs: Params.kwargs) -> Answer:
        """Carry out a request under the lock, and return its answer."""
        with self.lock:
            if self.retired:
                raise Refused(RefusalKind.TABLE_ERROR, "another program runs now: repeat the request")
            try:
                return request(*args, **kwargs)
            except UnsupportedError as error:
                if self.fall_back is None:
                    raise
                self.fall_back(error)
                return request(*args, **kwargs)


class Entities:
    """The entities of one kind in a control plane, and their requests."""

    def __init__(self, core: Core) -> None:
        self.core, self.program = core, core.program

    @property
    def data_plane(self) -> DataPlane:
        """The switch; it can be replaced."""
        return self.core.data_plane


Kind = TypeVar("Kind", bound=Entities)


def locked(request: Callable[Concatenate[Kind, Params], Answer]) -> Callable[Concatenate[Kind, Params], Answer]:
    """Make a request wait for the lock."""

    @wraps(request)
    def alone(self: Kind, /, *args: Params.args, **kwargs: Params.kwargs) -> Answer:
        return self.core.carry_out(request, self, *args, **kwargs)

    return alone


def unknown(what: str, name: object, known: Iterable[object], kind: RefusalKind) -> Refused:
    """The refusal of an unknown name or number."""
    shown = f"'{name}'" if isinstance(name, str) else name
    return Refused(kind, f"no {what} {shown}: there are {', '.join(map(str, known)) or 'none'}")


class Sized(Protocol):
    """An array of the program."""

    @property
    def size(self) -> int:
        """The number of its cells."""


Array = TypeVar("Array", bound=Sized)


def array_of(
    what: str, known: Mapping[str, Array], name: str, index: int, no_name: RefusalKind, no_index: RefusalKind
) -> Array:
    """The array of this name with a cell at `index`; else a refusal of one of these kinds."""
    if name not in known:
        raise unknown(what, name, known, no_name)
    if not 0 <= index < max(known[name].size, 1):
        raise Refused(no_index, f"{what} '{name}' has no cell {index}: it has {known[name].size}")
    return known[name]


Held = TypeVar("Held")


class Handles(Generic[Held]):
    """Numbers things: each new one gets the lowest free number as its handle."""

    def __init__(self) -> None:
        self._held: dict[int, Held] = {}
        self._free: list[int] = []

    def take(self, held: Held) -> int:
        handle = heappop(self._free) if self._free else len(self._held)
        self._held[handle] = held
        return handle

    def release(self, handle: int) -> None:
        del self._held[handle]
        heappush(self._free, handle)

    def get(self, handle: int) -> Held | None:
        return self._held.get(handle)

    def __getitem__(self, handle: int) -> Held:
        return self._held[handle]

    def __setitem__(self, handle: int, held: Held) -> None:
        self._held[handle] = held

    def __contains__(self, handle: int) -> bool:
        return handle in self._held

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._held))

    def __len__(self) -> int:
        return len(self._held)
