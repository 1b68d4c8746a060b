"""Commands of simple_switch_CLI that change nothing here: those that can be skipped, and those that must not be."""

from __future__ import annotations

READS = "it only reads"
QUEUES = "a switch without a network has no queues"
DEFINED = "it shows what the program says"

SKIPPED = {
    "table_dump": READS,
    "table_dump_entry": READS,
    "table_dump_entry_from_key": READS,
    "table_dump_member": READS,
    "table_dump_group": READS,
    "table_num_entries": READS,
    "act_prof_dump": READS,
    "act_prof_dump_member": READS,
    "act_prof_dump_group": READS,
    "mc_dump": READS,
    "mirroring_get": READS,
    "meter_get_rates": READS,
    "counter_read": READS,
    "register_read": READS,
    "pvs_get": READS,
    "show_ports": READS,
    "switch_info": READS,
    "get_time_elapsed": READS,
    "get_time_since_epoch": READS,
    "write_config_to_file": READS,
    "serialize_state": READS,
    "show_tables": DEFINED,
    "show_actions": DEFINED,
    "show_pvs": DEFINED,
    "table_show_actions": DEFINED,
    "table_info": DEFINED,
    "set_queue_rate": QUEUES,
    "set_queue_depth": QUEUES,
    "help": "it is for people",
    "?": "it is for people",
    "greet": "it is for people",
    "shell": "nothing is run",
    "!": "nothing is run",
    "EOF": "files end by themselves",
}
"""Why a command can be skipped: no packet leaves another way without it."""

REFUSED = {
    "load_new_config_file": "the program is the one that the command line names",
    "swap_configs": "the program is the one that the command line names",
    "port_add": "ports are chosen on the command line",
    "port_remove": "ports are chosen on the command line",
    "set_toeplitz_hash_key": "hashes of this kind are not supported",
}
"""Why a command is refused: packets would not be those that the file asks for."""
