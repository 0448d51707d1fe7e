"""Where a bulk of rows is judged: a pool of processes, or the workers of a Dask scheduler (extra `scale`).

Lines go out in chunks and verdicts come back in order, so that the result is that of one process. A scheduler's workers
run what they are sent, and the lines travel in clear unless the address is tls://: only a scheduler that is trusted
with both may be named.
"""

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from harness.guardscore.corpus import CorpusInvalid, numbered_lines
from harness.guardscore.verdicts import Chunk, Judged, Verdict, judged
from kexpr.guard import lexicon_digest

__all__ = ["Run", "SchedulerUnusable", "in_bulk", "in_pool", "in_process", "on_dask", "verdicts_of"]

POOL_BYTES: Final = 20_000_000
"""Size from which a pool is worth the time that its processes take to start: some 80,000 rows (`reports/guard.md`)."""
CHUNK_ROWS: Final = 2_000
CONNECT_SECONDS: Final = 10
Run = Callable[[Path], Iterable[Judged]]
"""The parts of a corpus, judged, in its order."""


class SchedulerUnusable(Exception):
    """The workers did not give usable verdicts: what is wrong, in words of our own."""


def verdicts_of(path: Path, run: Run) -> list[Verdict]:
    """One verdict for each row of `path`; raises `CorpusInvalid` and `SchedulerUnusable`."""
    return merged(run(path))


def in_bulk(path: Path) -> Iterable[Judged]:
    """This process for a small corpus, otherwise one process for each core."""
    return in_pool(path) if path.is_file() and path.stat().st_size >= POOL_BYTES else in_process(path)


def in_process(path: Path) -> Iterator[Judged]:
    return map(judged, chunks(path))


def in_pool(path: Path) -> Iterator[Judged]:
    """A process for each core; raises `SchedulerUnusable` if one of them dies."""
    try:
        with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
            yield from pool.map(judged, chunks(path))
    except BrokenProcessPool:
        raise SchedulerUnusable("a process of the pool died") from None


def on_dask(address: str) -> Run:
    """The workers of the scheduler at `address`; the result raises `SchedulerUnusable`."""

    def run(path: Path) -> Iterable[Judged]:
        try:
            from distributed import Client
        except ImportError:
            raise SchedulerUnusable("a scheduler needs the extra `scale`") from None
        logging.getLogger("distributed").setLevel(logging.CRITICAL + 1)  # it would show what a worker raised
        parts = list(chunks(path))
        try:
            with Client(address, timeout=CONNECT_SECONDS, set_as_default=False) as client:  # type: ignore[no-untyped-call]
                if not client.scheduler_info()["workers"]:
                    raise SchedulerUnusable("the scheduler has no worker")
                judgements: list[Judged] = client.gather(client.map(judged, parts, pure=False))
                return judgements
        except (SchedulerUnusable, CorpusInvalid):
            raise
        except OSError:
            raise SchedulerUnusable("the scheduler cannot be reached") from None
        except Exception:  # noqa: BLE001 - whatever a worker raised; its words may hold anything
            raise SchedulerUnusable("a worker failed; it needs this version of kexpr[harness]") from None

    return run


def chunks(path: Path) -> Iterator[Chunk]:
    """The lines of `path` in parts of `CHUNK_ROWS`; raises `CorpusInvalid`."""
    lines = numbered_lines(path)
    while part := tuple(islice(lines, CHUNK_ROWS)):
        yield Chunk(part)


def merged(parts: Iterable[Judged]) -> list[Verdict]:
    """The verdicts of all parts, in order; raises `SchedulerUnusable` if one was given on another lexicon."""
    ours = lexicon_digest()
    together: list[Verdict] = []
    for part in parts:
        if part.lexicon_digest != ours:
            raise SchedulerUnusable("a worker has another lexicon")
        together.extend(part.verdicts)
    return together
