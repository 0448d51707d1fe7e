"""Aliases: the derivation of contract section 3, by vectors computed here from its words alone."""

import base64
import hashlib
import hmac

import pytest

from kexpr.codes import Reason, SlotKind, WireVersion
from kexpr.errors import Rejected
from kexpr.wire.aliases import ALIAS_COUNTS, alias, artifact_key, distinct_aliases
from tests.unit.wire.shapes import IDENTITY, KEY, NONCE, SHAPES, issued

FIXED = [
    "l_52d6j5i42rkiuhk4hgns",
    "l_p77tgbyzfrl3rik2oiwv",
    "s_psw6xeqqkohtt6kekhvd",
    "s_jagamx4kdnj3vfzls6ge",
    "a_2ys5lbl3hkox2pdflo6j",
    "a_syjs6wnml2lb44cjotlf",
    "⟦p_glyzemht3qa4lzvyxdub⟧",
    "⟦p_xioo4nvb456nix2iycb6⟧",
    "k_y6lpmcibmyrxmlw5vgfm",
    "k_y5jja3haqr3gtncz7dth",
]
FIXED_ARTIFACT_KEY = "k_gdbsiyruajp3yggkn5go"


def expected(letter: bytes, ordinal: int, characters: int) -> str:
    message = letter + b"\x00" + NONCE + bytes([0, 0, 0, ordinal])
    return base64.b32encode(hmac.new(KEY, message, hashlib.sha256).digest()).decode().lower()[:characters]


def test_an_alias_is_the_specified_hmac_behind_its_prefix():
    for characters in (6, 20):
        for ordinal in (0, 1, 7):
            for letter, shape in (("l", "l_{}"), ("s", "s_{}"), ("a", "a_{}"), ("k", "k_{}"), ("p", "⟦p_{}⟧")):
                body = expected(letter.encode(), ordinal, characters)
                assert alias(KEY, letter, NONCE, ordinal, characters) == shape.format(body)


def test_fixed_vectors():
    drawn = [alias(KEY, letter, NONCE, ordinal, 20) for letter in "lsapk" for ordinal in (0, 1)]
    assert drawn == FIXED
    assert artifact_key(KEY, ("daily.v1", "event-1")) == FIXED_ARTIFACT_KEY


def test_the_ordinal_has_four_big_endian_bytes():
    message = b"l\x00" + NONCE + b"\x01\x02\x03\x04"
    body = base64.b32encode(hmac.new(KEY, message, hashlib.sha256).digest()).decode().lower()[:20]
    assert alias(KEY, "l", NONCE, 0x01020304, 20) == f"l_{body}"


def test_the_artifact_key_is_a_length_prefixed_hmac_of_its_fields():
    message = b"\0\0\0\x08daily.v1" + b"\0\0\0\x06" + "기록".encode()
    body = base64.b32encode(hmac.new(KEY, message, hashlib.sha256).digest()).decode().lower()[:20]
    assert artifact_key(KEY, ("daily.v1", "기록")) == f"k_{body}"


def test_where_a_field_ends_changes_the_artifact_key():
    assert len({artifact_key(KEY, fields) for fields in (("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""))}) == 4


def test_a_collision_takes_a_new_nonce():
    nonces = [i.to_bytes(16, "big") for i in range(2000)]
    counts = {"l": 3, "p": 3}

    def collides(nonce: bytes) -> bool:
        bodies = [alias(KEY, letter, nonce, i, 1).strip("⟦⟧")[2:] for letter in counts for i in range(3)]
        return len(set(bodies)) < 6

    bad = next(nonce for nonce in nonces if collides(nonce))
    good = next(nonce for nonce in nonces if not collides(nonce))
    given = iter([bad, bad, good])
    drawn = distinct_aliases(KEY, counts, 1, lambda: next(given))
    assert drawn == {letter: tuple(alias(KEY, letter, good, i, 1) for i in range(3)) for letter in counts}
    assert list(given) == []


@pytest.mark.parametrize("nonce", [b"", bytes(15), bytes(17)])
def test_a_nonce_of_another_length_is_refused(nonce: bytes):
    with pytest.raises(Rejected) as refused:
        distinct_aliases(KEY, {"l": 1}, 20, lambda: nonce)
    assert refused.value.reason is Reason.INTERNAL


def test_a_source_that_only_collides_is_refused_after_a_bounded_number_of_nonces():
    asked: list[int] = []

    def constant() -> bytes:
        asked.append(1)
        return bytes(16)

    with pytest.raises(Rejected) as refused:
        distinct_aliases(KEY, {"l": 40}, 1, constant)
    assert refused.value.reason is Reason.INTERNAL
    assert len(asked) < 20


def test_every_kind_of_slot_has_its_alias_counts():
    assert set(ALIAS_COUNTS) == set(SlotKind)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_key_of_wire_1_names_the_artifact_and_that_of_wire_2_only_the_attempt(shape: str):
    again = bytes(16)
    first, second = (issued(shape, WireVersion.KEXP_1, nonce) for nonce in (NONCE, again))
    assert first.key == second.key == artifact_key(KEY, IDENTITY)
    if len(first.slots) <= 5:
        assert issued(shape, WireVersion.KEXP_2).key == alias(KEY, "k", NONCE, 0, 6)
        assert issued(shape, WireVersion.KEXP_2, again).key != issued(shape, WireVersion.KEXP_2).key
