"""The outcome journal: exact rows, the order of check, delivery and row, leases, and everything that is refused."""

import hashlib
import hmac
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import pytest

from kexpr.attempt import Cancellation, Finalized, Ruling, Ticket
from kexpr.authority.journal import EditDelivery, OutcomeJournal, WriterDelivery
from kexpr.authority.journal_records import FINALIZED_OF, JOURNAL_FINALS, artifact_key, journal_outcome
from kexpr.authority.recovery import Durable, InFlight
from kexpr.clock import Lease
from kexpr.codes import AnchorSurface, JournalOutcome, Mode, Outcome, Reason, Surface, outcome_of
from kexpr.errors import AuthorityFailed, ClaimRefused, IllegalTransition, LedgerFailed, StoreFault
from kexpr.testing.canaries import Canaries, chain_text
from tests.unit.authority.journal_support import IDENTITY, Host, end
from tests.unit.authority.support import CANONICAL, LOST, SELECTED, candidate, refusing, wins

ROW_KEYS = {
    "schema_version",
    "sequence",
    "artifact_key",
    "surface",
    "mode",
    "attempt_id",
    "state",
    "outcome",
    "started_at_utc",
    "deadline_at_utc",
    "finalized_at_utc",
    "previous_row_digest",
    "row_digest",
}
WRITTEN = (Surface.WEEKLY, Surface.ADAPTIVE_DUALCOACHTEST, Surface.ADAPTIVE_PHYSIQUE)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path)
    yield host
    host.close()


def test_rows_have_exactly_the_fields_and_a_chain_of_their_own(host: Host) -> None:
    journal = host.open()
    artifact = host.artifact(journal)
    ticket = artifact.claim(Mode.ENABLED)
    assert end(artifact, ticket, wins(Surface.DAILY)).outcome is Outcome.SELECTED
    started, final = host.rows()
    assert started.keys() == final.keys() == ROW_KEYS
    assert (started["sequence"], final["sequence"]) == (1, 2)
    assert final["previous_row_digest"] == started["row_digest"]
    for row in (started, final):
        rest = {key: row[key] for key in row if key != "row_digest"}
        canonical = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        assert row["row_digest"] == hashlib.sha256(canonical).hexdigest()
    key = (host.directory / "identity.key").read_bytes()
    genesis = hashlib.sha256(hmac.digest(key, b"kexpr.ledger.genesis.v1", "sha256")).hexdigest()
    assert started["previous_row_digest"] == genesis
    assert (started["state"], started["outcome"], started["finalized_at_utc"]) == (
        "attempt_started",
        "attempt_started",
        None,
    )
    assert (final["state"], final["outcome"], final["surface"]) == ("finalized", "selected", "daily")
    assert all(final[name] == started[name] for name in ("artifact_key", "attempt_id", "started_at_utc", "mode"))
    assert (started["started_at_utc"], started["deadline_at_utc"]) == (
        "2026-01-09T23:06:40.000Z",
        "2026-01-09T23:06:44.000Z",
    )


def test_everything_is_private(host: Host) -> None:
    artifact = host.artifact(host.open())
    artifact.claim(Mode.SHADOW)
    names = {path.name.split("-")[0] for path in host.directory.iterdir()}
    assert names == {"identity.key", "lock", "journal.jsonl", "lease", "publication.lock"}
    assert host.directory.stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o7777 == 0o600 for path in host.directory.iterdir())
    assert len((host.directory / "identity.key").read_bytes()) == 32


# Independent of the code: `openssl dgst -sha256 -mac HMAC` over the bytes that section 8 names.
VECTORS = [
    (
        bytes(range(32)),
        AnchorSurface.DAILY,
        ("event-1",),
        "df4c646d96d9fa0f6f9f1253184aafc4e39f8c94286c92e916c085fcef79a2cf",
    ),
    (
        b"\xff" * 32,
        AnchorSurface.WEEKLY,
        ("과제-가",),
        "b742b03a783f458974dfef3422c61496353e1e883380651e7721cf302442ecc4",
    ),
    (
        bytes(range(32)),
        AnchorSurface.ADAPTIVE_OPERATOR,
        ("session", "ab" * 32, "7", "dual"),
        "d59f19823fd660a4b0f889fdca7ade3f0f21dee68899f2198ba00bd7f95b98ce",
    ),
]


@pytest.mark.parametrize(("key", "surface", "identity", "expected"), VECTORS)
def test_artifact_key_vectors(key: bytes, surface: AnchorSurface, identity: tuple[str, ...], expected: str) -> None:
    assert artifact_key(key, surface, *identity) == expected


