"""Actions to C: one function each. `PRIMITIVES` holds the handler of each primitive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from inakit.switch.fast.compile import calculations, headers
from inakit.switch.fast.compile.context import Context, located
from inakit.switch.fast.compile.expressions import WORD, Value, truncated, unsigned_word
from inakit.switch.fast.compile.pipelines import colour
from inakit.switch.fast.compile.repeats import repeats
from inakit.switch.fast.layout.field_usage import fields_in, may_change, named_by, written_by
from inakit.switch.fast.layout.layout import COUNTS, FAILED, RANDOM, RING, ring_name
from inakit.switch.fast.layout.records import container_bytes
from inakit.switch.program.program import (
    JUMPS,
    STANDARD_METADATA,
    Action,
    Argument,
    Arguments,
    Calculation,
    Constant,
    Counter,
    ElementField,
    Expression,
    Field,
    HeaderReference,
    Meter,
    Primitive,
    Register,
    Text,
)
from inakit.topo.errors import UnsupportedError

Handler = Callable[..., None]


def field_of(argument: Argument) -> Field:
    """The field that a statement writes; `UnsupportedError` for anything else."""
    if not isinstance(argument, Field):
        raise UnsupportedError(f"writing to {argument!r}")
    return argument


def unsigned_number(context: Context, expression: Expression, what: str) -> Value:
    """An unsigned number in C; if it may not fit 64 bits, `UnsupportedError` says `what` it is for."""
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
    """Count an assertion that does not hold. BMv2 ends there; here the packet is lost, and `check` reports it."""
    with context.out.block(f"if (!{context.value(condition).text})"):
        context.out.line(f"own->{context.layout.arrays[FAILED].symbol}[0].claims += 1;")
        context.out.line("state.failed = 1;")


SESSIONS, LISTS = 0x7FFF, 0xFFFF
"""BMv2 keeps only these bits of the number of a mirror session and of a list of fields."""


# {"op": "clone_ingress_pkt_to_egress", "parameters": [{"type": "hexstr", "value": "0x5"}, {"type": "hexstr", ...}]}
def clone(context: Context, session: Expression, fields: Expression) -> None:
    context.out.line(f"asked.session = (({context.value(session).text}) & {SESSIONS:#x}) + 1;")
    context.out.line(f"asked.list = (({context.value(fields).text}) & {LISTS:#x});")


# {"op": "resubmit", "parameters": [{"type": "hexstr", "value": "0x1"}]}, and "recirculate"
def return_to_parser(way: str) -> Handler:
    """The handler that requests another pass through the parser, as received or as sent, with a list of fields."""

    def ask(context: Context, fields: Expression) -> None:
        context.out.line(f"asked.{way} = (({context.value(fields).text}) & {LISTS:#x});")

    return ask


# {"op": "truncate", "parameters": [{"type": "hexstr", "value": "0x00000040"}]}
def truncate(context: Context, length: Expression) -> None:
    """Limit the bytes of the packet that leave; of several limits the lowest counts."""
    most = unsigned_number(context, length, "a length")
    with context.out.block(""):
        context.out.line(f"u64 most = {most.text};")
        context.out.line("if (most < asked.most) asked.most = most;")


# {"op": "generate_digest", "parameters": [{"type": "hexstr", "value": "0x1"}, {"type": "hexstr", "value": "0x1"}]}
def digest(context: Context, _receiver: Expression, fields: Expression) -> None:
    """Request the report of a list of fields; of several requests the last one counts."""
    context.out.line(f"state.digest = ({context.value(fields).text}) & {LISTS:#x};")


def emit_learning(context: Context) -> None:
    """Write the statements that put the requested list's values into its ring at the end of ingress.

    The ring's count grows only after all values are in its next place.
    """
    layout, out = context.layout, context.out
    if not layout.digesting:
        return
    counts = layout.arrays[COUNTS]
    with out.block("switch (state.digest)"):
        for number, digest in context.program.digests.items():
            ring = layout.arrays[ring_name(number)]
            symbols = ring.record.symbols
            total, count = (f"own->{counts.symbol}[0].{counts.record.symbols[name]}" for name in ("total", str(number)))
            with out.block(f"case {number}:"):
                out.line(f"struct {ring.record.name} *one = &own->{ring.symbol}[{count} % {RING}];")
                out.line(f"one->{symbols['number']} = {total};")
                for index, field in enumerate(digest.only_fields):
                    out.line(f"one->{symbols[str(index)]} = {layout.field(field)};")
                out.line(f"{total} += 1, {count} += 1;")
                out.line("break;")


def blocks_of(action: Action) -> Iterator[tuple[str, tuple[Primitive, ...]]]:
    """The statements in order, cut before each jump target; each block with its C label ("" for none).

    A block behind the last statement is empty: a jump there ends the action.
    """
    targets = {target_of(action, at) for at, each in enumerate(action.primitives) if each.name in JUMPS}
    cuts = sorted({0} | targets)
    for first, end in zip(cuts, [*cuts[1:], None], strict=True):
        yield f"to_{first}" if first in targets else "", action.primitives[first:end]


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


# {"op": "_jump", "parameters": [{"type": "hexstr", "value": "0x4"}]}
def jump(context: Context, target: Constant) -> None:
    """Continue at the statement with this index."""
    context.out.line(f"goto to_{target.value};")


# {"op": "_jump_if_zero", "parameters": [{"type": "expression", ...}, {"type": "hexstr", "value": "0x4"}]}
def jump_if_zero(context: Context, condition: Expression, target: Constant) -> None:
    """Continue at the statement with this index if the condition is false or the number is 0."""
    context.out.line(f"if (!({context.value(condition).text})) goto to_{target.value};")


Index = tuple[Expression, int]
Run = tuple[Index | None, list[Primitive]]

REGISTER_FIRST = {"register_read": 1, "register_write": 0}
"""The position of the register among a primitive's arguments; its index follows it."""

