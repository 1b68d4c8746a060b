"""HiGHS as every model of the kit is solved with it: one thread, nothing printed, and Ctrl-C heard meanwhile."""

from __future__ import annotations

import highspy

from inakit.planner.solvers.interruptible import interruptible

TOLERANCE = 1e-7
"""How far rows may be off. By HiGHS's own 1e-6 a bound is off by as much as counts as proven (`PROVEN_GAP`)."""


class Highs(highspy.Highs):
    """A solver on one thread, so that it finds the same on every machine. It prints nothing.

    HiGHS prints a banner at the first call of any method unless its output is off, and since 1.8 its own constructor
    makes such a call, `enableCallbacks`.
    """

    def __init__(self, time_limit_s: float, gap: float, seed: int = 0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        for name, value in {
            "output_flag": False,
            "threads": 1,
            "time_limit": max(float(time_limit_s), 0.001),
            "random_seed": seed,
            "mip_rel_gap": gap,
            "mip_abs_gap": 0.0,
            "mip_feasibility_tolerance": TOLERANCE,
        }.items():
            self.setOptionValue(name, value)

    def enableCallbacks(self) -> None:  # noqa: N802, HiGHS's name
        """Turn output off before the first call that would print."""
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()  # type: ignore[no-untyped-call]

    def run(self) -> highspy.HighsStatus:
        """Solve the model; the main thread hears Ctrl-C while another one solves."""
        return interruptible(self.run_anew)

    def run_anew(self) -> highspy.HighsStatus:
        """Solve the model, whatever number of threads an earlier solve of this thread had taken.

        HiGHS keeps that number for each thread that calls it, and refuses a solve with another. A planner of a user may
        have solved its model with PuLP's own solver, which takes as many as there are processors.
        """
        status = super().run()
        if status == highspy.HighsStatus.kError and self.getModelStatus() == highspy.HighsModelStatus.kNotset:
            highspy.Highs.resetGlobalScheduler(True)
            status = super().run()
        return status