def test_the_artifact_key_is_of_nfc_fields_that_cannot_run_together() -> None:
    key = bytes(32)
    assert artifact_key(key, AnchorSurface.WEEKLY, "\u1100\u1161") == artifact_key(key, AnchorSurface.WEEKLY, "가")
    keys = [
        artifact_key(key, AnchorSurface.WEEKLY, *identity) for identity in (("ab", "c"), ("a", "bc"), ("abc",), ("",))
    ]
    assert len(set(keys)) == 4
    assert artifact_key(key, AnchorSurface.DAILY, "a") != artifact_key(key, AnchorSurface.WEEKLY, "a")


@pytest.mark.parametrize("surface", Surface)
def test_the_body_is_delivered_before_its_row(host: Host, surface: Surface) -> None:
    seen: list[list[str]] = []
    host.writer.on_write = lambda: seen.append(host.outcomes())
    delivery = EditDelivery(lambda _: seen.append(host.outcomes()))
    artifact = host.artifact(host.open(), surface)
    if surface is Surface.DAILY:
        artifact = replace(artifact, delivery=delivery)
    ticket = artifact.claim(Mode.ENABLED)
    finalized = end(artifact, ticket, wins(surface))
    assert finalized == Finalized(Outcome.SELECTED, None, SELECTED)
    assert seen == [["attempt_started"]]
    assert host.outcomes() == ["attempt_started", "selected"]
    assert list(host.writer.bodies.items()) == ([] if surface is Surface.DAILY else [(ticket.attempt_id, SELECTED)])


@pytest.mark.parametrize("surface", Surface)
def test_a_failed_delivery_is_canonical(host: Host, surface: Surface) -> None:
    def fails(*_: object) -> None:
        raise LedgerFailed(StoreFault.POISONED)

    host.writer.on_write = fails
    artifact = host.artifact(host.open(), surface)
    if surface is Surface.DAILY:
        artifact = replace(artifact, delivery=EditDelivery(fails))
    finalized = end(artifact, artifact.claim(Mode.ENABLED), wins(surface))
    assert finalized.body is None
    assert finalized.outcome is Outcome.CANONICAL_COMMIT_ERROR
    assert host.outcomes()[-1] == ("publication_failed" if surface is Surface.DAILY else "commit_failed")
    assert artifact.recover() == Durable(Outcome.CANONICAL_COMMIT_ERROR, None, "finalized")


@pytest.mark.parametrize("surface", Surface)
def test_shadow_delivers_nothing(host: Host, surface: Surface) -> None:
    artifact = host.artifact(host.open(), surface)
    ticket = artifact.claim(Mode.SHADOW)
    with pytest.raises(IllegalTransition):
        end(artifact, ticket, wins(surface, Mode.ENABLED))
    assert end(artifact, ticket, wins(surface, Mode.SHADOW)) == Finalized(Outcome.SHADOW_SELECTED)
    assert (host.edits, host.writer.bodies) == ([], {})
    assert host.outcomes() == ["attempt_started", "shadow_selected"]


RULED = {
    Outcome.CANONICAL_PROVIDER_ERROR: "provider_error",
    Outcome.CANONICAL_TIMEOUT: "timeout",
    Outcome.CANONICAL_INVALID: "invalid_response",
    Outcome.CANONICAL_VALIDATION_REJECTED: "validation_rejected",
    Outcome.CANONICAL_COMMIT_ERROR: "commit_failed",
    Outcome.CREDENTIAL_UNAVAILABLE: "credential_unavailable",
    Outcome.CANONICAL_CLAIM_EXPIRED: "claim_expired_canonical",
}


@pytest.mark.parametrize(("outcome", "written"), RULED.items())
def test_every_canonical_outcome_has_its_row(host: Host, outcome: Outcome, written: str) -> None:
    artifact = host.artifact(host.open())
    assert end(artifact, artifact.claim(Mode.ENABLED), Ruling(outcome)).outcome is outcome
    assert host.outcomes() == ["attempt_started", written]
    assert host.artifact(host.open()).recover() == Durable(outcome, None, "finalized")


def test_outcomes_map_both_ways() -> None:
    assert FINALIZED_OF.keys() == set(JournalOutcome) - {JournalOutcome.ATTEMPT_STARTED}
    assert all(journal_outcome(final) is code for code, final in FINALIZED_OF.items())
    assert {final.outcome for final in FINALIZED_OF.values()} == JOURNAL_FINALS
    assert all(final.reason is None or outcome_of(final.reason) is final.outcome for final in FINALIZED_OF.values())