SHARED_TEST = 2
"""From this many registers at one index on, one test of the index serves all of them."""


def emit_action(context: Context, action: Action) -> None:
    """Write the function `action_<number>`, which takes the parameters of a table entry.

    It returns whether the pipeline ends, if that is known only when the action runs.
    """
    context.out.comment(f"action {action.name}")
    record = context.layout.parameters[action.number]
    given = f"const struct {record.name} *given" if action.parameters else "void"
    context.parameters, context.may_exit = record, action.may_exit
    with context.out.block(f"static INLINE {'int' if context.may_exit else 'void'} action_{action.number}({given})"):
        if context.may_exit:
            context.out.line("int exited = 0;")
        local = sorted(context.layout.local & named_by(action.primitives), key=str)
        context.variables = {field: context.layout.names.of(str(field)) for field in local}
        for variable in context.variables.values():
            context.out.line(f"u64 {variable} = 0;")
        if context.layout.late_clock in named_by(action.primitives):
            context.out.line("if (!META_EGRESS_GLOBAL_TIMESTAMP) SET_EGRESS_GLOBAL_TIMESTAMP(MICROSECONDS);")
        for label, block in blocks_of(action):
            if label:
                context.out.line(f"{label}:;")
            for index, run in runs_of_one_index(with_plain_indexes(context, block)):
                emit_run(context, index, run)
        context.touch(written_by(action.primitives))
        if context.may_exit:
            context.out.line("return exited;")
    context.parameters, context.may_exit, context.variables = None, False, {}


def index_of(primitive: Primitive) -> Index | None:
    """The index that a statement on a register uses, and the register's size."""
    if primitive.name not in REGISTER_FIRST:
        return None
    register, index = primitive.arguments[REGISTER_FIRST[primitive.name] :][:2]
    assert isinstance(register, Register)
    assert isinstance(index, Expression), "an index that was not checked"
    return index, register.size


def with_plain_indexes(context: Context, primitives: Iterable[Primitive]) -> Iterator[Primitive]:
    """The statements, with the index of a register that is a variable of the action replaced by its value."""
    values: dict[Argument, Expression] = {}
    for each in primitives:
        if (first := REGISTER_FIRST.get(each.name)) is not None:
            before, (index, *behind) = each.arguments[: first + 1], each.arguments[first + 1 :]
            yield replace(each, arguments=(*before, values.get(index, index), *behind))
        else:
            yield each
        values = {variable: value for variable, value in values.items() if not may_change([each], value)}
        target = each.arguments[0] if each.name == "assign" else None
        if isinstance(target, Field) and target in context.variables:
            (value,) = each.arguments[1:]
            assert isinstance(value, Expression), "a value that was not checked"
            values.pop(target, None)
            if context.value(value).high < 1 << target.bits and target not in fields_in(value):
                values[target] = value


