"""The records of endpoints, which Python allocates and `endpoints.c` works on, and the compiled library.

The C of their structs, and of the packet format, is written from the types here and from the P4 program.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from inakit.planner.core.plan import ACKNOWLEDGED_AT_ONCE
from inakit.topo.c_library import LIBRARY, build
from inakit.traffic.wire.packet_format import BARE_FRAME, FRAGMENT, Flag, Kind, constant, offset_of

HEAD = ("u1", (BARE_FRAME.itemsize,))
"""The head of a packet, `BARE_FRAME`, as bytes."""
NONE = 0xFFFFFFFF
NEVER = (1 << 63) - 1
"""The time of what does not happen, in picoseconds."""


def record(*fields: tuple[Any, ...]) -> np.dtype[np.void]:
    """A type whose fields lie in memory as those of a C struct."""
    return np.dtype(list(fields), align=True)


def same(kind: str, *names: str) -> list[tuple[str, str]]:
    """Fields of one type."""
    return [(name, kind) for name in names]


HOST = record(
    ("all", "u8"),
    ("silent_until", "i8"),
    *same("u4", "way", "first_stream", "streams", "cut_off", "blocked"),
    *same("u8", "doubled_share", "random", "doubled", "unheard", "strangers"),
    *same("u8", "pending", "pending_count", "pending_room"),
    *same("i8", "interval", "depth", "earned_at", "late"), ("ready", "u4"),
)  # fmt: skip
"""A host. `way`: the number by which the driver knows its link. `first_stream`: the first of its `streams`. It neither
sends nor hears anything until `silent_until`, or while it is `cut_off`; while it is `blocked` it only hears. It sends
`doubled_share` / 2**32 of its packets twice. Counts: packets `doubled` and `unheard`, and `strangers`, those of trees
that it does not belong to. `pending`: answers of its PSs that wait until it can send. A rank has a pace of its own, as
streams have: `interval`, `depth`, `earned_at`, `late`, `ready`.
"""

STREAM = record(
    *same("u4", "host", "tree", "job", "worker", "label", "count", "in_flight", "mask"),
    *same("u8", "first_row", "start", "gradient", "key", "results"),
    *same("i8", "gradient_values", "interval", "depth", "held", "gap", "gap_again"),
    *same("u4", "magnitude", "turns", "max_backoff", "active"),
    *same("u1", "yields", "returns", "heeds", "keeps", "repairs"), *same("u4", "last", "before"),
    *same("f8", "least", "size", "threshold", "share", "slower"),
    *same("i8", "shortest", "recent", "trips", "silent", "answered", "unsteady"),
    *same("u4", "heard", "vain", "doubt", "base", "next", "first_seq", "ready", "again_first", "again_last"),
    *same("i8", "newest_order", "order", "seen", "marked", "cut_at", "cuts", "smoothed", "deviation", "measured_from"),
    *same("i8", "earned_at", "late", "look_at"),
    *same("i8", "sent", "questions", "retransmitted", "first_sent_at", "last_sent_at", "last_result_at", "wrong"),
    *same("u8", "first_chunk"), *same("i8", "patience", "fresh_since"),
    *same("u4", "known", "distance", "arrived", "newest", "fresh", "hurried"),
    ("head", HEAD), ("question", HEAD), ("result", HEAD), ("ask", HEAD),
)  # fmt: skip
"""A stream. Its fragments are `count`, those of the job's gradient from `start` on; at most `in_flight` await results.
Fragment i has row `first_row` + (i & `mask`). The gradient is at the address `gradient`, or drawn by `key` and
`magnitude`; results are kept at the address `results`, if any. Times are picoseconds: `interval`, the time of a
fragment at the planned rate; `depth`, that of a full bucket; `held`, the time for which answers can be held back.
`gap`, `yields`, `returns`, `heeds`, `keeps`: its `WindowRule`. `base`: the first fragment without a result; `next`:
the first that has not been sent. Heads are complete but for flags, sequence number, slot and part: `head` and
`question`, of its gradients and questions; `result` and `ask`, of a PS's answers to its worker alone.

Where aggregators repair losses (`repairs`), a worker asks for a late result after `gap` intervals, and after
`gap_again` while it cannot send. `last` and `before`: the last two fragments that it has sent, or `NONE`. `shortest`
and `recent`: its shortest round trip, and that of the last `trips`; `answered` and `unsteady`: the smoothed round trip
of questions, and its deviation; `slower`: the factor of its interval; `silent`: how often it has waited for any result
in vain; `heard` and `vain`: its last results, and vain questions about them; `doubt`: the doublings of its waits.

