"""How the packets that left a switch differ from those that an STF test expects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inakit.switch.stf.script import Expect, Line, SendPacket


def differences(script: Sequence[Line], received: dict[int, list[bytes]]) -> list[str]:
    """How the packets of each port differ from those expected.

    A port that the script gives packets, but expects none of, must stay silent; ports that it does not name may send
    anything.
    """
    expected: dict[int, list[tuple[int, Expect]]] = {}
    free: set[int] = set()
    for line in script:
        match line.statement:
            case Expect(port, None):
                free.add(port)
            case Expect(port):
                expected.setdefault(port, []).append((line.number, line.statement))
            case SendPacket(port):
                expected.setdefault(port, [])
    return [
        text
        for port in sorted(set(expected) - free)
        for text in differences_at(port, expected[port], received.get(port, []))
    ]


def differences_at(port: int, expected: Sequence[tuple[int, Expect]], received: Sequence[bytes]) -> Iterator[str]:
    """The differences at one port, packet by packet."""
    for place, ((number, pattern), packet) in enumerate(zip(expected, received, strict=False), start=1):
        if wrong := mismatch(pattern, packet.hex().upper()):
            yield f"port {port}, packet {place} (line {number}): {wrong}"
    for number, pattern in expected[len(received) :]:
        yield f"port {port}: nothing came for line {number}\n  expected {spaced(pattern.digits or '')}"
    for packet in received[len(expected) :]:
        yield f"port {port}: a packet came that is not expected\n  got      {spaced(packet.hex().upper())}"


def mismatch(pattern: Expect, got: str) -> str | None:
    """Why a packet, given in hexadecimal digits, is not the expected one; None if it is."""
    wanted = pattern.digits or ""
    both = f"\n  expected {spaced(wanted)}{' $' if pattern.complete else ''}\n  got      {spaced(got)}"
    wrong = [at for at, (want, have) in enumerate(zip(wanted, got, strict=False)) if want not in ("*", have)]
    if wrong:
        marks = "".join("^" if at in wrong else " " for at in range(wrong[-1] + 1))
        return f"byte {wrong[0] // 2} differs{both}\n           {spaced(marks)}"
    if len(got) < len(wanted):
        return f"{len(got) // 2} bytes instead of {len(wanted) // 2}{both}"
    if pattern.complete and len(got) > len(wanted):
        return f"{len(got) // 2} bytes instead of exactly {len(wanted) // 2}{both}"
    return None


def spaced(digits: str) -> str:
    """Hexadecimal digits with a space between bytes."""
    return " ".join(digits[at : at + 2] for at in range(0, len(digits), 2))
