"""Where a bulk of rows is judged: this process, a pool of processes, or the workers of a Dask scheduler.

Lines go out in chunks, as the file is read, and verdicts come back in order, so that the result is that of one process.
"""

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from multiprocessing import get_context
from pathlib import Path
from typing import Final, TypeVar

from harness.guardscore.corpus import numbered_lines
from harness.guardscore.verdicts import Chunk, Judged, Verdict, judged
from kexpr.guard import lexicon_digest

__all__ = ["Run", "SchedulerUnusable", "ahead_of", "in_bulk", "in_pool", "in_process", "on_dask", "verdicts_of"]

CHUNK_ROWS: Final = 1_000
POOL_ROWS: Final = 10_000
"""Rows from which a pool is worth the time that its processes take to start."""
Run = Callable[[Iterable[Chunk]], Iterable[Judged]]
"""Judges chunks, in their order."""
_Handle = TypeVar("_Handle")


class SchedulerUnusable(Exception):
    """The workers did not give usable verdicts: what is wrong, in words of our own."""


def verdicts_of(path: Path, run: Run) -> list[Verdict]:
    """One verdict for each row of `path`; raises `CorpusInvalid` and `SchedulerUnusable`."""
    return merged(run(chunks(path)))


def in_bulk(parts: Iterable[Chunk]) -> Iterable[Judged]:
    """This process for less than `POOL_ROWS`, otherwise one process for each core."""
    parts = iter(parts)
    first = list(islice(parts, -(-POOL_ROWS // CHUNK_ROWS)))
    run = in_pool if sum(len(part.lines) for part in first) >= POOL_ROWS else in_process
    return run(chain(first, parts))


def in_process(parts: Iterable[Chunk]) -> Iterator[Judged]:
    return map(judged, parts)


def in_pool(parts: Iterable[Chunk]) -> Iterator[Judged]:
    """A process for each core; raises `SchedulerUnusable` if one of them dies.

    The processes are spawned, so that they hold nothing of this one.
    """
    processes = os.cpu_count() or 1
    pool = ProcessPoolExecutor(processes, get_context("spawn"))
    try:
        for handle in ahead_of(parts, lambda part: _submitted(pool, part), 2 * processes):
            yield handle.result()
    except BrokenProcessPool:
        raise SchedulerUnusable("a process of the pool died") from None
    finally:
        pool.shutdown(cancel_futures=True)


def _submitted(pool: ProcessPoolExecutor, part: Chunk) -> Future[Judged]:
    """A process that is started here inherits the mask, and leaves an interrupt to this one."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return pool.submit(judged, part)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def on_dask(address: str) -> Run:
    """The workers of the scheduler at `address`; running raises `SchedulerUnusable`."""

    def run(parts: Iterable[Chunk]) -> Iterable[Judged]:
        try:
            from harness.guardscore.cluster import judged_at
        except ImportError:
            raise SchedulerUnusable("a scheduler needs the extra `scale`") from None
        return judged_at(address, parts)

    return run


def chunks(path: Path) -> Iterator[Chunk]:
    """The lines of `path` in parts of `CHUNK_ROWS`; raises `CorpusInvalid`."""
    lines = numbered_lines(path)
    while part := tuple(islice(lines, CHUNK_ROWS)):
        yield Chunk(part)


def ahead_of(parts: Iterable[Chunk], submit: Callable[[Chunk], _Handle], ahead: int) -> Iterator[_Handle]:
    """What `submit` gives for each part, in order; at most `ahead` are under way beside the one that is waited for."""
    under_way: deque[_Handle] = deque()
    for part in parts:
        under_way.append(submit(part))
        if len(under_way) > ahead:
            yield under_way.popleft()
    while under_way:
        yield under_way.popleft()


def merged(parts: Iterable[Judged]) -> list[Verdict]:
    """The verdicts of all parts, in order; raises `SchedulerUnusable` if one was given on another lexicon."""
    ours = lexicon_digest()
    together: list[Verdict] = []
    for part in parts:
        if part.lexicon_digest != ours:
            raise SchedulerUnusable("a worker has another lexicon")
        together.extend(part.verdicts)
    return together