A stream of a collective is a connection, whose fragments begin at `first_chunk` of the arrays over chunks. Up to
`known` its values have all their terms; `distance` is the number of ranks to its end. Its receiver has all fragments up
to `arrived`, and `fresh` ones that it has not acknowledged since `fresh_since`.
"""

ROW = record(
    *same("i8", "begun_at", "sent_at", "order"), *same("u4", "next", "asker"),
    *same("u1", "tries", "flags", "parts", "asked"),
)  # fmt: skip
"""A fragment that a stream has sent: the times of its first and last sending, the place of the last one among all of
its stream, the number of sendings, and the arrived parts of its result. `next`: the next fragment to be sent again;
`asker`: the label of who asked for it, plus 1; `asked`: the number of questions for its result.
"""

TREE = record(
    *same("u4", "key", "job", "server", "slots", "count", "crowd", "labels", "mask", "first_seq", "open"),
    *same("u4", "reach", "height", "last", "before"),
    *same("u8", "first_row", "first_label", "first_worker", "everyone"),
    *same("u1", "stands_by", "hashed", "counted", "asks", "hides"),
    *same("i8", "ingress_bytes", "last_arrival_at", "discarded", "notices", "miscounts"),
    *same("u4", "miscounted_label", "miscounted_fragment", "miscounted_said", "miscounted_covered"),
    ("result", HEAD), ("notice", HEAD),
)  # fmt: skip
"""A tree, as in `Trees`. `crowd`: the number of its workers, whose streams are in `workers` from `first_worker` on.
`asks`: its workers do not send missing fragments unasked; `hides`: its aggregators keep their sums. `open`: its first
fragment that is not summed. If its PS asks for what it lacks, `reach` is that of the tree, else 0; `height`: the most
aggregators one above the other; `last` and `before`: the last two fragments whose results it has sent, or `NONE`.
"""

LABEL = record(*same("u4", "size", "stream", "summands", "unused"), *same("u8", "set", "first_summand"))
"""A label of a tree: the number of its workers, the place of their set in `sets`, and its worker's stream or `NONE`.
Bit i of an aggregator's bitmap is the set at `summands[first_summand + i]`.
"""

SUM = record(
    *same("i8", "fragment", "asked_at"), *same("u1", "done", "marked", "answered"), ("sums", "i8", (FRAGMENT.values,))
)
"""A PS's sum of a fragment: whether it covers all workers (`done`), whether a packet of it met with a long queue
(`marked`), and whether its result has been sent to all (`answered`)."""

EXPECTED = record(
    ("fragment", "i8"), *same("u4", "added", "narrow", "is_wrong", "unused"),
    ("wrong", "u8", (-(-FRAGMENT.values // 64),)),
    ("sums", "i8", (FRAGMENT.values,)), ("words", "u4", (FRAGMENT.values,)),
)  # fmt: skip
"""The exact sum of a fragment, of the `added` workers that have sent it. `narrow`: it fits into 32 bits."""

JOB = record(
    *same("u8", "first_value", "values"), ("ended_at", "i8"), ("unfinished", "u4"),
    *same("u4", "wrong_stream", "wrong_fragment", "wrong_value"),
    *same("i8", "wrong_elements", "wrong_fragments", "wrong_expected", "wrong_got"),
)  # fmt: skip
"""A job: the streams without all results or, of a collective, the missing rows of results, the last of which came at
`ended_at`, and the wrong elements of its results, of which the first is described."""

TIMER = record(("at", "i8"), ("stream", "u4"))
"""A place of the heap of timers: the time at which a stream wants to act. `place` has the place of each stream."""

POINTERS = {
    "hosts": "struct host", "streams": "struct stream", "rows": "struct row", "trees": "struct tree",
    "labels": "struct label", "sums": "struct sum", "expected": "struct expected", "jobs": "struct job",
    "timers": "struct timer", "covered": "u64", "sets": "u64", "summands": "u64", "workers": "u32", "place": "u32",
    "source": "u64", "target": "s64", "step": "u32", "came": "u8", "cost": "double", "values": "void",
    "missing": "u32", "following": "s64", "is_final": "u8", "own": "u8", "job_of": "u32",
}  # fmt: skip
ALL = record(
    *same("u8", *POINTERS, "send", "context"),
    *same("u4", "host_count", "stream_count", "timer_count", "tree_count", "words", "halted", "is_wide"),
    *same("i8", "due", "first_timeout", "min_timeout", "max_timeout", "retry", "direct_after", "ask_again"),
)
"""All endpoints. `send`: the driver's function, whose first argument is `context`. `words`: the 64-bit words of a set
of workers. `values` is 0 unless the endpoints are ranks; then the arrays from `source` on are those of `Dataflow`.
`due`: the next time at which a stream acts. `halted`: a job's iteration is over. Times are picoseconds.
"""

OUTBOX = record(*same("u8", "frames", "lengths", "count", "sent", "room"))
"""The packets of a host that wait to be sent in real time."""

RECORDS = {
    "host": HOST, "stream": STREAM, "row": ROW, "tree": TREE, "label": LABEL, "sum": SUM, "expected": EXPECTED,
    "job": JOB, "timer": TIMER,
}  # fmt: skip
C_TYPES = {"u1": "u8", "u4": "u32", "u8": "u64", "i8": "s64", "f8": "double"}


def struct(name: str, dtype: np.dtype[np.void], types: dict[str, str]) -> str:
    """The C of a record; `types` has the types of fields that are not numbers."""
    lines = []
    for field in dtype.names or ():
        kind = dtype[field]
        base = types.get(field) or C_TYPES[f"{kind.base.kind}{kind.base.itemsize}"]
        lines.append(f"    {base} {field}{''.join(f'[{size}]' for size in kind.shape)};")
    return "\n".join([f"struct {name} {{", *lines, "};"])


def definitions() -> str:
    """The C of all constants and records."""
    numbers = {"VALUES": FRAGMENT.values, "HEAD_BYTES": BARE_FRAME.itemsize}
    for field in ("kind", "flags", "job", "tree", "label", "seq", "slot", "bitmap", "workers", "part"):
        numbers[f"AT_{field.upper()}"] = offset_of("ina", field)
    numbers |= {"ACKNOWLEDGED_AT_ONCE": ACKNOWLEDGED_AT_ONCE, "SENT_BEFORE": constant("SENT_BEFORE")}
    numbers |= {each.name: int(each) for each in (*Kind, *Flag) if each.name}
    of_all = {name: f"{of} *" for name, of in POINTERS.items()}
    of_all |= {"send": "send_fn *", "context": "void *"}
    shorter = {"u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "s32": "int32", "s64": "int64"}
    sizes = ", ".join(f"sizeof(struct {name})" for name in (*RECORDS, "endpoints"))
    lines = [
        "#define _GNU_SOURCE",
        "#include <stdint.h>",
        *(f"typedef {long}_t {short};" for short, long in shorter.items()),
        "typedef void send_fn(void *context, u32 way, const u8 *bytes, u32 length);",
        *(f"#define {name} {number}" for name, number in numbers.items()),
        *(struct(name, dtype, {}) for name, dtype in RECORDS.items()),
        struct("endpoints", ALL, of_all),
        f"u32 record_sizes(u32 what) {{ const u32 sizes[] = {{{sizes}}}; return sizes[what]; }}",
    ]
    return "\n".join([*lines, ""])


@cache
def library(folder: Path = Path(__file__).parent) -> ctypes.CDLL:
    """The compiled endpoints whose C is in a folder, loaded once."""
    source = folder / "endpoints.c"
    compiler = replace(LIBRARY, headers=source.parent, options=(*LIBRARY.options, "-O3"))
    made = build(definitions() + source.read_text(), compiler)
    loaded = ctypes.CDLL(str(made))
    pointer, number, time = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int64
    functions: Sequence[tuple[str, Any, Sequence[Any]]] = (
        ("record_sizes", number, [number]),
        ("endpoints_close", None, [pointer]),
        ("endpoints_listen", None, [pointer, number]),
        ("endpoints_begin", None, [pointer, number, time]),
        ("endpoints_end", None, [pointer, number]),
        ("endpoints_wake", None, [pointer, time]),
        ("endpoints_resume", None, [pointer, number, time]),
        ("endpoints_restart", None, [pointer, number]),
        ("endpoints_receive", None, [pointer, number, time, pointer]),
        ("outbox_put", None, [pointer, number, pointer, number]),
        ("outbox_flush", ctypes.c_int, [pointer, ctypes.c_int, number, pointer]),
        ("outbox_free", None, [pointer]),
        ("rings_take", None, [pointer] * 3 + [number] * 3 + [time]),
        ("gradient_key", ctypes.c_uint64, [ctypes.c_uint64] * 4),
        ("gradient_values", None, [ctypes.c_uint64] * 3 + [number, pointer]),
    )
    for name, result, arguments in functions:
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    assert [loaded.record_sizes(what) for what in range(len(RECORDS) + 1)] == [
        each.itemsize for each in (*RECORDS.values(), ALL)
    ]
    return loaded
