"""What may have happened to any frame on its way: tags, options, wrong fields, cuts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any

from draws import anything
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from inakit.traffic.wire.packet_format import BARE_FRAME

Change = Callable[[bytes], bytes]
SMALLEST_FRAME, LARGEST_FRAME = 14, 1514
ADDRESSES = 12  # bytes before the type
TAG_TYPES = (0x8100, 0x88A8)
SMALLEST_TAGGED_FRAME = 20
HEADERS_END = BARE_FRAME.itemsize


def header_fields() -> Iterator[tuple[int, int]]:
    """The first byte and the length of every field of the headers of an INA packet."""
    for part in BARE_FRAME.names or ():
        header, start = BARE_FRAME.fields[part][:2]  # type: ignore[index]
        for name in header.names or ():
            field, offset = header.fields[name][:2]  # type: ignore[index]
            yield start + offset, field.itemsize


def overwrite(first: int, content: bytes, frame: bytes) -> bytes:
    """The frame with other bytes from `first` on; its length stays."""
    return (frame[:first] + content + frame[first + len(content) :])[: len(frame)]


def cut(length: int, frame: bytes) -> bytes:
    """The first `length` bytes of the frame."""
    return frame[:length]


def lengthen(length: int, seed: int, frame: bytes) -> bytes:
    """The frame with more bytes behind it than its headers say: up to `length`."""
    more = max(length - len(frame), length % 64)
    return frame + Random(seed).randbytes(more)


def tag(tags: list[tuple[int, int]], frame: bytes) -> bytes:
    """The frame with VLAN tags, each a type and its 16 bits of control information; two tags are QinQ."""
    inserted = b"".join(kind.to_bytes(2, "big") + control.to_bytes(2, "big") for kind, control in tags)
    return frame[:ADDRESSES] + inserted + frame[ADDRESSES:]


def add_options(words: int, frame: bytes) -> bytes:
    """The frame with an IPv4 header that is longer by `words` no-operations, whatever the frame is."""
    at = SMALLEST_FRAME
    return frame[:at] + bytes([0x45 + words]) + frame[at + 1 : at + 20] + b"\1" * 4 * words + frame[at + 20 :]


@st.composite
def wrong_fields(draw: st.DrawFn) -> Change:
    """A change of any header field to a small number, its largest one, or any."""
    first, length = draw(HEADER_FIELDS)
    return partial(overwrite, first, draw(anything(8 * length)).to_bytes(length, "big"))


def with_arguments(function: Callable[..., bytes], *arguments: SearchStrategy[Any]) -> SearchStrategy[Change]:
    """The change that `function` makes with drawn arguments before the frame."""
    return st.tuples(*arguments).map(lambda drawn: partial(function, *drawn))


HEADER_FIELDS = st.sampled_from(list(header_fields()))
LENGTHS = st.integers(SMALLEST_FRAME, HEADERS_END + 8) | st.integers(SMALLEST_FRAME, LARGEST_FRAME)
TAG = st.tuples(st.sampled_from(TAG_TYPES), st.integers(0, 2**16 - 1))
ONE_CHANGE: SearchStrategy[Change] = st.one_of(
    wrong_fields(),
    with_arguments(overwrite, st.integers(0, HEADERS_END - 1), st.binary(min_size=1, max_size=1)),
    with_arguments(cut, LENGTHS),
    with_arguments(lengthen, LENGTHS, st.integers(0, 255)),
    with_arguments(tag, st.lists(TAG, min_size=1, max_size=2)),
    with_arguments(add_options, st.integers(1, 10)),
)
CHANGES = st.lists(ONE_CHANGE, min_size=1, max_size=3)


def changed(frame: bytes, made: list[Change]) -> bytes:
    """The frame after all changes, of a length that Ethernet carries."""
    for change in made:
        frame = change(frame)
    return deliverable(frame[:LARGEST_FRAME])


def deliverable(frame: bytes) -> bytes:
    """The frame, with zeros behind a VLAN tag that nothing follows: the kernel would discard it before any switch."""
    tagged = int.from_bytes(frame[ADDRESSES : ADDRESSES + 2], "big") in TAG_TYPES
    return frame.ljust(SMALLEST_TAGGED_FRAME, b"\0") if tagged else frame
