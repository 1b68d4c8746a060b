"""Ingress and egress pipelines to C: a label for each table and condition, and jumps that only go forward."""

from __future__ import annotations

from inakit.switch.fast.compile.context import Context, located
from inakit.switch.fast.compile.expressions.values import word_text
from inakit.switch.fast.compile.pipelines.tables import (
    default_text,
    emit_choice,
    emit_lookup,
    emit_note_of_hit,
    word_of,
)
from inakit.switch.program.program import Action, ActionCall
from inakit.switch.program.program import Conditional, Node, Pipeline, Table
from inakit.topo.errors import UnsupportedError


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
    return [node.hit, node.miss] if node.by_outcome else list(dict.fromkeys([*node.after.values(), node.base_next]))


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
    """Write a table: lookup, actions of a hit or of a default that was set, the program's own action of a miss."""
    if table.key or table.name in context.layout.changeable:
        emit_search_of_entry(context, table)
        with context.out.block("if (entry)"):
            emit_entry(context, table)
    emit_miss(context, table)


def emit_search_of_entry(context: Context, table: Table) -> None:
    """Write the declaration of `entry`: what the packet hits, or the default that was set, or null."""
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
    """The jump behind an entry, or a default that was set, whose group is empty."""
    if not table.by_outcome:
        return f"goto {label(context, table.base_next)};"
    hit, miss = (f"goto {label(context, each)};" for each in (table.hit, table.miss))
    return f"{{ if (hit) {hit} else {miss} }}" if table.name in context.layout.changeable else hit


def emit_entry(context: Context, table: Table) -> None:
    """Write the call of the action that `entry` names, with a jump behind it."""
    with context.out.block("switch (entry->action)"):
        for action in table.actions:
            with context.out.block(f"case {action.number}:"):
                given = f"&entry->given.{context.layout.parameters[action.number].name}" if action.parameters else ""
                emit_call(context, action, given)
                emit_jump_after_entry(context, table, action)


def emit_jump_after_entry(context: Context, table: Table, action: Action) -> None:
    """Write the jump behind an action that an entry named, or a default that was set."""
    changeable = table.name in context.layout.changeable
    if table.by_outcome and changeable and table.key and not action.always_exits and table.hit != table.miss:
        context.out.line(f"if (!hit) goto {label(context, table.miss)};")
    emit_jump(context, table, table.hit if table.key else table.miss, action)


def emit_miss(context: Context, table: Table) -> None:
    """Write the call of the program's own default action, with a jump behind it."""
    if table.default is None:
        context.out.line(f"goto {label(context, table.miss if table.by_outcome else table.base_next)};")
        return
    emit_default(context, table.default)
    emit_jump(context, table, table.miss, table.default.action)


def emit_call(context: Context, action: Action, given: str) -> None:
    """Write the call of an action with a pointer to its parameters; it leaves the pipeline if the action says so."""
    call = f"action_{action.number}({given})"
    context.out.line(f"if ({call}) goto done;" if action.may_exit else f"{call};")


def emit_default(context: Context, call: ActionCall) -> None:
    """Write the call of an action with constant parameters."""
    if not call.values:
        emit_call(context, call.action, "")
        return
    record = context.layout.parameters[call.action.number]
    values = zip(record.order, call.values, strict=True)
    given = ", ".join(f".{m.symbol} = {word_text(v, word_of(8 * m.size))}" for m, v in values)
    context.out.line(f"const struct {record.name} given = {{{given}}};")
    emit_call(context, call.action, "&given")


def emit_jump(context: Context, table: Table, outcome: str | None, action: Action) -> None:
    """Write the jump to the node that follows.

    That depends on hit or miss, or on the action that ran; an action with `exit` jumps to the pipeline's end.
    """
    if action.always_exits:
        context.out.line("goto done;")
        return
    context.out.line(f"goto {label(context, outcome if table.by_outcome else table.after[action.number])};")
