"""Defects in the protocol code, each a replacement of exact text, and the tests that have to notice it."""

from dataclasses import dataclass
from typing import Final

__all__ = ["DEFECTS", "SUITES", "Defect"]

SUITES: Final = {
    "ledger": ("tests/unit/ledger", "tests/unit/test_private_files.py", "tests/integration/ledger"),
    "authority": ("tests/unit/authority", "tests/integration/conformance"),
    "paths": ("tests/unit/paths", "tests/integration/paths"),
    "coordinator": ("tests/integration/test_coordinator.py", "tests/integration/test_rollback.py"),
    "clock": ("tests/unit/authority", "tests/integration/conformance"),
    "simulation": ("tests/simulation",),
}


@dataclass(frozen=True, slots=True)
class Defect:
    """`before` is in `path` exactly once. `suite` names where it has to be noticed."""

    what: str
    path: str
    before: str
    after: str
    suite: str


DEFECTS: Final = (
    Defect(
        "a row is not fsynced",
        "kexpr/ledger/jsonl.py",
        '        files.fsync(segments.fd)\n        reach(f"{failpoint}.after_fsync")',
        '        reach(f"{failpoint}.after_fsync")',
        "ledger",
    ),
    Defect(
        "a new segment's name is not made durable",
        "kexpr/ledger/jsonl.py",
        '"ledger.segment")\n            self._directory.sync()',
        '"ledger.segment")',
        "ledger",
    ),
    Defect(
        "a short write is taken for a whole one",
        "kexpr/private_files.py",
        "    if files.write(fd, data) != len(data):\n        raise LedgerFailed(StoreFault.INPUT_OUTPUT)",
        "    files.write(fd, data)",
        "ledger",
    ),
    Defect(
        "a handle goes on after a failed append",
        "kexpr/ledger/jsonl.py",
        "        except BaseException:\n            self.poison()\n            raise",
        "        except BaseException:\n            raise",
        "ledger",
    ),
    Defect(
        "a handle works in a forked child",
        "kexpr/ledger/handle.py",
        "        if os.getpid() != self._pid:\n            raise LedgerFailed(StoreFault.USED_AFTER_FORK)\n        if self._unusable",
        "        if self._unusable",
        "ledger",
    ),
    Defect(
        "the file lock is not asked whether it is still the ledger's",
        "kexpr/ledger/locking.py",
        "if not (self._directory.holds(LOCK_NAME, self._fd) and self._directory.is_in_place()):",
        "if False:",
        "ledger",
    ),
    Defect(
        "the file lock is not taken",
        "kexpr/ledger/locking.py",
        "            if self._try_lock():\n                return",
        "            return",
        "ledger",
    ),
    Defect(
        "a tombstone is not fsynced",
        "kexpr/ledger/tombstones.py",
        "            directory.files.fsync(fd)\n",
        "            pass\n",
        "ledger",
    ),
    Defect(
        "a tombstone's name is not made durable",
        "kexpr/ledger/tombstones.py",
        "        directory.sync()\n        reach",
        "        reach",
        "ledger",
    ),
    Defect(
        "a key is made anew beside a journal",
        "kexpr/private_files.py",
        "os.O_RDWR | (os.O_CREAT if ledger_is_empty else 0)",
        "os.O_RDWR | os.O_CREAT",
        "ledger",
    ),
    Defect(
        "daily claims an event again",
        "kexpr/authority/daily.py",
        "            if event_id in self._held:\n                raise ClaimRefused\n",
        "",
        "authority",
    ),
    Defect(
        "daily does not ask whether the event exists",
        "kexpr/authority/daily.py",
        "            if not ask(self._exists, event_id):",
        "            if False:",
        "authority",
    ),
    Defect(
        "weekly claims a task again",
        "kexpr/authority/weekly.py",
        "            if not self._is_fresh(task.digest):\n                raise ClaimRefused\n",
        "",
        "authority",
    ),
    Defect(
        "weekly writes its claim row before its tombstone",
        "kexpr/authority/weekly.py",
        "            self._mark(task.digest, Mark.CLAIMED)\n",
        "",
        "authority",
    ),
    Defect(
        "weekly marks sending after the row instead of before",
        "kexpr/authority/weekly.py",
        "            self._mark(receipt.task_digest, Mark.SENDING)\n"
        "            self._append_step(transaction, receipt, WeeklyEvent.MARK_SENDING)",
        "            self._append_step(transaction, receipt, WeeklyEvent.MARK_SENDING)\n"
        "            self._mark(receipt.task_digest, Mark.SENDING)",
        "authority",
    ),
    Defect(
        "weekly goes on with a ledger older than its tombstones",
        "kexpr/authority/weekly.py",
        "            raise HardStop(StoreFault.TOMBSTONE_AHEAD)",
        "            pass",
        "authority",
    ),
    Defect(
        "weekly loads a delivery whose pins have changed",
        "kexpr/authority/weekly.py",
        "            if current != (pinned.registry_digest, pinned.config_digest, pinned.destination_digest):",
        "            if False:",
        "authority",
    ),
    Defect(
        "weekly does not ask the ready fence before a send",
        "kexpr/authority/weekly.py",
        "        if not ask(self._ready_fence, receipt.task_digest):\n            raise HardStop(StoreFault.NOT_READY)\n",
        "",
        "authority",
    ),
    Defect(
        "a hard stop is forgotten",
        "kexpr/authority/weekly.py",
        "            self._stopped_tasks[task_digest] = code",
        "            pass",
        "authority",
    ),
    Defect(
        "adaptive claims a card again",
        "kexpr/authority/adaptive.py",
        "            if card_digest in self._cards or not ask(self._pins_hold, origin, binding_digest):\n"
        "                raise ClaimRefused\n            state = ADAPTIVE.step(AdaptiveState.CONSUMED, AdaptiveEvent.CLAIM)",
        "            if not ask(self._pins_hold, origin, binding_digest):\n"
        "                raise ClaimRefused\n            state = ADAPTIVE.step(AdaptiveState.CONSUMED, AdaptiveEvent.CLAIM)",
        "authority",
    ),
    Defect(
        "adaptive does not compare the binding",
        "kexpr/authority/adaptive.py",
        "session.is_just_consumed(origin) and session.current_binding_digest(origin) == binding_digest",
        "session.is_just_consumed(origin)",
        "authority",
    ),
    Defect(
        "a final outcome can be replaced",
        "kexpr/authority/finalise.py",
        "    if found.final is not None:\n        return Decision(found.final, is_new=False)\n",
        "",
        "authority",
    ),
    Defect(
        "a late worker is taken",
        "kexpr/authority/finalise.py",
        "    if claim.remaining_ms(found.now) == 0:\n        return Decision(EXPIRED, is_new=True)\n",
        "",
        "authority",
    ),
    Defect(
        "a cancellation is not seen",
        "kexpr/authority/finalise.py",
        "    if asked.cancelled:\n        return Decision(_CANCELLED, is_new=True)\n",
        "",
        "authority",
    ),
    Defect(
        "a shadow claim can be selected",
        "kexpr/authority/finalise.py",
        "(outcome not in _WINNERS or outcome is winner_of(claim.mode))",
        "True",
        "authority",
    ),
    Defect(
        "a ticket of another attempt is taken",
        "kexpr/authority/finalise.py",
        "    if claim is None or claim.attempt_id != asked.attempt_id:",
        "    if claim is None:",
        "authority",
    ),
    Defect(
        "pins are not compared when an attempt ends",
        "kexpr/authority/finalise.py",
        "    if not asked.pins_hold:\n        return _PIN_CHANGED\n",
        "",
        "authority",
    ),
    Defect(
        "a candidate for another message is taken",
        "kexpr/authority/finalise.py",
        "    if claim.canonical_body not in (None, canonical):\n        return None\n",
        "",
        "authority",
    ),
    Defect(
        "a lease outlives its boot",
        "kexpr/clock.py",
        "left = self.boottime_deadline_ms - now.boottime_ms if self.boot_id == now.boot_id else 0",
        "left = self.boottime_deadline_ms - now.boottime_ms",
        "clock",
    ),
    Defect(
        "a lease follows UTC",
        "kexpr/clock.py",
        "        if self.boot_id is not None and now.boot_id is not None:",
        "        if False:",
        "clock",
    ),
    Defect(
        "a delivery begins without its durable step",
        "kexpr/paths/publication.py",
        "        publication.before()\n",
        "        pass\n",
        "paths",
    ),
    Defect(
        "a delivery goes on after its durable step failed",
        "kexpr/paths/publication.py",
        "        return replace(publication, text=None, stopped=True)",
        "        return publication",
        "paths",
    ),
    Defect(
        "a second tap selects after a canonical edit",
        "kexpr/paths/daily.py",
        "        if message.event_id in self._edited:\n            return Publication(message.canonical_payload)\n",
        "",
        "paths",
    ),
    Defect(
        "a closed gate lets attempts in",
        "kexpr/coordinator.py",
        "                return Outcome.ADMISSION_CLOSED",
        "                pass",
        "coordinator",
    ),
)
