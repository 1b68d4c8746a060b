"""The interpreter: hashes, checksums, registers, meters, random numbers, assertions."""

from __future__ import annotations

import random
import zlib

import pytest
from model_programs import Ticks, fields_of, result, switch_of
from small_programs import packet

from inakit.switch.entries import MeterRates, SwitchEntries
from inakit.topo.errors import RunError


def internet_checksum(data: bytes) -> int:
    total = sum(int.from_bytes(data[at : at + 2].ljust(2, b"\0"), "big") for at in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def crc16(data: bytes) -> int:
    """CRC-16/ARC, bit by bit."""
    remainder = 0
    for byte in data:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (0xA001 if remainder & 1 else 0)
    return remainder


def test_hashes() -> None:
    switch, draw = switch_of("externs"), random.Random(2)
    for _ in range(20):
        a, b, index = draw.getrandbits(24), draw.getrandbits(5), draw.randrange(4)
        whole, found = a.to_bytes(3, "big"), result(switch, a=a, b=b, index=index)
        assert found["crc16"] == crc16((a << 8 | b << 3).to_bytes(4, "big"))
        assert found["crc32"] == zlib.crc32((b << 27 | a << 3).to_bytes(4, "big"))
        assert found["sum"] == internet_checksum(whole + bytes([index]))
        assert found["exclusive"] == (a >> 8) ^ ((a & 0xFF) << 8 | 0x12) ^ 0x3400
        assert found["same"] == (a << 8 | index) << 32
        assert found["in_range"] == 100 + zlib.crc32(whole) % 10


def test_checksums_are_verified_and_updated() -> None:
    switch = switch_of("externs")
    for index, a in ((1, 0x123456), (3, 5), (4, 9), (2, 0xFFFFFF)):
        right = internet_checksum(a.to_bytes(3, "big") + bytes([index]) + b"\xab\xcd")
        found = result(switch, a=a, index=index, checksum=right)
        assert found["bad"] == 0
        assert found["with_payload"] == internet_checksum(a.to_bytes(3, "big"))
        wrong = result(switch, a=a, index=index, checksum=right ^ 1)
        assert wrong["bad"] == (index != 4)
        assert wrong["checksum"] == (right if index != 3 else right ^ 1)


def test_a_checksum_can_cover_the_payload() -> None:
    switch = switch_of("externs")
    ((_, data),) = switch.inject(1, packet(switch.program, a=7) + b"abc")
    assert fields_of(switch.program, data)["with_payload"] == internet_checksum(b"\0\0\7abc")


def test_registers_are_as_wide_as_they_are() -> None:
    switch = switch_of("externs")
    result(switch, index=2, a=0xFFFFFF)
    assert result(switch, index=2)["before"] == 0xFFFFFF << 70 & (1 << 100) - 1
    assert switch.read_register("TestIngress.last").tolist() == [0, 0, 0, 0]
    assert result(switch, index=9, before=5)["before"] == 5, "an index beyond the end skips the statement"
    assert switch.read_counter("TestIngress.seen")[0].tolist() == [0, 0, 2, 0]


def test_a_meter_by_two_rates_has_three_colours() -> None:
    clock = Ticks()
    switch = switch_of("externs", clock)
    size = len(packet(switch.program))
    switch.install(SwitchEntries("s", meters=(MeterRates("TestIngress.rate", 1, ((1.0, size), (2.0, 3 * size))),)))
    assert [result(switch, index=1)["colour"] for _ in range(4)] == [0, 1, 1, 2]
    clock.now = size
    assert [result(switch, index=1)["colour"] for _ in range(3)] == [0, 1, 2]
    assert result(switch, index=0)["colour"] == 0


def test_random_numbers_are_in_their_range_and_begin_alike() -> None:
    drawn = [[result(switch)["random"] for _ in range(200)] for switch in (switch_of("externs"), switch_of("externs"))]
    assert drawn[0] == drawn[1]
    assert set(drawn[0]) == set(range(3, 10))


def test_an_assertion_that_fails_ends_the_switch() -> None:
    with pytest.raises(RunError, match=r"externs\.p4:\d+ assert\(hdr\.test\.index != 200\)"):
        result(switch_of("externs"), index=200)