def test_not_attempted_codes_are_no_end(host: Host) -> None:
    artifact = host.artifact(host.open())
    ticket = artifact.claim(Mode.ENABLED)
    for outcome in (Outcome.ADMISSION_CLOSED, Outcome.OVERLOADED, Outcome.CREDENTIAL_ENVIRONMENT_REJECTED):
        with pytest.raises(IllegalTransition):
            end(artifact, ticket, Ruling(outcome))
    assert host.outcomes() == ["attempt_started"]


def test_a_second_claim_is_refused_whoever_asks(host: Host) -> None:
    host.artifact(host.open()).claim(Mode.ENABLED)
    for journal in (host.opened[0], host.open()):
        artifact = host.artifact(journal)
        assert not artifact.is_fresh()
        with pytest.raises(ClaimRefused):
            artifact.claim(Mode.ENABLED)
    host.clock.expire()
    with pytest.raises(ClaimRefused):
        host.artifact(host.open()).claim(Mode.ENABLED)
    assert host.outcomes() == ["attempt_started"]


def test_a_disabled_feature_claims_nothing(host: Host) -> None:
    with pytest.raises(ClaimRefused):
        host.artifact(host.open()).claim(Mode.DISABLED)
    assert host.rows() == []


def test_an_observer_of_a_live_claim_may_publish_nothing(host: Host) -> None:
    host.artifact(host.open(), Surface.WEEKLY).claim(Mode.ENABLED)
    host.clock.pass_ms(3_999)
    found = host.artifact(host.open(), Surface.WEEKLY).recover()
    assert found == InFlight(1)
    assert found.publication_permitted is False
    host.clock.pass_ms(1)
    assert host.artifact(host.open(), Surface.WEEKLY).recover() == Durable(
        Outcome.CANONICAL_CLAIM_EXPIRED, None, "finalized"
    )
    assert host.outcomes() == ["attempt_started", "claim_expired_canonical"]


@pytest.mark.parametrize("surface", WRITTEN)
def test_a_late_worker_is_discarded(host: Host, surface: Surface) -> None:
    artifact = host.artifact(host.open(), surface)
    ticket = artifact.claim(Mode.ENABLED)
    host.clock.expire()
    late = end(artifact, ticket, wins(surface))
    assert late.outcome is Outcome.CANONICAL_CLAIM_EXPIRED
    assert host.writer.bodies == {}
    assert end(artifact, ticket, wins(surface)).outcome is Outcome.CANONICAL_CLAIM_EXPIRED
    assert host.outcomes() == ["attempt_started", "claim_expired_canonical"]


def test_only_the_attempt_that_claimed_may_end(host: Host) -> None:
    artifact = host.artifact(host.open())
    stranger = Ticket("f" * 32, Mode.ENABLED, Lease(0, 0, None))
    with pytest.raises(IllegalTransition):
        end(artifact, stranger, LOST)
    artifact.claim(Mode.ENABLED)
    with pytest.raises(IllegalTransition):
        end(artifact, stranger, wins(Surface.DAILY))
    assert (host.edits, host.outcomes()) == ([], ["attempt_started"])


def test_a_cancelled_caller_and_a_refused_candidate_deliver_nothing(host: Host) -> None:
    journal = host.open()
    flag = Cancellation()
    flag.set()
    artifact = host.artifact(journal)
    assert artifact.finalize(artifact.claim(Mode.ENABLED), wins(Surface.DAILY), flag).reason is Reason.CANCELLED
    weekly = host.artifact(journal, Surface.WEEKLY)
    refused = Ruling(Outcome.SELECTED, candidate=candidate(Surface.WEEKLY, judge=refusing))
    assert end(weekly, weekly.claim(Mode.ENABLED), refused).outcome is Outcome.CANONICAL_COMMIT_ERROR
    assert (host.edits, host.writer.bodies) == ([], {})
    assert host.outcomes() == ["attempt_started", "timeout", "attempt_started", "commit_failed"]


@pytest.mark.parametrize("surface", WRITTEN)
def test_a_durable_body_without_its_row_is_recovered_exactly(host: Host, surface: Surface) -> None:
    ticket = host.artifact(host.open(), surface).claim(Mode.ENABLED)
    host.writer.bodies = {ticket.attempt_id: SELECTED, "another attempt": CANONICAL}
    assert isinstance(host.artifact(host.open(), surface).recover(), InFlight)
    host.clock.expire()
    for _ in range(2):
        assert host.artifact(host.open(), surface).recover() == Durable(Outcome.SELECTED, SELECTED, "finalized")
    assert host.outcomes() == ["attempt_started", "selected"]


