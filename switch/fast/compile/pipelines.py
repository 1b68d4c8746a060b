"""Ingress and egress pipelines to C: a label for each table and condition, and jumps that only go forward.

For each table, it writes the entry's type and the search for a packet's key.
"""

from __future__ import annotations

from inakit.switch.fast.compile.calculations import call, has_payload
from inakit.switch.fast.compile.context import Context, located
from inakit.switch.fast.compile.expressions import WIDE, WORD, Value, unsigned_word, word_text
from inakit.switch.fast.layout.layout import ValueSetLayout
from inakit.switch.fast.layout.records import WORD_BYTES, MemoryRecord
from inakit.switch.fast.layout.table_layout import (
    COPIES,
    GROUP_RECORD,
    METER_RATES,
    TableLayout,
    counts_array,
    default_array,
    first_array,
    lengths_array,
    matched_array,
    members_array,
    meter_array,
)
from inakit.switch.program.program import Action, Conditional, Field, MatchKey, Meter, Node, Pipeline, Table, Unknown
from inakit.topo.errors import UnsupportedError


def declare_entries(context: Context, layout: TableLayout) -> None:
    """Declare the key and the entry of a table."""
    out, symbol = context.out, layout.symbol
    if layout.hashed:
        out.line(f"struct {layout.key.name} {{ u64 words[{layout.key.size // 8}]; }};")
    with out.block(f"struct entry_{symbol}", ";"):
        out.line("u32 present, action;")
        with out.block("union", " given;"):
            for record in layout.values.values():
                out.line(f"struct {record.name} {record.name};")
            if layout.table.profile:
                out.line(f"struct {GROUP_RECORD.name} group;")
    size = f"sizeof(struct entry_{symbol}) == {layout.entry_bytes}"
    out.line(f'_Static_assert({size}, "layout of the entries of {symbol}");')
    if layout.direct:
        out.line(f"struct place_{symbol} {{ struct entry_{symbol} copies[{COPIES}]; }};")
    if layout.rule is not None:
        layout.rule.declare(out)
        out.line(f"struct listed_{symbol} {{ struct {layout.rule.name} rule; struct entry_{symbol} entry; }};")
    if layout.rule is not None or layout.prefixed:
        with out.block("WHOLE struct", f" sought_{symbol};"):  # the packet's key for the search
            for index, part in enumerate(layout.table.key):
                out.line(f"u{word_of(part.bits)} part_{index};")


def emit_lookup(context: Context, layout: TableLayout) -> None:
    """Write the declaration of `entry`: the table's entry for the packet's key, or null."""
    out, parts, symbol = context.out, [key_part(context, part) for part in layout.table.key], layout.symbol
    entry = f"const struct entry_{symbol} *entry"
    if layout.direct:
        out.line(f"{entry} = find_{symbol}({parts[0]});")
    elif layout.rule is not None or layout.prefixed:
        for index, text in enumerate(parts):
            out.line(f"sought_{symbol}.part_{index} = {text};")
        out.line(f"{entry} = search_{symbol}();")
    else:
        out.line(f"const struct {layout.key.name} key = {{{{{', '.join(words_of(layout.key, parts))}}}}};")
        out.line(f"{entry} = find_{symbol}(&key);")


def default_text(context: Context, table: Table) -> str:
    """The C expression of the default action that the control plane has set: an entry, or null."""
    arrays, defaults = context.layout.arrays, context.layout.defaults
    which = f"own->{defaults.symbol}[0].{defaults.record.symbols[table.name]}"
    return f"{which} ? &own->{arrays[default_array(table.name)].symbol}[{which} % {COPIES}] : 0"


def emit_note_of_hit(context: Context, layout: TableLayout) -> None:
    """Write the statements that count a hit, by the entry's number, and store its time."""
    out, arrays, name = context.out, context.layout.arrays, layout.table.name
    if not layout.numbered:
        return
    out.line("u64 number = entry ? entry->present - 1 : -1;")
    with out.block(f"if (number < {layout.most_entries})"):
        out.line("CHECKED(number);")
        if layout.table.counted:
            out.line(f"COUNT_PACKET(own->{arrays[counts_array(name)].symbol}[number]);")
        if layout.table.idle_timeout:
            out.line(f"own->{arrays[matched_array(name)].symbol}[number].ns = clock_ns();")
        if layout.table.meter is not None:
            meter = context.program.direct_meters[layout.table.meter]
            assert meter.result is not None, "a direct meter without a result"
            context.assign(meter.result, colour(context, meter, "number"))
            context.touch([meter.result])


