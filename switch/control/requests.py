"""What the parts of a control plane share: refusals, one lock, handles, and what is told of entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from heapq import heappop, heappush
from threading import RLock
from typing import Concatenate, Generic, ParamSpec, TypeVar

from inakit.switch.control.data_plane import DataPlane
from inakit.switch.entries import Entry
from inakit.topo.errors import InputError, UnsupportedError


class RefusalKind(StrEnum):
    """What is wrong with a request, as `group.code`, both as BMv2's services name them.

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
    def group(self) -> str:
        """The service's group of codes, such as `table`."""
        return self.value.partition(".")[0]

    @property
    def code(self) -> str:
        """The code within its group, such as `table_full`."""
        return self.value.partition(".")[2]


class Refused(InputError):  # noqa: N818, it is an answer
    """A request that the control plane does not carry out; the switch is as it was. `kind` says why."""

    def __init__(self, kind: RefusalKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


Params = ParamSpec("Params")
Answer = TypeVar("Answer")
Part = TypeVar("Part", bound="Control")


class Control:
    """A part of a control plane. Requests of several threads are carried out one after the other.

    Where the data plane cannot do what a request asks for, `fall_back` may provide another that can. A `retired`
    control plane refuses every request.
    """

    def __init__(self, data_plane: DataPlane) -> None:
        self.data_plane = data_plane
        self.program = data_plane.program
        self.lock = RLock()
        self.fall_back: Callable[[UnsupportedError], object] | None = None
        self.retired = False


def locked(
    request: Callable[Concatenate[Part, Params], Answer],
) -> Callable[Concatenate[Part, Params], Answer]:
    """The request, which waits until no other is being carried out."""

    @wraps(request)
    def alone(self: Part, /, *args: Params.args, **kwargs: Params.kwargs) -> Answer:
        with self.lock:
            if self.retired:
                raise Refused(RefusalKind.TABLE_ERROR, "another program runs by now: ask again")
            try:
                return request(self, *args, **kwargs)
            except UnsupportedError as error:
                if self.fall_back is None:
                    raise
                self.fall_back(error)
                return request(self, *args, **kwargs)

    return alone


VERSION_SHIFT = 24
INDEX = (1 << VERSION_SHIFT) - 1
VERSIONS = 1 << 8
"""An entry's handle has its index in the lower 24 bits, and above them how often the index was freed."""

Held = TypeVar("Held")


class Handles(Generic[Held]):
    """Things by their handles, each the lowest number that is free."""

    def __init__(self) -> None:
        self._held: dict[int, Held] = {}
        self._free: list[int] = []

    def take(self, held: Held) -> int:
        """Keep `held`, and return its handle."""
        handle = heappop(self._free) if self._free else len(self._held)
        self._held[handle] = held
        return handle

    def release(self, handle: int) -> None:
        """Forget what a handle stands for."""
        del self._held[handle]
        heappush(self._free, handle)

    def get(self, handle: int) -> Held | None:
        """What a handle stands for; None if it is free."""
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


def versioned(index: int, version: int) -> int:
    """The handle of an entry at `index`."""
    return version % VERSIONS << VERSION_SHIFT | index


def index_of(handle: int) -> int:
    """The index of an entry's handle."""
    return handle & INDEX


def version_of(handle: int) -> int:
    """The version of an entry's handle."""
    return handle >> VERSION_SHIFT & VERSIONS - 1


@dataclass(frozen=True)
class HeldEntry:
    """A table entry. `member` or `group` is set in a table with an action profile.

    `timeout_ms` is 0 for an entry that never expires; `idle_s` is None in a table whose entries have no timeouts.
    """

    handle: int
    entry: Entry
    timeout_ms: int = 0
    idle_s: float | None = None
    member: int | None = None
    group: int | None = None


@dataclass(frozen=True)
class HeldDefault:
    """What a table runs on a miss: an action, or a member or a group of its action profile."""

    action: str | None = None
    params: tuple[int, ...] = ()
    member: int | None = None
    group: int | None = None


@dataclass(frozen=True)
class HeldMember:
    """A member of an action profile."""

    handle: int
    action: str
    params: tuple[int, ...]


@dataclass(frozen=True)
class HeldGroup:
    """A group of an action profile; `members` are in ascending order."""

    handle: int
    members: tuple[int, ...]
