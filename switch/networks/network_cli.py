"""Mininet's command line with additional commands, such as `switch s1 table_add ...`."""

from __future__ import annotations

import shlex

from mininet.cli import CLI

from inakit.switch.networks.running_network import RunningNetwork
from inakit.topo.errors import InakitError


class NetworkCli(CLI):  # type: ignore[misc]
    """Takes Mininet's commands (`h1 ping h2`, `pingall`, `xterm h1`), and those of simple_switch_CLI for a switch."""

    prompt = "inakit> "

    def __init__(self, network: RunningNetwork, **options: object) -> None:
        self.network = network
        super().__init__(network.net, **options)

    def do_switch(self, line: str) -> None:
        """Change the tables, groups or registers of a switch: switch s1 table_add ipv4_lpm drop 10.0.0.1/32 =>"""
        name, _, command = line.partition(" ")
        switches = {switch.name: switch for switch in self.network.switches}
        if name not in switches or not command:
            print(f"switch: expected one of {', '.join(switches)}, and a command of simple_switch_CLI")
            return
        try:
            said = switches[name].run_command(command)
        except InakitError as error:
            said = str(error)
        if said is not None:
            print(said)

    def do_register(self, line: str) -> None:
        """Show the elements of a register that are not 0: register s1 NAME"""
        try:
            name, register = shlex.split(line)
            control = next(each for each in self.network.switches if each.name == name).served.control
            values = control.registers.read_all(register).tolist()
        except (ValueError, StopIteration, InakitError) as error:
            print(f"register: expected a switch and the name of its register; {error}")
            return
        print(", ".join(f"[{index}] {value}" for index, value in enumerate(values) if value) or "all 0")