def test_a_body_in_the_store_of_a_shadow_claim_is_never_selected(host: Host) -> None:
    artifact = host.artifact(host.open(), Surface.WEEKLY)
    host.writer.bodies[artifact.claim(Mode.SHADOW).attempt_id] = SELECTED
    host.clock.expire()
    assert artifact.recover() == Durable(Outcome.CANONICAL_CLAIM_EXPIRED, None, "finalized")


def test_a_writer_that_cannot_say_leaves_the_claim_as_it_is(host: Host) -> None:
    text = "host-secret-text"

    def fails() -> None:
        raise RuntimeError(text)

    artifact = host.artifact(host.open(), Surface.WEEKLY)
    artifact.claim(Mode.ENABLED)
    host.clock.expire()
    host.writer.on_read = fails
    with pytest.raises(AuthorityFailed) as failed:
        artifact.recover()
    assert failed.value.code is StoreFault.HOST_PORT
    assert text not in chain_text(failed.value)
    assert host.outcomes() == ["attempt_started"]


def test_an_owner_in_its_edit_at_the_deadline_is_waited_for(host: Host) -> None:
    """An owner at 3.99 s and an observer at 4.00 s cannot both publish."""
    journal, observer = host.open(), host.open()
    editing, go_on = threading.Event(), threading.Event()
    published: list[object] = []

    def edit(body: str) -> None:
        editing.set()
        assert go_on.wait(10)
        published.append(body)

    artifact = replace(host.artifact(journal), delivery=EditDelivery(edit))
    ticket = artifact.claim(Mode.ENABLED)
    host.clock.pass_ms(3_999)
    owner = threading.Thread(target=lambda: end(artifact, ticket, wins(Surface.DAILY)))
    owner.start()
    assert editing.wait(10)
    host.clock.pass_ms(1_000)
    watcher = threading.Thread(target=lambda: published.append(host.artifact(observer).recover()))
    watcher.start()
    watcher.join(0.2)
    assert watcher.is_alive()
    assert host.outcomes() == ["attempt_started"]
    go_on.set()
    owner.join(10)
    watcher.join(10)
    assert published == [SELECTED, Durable(Outcome.SELECTED, None, "finalized")]
    assert host.outcomes() == ["attempt_started", "selected"]


def lease_file(host: Host, ticket: Ticket) -> Path:
    return host.directory / f"lease-{ticket.attempt_id}"


@pytest.mark.parametrize(
    "content",
    [None, b"", b"{", b"[]", b'{"boot_id":1,"boottime_deadline_ms":9999,"utc_deadline_ms":1}', b'{"boot_id":null}'],
)
def test_a_missing_or_torn_sidecar_means_expired(host: Host, content: bytes | None) -> None:
    artifact = host.artifact(host.open())
    ticket = artifact.claim(Mode.ENABLED)
    assert artifact.recover() == InFlight(4_000)
    if content is None:
        lease_file(host, ticket).unlink()
    else:
        lease_file(host, ticket).write_bytes(content)
    assert artifact.recover() == Durable(Outcome.CANONICAL_CLAIM_EXPIRED, None, "finalized")
    assert end(artifact, ticket, wins(Surface.DAILY)).body is None
    assert host.edits == []


def test_the_sidecar_says_when_on_which_clock(host: Host) -> None:
    artifact = host.artifact(host.open())
    ticket = artifact.claim(Mode.ENABLED)
    assert json.loads(lease_file(host, ticket).read_bytes()) == {
        "boot_id": "boot",
        "boottime_deadline_ms": host.clock.boottime_ms + 4_000,
        "utc_deadline_ms": host.clock.utc_ms + 4_000,
    }
    host.clock.utc_ms += 10_000_000
    assert artifact.recover() == InFlight(4_000), "a clock that jumped does not kill a claim"
    host.clock.boot_id = "another"
    assert isinstance(artifact.recover(), Durable), "another boot means expired"


def test_an_unreadable_boot_id_falls_back_to_utc(host: Host) -> None:
    host.clock.boot_id = None
    artifact = host.artifact(host.open())
    artifact.claim(Mode.ENABLED)
    host.clock.utc_ms += 3_999
    assert artifact.recover() == InFlight(1)
    host.clock.utc_ms += 1
    assert isinstance(artifact.recover(), Durable)


