"""A bar of tqdm, where it is wanted."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Update = Callable[[int], None]


@contextmanager
def bar(progress: bool | None, total: float | None, unit: str, per: float = 1.0) -> Iterator[Update | None]:
    """Gives what is called with how far the runs are, `per` of which make one unit of the bar."""
    wanted = progress if progress is not None else _watched()
    if not wanted:
        yield None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        if progress is None:
            yield None
            return
        raise ImportError("progress=True needs tqdm: pip install tqdm") from error
    with tqdm(total=total, unit=unit) as shown:

        def update(done: int) -> None:
            shown.update(round(done / per - shown.n, 3))

        yield update


def _watched() -> bool:
    """Whether somebody looks: a terminal or a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return (shell is not None and "IPKernelApp" in getattr(shell, "config", {})) or sys.stderr.isatty()
