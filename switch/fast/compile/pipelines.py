"""Ingress and egress pipelines to C: a label for each table and condition, and jumps that only go forward."""

from __future__ import annotations

from switch.fast.compile.context import Context, located
from switch.fast.compile.values import WIDE, WORD, word_text
from switch.fast.layout.records import WORD_BYTES, MemoryRecord
from switch.fast.layout.table_layout import TableLayout
from switch.program.actions import Action, ActionCall
from switch.program.expressions import Unknown
from switch.program.headers import Field
from switch.program.pipelines import Conditional, MatchKey, Node, Pipeline, Table
from topo.errors import UnsupportedError


def emit_pipeline(context: Context, pipeline: Pipeline) -> None:
    """Write the function named after the pipeline."""
    out = context.out
    with out.block(f"static INLINE void {context.layout.names.of(pipeline.name)}(void)"):
        for name in in_order(pipeline):
            node = pipeline.nodes[name]
            with out.block(f"{label(context, name)}:"):
                if node.source is not None:
                    out.comment(node.source)
                with located(node.source):
                    emit_node(context, node)
        out.line("done: return;")


def in_order(pipeline: Pipeline) -> list[str]:
    """The nodes that can be reached, each before all that follow it; `UnsupportedError` for a loop."""
    finished: list[str] = []
    entered: set[str] = set()

    def visit(name: str | None) -> None:
        if name is None or name in finished:
            return
        if name in entered:
            raise UnsupportedError(f"a loop in pipeline '{pipeline.name}' at '{name}'")
        entered.add(name)
        for following in successors(pipeline.nodes[name]):
            visit(following)
        finished.append(name)

    visit(pipeline.first)
    return finished[::-1]


def successors(node: Node) -> list[str | None]:
    """The nodes that can follow a node; None is the pipeline's end."""
    if isinstance(node, Conditional):
        return [node.true_next, node.false_next]
    return [node.hit, node.miss] if node.by_outcome else list(dict.fromkeys(node.after.values()))


def label(context: Context, name: str | None) -> str:
    """The C label of a node; None is the pipeline's end."""
    return "done" if name is None else context.layout.names.of(f"at {name}")


def emit_node(context: Context, node: Node) -> None:
    """Write one node."""
    if isinstance(node, Table):
        emit_table(context, node)
    else:
        emit_conditional(context, node)


# {"name": "node_3", "expression": {...}, "true_next": "x", "false_next": null}
def emit_conditional(context: Context, node: Conditional) -> None:
    """Write a condition with its two jumps."""
    condition = context.value(node.condition).text
    context.out.line(f"if ({condition}) goto {label(context, node.true_next)};")
    context.out.line(f"goto {label(context, node.false_next)};")


# {"name": "t", "key": [...], "actions": [...], "next_tables": {...}, "default_entry": {...}}
def emit_table(context: Context, table: Table) -> None:
    """Write a table: lookup, actions of a hit, action of a miss."""
    if table.key:
        emit_lookup(context, context.layout.tables[table.name])
        with context.out.block("if (entry)"):
            emit_hit(context, table)
    emit_miss(context, table)


def emit_lookup(context: Context, layout: TableLayout) -> None:
    """Write the declaration of `entry`: what the table holds for the packet's key, or null."""
    out, parts = context.out, [key_part(context, part) for part in layout.table.key]
    entry = f"const struct entry_{layout.symbol} *entry"
    if layout.direct:
        array = context.layout.arrays[layout.table.name]
        out.line(f"u64 index = {parts[0]};")
        out.line("UNKNOWN(index);")
        out.line(f"{entry} = index < {array.length} ? (void *)&own->{array.symbol}[index] : 0;")
        out.line("if (entry && !entry->present) entry = 0;")
        return
    if layout.rule is not None:
        for index, text in enumerate(parts):
            out.line(f"sought_{layout.symbol}.part_{index} = {text};")
        out.line(f"{entry} = find_{layout.symbol}();")
        return
    out.line(f"const struct {layout.key.name} key = {{{{{', '.join(words_of(layout.key, parts))}}}}};")
    out.line(f"{entry} = find_{layout.symbol}(&key);")


