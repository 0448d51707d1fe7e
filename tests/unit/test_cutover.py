"""The cutover audit and its strict loader."""

import json
import os
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kexpr.cli import main
from kexpr.config import FEATURE_KEY
from kexpr.cutover import CutoverReason, audit_config_file, audit_physique_checkin_cutover
from kexpr.exits import Exit
from kexpr.strict_yaml import MAX_BYTES, YamlFault, YamlInvalid, load
from tests.unit.test_config import active_block, disabled_block


def config(**extra: object) -> str:
    return yaml.safe_dump({"platforms": {"telegram": {"extra": extra}}}, allow_unicode=True)


GOOD = config(**{FEATURE_KEY: disabled_block(), "physique_checkin": {"enabled": True}})
LEGACY = config(**{FEATURE_KEY: disabled_block(), "physique_checkin": {"coaching_feedback_enabled": False}})


@pytest.mark.parametrize(
    ("extra", "ready", "reasons"),
    [
        (None, (True, True, True), ()),
        ({}, (True, True, True), ()),
        ({FEATURE_KEY: disabled_block()}, (True, True, True), ()),
        ({FEATURE_KEY: active_block()}, (True, True, True), ()),
        (
            {"physique_checkin": {"coaching_feedback_enabled": None}},
            (False, True, True),
            ("legacy_coaching_feedback_enabled",),
        ),
        ({"physique_checkin": []}, (True, False, True), ("physique_checkin_not_a_mapping",)),
        ({"physique_checkin": {1: 2}}, (True, False, True), ("physique_checkin_non_string_key",)),
        ({FEATURE_KEY: None}, (True, True, False), ("postprocessor_not_a_mapping",)),
        ({FEATURE_KEY: {}}, (True, True, False), ("postprocessor_missing_key",)),
        ([], (False, False, False), ("extra_not_a_mapping",)),
    ],
)
def test_audit(extra, ready, reasons):
    audit = audit_physique_checkin_cutover(extra)
    found = (audit.legacy_feedback_removed, audit.physique_bridge_valid, audit.postprocessor_disabled_or_valid)
    assert (found, audit.reasons) == (ready, tuple(map(CutoverReason, reasons)))
    assert audit.ready is all(ready)


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        (b"\xef\xbb\xbfa: 1", YamlFault.BYTE_ORDER_MARK),
        (b"\xff", YamlFault.NOT_UTF8),
        (b"a: [1", YamlFault.SYNTAX),
        (b"a: \x00", YamlFault.SYNTAX),
        (b"", YamlFault.NOT_ONE_DOCUMENT),
        (b"a: 1\n---\nb: 2", YamlFault.NOT_ONE_DOCUMENT),
        (b"%YAML 1.1\n---\na: 1", YamlFault.DIRECTIVE),
        (b"%TAG ! tag:x,2000:\n---\na: 1", YamlFault.DIRECTIVE),
        (b"a: &x 1", YamlFault.ANCHOR),
        (b"a: &x 1\nb: *x", YamlFault.ANCHOR),
        (b"a: *x", YamlFault.ALIAS),
        (b"? &x a\n: 1", YamlFault.ANCHOR),
        (b"a: !!python/object/apply:os.system ['x']", YamlFault.TAG),
        (b"a: !x 1", YamlFault.TAG),
        (b"<<: {a: 1}", YamlFault.MERGE_KEY),
        (b"1: a", YamlFault.NON_STRING_KEY),
        (b"yes: a", YamlFault.NON_STRING_KEY),
        (b"null: a", YamlFault.NON_STRING_KEY),
        (b"? [a]\n: 1", YamlFault.NON_STRING_KEY),
        (b"a: 1\na: 2", YamlFault.DUPLICATE_KEY),
        (b"a: {b: [{c: 1, c: 2}]}", YamlFault.DUPLICATE_KEY),
        (b'a: 1\n"a": 2', YamlFault.DUPLICATE_KEY),
        (b"[" * 33 + b"]" * 33, YamlFault.TOO_DEEP),
        (b"[" * 100_000, YamlFault.TOO_DEEP),
        (b"[" + b"1," * 10_000 + b"]", YamlFault.TOO_MANY_NODES),
        (b"a" * (MAX_BYTES + 1), YamlFault.TOO_LARGE),
        (b"a: " + b"9" * 5_000, YamlFault.SCALAR),
    ],
)
def test_refused_documents(document, fault):
    with pytest.raises(YamlInvalid) as refused:
        load(document)
    assert refused.value.fault is fault
    assert refused.value.__context__ is None


