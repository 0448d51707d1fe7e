"""The documents say what is true: links lead somewhere, code runs, configuration parses, commands exist."""

import asyncio
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from harness.cli import cli
from kexpr.cli import main as kexpr_main
from kexpr.codes import Outcome
from kexpr.config import FEATURE_KEY, Active, from_extra
from kexpr.exits import Exit

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("reports/**/*.md")])


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


def test_the_readme_embeds_in_ten_lines_and_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = blocks(ROOT / "README.md", "python")
    setup = code.partition("\n\n\n")[0].splitlines()
    assert len([line for line in setup if line.strip() and "import" not in line]) <= 10

    class Message:
        def __init__(self) -> None:
            self.edits: list[str] = []

        async def edit_text(self, text: str) -> None:
            self.edits.append(text)

    names: dict[str, Any] = {"extra": {}, "event_exists": lambda _: True}
    exec(compile(code, "README.md", "exec"), names)
    message = Message()
    asyncio.run(names["first_save"]("event-1", ("기록 없음",) * 7, ("물 자주 마시기",), message))
    (edit,) = message.edits
    assert edit.startswith("오늘 체크인 완료")


def test_the_documented_configuration_is_active():
    (block,) = blocks(ROOT / "docs" / "embedding.md", "yaml")
    assert isinstance(from_extra(yaml.safe_load(block)), Active)
    assert FEATURE_KEY in block


def test_documented_commands_exist():
    for line in "\n".join(blocks(ROOT / "README.md", "sh")).splitlines():
        words = shlex.split(line, comments=True)
        if words and words[0].endswith("/kexpr-harness"):
            verbs = [word for word in words[1:3] if word.isalpha() and not word.startswith("-")]
            options = {word for word in words if word.startswith("--")}
            shown = CliRunner().invoke(cli, [*verbs, "--help"])
            assert shown.exit_code == 0
            assert all(option in shown.output for option in options)


def test_check_is_documented_as_it_works(capsys):
    command = next(line for line in blocks(ROOT / "README.md", "sh")[1].splitlines() if "kexpr check" in line)
    assert kexpr_main(shlex.split(command, comments=True)[1:]) == Exit.GOOD
    assert capsys.readouterr().out.startswith("accepted")


_CONSULTED = (
    "https://github.com/Gaeduck-0908/im-not-ai-kiro/tree/901e378ae7f77035d17a491067343ac3f83d0214",
    "https://github.com/epoko77-ai/im-not-ai/tree/53e24e8f92cf344efcb812103f7c2b203e7efffc",
)
_STATEMENTS = {
    "migration.md": "No source, prompt, rule, workflow\nor artifact of theirs is copied, bundled or claimed",
    "듀얼코치_사용설명서.md": "산출물은 복사하거나\n포함하거나 우리 것이라 주장하지 않습니다",
}


@pytest.mark.parametrize("name", _STATEMENTS)
def test_the_consulted_projects_are_named_immutably_and_nothing_is_claimed(name):
    text = (ROOT / "docs" / name).read_text("utf-8")
    assert re.findall(r"<(https://github.com/[^>]+)>", text) == list(_CONSULTED)
    assert _STATEMENTS[name] in text
    assert "MIT" in text


def test_the_guide_explains_every_outcome():
    text = (ROOT / "docs" / "듀얼코치_사용설명서.md").read_text("utf-8")
    assert {outcome.value for outcome in Outcome} <= set(re.findall(r"`([a-z_]+)`", text))


def test_every_decision_record_is_listed():
    records = {path.name for path in (ROOT / "docs" / "adr").glob("0*.md")}
    listed = set(re.findall(r"\]\(([^)]+)\)", (ROOT / "docs" / "adr" / "README.md").read_text("utf-8")))
    assert records == listed
