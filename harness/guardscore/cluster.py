"""The workers of a Dask scheduler (extra `scale`); imported only when a scheduler is named.

Scheduler and workers run what they are sent, and the lines travel in clear unless the address is tls://: only a
scheduler that is trusted with both may be named. The certificates of tls:// are those of Dask's own configuration.
"""

import asyncio
import logging
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any, Final

from distributed import Client, KilledWorker

from harness.guardscore.corpus import CorpusInvalid
from harness.guardscore.schedulers import SchedulerUnusable, ahead_of
from harness.guardscore.verdicts import Chunk, Judged, judged

__all__ = ["judged_at"]

CONNECT_SECONDS: Final = 10.0
PATIENCE_SECONDS: Final = 10.0
"""How long a chunk is waited for before it is asked whether there is any worker left."""


def judged_at(address: str, parts: Iterable[Chunk]) -> list[Judged]:
    """Each part, judged, in order; raises `CorpusInvalid` and `SchedulerUnusable`."""
    with _silence():
        return asyncio.run(_judged_at(address, parts))


async def _judged_at(address: str, parts: Iterable[Chunk]) -> list[Judged]:
    client = Client(address, asynchronous=True, set_as_default=False)  # type: ignore[no-untyped-call]
    try:
        await _within(CONNECT_SECONDS, client)
        threads = await _threads(client)
    except Exception:  # noqa: BLE001 - no address, no answer, no certificate: it is not there for us
        await _leave(client)
        raise SchedulerUnusable("the scheduler cannot be reached") from None
    try:
        if not threads:
            raise SchedulerUnusable("the scheduler has no worker")
        handles = ahead_of(parts, lambda part: client.submit(judged, part, pure=False), 2 * threads)
        return [await _result(client, handle) for handle in handles]
    except (CorpusInvalid, SchedulerUnusable):
        raise
    except (CancelledError, OSError):
        raise SchedulerUnusable("the scheduler was lost") from None
    except KilledWorker:
        raise SchedulerUnusable("workers died, one after another, on the same rows") from None
    except Exception:  # noqa: BLE001 - whatever was raised there; its words may hold anything
        raise SchedulerUnusable("the scheduler or a worker failed; each needs this version of kexpr[harness]") from None
    finally:
        await _leave(client)


async def _result(client: Any, handle: Any) -> Judged:
    """What a worker gave; a worker that is lost is made up for by the others, if there are any."""
    while True:
        with suppress(TimeoutError):
            judgement: Judged = await _within(PATIENCE_SECONDS, handle)
            return judgement
        if not await _threads(client):
            raise SchedulerUnusable("all workers were lost")


async def _threads(client: Any) -> int:
    return sum((await _within(CONNECT_SECONDS, client.nthreads())).values())


async def _within(seconds: float, awaitable: Any) -> Any:
    async with asyncio.timeout(seconds):
        return await awaitable


async def _leave(client: Any) -> None:
    with suppress(Exception):
        await _within(CONNECT_SECONDS, client.close(timeout=1))


@contextmanager
def _silence() -> Iterator[None]:
    """What Dask logs and warns of could show paths, and what a worker raised; what counts is raised."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
