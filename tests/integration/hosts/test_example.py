"""The example gateway, as its reader runs it."""

import asyncio
import logging
import subprocess
import sys
from pathlib import Path

from examples import bot_api
from examples import gateway as example
from kexpr.codes import Surface
from kexpr.testing.canaries import Canaries

ROOT = Path(__file__).parents[3]


DISABLED = {"schema_version": 2, "mode": "disabled", "surfaces": {surface.value: False for surface in Surface}}


def walked(mode, tmp_path):
    shown: list[str] = []
    asyncio.run(example.walk(mode, tmp_path, shown.append))
    return dict(text.partition("\n")[::2] for text in shown)


def test_the_command_walks_both_modes_and_ends_well(tmp_path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "gateway.py")],
        cwd=tmp_path,
        env={"PYTHONUTF8": "1", "PATH": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    assert done.stdout.count("4 requests to the provider · drained: clean") == 2
    shadow, enabled = done.stdout.split("══ enabled")
    assert shadow.count("── ") == enabled.count("── ") == 6
    assert list(tmp_path.iterdir()) == []


def test_the_customer_sees_prose_once_and_only_where_it_is_enabled(tmp_path):
    shadow = walked("shadow", tmp_path / "shadow")
    enabled = walked("enabled", tmp_path / "enabled")
    changed = {step for step in shadow if shadow[step] != enabled[step]}
    assert changed == {
        "── daily: first save",
        "── weekly: tick",
        "── dual card: callback",
        "── physique card: typed note",
    }
    assert shadow["── daily: first save"] == shadow["── daily: a second tap"] == enabled["── daily: a second tap"]
    assert enabled["── weekly: the next tick sends nothing"] == ""
    assert shadow["── dual card: callback"].endswith("[card:session-1] [card:later]")


def test_disabled_asks_nobody_and_shows_the_canonical_texts(tmp_path, monkeypatch):
    shadow = walked("shadow", tmp_path / "shadow")
    monkeypatch.setattr(example, "feature_block", lambda _: DISABLED)
    disabled = walked("disabled", tmp_path / "disabled")
    assert "0 requests to the provider · drained: clean" in disabled
    assert {step: text for step, text in disabled.items() if "requests" not in step} == {
        step: text for step, text in shadow.items() if "requests" not in step
    }


def test_what_everything_logs_by_default_holds_no_content(tmp_path, monkeypatch, caplog):
    canaries = Canaries()
    note = canaries.plant_korean("note")
    event = canaries.plant("event")
    monkeypatch.setattr(bot_api.BotApi, "note", _note_of(bot_api.BotApi.note, note))
    monkeypatch.setattr(example, "check_in", _with_identity(example.check_in, event))
    caplog.set_level("INFO")
    shown = walked("enabled", tmp_path)
    assert note in shown["── physique card: typed note"], "planted where nobody would carry it"
    logging.getLogger("httpx").info("control")
    assert "control" in caplog.text, "captured what nobody reads"
    canaries.assert_absent({"log": caplog.text})


def _note_of(original, text):
    return lambda api, chat_id, _: original(api, chat_id, text)


def _with_identity(original, identity):
    return lambda _: original(identity)
