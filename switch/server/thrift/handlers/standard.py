"""The service `standard`."""

from __future__ import annotations

from inakit.switch.server.thrift.handlers.arrays import ArrayRequests
from inakit.switch.server.thrift.handlers.device import DeviceRequests
from inakit.switch.server.thrift.handlers.learning import LearningRequests
from inakit.switch.server.thrift.handlers.profiles import ProfileRequests
from inakit.switch.server.thrift.handlers.tables import TableRequests


class Standard(TableRequests, ProfileRequests, ArrayRequests, LearningRequests, DeviceRequests):
    """What every target of BMv2 offers."""
