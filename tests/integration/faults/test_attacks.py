"""Files that are not ours, not private or not there any more: refused with a code, canonical, and no request."""

import multiprocessing
import os
import stat
from collections.abc import Callable, Iterator
from multiprocessing.queues import SimpleQueue
from pathlib import Path

import pytest

from harness.rehearsal.faults import FaultPlan
from harness.rehearsal.prose import answer_bytes
from harness.rehearsal.server import RehearsalServer
from kexpr.codes import Mode, Outcome
from kexpr.errors import AuthorityFailed, StoreFault
from kexpr.transport import ClientFactory
from tests.support.hosts import Gateway, Kind, canonical_text

NOBODY = 65_534
STORES = ("daily", "weekly", "adaptive")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture(scope="module")
def server() -> Iterator[RehearsalServer]:
    with RehearsalServer(answer_bytes, FaultPlan()) as server:
        yield server


@pytest.fixture
def place(tmp_path: Path, server: RehearsalServer) -> Path:
    """A gateway's directory with one published message of each kind."""
    with Gateway(tmp_path, ClientFactory(_seam=server.seam)) as gateway:
        for kind in Kind:
            gateway.publish(kind, f"{kind}-before")
    return tmp_path


def _files(place: Path) -> dict[str, Path]:
    state = place / "state"
    found = {"identity.key": state / "identity.key", "publication.lock": state / "publication.lock"}
    for store in STORES:
        (segment,) = (state / store).glob("ledger-*.jsonl")
        found[f"{store} segment"] = segment
        found[f"{store} lock"] = state / store / "lock"
    found["tombstone"] = sorted((place / "state-tombstones").iterdir())[0]
    return found


FILES = [
    "identity.key",
    "publication.lock",
    *(f"{store} {part}" for store in STORES for part in ("segment", "lock")),
    "tombstone",
]


def _linked(path: Path) -> None:
    aside = path.with_name(path.name + ".aside")
    path.rename(aside)
    path.symlink_to(aside)


def _hard_linked(path: Path) -> None:
    os.link(path, path.parent.parent.parent / f"{path.name}.second")


def _readable(path: Path) -> None:
    path.chmod(0o644)


def _foreign(path: Path) -> None:
    os.chown(path, NOBODY, NOBODY)


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir(mode=0o700)


def _device(path: Path) -> None:
    path.unlink()
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("making a device is not permitted here")


ATTACKS: dict[str, Callable[[Path], None]] = {
    "symbolic link": _linked,
    "hard link": _hard_linked,
    "readable by others": _readable,
    "of another user": _foreign,
    "fifo": _fifo,
    "directory": _directory,
    "device": _device,
}
REFUSED = {
    StoreFault.NOT_PRIVATE,
    StoreFault.NOT_REGULAR,
    StoreFault.INPUT_OUTPUT,
    StoreFault.KEY_MISMATCH,
    StoreFault.KEY_MISSING,
}


def outcome_of(place: Path, server: RehearsalServer, kinds: list[Kind]) -> list[StoreFault]:
    """What a gateway that starts there is refused with; what it shows all the same is canonical, without a request."""
    before = server.requests
    codes: list[StoreFault] = []
    try:
        with Gateway(place, ClientFactory(_seam=server.seam)) as gateway:
            for kind in kinds:
                identity = f"{kind}-after"
                publication = gateway.publish(kind, identity)
                assert publication.outcome is not Outcome.SELECTED
                shown = gateway.host.delivered(identity)
                assert set(shown) <= {canonical_text(kind, identity)}
            codes.append(StoreFault.POISONED)
    except AuthorityFailed as failed:
        codes.append(failed.code)
    assert server.requests == before
    return codes


@pytest.mark.parametrize("attack", [pytest.param(name, marks=as_root if "user" in name else ()) for name in ATTACKS])
@pytest.mark.parametrize("name", [name for name in FILES if name != "tombstone"])
def test_a_file_that_is_not_private_is_not_used(name: str, attack: str, place: Path, server: RehearsalServer) -> None:
    ATTACKS[attack](_files(place)[name])
    (code,) = outcome_of(place, server, list(Kind))
    assert code in REFUSED or (name == "publication.lock" and code is StoreFault.POISONED)


@pytest.mark.parametrize("attack", [pytest.param(name, marks=as_root if "user" in name else ()) for name in ATTACKS])
def test_a_mark_that_is_not_private_stops_its_task(attack: str, place: Path, server: RehearsalServer) -> None:
    for mark in sorted((place / "state-tombstones").iterdir()):
        ATTACKS[attack](mark)
    before = server.requests
    with Gateway(place, ClientFactory(_seam=server.seam)) as gateway:
        again = gateway.publish(Kind.WEEKLY, "weekly-before")
        assert again.text is None
    assert server.requests == before


