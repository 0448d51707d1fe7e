"""Progress on stderr, for a person at a terminal; nothing at all when stderr is none."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kexpr.codes import Outcome

__all__ = ["proof_progress"]


@contextmanager
def proof_progress(total: int) -> Iterator[Callable[[int, Outcome], None]]:
    """Yields `advance(call, outcome)`."""
    if not sys.stderr.isatty():
        yield lambda _call, _outcome: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("calls"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda call, outcome: bar.update(task, completed=call, description=outcome.value)
