"""Progress on stderr, for a person at a terminal; nothing at all when stderr is none."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress_of"]


@contextmanager
def progress_of(what: str, total: int) -> Iterator[Callable[[int, str], None]]:
    """Yields `advance(done, word)`."""
    if not sys.stderr.isatty():
        yield lambda _done, _word: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda done, word: bar.update(task, completed=done, description=word)
