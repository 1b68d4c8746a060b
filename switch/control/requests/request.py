"""What all parts of a control plane share: the data plane, its program, and the one lock that requests take."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import Concatenate, ParamSpec, TypeVar

from inakit.switch.control.data_plane import DataPlane
from inakit.switch.control.refusals import RefusalKind, Refused
from inakit.topo.errors import UnsupportedError

Params = ParamSpec("Params")
Answer = TypeVar("Answer")
Part = TypeVar("Part", bound="Control")


class Control:
    """A part of a control plane. Requests of several threads are carried out one after the other.

    Where the data plane cannot do what a request asks for, `fall_back` may provide another that can. A `retired`
    control plane refuses every request.
    """

    def __init__(self, data_plane: DataPlane) -> None:
        self.data_plane = data_plane
        self.program = data_plane.program
        self.lock = RLock()
        self.fall_back: Callable[[UnsupportedError], object] | None = None
        self.retired = False


def locked(
    request: Callable[Concatenate[Part, Params], Answer],
) -> Callable[Concatenate[Part, Params], Answer]:
    """The request, which waits until no other is being carried out."""

    @wraps(request)
    def alone(self: Part, /, *args: Params.args, **kwargs: Params.kwargs) -> Answer:
        with self.lock:
            if self.retired:
                raise Refused(RefusalKind.TABLE_ERROR, "another program runs by now: ask again")
            try:
                return request(self, *args, **kwargs)
            except UnsupportedError as error:
                if self.fall_back is None:
                    raise
                self.fall_back(error)
                return request(self, *args, **kwargs)

    return alone