def test_billion_laughs_costs_nothing():
    laughs = "a: &a [x,x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)},*{chr(97 + n)}]\n" for n in range(20)
    )
    with pytest.raises(YamlInvalid):
        load(laughs.encode())


def test_depth_32_is_read():
    assert load(b"[" * 32 + b"]" * 32) is not None


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**6)
    | st.text(st.characters(codec="utf-8", exclude_categories=["C"])),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abc_", min_size=1, max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(values)
def test_reads_what_the_usual_loader_reads(value):
    document = yaml.safe_dump(value, allow_unicode=True)
    if "&" in document and "*" in document:
        return
    assert load(document.encode()) == yaml.safe_load(document)


@given(st.binary(max_size=200) | st.text("[]{}:,-&*!<>|?%@`'\"# \nab1~", max_size=80).map(str.encode))
def test_any_bytes_are_read_or_a_code(document):
    with suppress(YamlInvalid):
        load(document)


def files(folder: Path, **contents: str | bytes) -> list[str]:
    arguments = []
    for name, content in contents.items():
        path = folder / f"{name}.yaml"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        arguments += ["--config", str(path)]
    return arguments


def test_command(tmp_path, capsys):
    code = main(["audit-config", *files(tmp_path, good=GOOD, legacy=LEGACY), "--json"])
    good, legacy = json.loads(capsys.readouterr().out)["files"]
    assert code == Exit.NOT_GOOD
    assert (good["ready"], good["reasons"]) == (True, [])
    assert (legacy["ready"], legacy["reasons"]) == (False, ["legacy_coaching_feedback_enabled"])
    assert set(legacy) == {
        "schema_version",
        "ready",
        "legacy_feedback_removed",
        "physique_bridge_valid",
        "postprocessor_disabled_or_valid",
        "config_sha256",
        "reasons",
    }


def test_the_highest_code_wins(tmp_path, capsys):
    twice = "{coaching_feedback_enabled: 1, coaching_feedback_enabled: 2}"
    duplicate = f"platforms: {{telegram: {{extra: {{physique_checkin: {twice}}}}}}}"
    arguments = files(tmp_path, good=GOOD, legacy=LEGACY, duplicate=duplicate)
    assert main(["audit-config", *arguments]) == Exit.INVALID
    captured = capsys.readouterr()
    assert "duplicate_key" in captured.err
    assert "Traceback" not in captured.err
    assert main(["audit-config", *files(tmp_path, good=GOOD)]) == Exit.GOOD


def test_files_that_are_none(tmp_path):
    target = tmp_path / "real.yaml"
    target.write_text(GOOD)
    link = tmp_path / "link.yaml"
    link.symlink_to(target)
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    expected = {
        link: YamlFault.NOT_REGULAR,
        pipe: YamlFault.NOT_REGULAR,
        tmp_path: YamlFault.NOT_REGULAR,
        tmp_path / "absent": YamlFault.NOT_READABLE,
        Path("a\0b"): YamlFault.NOT_READABLE,
    }
    for path, fault in expected.items():
        with pytest.raises(YamlInvalid) as refused:
            audit_config_file(path)
        assert refused.value.fault is fault


def test_reading_changes_nothing(tmp_path):
    target = tmp_path / "c.yaml"
    target.write_text(LEGACY)
    before = (target.read_bytes(), target.stat().st_mtime_ns)
    audit_config_file(target)
    assert (target.read_bytes(), target.stat().st_mtime_ns) == before
