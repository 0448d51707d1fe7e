"""`kexpr check`: what a person types, and what they get back."""

import pytest

from kexpr.cli import main
from kexpr.exits import Exit


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--surface", "daily", "오늘 이야기를 이어 볼게요. ⟦p⟧"], Exit.GOOD, "accepted"),
        (["--surface", "daily", "약을 챙겨 드세요. ⟦p⟧"], Exit.NOT_GOOD, "guard.medical"),
        (["--surface", "daily", ""], Exit.NOT_GOOD, "form.placeholder_missing"),
        (["--surface", "daily", "오늘\u200b이야기 ⟦p⟧"], Exit.NOT_GOOD, "<U+200B>"),
        (["--surface", "daily", "\udcff\udcfe ⟦p⟧"], Exit.NOT_GOOD, "form.character"),
        (["--surface", "daily", "가" * 100_000], Exit.NOT_GOOD, "form.placeholder_missing"),
        (["--surface", "adaptive_dualcoachtest", "이번 판단은 ⟦p⟧입니다."], Exit.GOOD, "accepted"),
        (["--surface", "adaptive_dualcoachtest", "--expansion", "유지", "⟦p⟧을 봐요."], Exit.NOT_GOOD, "form.particle"),
        (["--surface", "weekly", "--slot", "weekly.rationale", "그 이유는 이래요. ⟦p⟧"], Exit.GOOD, "weekly.rationale"),
    ],
)
def test_check(arguments, code, said, capsys):
    assert main(["check", *arguments]) == code
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["check"],
        ["check", "--surface", "nope", "x"],
        ["check", "--surface", "daily", "--slot", "dual.reason", "x"],
        ["check", "--surface", "daily", "--expansion", "x", "x"],
        ["check", "--surface", "adaptive_dualcoachtest", "--expansion", "\u1100\u1161", "x"],
        ["unknown"],
    ],
)
def test_usage(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == Exit.USAGE
    captured = capsys.readouterr()
    assert (captured.out, "Traceback" in captured.err) == ("", False)
