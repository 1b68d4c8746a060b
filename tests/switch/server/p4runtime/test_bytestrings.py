"""Byte strings: the examples of P4Runtime's specification."""

from __future__ import annotations

import pytest

from inakit.switch.control.codecs import Code, Fault, decode, decode_signed, encode, encode_signed

pytest_plugins = ["p4runtime_fixtures"]

UNSIGNED = [(8, 99, b"\x63"), (16, 99, b"\x63"), (16, 12388, b"\x30\x64"), (12, 99, b"\x63"), (1, 0, b"\0")]
SIGNED = [(8, 99, b"\x63"), (8, -99, b"\x9d"), (12, -739, b"\xfd\x1d"), (16, 0, b"\0"), (16, 128, b"\0\x80")]


@pytest.mark.parametrize(("bits", "number", "octets"), UNSIGNED)
def test_unsigned_numbers_have_one_canonical_string(bits: int, number: int, octets: bytes) -> None:
    assert encode(number) == octets
    assert decode(octets, bits, "x") == number
    assert decode(b"\0\0" + octets, bits, "x") == number


@pytest.mark.parametrize(("bits", "number", "octets"), SIGNED)
def test_signed_numbers_have_one_canonical_string(bits: int, number: int, octets: bytes) -> None:
    complement = number & (1 << bits) - 1
    assert encode_signed(complement, bits) == octets
    assert decode_signed(octets, bits, "x") == complement
    assert decode_signed((b"\xff" if number < 0 else b"\0") + octets, bits, "x") == complement


@pytest.mark.parametrize(
    ("bits", "octets"),
    [(8, b"\x01\x63"), (8, b""), (16, b"\x01\x00\x63"), (12, b"\x10\x63"), (12, b"\x01\x00\x63")],
)
def test_a_string_that_does_not_fit_is_out_of_range(bits: int, octets: bytes) -> None:
    with pytest.raises(Fault) as raised:
        decode(octets, bits, "x")
    assert raised.value.code == Code.OUT_OF_RANGE


@pytest.mark.parametrize(("bits", "octets"), [(8, b"\x00\x9d"), (12, b"\x8d\x1d"), (16, b"")])
def test_a_signed_string_that_does_not_fit_is_out_of_range(bits: int, octets: bytes) -> None:
    with pytest.raises(Fault) as raised:
        decode_signed(octets, bits, "x")
    assert raised.value.code == Code.OUT_OF_RANGE
