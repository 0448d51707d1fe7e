"""A host that spawns: a child imports everything anew and shares nothing but the state on the disk."""

import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from harness.rehearsal.faults import FaultPlan
from harness.rehearsal.prose import answer_bytes
from harness.rehearsal.server import RehearsalServer
from kexpr.codes import Outcome
from kexpr.transport import ClientFactory, Seam
from tests.support.hosts import Gateway, Kind, canonical_text

pytestmark = pytest.mark.integration


def publish_in_child(directory: str, seam: Seam, said: Any) -> None:
    with Gateway(Path(directory), ClientFactory(_seam=seam)) as gateway:
        said.put([gateway.publish(kind, f"{kind}-{whose}").outcome for kind in Kind for whose in ("parent", "child")])


def test_a_spawned_child_is_a_gateway_of_its_own_and_repeats_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with (
        RehearsalServer(answer_bytes, FaultPlan()) as server,
        Gateway(tmp_path, ClientFactory(_seam=server.seam)) as gateway,
    ):
        for kind in Kind:
            assert gateway.publish(kind, f"{kind}-parent").outcome is Outcome.SELECTED
        said = context.Queue()
        child = context.Process(target=publish_in_child, args=(str(tmp_path), server.seam, said))
        child.start()
        outcomes = said.get(timeout=60)
        child.join(timeout=60)
        assert child.exitcode == 0
        assert outcomes == [None, Outcome.SELECTED] * len(Kind)
        assert server.requests == 2 * len(Kind)
        for kind in Kind:
            first, *after = gateway.host.delivered(f"{kind}-parent")
            assert first != canonical_text(kind, f"{kind}-parent")
            assert set(after) <= {canonical_text(kind, f"{kind}-parent")}
        assert gateway.publish(Kind.DAILY, "parent-again").outcome is Outcome.SELECTED
