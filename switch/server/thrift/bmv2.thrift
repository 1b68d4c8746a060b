# The services of simple_switch's Thrift port, as its clients call them.
#
# On the wire stand only the names of services and functions, and the numbers and types of fields. So the two
# replication services share their types here, text that need not be UTF-8 is `binary`, and the arguments of functions
# have the names that they have in the requests of `switch/control/`.

typedef i32 Context    # the number of a pipeline of the switch: simple_switch has one, 0
typedef i32 Entry      # the handle of a table entry
typedef i32 Member     # the handle of a member of an action profile
typedef i32 Group      # the handle of a group of an action profile
typedef i32 Port
typedef list<binary> Parameters    # of an action, most significant byte first

# Why a request is refused

enum TableCode {
  TABLE_FULL = 1, INVALID_HANDLE = 2, EXPIRED_HANDLE = 3, COUNTERS_DISABLED = 4, METERS_DISABLED = 5,
  AGEING_DISABLED = 6, INVALID_TABLE_NAME = 7, INVALID_ACTION_NAME = 8, WRONG_TABLE_TYPE = 9,
  INVALID_MBR_HANDLE = 10, MBR_STILL_USED = 11, MBR_ALREADY_IN_GRP = 12, MBR_NOT_IN_GRP = 13,
  INVALID_GRP_HANDLE = 14, GRP_STILL_USED = 15, EMPTY_GRP = 16, DUPLICATE_ENTRY = 17, BAD_MATCH_KEY = 18,
  INVALID_METER_OPERATION = 19, DEFAULT_ACTION_IS_CONST = 20, DEFAULT_ENTRY_IS_CONST = 21, NO_DEFAULT_ENTRY = 22,
  INVALID_ACTION_PROFILE_NAME = 23, NO_ACTION_PROFILE_SELECTION = 24, IMMUTABLE_TABLE_ENTRIES = 25,
  BAD_ACTION_DATA = 26, NO_TABLE_KEY = 27, ERROR = 100
}

enum CounterCode { INVALID_COUNTER_NAME = 1, INVALID_INDEX = 2, ERROR = 3 }

enum MeterCode {
  INVALID_METER_NAME = 1, INVALID_INDEX = 2, BAD_RATES_LIST = 3, INVALID_INFO_RATE_VALUE = 4,
  INVALID_BURST_SIZE_VALUE = 5, ERROR = 6
}

enum RegisterCode { INVALID_REGISTER_NAME = 1, INVALID_INDEX = 2, ERROR = 3 }

enum ValueSetCode { INVALID_PARSE_VSET_NAME = 1, ERROR = 2 }

enum LearnCode { INVALID_LIST_ID = 1, INVALID_LIST_NAME = 2, ERROR = 3 }

enum SwapCode { CONFIG_SWAP_DISABLED = 1, ONGOING_SWAP = 2, NO_ONGOING_SWAP = 3 }

enum PortCode { ERROR = 1 }

enum CrcCode { INVALID_CALCULATION_NAME = 1, WRONG_TYPE_CALCULATION = 2, INVALID_CONFIG = 3 }

enum ToeplitzCode { INVALID_CALCULATION_NAME = 1, WRONG_TYPE_CALCULATION = 2, INVALID_KEY = 3 }

enum LookupCode { INVALID_RESOURCE_TYPE = 0, INVALID_RESOURCE_NAME = 1 }

enum ReplicationCode {
  TABLE_FULL = 1, INVALID_MGID = 2, INVALID_MGRP_HANDLE = 3, INVALID_L1_HANDLE = 4, ERROR = 5
}

enum MirroringCode { SESSION_NOT_FOUND = 1 }

exception InvalidTable { 1: TableCode code }
exception InvalidCounter { 1: CounterCode code }
exception InvalidMeter { 1: MeterCode code }
exception InvalidRegister { 1: RegisterCode code }
exception InvalidValueSet { 1: ValueSetCode code }
exception InvalidLearn { 1: LearnCode code }
exception InvalidSwap { 1: SwapCode code }
exception InvalidPort { 1: PortCode code }
exception InvalidCrc { 1: CrcCode code }
exception InvalidToeplitz { 1: ToeplitzCode code }
exception InvalidLookup { 1: LookupCode code }
exception InvalidReplication { 1: ReplicationCode code }
exception InvalidMirroring { 1: MirroringCode code }

