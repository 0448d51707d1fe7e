"""The scheduler files of the documentation say what the specification asks for, and name a command that exists."""

import configparser
import shlex
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from harness.cli import cli

DEPLOY = Path(__file__).parents[3] / "docs" / "deploy"


def _arguments(command: str) -> list[str]:
    words = shlex.split(command)
    return words[next(index for index, word in enumerate(words) if word.endswith("kexpr-harness")) + 1 :]


def _unit(name: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(DEPLOY / name)
    return parser


def _cronjob():
    return yaml.safe_load((DEPLOY / "cronjob.yaml").read_text())["spec"]


COMMANDS = {
    "crontab": lambda: _arguments((DEPLOY / "crontab").read_text().splitlines()[-1].split(">>")[0]),
    "systemd": lambda: _arguments(_unit("kexpr-harness-observe.service")["Service"]["ExecStart"]),
    "kubernetes": lambda: _cronjob()["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["command"][1:],
}


@pytest.mark.parametrize("scheduler", COMMANDS)
def test_the_command_is_one(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without switch and key it is refused for exactly that: everything else about it is right."""
    monkeypatch.delenv("RUN_KOREAN_EXPRESSION_LIVE", raising=False)
    arguments = COMMANDS[scheduler]()
    assert arguments[:3] == ["observe", "run", "--due"]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 2
    assert "--live needs" in result.output


def test_no_scheduler_retries() -> None:
    spec = _cronjob()
    assert (spec["concurrencyPolicy"], spec["timeZone"]) == ("Forbid", "Etc/UTC")
    job = spec["jobTemplate"]["spec"]
    assert (job["backoffLimit"], job["template"]["spec"]["restartPolicy"]) == (0, "Never")
    service, timer = _unit("kexpr-harness-observe.service"), _unit("kexpr-harness-observe.timer")
    assert service["Service"]["Type"] == "oneshot"
    assert "Restart" not in service["Service"]
    assert timer["Timer"]["Persistent"] == "true"
    assert timer["Timer"]["OnCalendar"].endswith(" UTC")
