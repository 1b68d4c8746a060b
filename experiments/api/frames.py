"""Tables of pandas, where it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from inakit.topo.extras import lacking

if TYPE_CHECKING:
    import pandas


def frame(rows: Sequence[dict[str, Any]]) -> pandas.DataFrame:
    """Rows as a table of pandas. Raises `MachineError` where pandas is not installed."""
    try:
        import pandas as pd  # noqa: PLC0415, a package of an extra
    except ImportError as error:
        raise lacking("pandas", "a table of figures") from error
    return pd.DataFrame(rows)
