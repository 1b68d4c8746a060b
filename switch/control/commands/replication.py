"""Commands for multicast groups, their nodes, link aggregation groups and mirror sessions."""

from __future__ import annotations

from inakit.switch.control.commands.command import Command, CommandedSwitch
from inakit.switch.control.commands.words import Words
from inakit.switch.control.commands.words import parse_number as number
from inakit.switch.entries import MirrorSession


def create_group(switch: CommandedSwitch, words: Words) -> None:
    """`mc_mgrp_create`: a new group without nodes."""
    (group,) = words
    switch.control.create_mgrp(number(group))


def destroy_group(switch: CommandedSwitch, words: Words) -> None:
    """`mc_mgrp_destroy`."""
    (group,) = words
    switch.control.destroy_mgrp(number(group))


def create_node(switch: CommandedSwitch, words: Words) -> None:
    """`mc_node_create`: a node with the `egress_rid` of its replicas and their ports."""
    replica, *rest = words
    switch.control.create_node(number(replica), *ports_and_lags(rest))


def update_node(switch: CommandedSwitch, words: Words) -> None:
    """`mc_node_update`: other ports for a node."""
    node, *rest = words
    switch.control.update_node(number(node), *ports_and_lags(rest))


def destroy_node(switch: CommandedSwitch, words: Words) -> None:
    """`mc_node_destroy`: a node goes, also out of its group."""
    (node,) = words
    switch.control.destroy_node(number(node))


def associate(switch: CommandedSwitch, words: Words) -> None:
    """`mc_node_associate`: a node joins a group."""
    group, node = words
    switch.control.associate_node(number(group), number(node))


def dissociate(switch: CommandedSwitch, words: Words) -> None:
    """`mc_node_dissociate`: a node leaves its group."""
    group, node = words
    switch.control.dissociate_node(number(group), number(node))


def set_lag(switch: CommandedSwitch, words: Words) -> None:
    """`mc_set_lag_membership`: the ports of a link aggregation group."""
    lag, *ports = words
    switch.control.set_lag(number(lag), map(number, ports))


def mirror_to_port(switch: CommandedSwitch, words: Words) -> None:
    """`mirroring_add`: a session whose clones leave by one port."""
    session, port = words
    switch.control.put_session(MirrorSession(number(session), number(port)))


def mirror_to_group(switch: CommandedSwitch, words: Words) -> None:
    """`mirroring_add_mc`: a session whose clones leave by a multicast group."""
    session, group = words
    switch.control.put_session(MirrorSession(number(session), group=number(group)))


def delete_session(switch: CommandedSwitch, words: Words) -> None:
    """`mirroring_delete`."""
    (session,) = words
    switch.control.remove_session(number(session))


def ports_and_lags(words: Words) -> tuple[list[int], list[int]]:
    """The ports, and the link aggregation groups behind `|`."""
    at = words.index("|") if "|" in words else len(words)
    return [number(word) for word in words[:at]], [number(word) for word in words[at + 1 :]]


COMMANDS = {
    "mc_mgrp_create": Command("GROUP", create_group),
    "mc_mgrp_destroy": Command("GROUP", destroy_group),
    "mc_node_create": Command("REPLICA PORT... [| LAG...]", create_node),
    "mc_node_update": Command("NODE PORT... [| LAG...]", update_node),
    "mc_node_destroy": Command("NODE", destroy_node),
    "mc_node_associate": Command("GROUP NODE, the nodes counted from 0", associate),
    "mc_node_dissociate": Command("GROUP NODE, the nodes counted from 0", dissociate),
    "mc_set_lag_membership": Command("LAG PORT...", set_lag),
    "mirroring_add": Command("SESSION PORT", mirror_to_port),
    "mirroring_add_mc": Command("SESSION GROUP", mirror_to_group),
    "mirroring_delete": Command("SESSION", delete_session),
}
