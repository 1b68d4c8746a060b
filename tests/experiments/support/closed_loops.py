"""Options of closed loops that tests share."""

from __future__ import annotations

from inakit.traffic.closed_loop import ReliableOptions
from inakit.traffic.endpoints.options import WorkerOptions

NEVER_AGAIN = ReliableOptions(WorkerOptions(min_timeout_s=9.0, first_timeout_s=9.0, max_timeout_s=9.0), stall_s=30.0)
"""Timeouts of 9 s, so that on a busy machine no worker takes a late packet for a lost one."""
