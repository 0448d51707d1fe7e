"""What the adaptive tests share."""

from kexpr.attempt import Cancellation, Ruling
from kexpr.authority.adaptive import AdaptiveArtifact, AdaptiveAuthority, CardPresentationOrigin, OriginKind
from kexpr.codes import Outcome, Surface
from tests.unit.authority.support import BINDING, CANONICAL, candidate, origin

NOT_CANCELLED = Cancellation()
DUAL, PHYSIQUE = Surface.ADAPTIVE_DUALCOACHTEST, Surface.ADAPTIVE_PHYSIQUE
ORIGINS = (origin(OriginKind.CALLBACK), origin(OriginKind.TYPED_NOTE))


def bind(
    authority: AdaptiveAuthority, from_: CardPresentationOrigin = ORIGINS[0], surface: Surface = PHYSIQUE
) -> AdaptiveArtifact:
    return authority.artifact(from_, canonical_payload=CANONICAL, surface=surface, binding_digest=BINDING)


def prose(text: str = "차분히 살펴보니 ", surface: Surface = PHYSIQUE) -> Ruling:
    return Ruling(Outcome.SELECTED, candidate=candidate(surface, text))
