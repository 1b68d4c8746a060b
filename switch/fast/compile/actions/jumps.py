"""Jumps within actions to C: p4c writes an `if` of an action as jumps over its statements.

They become jumps of C. These go forward only, so that no packet stays in an action, and the kernel's verifier sees it.
"""

from __future__ import annotations

from collections.abc import Iterator

from inakit.switch.fast.compile.context import Context, located
from inakit.switch.program.program import JUMPS, Action, Primitive
from inakit.switch.program.expressions import Constant, Expression
from inakit.topo.errors import UnsupportedError


def blocks_of(action: Action) -> Iterator[tuple[str, tuple[Primitive, ...]]]:
    """The statements in order, cut before each to which a jump leads; each block with its C label ("" for none).

    Blocks behind the last statement are empty: a jump there ends the action.
    """
    targets = {target_of(action, at) for at, each in enumerate(action.primitives) if each.name in JUMPS}
    cuts = sorted({0} | targets)
    for first, end in zip(cuts, [*cuts[1:], None], strict=True):
        yield label(first) if first in targets else "", action.primitives[first:end]


def target_of(action: Action, at: int) -> int:
    """The index of the statement to which the one at `at` jumps; `UnsupportedError` unless it is a later one."""
    jump = action.primitives[at]
    target = jump.arguments[JUMPS[jump.name]]
    with located(jump.source):
        if not isinstance(target, Constant):
            raise UnsupportedError(f"a jump in action '{action.name}' whose target is computed")
        if target.value <= at:
            raise UnsupportedError(f"a loop in action '{action.name}'")
    return target.value


def label(index: int) -> str:
    """The C label of the statement at an index of the action that is being written."""
    return f"to_{index}"


# {"op": "_jump", "parameters": [{"type": "hexstr", "value": "0x4"}]}
def jump(context: Context, target: Constant) -> None:
    """Go on at the statement of this index."""
    context.out.line(f"goto {label(target.value)};")


# {"op": "_jump_if_zero", "parameters": [{"type": "expression", ...}, {"type": "hexstr", "value": "0x4"}]}
def jump_if_zero(context: Context, condition: Expression, target: Constant) -> None:
    """Go on at the statement of this index unless the condition holds, or the number is not 0."""
    context.out.line(f"if (!({context.value(condition).text})) goto {label(target.value)};")
