"""When programs that ask when egress began make the switch read its clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from inakit.switch.fast.compile.generate import generate
from inakit.switch.fast.layout.field_usage import read_in_egress_actions_only
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.program.program import STANDARD_METADATA
from inakit.traffic.wire.packet_format import PROGRAM

TIMES = Path(__file__).parents[2] / "programs" / "times.json"


def test_packets_that_need_no_time_do_not_read_the_clock() -> None:
    source = generate(read_program(PROGRAM)).source
    assert "#define LATE_CLOCK 1" in source
    assert source.count("SET_EGRESS_GLOBAL_TIMESTAMP(MICROSECONDS)") == 1  # in the one action that reads the time


@pytest.mark.parametrize(
    ("name", "late"), [("egress_global_timestamp", True), ("ingress_global_timestamp", False), ("egress_port", False)]
)
def test_only_what_actions_of_egress_read_can_wait(name: str, late: bool) -> None:
    program = read_program(TIMES)
    field = program.find_field(STANDARD_METADATA, name)
    assert field is not None
    assert read_in_egress_actions_only(program, field) is late
