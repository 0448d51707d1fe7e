"""A promotion candidate: everything a verdict depends on, pinned by one digest, and a restart number.

Any change to what is pinned is another candidate, with windows of its own. Mode and surfaces are not pinned, since
they change from phase to phase; each run records them (harness, "Promotion candidate and evidence").
"""

import hashlib
import json
import os
import subprocess
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Final

from harness.policy import POLICY, GatePolicy
from kexpr import __version__
from kexpr.codes import WireVersion

__all__ = ["UNKNOWN_COMMIT", "Candidate", "Checkout", "Pin", "checkout_of", "current_pin"]

UNKNOWN_COMMIT: Final = "unknown"

_ROOT: Final = Path(__file__).parent.parent
_PINNED_PATHS: Final = ("kexpr", "harness", "pyproject.toml")
_GIT_TIMEOUT_S: Final = 10


@dataclass(frozen=True, slots=True)
class Pin:
    """What is pinned. Digests are SHA-256 in hex; `commit` is 40 hex digits or `unknown`."""

    package_version: str
    commit: str
    dirty: bool
    config_schema_version: int | str
    provider_digest: str
    instructions_digest: str
    lexicon_digest: str
    wire_version: WireVersion
    model: str
    generator_version: str
    generator_digest: str
    generator_seed: int
    policy_digest: str

    @property
    def digest(self) -> str:
        return _digest(asdict(self))


@dataclass(frozen=True, slots=True)
class Candidate:
    """One pin under test. `restart` counts the candidates before it in the same evidence."""

    pin_digest: str
    restart: int

    @property
    def id(self) -> str:
        """Short name in rows, slot keys and artifact identities: `<16 hex digits>-<restart>`."""
        return f"{self.pin_digest[:16]}-{self.restart}"


@dataclass(frozen=True, slots=True)
class Checkout:
    """The source in use. Without a checkout (an installed package) the commit is `unknown` and nothing is dirty."""

    commit: str
    dirty: bool


def current_pin(wire: WireVersion, policy: GatePolicy = POLICY) -> Pin:
    """The pin of the code that runs now, for a feature block that selects `wire`."""
    from harness.contracts import TERMS
    from harness.manifests import GENERATOR_SEED, GENERATOR_VERSION, generator_digest
    from kexpr.guard import lexicon_digest

    checkout = _loaded_checkout()
    terms = TERMS[wire]
    return Pin(
        package_version=__version__,
        commit=checkout.commit,
        dirty=checkout.dirty,
        config_schema_version=terms.schema_version,
        provider_digest=_digest(dict(terms.provider)),
        instructions_digest=terms.instructions_digest,
        lexicon_digest=lexicon_digest(),
        wire_version=wire,
        model=str(terms.provider["model"]),
        generator_version=GENERATOR_VERSION,
        generator_digest=generator_digest(),
        generator_seed=GENERATOR_SEED,
        policy_digest=policy.digest,
    )


@cache
def _loaded_checkout() -> Checkout:
    """Read once a process: what is committed or edited later is not the code that runs here."""
    return checkout_of(_ROOT)


def checkout_of(root: Path) -> Checkout:
    """Commit and dirtiness of the packages under `root`. A checkout that git cannot read counts as dirty.

    A package installed below somebody else's checkout is none: `root` itself must hold `.git`.
    """
    if not (root / ".git").exists():
        return Checkout(UNKNOWN_COMMIT, dirty=False)
    status = _git_status(root)
    oid = next((line.removeprefix("# branch.oid ") for line in status if line.startswith("# branch.oid ")), "")
    if len(oid) != 40:
        return Checkout(UNKNOWN_COMMIT, dirty=True)
    return Checkout(oid, dirty=any(not line.startswith("# ") for line in status))


def _git_status(root: Path) -> list[str]:
    """Lines of `git status` for the pinned paths; none when git fails. No `GIT_*` variable leads it elsewhere."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "status", "--porcelain=v2", "--branch", "--untracked-files=all", "--", *_PINNED_PATHS],
            cwd=root,
            env=environment | {"GIT_OPTIONAL_LOCKS": "0"},
            capture_output=True,
            text=True,
            timeout=_GIT_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return []
    return done.stdout.splitlines()


def _digest(value: dict[str, object]) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()