# Keys and entries of tables

enum MatchKind { EXACT = 0, LPM = 1, TERNARY = 2, VALID = 3, RANGE = 4 }

struct ExactPart { 1: binary key }
struct LpmPart { 1: binary key, 2: i32 prefix_length }
struct TernaryPart { 1: binary key, 2: binary mask }
struct ValidPart { 1: bool key }
struct RangePart { 1: binary start, 2: binary end_ }

struct KeyPart {
  1: MatchKind type,
  2: optional ExactPart exact,
  3: optional LpmPart lpm,
  4: optional TernaryPart ternary,
  5: optional ValidPart valid,
  6: optional RangePart range
}

typedef list<KeyPart> Key

struct Options { 1: optional i32 priority }

enum ActionKind { NONE = 0, ACTION_DATA = 1, MBR_HANDLE = 2, GRP_HANDLE = 3 }

struct Action {
  1: ActionKind action_type,
  2: optional string action_name,
  3: optional Parameters action_data,
  4: optional Member mbr_handle,
  5: optional Group grp_handle
}

struct Life { 1: i32 timeout_ms, 2: i32 time_since_hit_ms }

struct HeldEntry {
  1: Key match_key,
  2: Options options,
  3: Entry entry_handle,
  4: Action action_entry,
  5: optional Life life
}

struct HeldMember { 1: Member mbr_handle, 2: string action_name, 3: Parameters action_data }
struct HeldGroup { 1: Group grp_handle, 2: list<Member> mbr_handles }

# Counters, meters, ports, the switch itself

struct Count { 1: i64 bytes, 2: i64 packets }
struct Rate { 1: double units_per_micros, 2: i32 burst_size }

struct PortInfo { 1: Port port_num, 2: string iface_name, 3: bool is_up, 4: map<string, string> extra }

struct SwitchInfo {
  1: i64 device_id,
  2: i32 thrift_port,
  3: optional string notifications_socket,
  4: optional string elogger_socket,
  5: optional string debugger_socket
}

struct Crc16 {
  1: i16 polynomial,
  2: i16 initial_remainder,
  3: i16 final_xor_value,
  4: bool data_reflected,
  5: bool remainder_reflected
}

struct Crc32 {
  1: i32 polynomial,
  2: i32 initial_remainder,
  3: i32 final_xor_value,
  4: bool data_reflected,
  5: bool remainder_reflected
}

enum ResourceType { MATCH_TABLE = 0, ACTION_PROFILE = 1, COUNTER = 2, METER = 3, REGISTER = 4, LEARNING_LIST = 5 }

struct Session { 1: optional Port port, 2: optional i32 mgid }

