"""Externs to C: random numbers, log messages and assertions."""

from __future__ import annotations

from inakit.switch.fast.compile.context import Context
from inakit.switch.fast.compile.expressions.values import WORD, Value, unsigned_word
from inakit.switch.fast.layout.layout import FAILED, RANDOM
from inakit.switch.program.program import Argument, Arguments, Text
from inakit.switch.program.expressions import Expression
from inakit.switch.program.expressions import Field
from inakit.topo.errors import UnsupportedError


def field_of(argument: Argument) -> Field:
    """The field that a statement writes; `UnsupportedError` for anything else."""
    if not isinstance(argument, Field):
        raise UnsupportedError(f"writing to {argument!r}")
    return argument


def unsigned_number(context: Context, expression: Expression, what: str) -> Value:
    """A number in C; `UnsupportedError`, which says `what` it is for, if it may not fit 64 bits."""
    value = context.value(expression)
    if not value.unsigned:
        raise UnsupportedError(f"{what} that may not fit 64 bits")
    return value


# {"op": "modify_field_rng_uniform", "parameters": [{"type": "field", ...}, {"type": "hexstr"}, {"type": "hexstr"}]}
def random_number(context: Context, target: Argument, low: Expression, high: Expression) -> None:
    """Write a number from `low` to `high` to a field; an empty range leaves the field as it is."""
    least, most = (unsigned_number(context, each, "an end of a random number's range") for each in (low, high))
    state = f"&own->{context.layout.arrays[RANDOM].symbol}[0].state"
    with context.out.block(""):
        context.out.line(f"u64 least = {least.text}, most = {most.text};")
        with context.out.block("if (least <= most)"):
            context.assign(field_of(target), unsigned_word(f"random_number({state}, least, most)", WORD))


# {"op": "log_msg", "parameters": [{"type": "string", "value": "port {}"}, {"type": "parameters_vector", ...}]}
def log_message(context: Context, text: Text, _values: Arguments) -> None:
    """Write only a comment: compiled code keeps no trace."""
    context.out.comment(f"log_msg of {len(text.value)} characters")


# {"op": "assert", "parameters": [{"type": "expression", ...}]}
def claim(context: Context, condition: Expression) -> None:
    """Note a claim that does not hold. BMv2 ends there; here the packet is lost, and `check` says so."""
    with context.out.block(f"if (!{context.value(condition).text})"):
        context.out.line(f"own->{context.layout.arrays[FAILED].symbol}[0].claims += 1;")
        context.out.line("state.failed = 1;")
