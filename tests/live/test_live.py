"""Real calls, one a surface and contract; see the marker `live_korean_expression` and `make live`."""

import os
from pathlib import Path

import pytest

from harness.commands.shared import LIVE_SWITCH
from kexpr.codes import WireVersion
from kexpr.transport import ClientFactory
from tests.live.check import check_contract

pytestmark = [
    pytest.mark.live_korean_expression,
    pytest.mark.skipif(
        os.environ.get(LIVE_SWITCH) != "1" or not os.environ.get("OPENAI_API_KEY"),
        reason=f"spends real calls: needs {LIVE_SWITCH}=1 and OPENAI_API_KEY",
    ),
]


@pytest.mark.parametrize("wire", [WireVersion.KEXP_2, WireVersion.ANCHOR_GRAMMAR])
def test_live(wire: WireVersion, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    clients = ClientFactory()
    clients.warm()
    checked = check_contract(wire, clients, tmp_path, capfd.readouterr)
    with capfd.disabled():
        print("", *(f"{wire} {line}" for line in checked.lines()), sep="\n")
    if not checked.good:
        pytest.fail("a surface failed, content came out or something forbidden was tried", pytrace=False)
