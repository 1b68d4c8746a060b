"""The rates of meters: `MeterConfig` in units per second, the control plane's in units per microsecond."""

from __future__ import annotations

from inakit.switch.control.data_plane import Rates
from inakit.switch.server.p4runtime.protocol.faults import Code, Fault, invalid
from inakit.switch.server.p4runtime.protocol.messages import Message, v1

PER_MICROSECOND = 1e6
TWO_RATE_THREE_COLOR = 0


def rates_of(config: Message, kind: int) -> Rates:
    """The two rates of a config for a meter of type `kind`; a fault for what the type does not take."""
    numbers = (config.cir, config.cburst, config.pir, config.pburst, config.eburst)
    if min(numbers) < 0 or config.cir > config.pir:
        raise invalid(f"a meter has rates and bursts of 0 or more, and cir is at most pir: {shown(config)}")
    if kind == TWO_RATE_THREE_COLOR and config.eburst:
        raise invalid(f"a meter of two rates has no eburst: {shown(config)}")
    if kind != TWO_RATE_THREE_COLOR and (config.cir, config.cburst) != (config.pir, config.pburst):
        raise invalid(f"a meter of a single rate has pir and pburst as cir and cburst: {shown(config)}")
    if config.eburst:
        raise Fault(Code.UNIMPLEMENTED, f"BMv2's meters have no excess burst: {shown(config)}")
    return (config.cir / PER_MICROSECOND, config.cburst), (config.pir / PER_MICROSECOND, config.pburst)


def shown(config: Message) -> str:
    """A config in one line."""
    return " ".join(str(config).split()) or "0"


def config_message(rates: Rates, written: Message | None) -> Message | None:
    """The config of rates, which is the one that a client has `written` if that gives them; None without rates."""
    if not rates:
        return None
    if written is not None and rates_of(written, TWO_RATE_THREE_COLOR) == tuple(rates):
        return written
    (cir, cburst), (pir, pburst) = rates[0], rates[-1]
    return v1.MeterConfig(cir=per_second(cir), cburst=cburst, pir=per_second(pir), pburst=pburst)


def per_second(rate: float) -> int:
    """A rate in units per second."""
    return round(rate * PER_MICROSECOND)