def colour(context: Context, meter: Meter, index: str) -> Value:
    """The colour that a meter's cell at `index`, which is below its size, gives the packet."""
    size = "state.length" if meter.of_bytes else "1"
    cell = f"&own->{context.layout.arrays[meter_array(meter.name)].symbol}[{index}]"
    return unsigned_word(f"colour_of({cell}, MICROSECONDS, {size})", METER_RATES.bit_length())


def emit_choice(context: Context, layout: TableLayout, without: str) -> None:
    """Write the selector's choice among the members of an entry's group; an empty group is followed by `without`."""
    array = context.layout.arrays.get(members_array(layout.table.name))
    selector = context.program.profiles[layout.table.profile].selector if layout.table.profile else None
    if array is None or selector is None:
        return
    if has_payload(selector):
        raise UnsupportedError(f"a selector of table '{layout.table.name}' that hashes the payload")
    chosen = f"{call(context, selector)}, {array.symbol}, {array.length}, {without}"
    context.out.line(f"CHOOSE_MEMBER(entry, {chosen})")


def declare_value_set(context: Context, layout: ValueSetLayout) -> None:
    """Declare the hash table of a parser value set."""
    out, symbol = context.out, layout.symbol
    out.line(f"struct key_{symbol} {{ u64 words[{layout.key.size // 8}]; }};")
    out.line(f"struct entry_{symbol} {{ u64 present; }};")
    out.line(f"TABLE({symbol}, struct key_{symbol}, struct entry_{symbol}, {layout.most})")


def emit_membership(context: Context, layout: ValueSetLayout) -> None:
    """Write `in_<value set>`, which tests membership of a value."""
    word = word_of(layout.value_set.bits)
    with context.out.block(f"static INLINE int in_{layout.symbol}(u{word} value)"):
        words = ", ".join(words_of(layout.key, ["value"]))
        context.out.line(f"const struct key_{layout.symbol} key = {{{{{words}}}}};")
        context.out.line(f"return find_{layout.symbol}(&key) != 0;")


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
    kept, headers = context.layout.rebuilt or part.value in context.layout.written, context.program.headers
    if kept and isinstance(part.value, Field) and not headers[part.value.header].metadata:
        text = f"({context.validity(part.value.header)} ? {text} : 0)"  # the field of an invalid header is 0
    return text if part.mask is None else f"({text} & {word_text(part.mask, word_of(part.bits))})"


def word_of(bits: int) -> int:
    """The bits of the C word that holds a number of `bits` bits."""
    return WORD if bits <= WORD else WIDE


def emit_search(context: Context, layout: TableLayout) -> None:
    """Write the search function of a table that needs more than one lookup in a hash table."""
    out, symbol, arrays, name = context.out, layout.symbol, context.layout.arrays, layout.table.name
    if layout.direct:
        out.line(f"FIND_DIRECT({symbol}, {arrays[name].length})")
    elif layout.rule is not None:
        tests = []
        for index in range(len(layout.table.key)):
            mask, least, most = (f"rule->{layout.rule.symbols[f'{end} {index}']}" for end in ("mask", "least", "most"))
            part = f"(sought_{symbol}.part_{index} & {mask})"
            tests += [f"{part} >= {least}", f"{part} <= {most}"]
        with out.block(f"static INLINE int matches_{symbol}(const struct {layout.rule.name} *rule)"):
            out.line(f"return {' && '.join(tests)};")
        first, places = arrays[first_array(name)].symbol, arrays[name].length
        out.line(f"SEARCH_LIST({symbol}, {first}, {places}, {layout.most_entries})")
    elif layout.prefixed:
        place, prefix = layout.prefix_part
        word = word_of(prefix.bits)
        ones = word_text((1 << prefix.bits) - 1, word)
        parts = [f"sought_{symbol}.part_{index}" for index in range(len(layout.table.key))]
        parts[place] = f"({parts[place]} & mask)"
        shift = f"shift_left{'_wide' if word > WORD else ''}"
        with out.block(f"static INLINE const struct entry_{symbol} *prefix_{symbol}(u32 length)"):
            out.line(f"u{word} mask = {shift}({ones}, {prefix.bits} - length) & {ones};")
            words = ", ".join(words_of(layout.key, [*parts, "length"]))
            out.line(f"const struct {layout.key.name} key = {{{{{words}}}}};")
            out.line(f"return find_{symbol}(&key);")
        out.line(f"SEARCH_PREFIXES({symbol}, {arrays[lengths_array(name)].symbol}, {prefix.bits})")


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
                    if isinstance(node, Table):
                        emit_table(context, node)
                    else:  # {"name": "node_3", "expression": {...}, "true_next": "x", "false_next": null}
                        condition = context.value(node.condition).text
                        out.line(f"if ({condition}) goto {label(context, node.true_next)};")
                        out.line(f"goto {label(context, node.false_next)};")
        out.line("done: return;")