def words_of(key: MemoryRecord, parts: list[str]) -> list[str]:
    """The C expressions of a key's 64-bit words. Keys that are written in whole words stay in registers."""
    words: list[list[str]] = [[] for _ in range(key.size // 8)]
    for member, part in zip(key.order, parts, strict=True):
        words[member.offset // 8].append(f"(u64)({part}) << {8 * (member.offset % 8)}")
        if member.size > WORD_BYTES:
            words[member.offset // 8 + 1].append(f"(u64)(({part}) >> 64)")
    return [" | ".join(terms) for terms in words]


def key_part(context: Context, part: MatchKey) -> str:
    """The C expression of one part of the packet's key."""
    assert not isinstance(part.value, Unknown), "a key that was not checked"
    text = context.value(part.value).text
    if isinstance(part.value, Field) and may_keep_values(context, part.value):
        text = f"({context.validity(part.value.header)} ? {text} : 0)"
    return text if part.mask is None else f"({text} & {word_text(part.mask, word_of(part.bits))})"


def may_keep_values(context: Context, field: Field) -> bool:
    """Whether a field can be other than 0 while its header is not valid: to the key of a table it is 0 then."""
    layout = context.layout
    return not context.program.headers[field.header].metadata and (layout.rebuilt or field in layout.written)


def word_of(bits: int) -> int:
    """The bits of the word that holds a number of so many bits."""
    return WORD if bits <= WORD else WIDE


def emit_hit(context: Context, table: Table) -> None:
    """Write the call of the action that `entry` names, with a jump behind it."""
    with context.out.block("switch (entry->action)"):
        for action in table.actions:
            with context.out.block(f"case {action.number}:"):
                given = f"&entry->given.{context.layout.parameters[action.number].name}" if action.parameters else ""
                context.out.line(f"action_{action.number}({given});")
                emit_jump(context, table, table.hit, action)
    if table.by_outcome:
        context.out.line(f"goto {label(context, table.hit)};")


def emit_miss(context: Context, table: Table) -> None:
    """Write the call of the default action, with a jump behind it."""
    assert table.default is not None, "a table that was not checked"
    emit_call(context, table.default)
    emit_jump(context, table, table.miss, table.default.action)


def emit_call(context: Context, call: ActionCall) -> None:
    """Write the call of an action with constant parameters."""
    if not call.values:
        context.out.line(f"action_{call.action.number}();")
        return
    record = context.layout.parameters[call.action.number]
    values = zip(record.order, call.values, strict=True)
    given = ", ".join(f".{m.symbol} = {word_text(v, word_of(8 * m.size))}" for m, v in values)
    context.out.line(f"const struct {record.name} given = {{{given}}};")
    context.out.line(f"action_{call.action.number}(&given);")


def emit_jump(context: Context, table: Table, outcome: str | None, action: Action) -> None:
    """Write the jump to the node that follows.

    That depends on hit or miss, or on the action that ran; an action with `exit` jumps to the pipeline's end.
    """
    if any(primitive.name == "exit" for primitive in action.primitives):
        context.out.line("goto done;")
        return
    context.out.line(f"goto {label(context, outcome if table.by_outcome else table.after[action.number])};")


def declare_entries(context: Context, layout: TableLayout) -> None:
    """Declare the key and the entry of a table."""
    if layout.hashed:
        context.out.line(f"struct {layout.key.name} {{ u64 words[{layout.key.size // 8}]; }};")
    with context.out.block(f"struct entry_{layout.symbol}", ";"):
        context.out.line("u32 present, action;")
        with context.out.block("union", " given;"):
            for record in layout.values.values():
                declare_given(context, record)
    size = f"sizeof(struct entry_{layout.symbol}) == {layout.entry_bytes}"
    context.out.line(f'_Static_assert({size}, "layout of the entries of {layout.symbol}");')
    if layout.rule is not None:
        declare_list(context, layout, layout.rule)


def declare_list(context: Context, layout: TableLayout, rule: MemoryRecord) -> None:
    """Declare a place of a list, and the variable that holds a packet's key while it is sought."""
    rule.declare(context.out)
    context.out.line(
        f"struct listed_{layout.symbol} {{ struct {rule.name} rule; struct entry_{layout.symbol} entry; }};"
    )
    with context.out.block("WHOLE struct", f" sought_{layout.symbol};"):
        for index, part in enumerate(layout.table.key):
            context.out.line(f"u{word_of(part.bits)} part_{index};")


def emit_search(context: Context, layout: TableLayout) -> None:
    """Write `find_<table>`: the first place of a list that matches `sought_<table>`, searched block by block."""
    assert layout.rule is not None
    out, symbol, end = context.out, layout.symbol, layout.table.size
    tests = []
    for index in range(len(layout.table.key)):
        mask, least, most = (f"rule->{layout.rule.symbols[f'{name} {index}']}" for name in ("mask", "least", "most"))
        part = f"(sought_{symbol}.part_{index} & {mask})"
        tests += [f"{part} >= {least}", f"{part} <= {most}"]
    with out.block(f"FUNCTION u64 search_{symbol}(u64 place)"):
        with out.block("for (u32 i = 0; i < LIST_BLOCK; i++, place++)"):
            out.line(f"if (place >= {end}) return {end};")
            out.line("CHECKED(place);")
            out.line(f"if (!own->{symbol}[place].entry.present) return {end};")
            out.line(f"const struct {layout.rule.name} *rule = &own->{symbol}[place].rule;")
            out.line(f"if ({' && '.join(tests)}) return place;")
        out.line(f"return {end + 1};")
    with out.block(f"static INLINE const struct entry_{symbol} *find_{symbol}(void)"):
        out.line(f"u64 place = {end + 1};")
        out.line(
            f"for (u64 from = 0; from < {end} && place > {end}; from += LIST_BLOCK) place = search_{symbol}(from);"
        )
        out.line(f"if (place >= {end}) return 0;")
        out.line("CHECKED(place);")
        out.line(f"return &own->{symbol}[place].entry;")


def declare_given(context: Context, record: MemoryRecord) -> None:
    """Declare the parameters of one action in an entry."""
    context.out.line(f"struct {record.name} {record.name};")
