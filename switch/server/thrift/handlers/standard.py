"""The service `standard`."""

from __future__ import annotations

from switch.server.thrift.handlers.arrays import ArrayRequests
from switch.server.thrift.handlers.device import DeviceRequests
from switch.server.thrift.handlers.learning import LearningRequests
from switch.server.thrift.handlers.profiles import ProfileRequests
from switch.server.thrift.handlers.tables import TableRequests


class Standard(TableRequests, ProfileRequests, ArrayRequests, LearningRequests, DeviceRequests):
    """What every target of BMv2 offers."""