def runs_of_one_index(primitives: Iterable[Primitive]) -> Iterator[Run]:
    """The statements in order, cut into runs whose registers all use one unchanging index."""
    index: Index | None = None
    run: list[Primitive] = []
    for primitive in primitives:
        own = index_of(primitive)
        if (own is not None and own != index) or (index and may_change(run, index[0])):
            yield index, run
            index, run = own, []
        run.append(primitive)
    yield index, run


def emit_run(context: Context, index: Index | None, primitives: list[Primitive]) -> None:
    """Write a run of statements, with one test of the index for all of them."""
    places = [at for at, primitive in enumerate(primitives) if index_of(primitive) is not None]
    if index is None or len(places) < SHARED_TEST:
        emit_primitives(context, primitives)
        return
    tested, behind = primitives[: places[-1] + 1], primitives[places[-1] + 1 :]
    with context.out.block(""):
        with tested_index(context, *index):
            context.tested = index
            emit_primitives(context, tested)
            context.tested = None
        if others := [primitive for primitive in tested if index_of(primitive) is None]:
            with context.out.block("else"):
                emit_primitives(context, others)
    emit_primitives(context, behind)


def emit_primitives(context: Context, primitives: Sequence[Primitive]) -> None:
    """Write statements; those that repeat for neighbours in memory are written once, in a loop."""
    for repeat in repeats(primitives, context.layout.following):
        if repeat.times == 1:
            emit_statements(context, repeat.body)
            continue
        carried = [field for field in repeat.carried if field not in context.variables]
        inside = {field: f"carried_{index}" for index, field in enumerate(carried)}
        with context.out.block(""):
            for field, variable in inside.items():
                context.out.line(f"u{8 * container_bytes(field.bits)} {variable} = {context.layout.field(field)};")
            for index, each in enumerate(repeat.stepping):
                place = context.register(each, "index") if isinstance(each, Register) else context.field(each)
                context.out.line(f"u{8 * container_bytes(each.bits)} *first_{index} = &{place};")
            context.variables |= inside
            context.stepping = {each: f"first_{index}[nth]" for index, each in enumerate(repeat.stepping)}
            with context.out.block(f"EACH(nth, {repeat.times})"):
                emit_statements(context, repeat.body)
            context.stepping = {}
            for field, variable in inside.items():
                context.out.line(f"{context.layout.field(field)} = {variable};")
                del context.variables[field]


def emit_statements(context: Context, primitives: Iterable[Primitive]) -> None:
    """Write statements, each under its line of P4; `UnsupportedError` for unknown ones."""
    for primitive in primitives:
        if primitive.source is not None:
            context.out.comment(primitive.source)
        with located(primitive.source):
            if primitive.name not in PRIMITIVES:
                raise UnsupportedError(f"primitive '{primitive.name}'")
            PRIMITIVES[primitive.name](context, *primitive.arguments)


# {"op": "assign", "parameters": [{"type": "field", "value": ["ina", "kind"]}, {"type": "hexstr", "value": "0x02"}]}
def assign(context: Context, target: Argument, value: Expression) -> None:
    """Write a value to a field, cut to the field's bits."""
    for field in headers.each_case(context, targets_of(context, target)):
        context.assign(field, context.value(value, field.bits))


def targets_of(context: Context, target: Argument) -> Iterator[tuple[str, Field]]:
    """The fields that `target` can be, each with the C condition that selects it ("" if there is only one)."""
    if not isinstance(target, ElementField):
        yield "", field_of(target)
        return
    for condition, header in headers.header_cases(context, target.header):
        fields = context.program.headers[header].fields
        if target.index >= len(fields):
            raise UnsupportedError("writing to the validity of a header")
        yield condition, fields[target.index]


# {"op": "mark_to_drop", "parameters": [{"type": "header", "value": "standard_metadata"}]}
def mark_to_drop(context: Context, standard: Argument) -> None:
    """Set `egress_spec` to the drop port and `mcast_grp` to none."""
    if standard != HeaderReference(STANDARD_METADATA):
        raise UnsupportedError("mark_to_drop of a copy of standard_metadata")
    context.out.line("SET_EGRESS_SPEC(DROP_PORT);")
    context.out.line("SET_MCAST_GRP(0);")


# {"op": "count", "parameters": [{"type": "counter_array", "value": "InaIngress.events"}, {"type": "hexstr", ...}]}
def count(context: Context, counter: Counter, index: Expression) -> None:
    """Add the packet to one element of a counter; do nothing beyond the last one."""
    with bounded_index(context, index, counter.size):
        element = context.layout.counter(counter, "index")
        context.out.line(f"COUNT_PACKET({element});")


