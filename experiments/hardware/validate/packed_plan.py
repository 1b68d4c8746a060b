"""A plan as a short text, in which the result of a trial keeps it: the plan that was judged is the one that is run.

A planner whose solver is short of time may find another plan when it is asked again.
"""

from __future__ import annotations

import base64
import zlib

from pydantic import TypeAdapter

from inakit.planner.core.plan import Plan

PLAN: TypeAdapter[Plan] = TypeAdapter(Plan)


def packed(plan: Plan) -> str:
    """The plan as a text of some kilobytes."""
    return base64.b64encode(zlib.compress(PLAN.dump_json(plan))).decode()


def unpacked(text: str) -> Plan:
    """The plan of such a text."""
    return PLAN.validate_json(zlib.decompress(base64.b64decode(text)))