service Standard {
  i64 bm_mt_get_num_entries(1: Context cxt_id, 2: string table) throws (1: InvalidTable ouch),
  void bm_mt_clear_entries(1: Context cxt_id, 2: string table, 3: bool reset_default) throws (1: InvalidTable ouch),

  Entry bm_mt_add_entry(1: Context cxt_id, 2: string table, 3: Key key, 4: string action, 5: Parameters params,
    6: Options options) throws (1: InvalidTable ouch),
  void bm_mt_set_default_action(1: Context cxt_id, 2: string table, 3: string action, 4: Parameters params)
    throws (1: InvalidTable ouch),
  void bm_mt_reset_default_entry(1: Context cxt_id, 2: string table) throws (1: InvalidTable ouch),
  void bm_mt_delete_entry(1: Context cxt_id, 2: string table, 3: Entry handle) throws (1: InvalidTable ouch),
  void bm_mt_modify_entry(1: Context cxt_id, 2: string table, 3: Entry handle, 4: string action,
    5: Parameters params) throws (1: InvalidTable ouch),
  void bm_mt_set_entry_ttl(1: Context cxt_id, 2: string table, 3: Entry handle, 4: i32 timeout_ms)
    throws (1: InvalidTable ouch),

  Member bm_mt_act_prof_add_member(1: Context cxt_id, 2: string profile, 3: string action, 4: Parameters params)
    throws (1: InvalidTable ouch),
  void bm_mt_act_prof_delete_member(1: Context cxt_id, 2: string profile, 3: Member member)
    throws (1: InvalidTable ouch),
  void bm_mt_act_prof_modify_member(1: Context cxt_id, 2: string profile, 3: Member member, 4: string action,
    5: Parameters params) throws (1: InvalidTable ouch),
  Group bm_mt_act_prof_create_group(1: Context cxt_id, 2: string profile) throws (1: InvalidTable ouch),
  void bm_mt_act_prof_delete_group(1: Context cxt_id, 2: string profile, 3: Group group)
    throws (1: InvalidTable ouch),
  void bm_mt_act_prof_add_member_to_group(1: Context cxt_id, 2: string profile, 3: Member member, 4: Group group)
    throws (1: InvalidTable ouch),
  void bm_mt_act_prof_remove_member_from_group(1: Context cxt_id, 2: string profile, 3: Member member, 4: Group group)
    throws (1: InvalidTable ouch),
  list<HeldMember> bm_mt_act_prof_get_members(1: Context cxt_id, 2: string profile) throws (1: InvalidTable ouch),
  HeldMember bm_mt_act_prof_get_member(1: Context cxt_id, 2: string profile, 3: Member member)
    throws (1: InvalidTable ouch),
  list<HeldGroup> bm_mt_act_prof_get_groups(1: Context cxt_id, 2: string profile) throws (1: InvalidTable ouch),
  HeldGroup bm_mt_act_prof_get_group(1: Context cxt_id, 2: string profile, 3: Group group)
    throws (1: InvalidTable ouch),

  Entry bm_mt_indirect_add_entry(1: Context cxt_id, 2: string table, 3: Key key, 4: Member member, 5: Options options)
    throws (1: InvalidTable ouch),
  void bm_mt_indirect_modify_entry(1: Context cxt_id, 2: string table, 3: Entry handle, 4: Member member)
    throws (1: InvalidTable ouch),
  void bm_mt_indirect_delete_entry(1: Context cxt_id, 2: string table, 3: Entry handle)
    throws (1: InvalidTable ouch),
  void bm_mt_indirect_set_entry_ttl(1: Context cxt_id, 2: string table, 3: Entry handle, 4: i32 timeout_ms)
    throws (1: InvalidTable ouch),
  void bm_mt_indirect_set_default_member(1: Context cxt_id, 2: string table, 3: Member member)
    throws (1: InvalidTable ouch),
  void bm_mt_indirect_reset_default_entry(1: Context cxt_id, 2: string table) throws (1: InvalidTable ouch),

  Entry bm_mt_indirect_ws_add_entry(1: Context cxt_id, 2: string table, 3: Key key, 4: Group group, 5: Options options)
    throws (1: InvalidTable ouch),
  void bm_mt_indirect_ws_modify_entry(1: Context cxt_id, 2: string table, 3: Entry handle, 4: Group group)
    throws (1: InvalidTable ouch),
  void bm_mt_indirect_ws_set_default_group(1: Context cxt_id, 2: string table, 3: Group group)
    throws (1: InvalidTable ouch),

  Count bm_mt_read_counter(1: Context cxt_id, 2: string table, 3: Entry handle) throws (1: InvalidTable ouch),
  void bm_mt_reset_counters(1: Context cxt_id, 2: string table) throws (1: InvalidTable ouch),
  void bm_mt_write_counter(1: Context cxt_id, 2: string table, 3: Entry handle, 4: Count count)
    throws (1: InvalidTable ouch),
  void bm_mt_set_meter_rates(1: Context cxt_id, 2: string table, 3: Entry handle, 4: list<Rate> rates)
    throws (1: InvalidTable ouch),
  list<Rate> bm_mt_get_meter_rates(1: Context cxt_id, 2: string table, 3: Entry handle)
    throws (1: InvalidTable ouch),

  list<HeldEntry> bm_mt_get_entries(1: Context cxt_id, 2: string table) throws (1: InvalidTable ouch),
  HeldEntry bm_mt_get_entry(1: Context cxt_id, 2: string table, 3: Entry handle) throws (1: InvalidTable ouch),
  Action bm_mt_get_default_entry(1: Context cxt_id, 2: string table) throws (1: InvalidTable ouch),
  HeldEntry bm_mt_get_entry_from_key(1: Context cxt_id, 2: string table, 3: Key wanted, 4: Options options)
    throws (1: InvalidTable ouch),

  Count bm_counter_read(1: Context cxt_id, 2: string counter, 3: i32 index) throws (1: InvalidCounter ouch),
  void bm_counter_reset_all(1: Context cxt_id, 2: string counter) throws (1: InvalidCounter ouch),
  void bm_counter_write(1: Context cxt_id, 2: string counter, 3: i32 index, 4: Count count)
    throws (1: InvalidCounter ouch),

  void bm_learning_ack(1: Context cxt_id, 2: i32 list_id, 3: i64 buffer_id, 4: list<i32> samples)
    throws (1: InvalidLearn ouch),
  void bm_learning_ack_buffer(1: Context cxt_id, 2: i32 list_id, 3: i64 buffer_id) throws (1: InvalidLearn ouch),
  void bm_learning_set_timeout(1: Context cxt_id, 2: i32 list_id, 3: i32 timeout_ms) throws (1: InvalidLearn ouch),
  void bm_learning_set_buffer_size(1: Context cxt_id, 2: i32 list_id, 3: i32 most) throws (1: InvalidLearn ouch),

  void bm_load_new_config(1: string config) throws (1: InvalidSwap ouch),
  void bm_swap_configs() throws (1: InvalidSwap ouch),

  void bm_meter_array_set_rates(1: Context cxt_id, 2: string meter, 3: list<Rate> rates)
    throws (1: InvalidMeter ouch),
  void bm_meter_set_rates(1: Context cxt_id, 2: string meter, 3: i32 index, 4: list<Rate> rates)
    throws (1: InvalidMeter ouch),
  list<Rate> bm_meter_get_rates(1: Context cxt_id, 2: string meter, 3: i32 index) throws (1: InvalidMeter ouch),

  i64 bm_register_read(1: Context cxt_id, 2: string name, 3: i32 index) throws (1: InvalidRegister ouch),
  list<i64> bm_register_read_all(1: Context cxt_id, 2: string name) throws (1: InvalidRegister ouch),
  void bm_register_write(1: Context cxt_id, 2: string name, 3: i32 index, 4: i64 value)
    throws (1: InvalidRegister ouch),
  void bm_register_write_range(1: Context cxt_id, 2: string name, 3: i32 first, 4: i32 after, 5: i64 value)
    throws (1: InvalidRegister ouch),
  void bm_register_reset(1: Context cxt_id, 2: string name) throws (1: InvalidRegister ouch),

  void bm_parse_vset_add(1: Context cxt_id, 2: string value_set, 3: binary octets) throws (1: InvalidValueSet ouch),
  void bm_parse_vset_remove(1: Context cxt_id, 2: string value_set, 3: binary octets)
    throws (1: InvalidValueSet ouch),
  list<binary> bm_parse_vset_get(1: Context cxt_id, 2: string value_set) throws (1: InvalidValueSet ouch),
  void bm_parse_vset_clear(1: Context cxt_id, 2: string value_set) throws (1: InvalidValueSet ouch),

  void bm_dev_mgr_add_port(1: string iface_name, 2: Port port, 3: string pcap) throws (1: InvalidPort ouch),
  void bm_dev_mgr_remove_port(1: Port port) throws (1: InvalidPort ouch),
  list<PortInfo> bm_dev_mgr_show_ports() throws (1: InvalidPort ouch),

  SwitchInfo bm_mgmt_get_info(),
  void bm_set_crc16_custom_parameters(1: Context cxt_id, 2: string calculation, 3: Crc16 crc16)
    throws (1: InvalidCrc ouch),
  void bm_set_crc32_custom_parameters(1: Context cxt_id, 2: string calculation, 3: Crc32 crc32)
    throws (1: InvalidCrc ouch),
  void bm_set_toeplitz_hash_key(1: Context cxt_id, 2: string calculation, 3: binary toeplitz_key)
    throws (1: InvalidToeplitz ouch),
  void bm_reset_state(),
  binary bm_get_config(),
  binary bm_get_config_md5(),
  i32 bm_get_id_from_name(1: Context cxt_id, 2: ResourceType type, 3: string name) throws (1: InvalidLookup ouch),
  binary bm_serialize_state()
}

