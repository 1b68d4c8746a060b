"""Why a control plane refuses a request: a kind for each error code of BMv2's services, and the error with it."""

from __future__ import annotations

from enum import StrEnum

from inakit.topo.errors import InputError


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