# {"op": "execute_meter", "parameters": [{"type": "meter_array", ...}, {"type": "field", ...}, {"type": "field", ...}]}
def execute_meter(context: Context, meter: Meter, index: Expression, target: Argument) -> None:
    """Write the packet's colour, by one cell of a meter, to a field; do nothing beyond the last cell."""
    with bounded_index(context, index, meter.size):
        context.assign(field_of(target), colour(context, meter, "index"))


# {"op": "register_read", "parameters": [{"type": "field", ...}, {"type": "register_array", ...}, {"type": "field"}]}
def register_read(context: Context, target: Argument, register: Register, index: Expression) -> None:
    """Write one element of a register to a field; do nothing beyond the last one."""
    with bounded_index(context, index, register.size):
        element = context.register(register, "index")
        context.assign(field_of(target), unsigned_word(element, register.bits))


# {"op": "register_write", "parameters": [{"type": "register_array", ...}, {"type": "field", ...}, {"type": "field"}]}
def register_write(context: Context, register: Register, index: Expression, value: Expression) -> None:
    """Write a value to one element of a register; do nothing beyond the last one."""
    with bounded_index(context, index, register.size):
        element = context.register(register, "index")
        context.out.line(f"{element} = {truncated(context.value(value), register.bits)};")


@contextmanager
def bounded_index(context: Context, index: Expression, size: int) -> Iterator[None]:
    """The statements inside run only if `index` is below `size`; BMv2 skips them too."""
    if context.tested == (index, size):
        yield
        return
    with context.out.block(""), tested_index(context, index, size):
        yield


@contextmanager
def tested_index(context: Context, index: Expression, size: int) -> Iterator[None]:
    """Write the declaration of `index`, and its test around the statements inside.

    The kernel's verifier has to see this test; clang would omit or move it where it knows the range of the index. So
    the range of a variable index is hidden from clang before and after the test.
    """
    value = context.value(index)
    if value.low < 0 or value.high >= 1 << 32:
        raise UnsupportedError("an index that may not fit 32 bits")
    context.out.line(f"u64 index = {value.text};")
    variable = value.low != value.high
    if variable:
        context.out.line("UNKNOWN(index);")
    with context.out.block(f"if (index < {size})"):
        if variable:
            context.out.line(f"BELOW(index, {size});")
        yield


# {"op": "exit", "parameters": []}
def leave(context: Context) -> None:
    """Leave the pipeline once the whole action has run; `emit_jump` does this if the exit is certain beforehand."""
    context.out.line("exited = 1;") if context.may_exit else context.out.comment("exit")


# {"op": "modify_field_with_hash_based_offset", "parameters": [field, base, {"type": "calculation", ...}, size]}
def hash_field(
    context: Context, target: Argument, base: Expression, calculation: Calculation, size: Expression
) -> None:
    """Set the field to base + hash % size; a size of 0 counts as 1."""
    field = field_of(target)
    low, high = (unsigned_number(context, each, "a hash with a base or size") for each in (base, size))
    with context.out.block(""):
        context.out.line(f"u64 size = {high.text};")
        text = f"({calculations.call(context, calculation)} % (size ? size : 1) + {low.text})"
        context.assign(field, unsigned_word(text, WORD))


PRIMITIVES: dict[str, Handler] = {
    "_jump": jump,
    "_jump_if_zero": jump_if_zero,
    "add_header": headers.add_header,
    "assert": claim,
    "assign": assign,
    "assign_VL": headers.assign_variable,
    "assign_header": headers.assign_header,
    "assign_header_stack": headers.assign_all,
    "assign_union": headers.assign_all,
    "assume": claim,
    "clone_egress_pkt_to_egress": clone,
    "clone_ingress_pkt_to_egress": clone,
    "count": count,
    "execute_meter": execute_meter,
    "exit": leave,
    "generate_digest": digest,
    "log_msg": log_message,
    "mark_to_drop": mark_to_drop,
    "modify_field_rng_uniform": random_number,
    "modify_field_with_hash_based_offset": hash_field,
    "pop": headers.pop,
    "push": headers.push,
    "recirculate": return_to_parser("recirculate"),
    "register_read": register_read,
    "register_write": register_write,
    "remove_header": headers.remove_header,
    "resubmit": return_to_parser("resubmit"),
    "truncate": truncate,
}
