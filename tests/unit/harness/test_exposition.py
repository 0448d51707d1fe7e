"""The text of a scrape is that of the library's own rendering, whatever was kept from the scrape before."""

from prometheus_client import generate_latest

from harness.metrics import Exposition, registry_of
from tests.support.evidence import reading, summary


def test_what_is_kept_between_scrapes_changes_no_byte() -> None:
    readings = [reading(summary(failures=failures, days=days)) for failures in (0, 1, 0, 7) for days in (3, 9)]
    waiting = iter([*readings, readings[-1]])
    exposition = Exposition(lambda: next(waiting))
    for shown in readings:
        assert exposition.render()[1] == generate_latest(registry_of(lambda shown=shown: shown))  # type: ignore[misc]
    assert exposition.render()[1] is exposition._last[1]  # type: ignore[index]