@pytest.mark.parametrize("name", ["state", "state/daily", "state/weekly", "state/adaptive", "state-tombstones"])
@pytest.mark.parametrize("attack", ["readable by others", "writable by its group", "of another user", "symbolic link"])
def test_a_directory_that_is_not_private_is_not_used(
    name: str, attack: str, place: Path, server: RehearsalServer
) -> None:
    if attack == "of another user" and os.geteuid() != 0:
        pytest.skip("only root can give files away")
    change: dict[str, Callable[[Path], None]] = {
        "readable by others": lambda path: path.chmod(0o755),
        "writable by its group": lambda path: path.chmod(0o770),
        "of another user": _foreign,
        "symbolic link": _linked,
    }
    change[attack](place / name)
    (code,) = outcome_of(place, server, list(Kind))
    assert code in {StoreFault.NOT_PRIVATE, StoreFault.NOT_REGULAR, StoreFault.INPUT_OUTPUT}


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("change", ["lock deleted", "lock replaced", "segment swapped", "segment deleted"])
def test_what_changes_under_an_open_store_ends_its_use(
    store: str, change: str, place: Path, server: RehearsalServer
) -> None:
    kind = {"daily": Kind.DAILY, "weekly": Kind.WEEKLY, "adaptive": Kind.CALLBACK}[store]
    files = _files(place)
    lock, segment = files[f"{store} lock"], files[f"{store} segment"]
    with Gateway(place, ClientFactory(_seam=server.seam)) as gateway:
        if change.startswith("lock"):
            lock.unlink()
            if change == "lock replaced":
                lock.touch(mode=0o600)
        else:
            copy = segment.read_bytes()
            segment.unlink()
            if change == "segment swapped":
                segment.write_bytes(copy)
                segment.chmod(0o600)
        before = server.requests
        gateway.publish(kind, f"{kind}-after")
        assert server.requests == before
        assert set(gateway.host.delivered(f"{kind}-after")) <= {canonical_text(kind, f"{kind}-after")}


def _refused_in_a_child(gateway: Gateway, codes: "SimpleQueue[list[str]]") -> None:
    """For a forked process of multiprocessing, which inherits the opened gateway."""
    found: list[str] = []
    uses: list[Callable[[], object]] = [
        lambda: gateway.daily_authority.artifact("child").claim(Mode.ENABLED),
        gateway.weekly_authority.expire_outstanding,
        gateway.adaptive_authority.expire_outstanding,
        lambda: gateway.publish(Kind.DAILY, "child"),
    ]
    for use in uses:
        try:
            found.append(f"used: {use()}")
        except AuthorityFailed as failed:
            found.append(failed.code.value)
    codes.put(found)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_of_multiprocessing_uses_nothing_either(place: Path, server: RehearsalServer) -> None:
    context = multiprocessing.get_context("fork")
    codes = context.SimpleQueue()
    with Gateway(place, ClientFactory(_seam=server.seam)) as gateway:
        before = server.requests
        child = context.Process(target=_refused_in_a_child, args=(gateway, codes))
        child.start()
        child.join(20)
        assert child.exitcode == 0
        refused = codes.get()
        assert refused[:3] == [StoreFault.USED_AFTER_FORK] * 3
        assert server.requests == before
        assert set(gateway.host.delivered("child")) <= {canonical_text(Kind.DAILY, "child")}
        assert gateway.publish(Kind.WEEKLY, "parent").outcome is Outcome.SELECTED
        assert server.requests == before + 1


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_uses_nothing_and_its_parent_goes_on(place: Path, server: RehearsalServer) -> None:
    with Gateway(place, ClientFactory(_seam=server.seam)) as gateway:
        before = server.requests
        pid = os.fork()
        if pid == 0:
            ended = 1
            try:
                refused = 0
                for use in (
                    lambda: gateway.daily_authority.artifact("child").is_fresh(),
                    gateway.weekly_authority.outstanding,
                    gateway.adaptive_authority.outstanding,
                ):
                    try:
                        use()
                    except AuthorityFailed as failed:
                        refused += failed.code is StoreFault.USED_AFTER_FORK
                ended = 0 if refused == 3 else 1
            finally:
                os._exit(ended)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert server.requests == before
        assert gateway.publish(Kind.DAILY, "parent").outcome is not None
        assert server.requests == before + 1
    assert stat.S_IMODE((place / "state").stat().st_mode) == 0o700