def in_order(pipeline: Pipeline) -> list[str]:
    """The reachable nodes, each before all that follow it; `UnsupportedError` for a loop."""
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
    """The nodes that can follow a node; None means the pipeline's end."""
    if isinstance(node, Conditional):
        return [node.true_next, node.false_next]
    return [node.hit, node.miss] if node.by_outcome else list(dict.fromkeys([*node.after.values(), node.base_next]))


def label(context: Context, name: str | None) -> str:
    """The C label of a node; None means the pipeline's end."""
    return "done" if name is None else context.layout.names.of(f"at {name}")


# {"name": "t", "key": [...], "actions": [...], "next_tables": {...}, "default_entry": {...}}
def emit_table(context: Context, table: Table) -> None:
    """Write a table: lookup, the actions of a hit or of a default that was set, the program's own action of a miss."""
    out, parameters, changeable = context.out, context.layout.parameters, table.name in context.layout.changeable
    if table.key or changeable:
        emit_search_of_entry(context, table)
        with out.block("if (entry)"), out.block("switch (entry->action)"):
            for action in table.actions:
                with out.block(f"case {action.number}:"):
                    emit_call(context, action, f"&entry->given.{parameters[action.number].name}")
                    default_may_run = changeable and table.key and table.hit != table.miss
                    if table.by_outcome and default_may_run and not action.always_exits:
                        out.line(f"if (!hit) goto {label(context, table.miss)};")
                    emit_jump(context, table, table.hit if table.key else table.miss, action)
    if table.default is None:
        out.line(f"goto {label(context, table.miss if table.by_outcome else table.base_next)};")
        return
    action, values = table.default.action, table.default.values
    if values:
        record = parameters[action.number]
        members = zip(record.order, values, strict=True)
        given = ", ".join(f".{m.symbol} = {word_text(v, word_of(8 * m.size))}" for m, v in members)
        out.line(f"const struct {record.name} given = {{{given}}};")
    emit_call(context, action, "&given")
    emit_jump(context, table, table.miss, action)


def emit_search_of_entry(context: Context, table: Table) -> None:
    """Write the declaration of `entry`: the matching one, else the default that was set, else null."""
    layout, changeable = context.layout, table.name in context.layout.changeable
    if not table.key:
        symbol = layout.changeable[table.name].symbol
        context.out.line(f"const struct entry_{symbol} *entry = {default_text(context, table)};")
        return
    emit_lookup(context, layout.tables[table.name])
    emit_note_of_hit(context, layout.tables[table.name])
    if changeable and table.by_outcome:
        context.out.line("int hit = entry != 0;")
    if changeable:
        context.out.line(f"if (!entry) entry = {default_text(context, table)};")
    emit_choice(context, layout.tables[table.name], jump_without_action(context, table))


def jump_without_action(context: Context, table: Table) -> str:
    """The jump for an entry, or a default that was set, with an empty group."""
    if not table.by_outcome:
        return f"goto {label(context, table.base_next)};"
    hit, miss = (f"goto {label(context, each)};" for each in (table.hit, table.miss))
    return f"{{ if (hit) {hit} else {miss} }}" if table.name in context.layout.changeable else hit


def emit_call(context: Context, action: Action, given: str) -> None:
    """Write the call of an action with a pointer to its parameters; leave the pipeline if the action demands it."""
    call = f"action_{action.number}({given if action.parameters else ''})"
    context.out.line(f"if ({call}) goto done;" if action.may_exit else f"{call};")


def emit_jump(context: Context, table: Table, outcome: str | None, action: Action) -> None:
    """Write the jump to the next node.

    It depends on hit or miss, or on the action that ran; an action with `exit` jumps to the pipeline's end.
    """
    if action.always_exits:
        context.out.line("goto done;")
        return
    context.out.line(f"goto {label(context, outcome if table.by_outcome else table.after[action.number])};")
