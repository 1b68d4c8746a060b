"""The `inakit` command, composed of subcommands, each of which is a file of `experiments.cli.commands`.

`experiments.cli.main` runs it, and turns errors and signals into messages and exit codes.
"""

from __future__ import annotations

import typer

from experiments.cli.commands import (
    agree,
    bench,
    calibrate,
    capture,
    check,
    design,
    dissector,
    dump,
    emulate,
    exactness,
    grade,
    hardware,
    jobs,
    labs,
    p4c,
    place,
    plan,
    planners,
    report,
    reproduce,
    shim,
    study,
    switch,
    top,
    topo,
    train,
    validate,
)
from experiments.cli.options import with_groups

COMMANDS = (
    emulate.emulate,
    train.train,
    report.report,
    plan.plan,
    design.design,
    validate.validate,
    place.place,
    topo.topo,
    jobs.jobs,
    check.check,
    planners.planners,
    bench.bench,
    exactness.exactness,
    agree.agree,
    grade.grade,
    p4c.p4c,
    reproduce.reproduce,
    dump.dump,
    calibrate.calibrate,
    capture.capture,
    top.top,
    dissector.dissector,
    shim.shim,
)
"""The subcommands, in the order in which the help lists them."""

app = typer.Typer(
    name="inakit",
    help="Emulation of in-network aggregation: plan it, run it on real packets, compare.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(labs.app, name="labs")
app.add_typer(study.app, name="study")
app.add_typer(switch.app, name="switch")
app.add_typer(hardware.app, name="hardware")
for command in COMMANDS:
    app.command()(with_groups(command))
