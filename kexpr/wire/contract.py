"""The seam between the contracts and the coordinator: from a manifest to a request, from raw bytes to judged prose.

    manifest -> issue -> (one exchange) -> completion -> strict answer -> guard -> compose -> candidate

What follows the exchange is pure: the same bytes for the same request give the same candidate or the same refusal.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Protocol

from kexpr.attempt import Candidate
from kexpr.codes import Reason, WireVersion
from kexpr.errors import Rejected
from kexpr.manifest import Manifest, SlotText, compose
from kexpr.surfaces import presentation_segments_v1
from kexpr.wire import kexp_wire
from kexpr.wire.completion import TokenLimits, read_completion
from kexpr.wire.instructions import instructions
from kexpr.wire.kexp_wire import Issued

__all__ = ["OPEN_PROSE", "TOKEN_LIMITS", "Contract", "OpenProse", "judge_open_prose"]

TOKEN_LIMITS: Final = TokenLimits(prompt=600, completion=160, total=760)


class Contract(Protocol):
    """What the coordinator needs of a contract. No method does any I/O."""

    @property
    def version(self) -> str: ...

    @property
    def request_parameters(self) -> Mapping[str, int | float]:
        """Parameters of the request that are this contract's own."""
        ...

    @property
    def instructions(self) -> str: ...

    @property
    def claims_without_credential(self) -> bool:
        """Whether a missing credential is a final outcome, found after the claim, and not a refusal before it."""
        ...

    def warm(self) -> None:
        """Load what judging an answer needs, so that it does not eat a deadline. Idempotent."""
        ...

    def manifest(self, presentation: object) -> Manifest:
        """What is frozen and what is not; raises `UnknownPresentation`."""
        ...

    def issue(self, manifest: Manifest, identity_key: bytes, artifact_identity: tuple[str, ...]) -> Issued:
        """The request for `manifest` under fresh aliases; raises `Rejected`."""
        ...

    def read(self, issued: Issued, body: bytes) -> Candidate:
        """Judged prose from the raw bytes of the answer to `issued`; raises `Rejected`."""
        ...


@dataclass(frozen=True, slots=True)
class OpenProse:
    """Open Korean prose on one of its two wires, judged by the guard."""

    wire: WireVersion
    request_parameters: Mapping[str, int | float] = field(
        default_factory=lambda: MappingProxyType({"max_completion_tokens": TOKEN_LIMITS.completion})
    )

    @property
    def version(self) -> str:
        return self.wire.value

    @property
    def instructions(self) -> str:
        return instructions(self.wire)

    @property
    def claims_without_credential(self) -> bool:
        return False

    def warm(self) -> None:
        from kexpr.guard import warm

        warm()

    def manifest(self, presentation: object) -> Manifest:
        return presentation_segments_v1(presentation)

    def issue(self, manifest: Manifest, identity_key: bytes, artifact_identity: tuple[str, ...]) -> Issued:
        return kexp_wire.issue(manifest, self.wire, identity_key=identity_key, artifact_identity=artifact_identity)

    def read(self, issued: Issued, body: bytes) -> Candidate:
        content = read_completion(body, TOKEN_LIMITS)
        candidate = Candidate(issued.manifest, kexp_wire.read_answer(issued, content), judge_open_prose)
        candidate.body()
        return candidate


def judge_open_prose(manifest: Manifest, texts: tuple[SlotText, ...]) -> str:
    """The whole judgement of open prose: guard, composition, no-op. Returns the composed body or raises `Rejected`.

    A no-op is a message whose composed body is the canonical one (contract, section 4: the text that would be
    selected). One bare slot among slots with prose is none: the message still differs.
    """
    from kexpr.guard import judge

    slots = manifest.slots
    if len(texts) != len(slots):
        raise Rejected(Reason.RESPONSE_SLOTS)
    for slot, text in zip(slots, texts, strict=True):
        decision = judge(text.text, slot, text.tokens)
        if decision.reason is not None:
            raise Rejected(decision.reason)
    body = compose(manifest, texts)
    if body == manifest.canonical_body:
        raise Rejected(Reason.FORM_NOOP)
    return body


OPEN_PROSE: Final[Mapping[WireVersion, OpenProse]] = MappingProxyType(
    {wire: OpenProse(wire) for wire in (WireVersion.KEXP_1, WireVersion.KEXP_2)}
)