# Port maps and maps of link aggregation groups are strings of 0 and 1, the last character for number 0.

service SimplePre {
  i32 bm_mc_mgrp_create(1: Context cxt_id, 2: i32 group) throws (1: InvalidReplication ouch),
  void bm_mc_mgrp_destroy(1: Context cxt_id, 2: i32 group) throws (1: InvalidReplication ouch),
  i32 bm_mc_node_create(1: Context cxt_id, 2: i32 replica, 3: string ports) throws (1: InvalidReplication ouch),
  void bm_mc_node_associate(1: Context cxt_id, 2: i32 group, 3: i32 node) throws (1: InvalidReplication ouch),
  void bm_mc_node_dissociate(1: Context cxt_id, 2: i32 group, 3: i32 node) throws (1: InvalidReplication ouch),
  void bm_mc_node_destroy(1: Context cxt_id, 2: i32 node) throws (1: InvalidReplication ouch),
  void bm_mc_node_update(1: Context cxt_id, 2: i32 node, 3: string ports) throws (1: InvalidReplication ouch),
  string bm_mc_get_entries(1: Context cxt_id) throws (1: InvalidReplication ouch)
}

service SimplePreLAG {
  i32 bm_mc_mgrp_create(1: Context cxt_id, 2: i32 group) throws (1: InvalidReplication ouch),
  void bm_mc_mgrp_destroy(1: Context cxt_id, 2: i32 group) throws (1: InvalidReplication ouch),
  i32 bm_mc_node_create(1: Context cxt_id, 2: i32 replica, 3: string ports, 4: string lags)
    throws (1: InvalidReplication ouch),
  void bm_mc_node_associate(1: Context cxt_id, 2: i32 group, 3: i32 node) throws (1: InvalidReplication ouch),
  void bm_mc_node_dissociate(1: Context cxt_id, 2: i32 group, 3: i32 node) throws (1: InvalidReplication ouch),
  void bm_mc_node_destroy(1: Context cxt_id, 2: i32 node) throws (1: InvalidReplication ouch),
  void bm_mc_node_update(1: Context cxt_id, 2: i32 node, 3: string ports, 4: string lags)
    throws (1: InvalidReplication ouch),
  void bm_mc_set_lag_membership(1: Context cxt_id, 2: i16 lag, 3: string ports)
    throws (1: InvalidReplication ouch),
  string bm_mc_get_entries(1: Context cxt_id) throws (1: InvalidReplication ouch)
}

service SimpleSwitch {
  i32 mirroring_mapping_add(1: i32 session, 2: Port port),
  i32 mirroring_mapping_delete(1: i32 session),
  i32 mirroring_mapping_get_egress_port(1: i32 session),
  void mirroring_session_add(1: i32 session, 2: Session config) throws (1: InvalidMirroring ouch),
  void mirroring_session_delete(1: i32 session) throws (1: InvalidMirroring ouch),
  Session mirroring_session_get(1: i32 session) throws (1: InvalidMirroring ouch),

  i32 set_egress_priority_queue_depth(1: Port port, 2: i32 priority, 3: i32 packets),
  i32 set_egress_queue_depth(1: Port port, 2: i32 packets),
  i32 set_all_egress_queue_depths(1: i32 packets),
  i32 set_egress_priority_queue_rate(1: Port port, 2: i32 priority, 3: i64 rate_pps),
  i32 set_egress_queue_rate(1: Port port, 2: i64 rate_pps),
  i32 set_all_egress_queue_rates(1: i64 rate_pps),

  i64 get_time_elapsed_us(),
  i64 get_time_since_epoch_us()
}