def test_a_sidecar_that_is_not_private_is_a_fault(host: Host) -> None:
    artifact = host.artifact(host.open())
    lease_file(host, artifact.claim(Mode.ENABLED)).chmod(0o640)
    with pytest.raises(LedgerFailed) as failed:
        artifact.recover()
    assert failed.value.code is StoreFault.NOT_PRIVATE
    assert host.outcomes() == ["attempt_started"]


def used(host: Host) -> None:
    """A journal with rows, closed."""
    journal = host.open()
    artifact = host.artifact(journal)
    end(artifact, artifact.claim(Mode.ENABLED), LOST)
    weekly = host.artifact(journal, Surface.WEEKLY)
    end(weekly, weekly.claim(Mode.ENABLED), wins(Surface.WEEKLY))
    host.close()
    host.opened.clear()


def _cut(path: Path, keep: int) -> None:
    path.write_bytes(path.read_bytes()[:keep])


def _link(path: Path) -> None:
    aside = path.with_name(path.name + "-aside")
    path.rename(aside)
    path.symlink_to(aside)


def _swapped(host: Host) -> None:
    lines = host.file.read_bytes().splitlines(keepends=True)
    host.file.write_bytes(b"".join([lines[0], lines[2], lines[1], lines[3]]))


DAMAGE = {
    "key gone": (lambda host: (host.directory / "identity.key").unlink(), StoreFault.KEY_MISSING),
    "key short": (lambda host: _cut(host.directory / "identity.key", 31), StoreFault.KEY_MISMATCH),
    "key exchanged": (
        lambda host: (host.directory / "identity.key").write_bytes(bytes(32)),
        StoreFault.KEY_MISMATCH,
    ),
    "key readable": (lambda host: (host.directory / "identity.key").chmod(0o644), StoreFault.NOT_PRIVATE),
    "key linked": (lambda host: _link(host.directory / "identity.key"), StoreFault.NOT_REGULAR),
    "journal linked": (lambda host: _link(host.file), StoreFault.NOT_REGULAR),
    "journal readable": (lambda host: host.file.chmod(0o640), StoreFault.NOT_PRIVATE),
    "journal hard linked": (
        lambda host: os.link(host.file, host.root / "second"),
        StoreFault.NOT_PRIVATE,
    ),
    "lock readable": (lambda host: (host.directory / "lock").chmod(0o604), StoreFault.NOT_PRIVATE),
    "lock linked": (lambda host: _link(host.directory / "lock"), StoreFault.NOT_REGULAR),
    "root readable": (lambda host: host.directory.chmod(0o755), StoreFault.NOT_PRIVATE),
    "root linked": (lambda host: _link(host.directory), StoreFault.NOT_REGULAR),
    "tail torn": (lambda host: _cut(host.file, host.file.stat().st_size - 1), StoreFault.TORN_TAIL),
    "row gone": (
        lambda host: host.file.write_bytes(b"".join(host.file.read_bytes().splitlines(keepends=True)[1:])),
        StoreFault.CHAIN_BROKEN,
    ),
    "rows swapped": (_swapped, StoreFault.CHAIN_BROKEN),
    "byte flipped": (
        lambda host: host.file.write_bytes(host.file.read_bytes().replace(b"enabled", b"shadow ", 1)),
        StoreFault.CHAIN_BROKEN,
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_what_is_not_whole_or_not_private_is_refused(host: Host, name: str) -> None:
    used(host)
    damage, fault = DAMAGE[name]
    damage(host)
    with pytest.raises(LedgerFailed) as failed:
        host.open()
    assert failed.value.code is fault
    assert host.edits == []


@pytest.mark.parametrize("length", range(0, 40, 7))
def test_a_tail_torn_anywhere_is_refused(host: Host, length: int) -> None:
    used(host)
    data = host.file.read_bytes()
    last = data.splitlines(keepends=True)[-1]
    host.file.write_bytes(data[: len(data) - len(last)] + last[: length + 1])
    with pytest.raises(LedgerFailed) as failed:
        host.open()
    assert failed.value.code is StoreFault.TORN_TAIL


def rewritten(host: Host, index: int, changes: dict[str, object]) -> None:
    """Rewrite a row and the chain after it, as someone who knows the format and not what it means."""
    rows = [dict(row) for row in host.rows()]
    rows[index] |= changes
    previous = rows[0]["previous_row_digest"]
    lines = []
    for row in rows:
        row["previous_row_digest"] = previous
        rest = {key: row[key] for key in row if key != "row_digest"}
        text = json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()
        row["row_digest"] = previous = hashlib.sha256(text).hexdigest()
        lines.append(json.dumps(row, sort_keys=True, separators=(",", ":")).encode() + b"\n")
    host.file.write_bytes(b"".join(lines))


@pytest.mark.parametrize(
    ("index", "changes"),
    [
        (0, {"schema_version": 2}),
        (0, {"schema_version": True}),
        (0, {"surface": "daily.v1"}),
        (0, {"mode": "disabled"}),
        (0, {"state": "finalized"}),
        (0, {"outcome": "selected"}),
        (0, {"artifact_key": "k"}),
        (0, {"attempt_id": "../identity.key"}),
        (0, {"started_at_utc": "yesterday"}),
        (0, {"finalized_at_utc": "2026-01-09T23:06:40.000Z"}),
        (1, {"outcome": "shadow_selected"}),
        (1, {"outcome": "attempt_started"}),
        (1, {"finalized_at_utc": None}),
        (1, {"mode": "shadow"}),
        (1, {"attempt_id": "f" * 32}),
        (1, {"deadline_at_utc": "2027-01-09T23:06:40.000Z"}),
        (1, {"artifact_key": "a" * 64}),
        (3, {"mode": "shadow"}),
    ],
)
def test_a_history_that_is_not_the_authoritys_is_refused(host: Host, index: int, changes: dict[str, object]) -> None:
    used(host)
    rewritten(host, 0, {})
    host.open()
    rewritten(host, index, changes)
    with pytest.raises(LedgerFailed) as failed:
        OutcomeJournal.open(host.root, clock=host.clock)
    assert failed.value.code in (StoreFault.ILLEGAL_HISTORY, StoreFault.HEAD_MISMATCH)


@pytest.mark.parametrize("extra", [{"note": "x"}, {"body": "y"}])
def test_a_row_with_another_field_is_no_row(host: Host, extra: dict[str, object]) -> None:
    used(host)
    rewritten(host, 1, extra)
    with pytest.raises(LedgerFailed) as failed:
        host.open()
    assert failed.value.code is StoreFault.CHAIN_BROKEN


def test_an_old_copy_put_back_under_an_open_journal_is_noticed(host: Host) -> None:
    journal = host.open()
    artifact = host.artifact(journal)
    ticket = artifact.claim(Mode.ENABLED)
    old = host.file.read_bytes()
    end(artifact, ticket, LOST)
    host.file.write_bytes(old)
    with pytest.raises(LedgerFailed):
        artifact.recover()


def test_outstanding_claims_are_counted_and_ended(host: Host) -> None:
    journal = host.open()
    daily, weekly = host.artifact(journal), host.artifact(journal, Surface.WEEKLY)
    attempts = {daily.claim(Mode.ENABLED).attempt_id, weekly.claim(Mode.ENABLED).attempt_id}
    assert set(journal.outstanding()) == attempts

    def delivery_of(surface: AnchorSurface, _key: str) -> EditDelivery | WriterDelivery:
        return EditDelivery(host.edits.append) if surface is AnchorSurface.DAILY else WriterDelivery(host.writer)

    assert journal.expire_outstanding(delivery_of) == 0
    host.clock.expire()
    assert journal.expire_outstanding(delivery_of) == 2
    assert journal.outstanding() == ()
    assert journal.outcomes() == {JournalOutcome.CLAIM_EXPIRED_CANONICAL: 2}


def test_nothing_private_is_said(host: Host) -> None:
    canaries = Canaries()
    for place, text in (("identity", IDENTITY[0]), ("body", SELECTED), ("canonical", CANONICAL)):
        canaries.adopt(place, text)
    journal = host.open()
    canaries.adopt_bytes("key", journal.identity_key)
    artifact = host.artifact(journal)
    ticket = artifact.claim(Mode.ENABLED)
    finalized = end(artifact, ticket, wins(Surface.DAILY))
    said = {"rows": host.file.read_text("utf-8"), "sidecar": lease_file(host, ticket).read_text("utf-8")}
    for name, value in (("artifact", artifact), ("ticket", ticket), ("finalized", finalized), ("journal", journal)):
        said[name] = repr(value)
    assert SELECTED in host.edits
    canaries.assert_absent(said)
    assert ticket.attempt_id not in repr(ticket)
    assert {field.name for field in fields(artifact) if field.repr} == {"journal", "surface"}
