"""The platform `inakit` of PTF: `ptf --platform inakit --platform-dir THIS_FOLDER --platform-args OPTIONS_AS_JSON`."""

from __future__ import annotations

import atexit
import json
from contextlib import ExitStack
from typing import Any

from inakit.switch.testing.ptf.platform import PtfOptions, start


def platform_config_update(config: dict[str, Any]) -> None:
    """Start the switch that the tests run against; it ends with PTF."""
    given = json.loads(config["platform_args"] or "{}")
    stack = ExitStack()
    atexit.register(stack.close)
    start(config, PtfOptions(**given), stack)
