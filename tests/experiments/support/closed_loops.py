"""Options of closed loops that tests share."""

from __future__ import annotations

from inakit.traffic.endpoints.worker_options import WorkerOptions
from inakit.traffic.runs.closed_loop import ReliableOptions

NEVER_AGAIN = ReliableOptions(WorkerOptions(min_timeout_s=9.0, first_timeout_s=9.0, max_timeout_s=9.0), stall_s=30.0)
"""Timeouts of 9 s, so that on a busy machine no worker takes a late packet for a lost one."""
