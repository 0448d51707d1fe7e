"""What is said in simulated histories: the harness's synthetic presentations and its recorded prose."""

import hashlib
import json
from functools import cache

from harness.manifests import synthetic
from harness.rehearsal.prose import answer
from kexpr.codes import Surface
from kexpr.testing.simulation.gateway import Presentation
from kexpr.testing.simulation.site import Scenery


@cache
def presentation(surface: Surface, identity: str) -> Presentation:
    ordinal = int(hashlib.sha256(identity.encode()).hexdigest()[:4], 16)
    return synthetic(surface, ordinal, identity=identity)


def answer_text(content: str) -> str:
    return json.dumps(answer(json.loads(content)), ensure_ascii=False)


SCENERY = Scenery(presentation, answer_text)
