"""The forking process of `tests.integration.paths.worker`, whose scenes may also fail while they open their state."""

import sys

from kexpr.transport import ClientFactory
from tests.integration.paths import worker
from tests.integration.paths.worker import Ended, Scene

_play = worker._play


def _play_or_say(scene: Scene, clients: ClientFactory) -> Ended:
    try:
        return _play(scene, clients)
    except Exception as error:
        return Ended(False, raised=type(error).__name__)


if __name__ == "__main__":
    worker._play = _play_or_say
    worker.main(sys.argv[1], sys.argv[2])
