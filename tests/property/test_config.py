"""No block makes the parser raise, and only the exact ones are active."""

from hypothesis import given
from hypothesis import strategies as st

from kexpr.config import FEATURE_KEY, Active, Disabled, InvalidConfig, from_extra, parse_block
from tests.unit.test_config import PROVIDER, SURFACES_OFF

scalars = st.none() | st.booleans() | st.integers(-3, 200) | st.floats() | st.text(max_size=8) | st.binary(max_size=4)
near_keys = st.sampled_from([*SURFACES_OFF, *PROVIDER, "schema_version", "mode", "surfaces", "provider", FEATURE_KEY])
near_values = scalars | st.sampled_from([*PROVIDER.values(), 1, 2, "disabled", "shadow", "enabled"])
blocks = st.recursive(
    near_values, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(near_keys | scalars, inner, max_size=7)
)


@given(blocks)
def test_never_raises(block):
    assert isinstance(parse_block(block), Active | Disabled | InvalidConfig)
    assert isinstance(from_extra({FEATURE_KEY: block}), Active | Disabled | InvalidConfig)
    assert isinstance(from_extra(block), Active | Disabled | InvalidConfig)


@given(
    st.sampled_from([1, 2]),
    st.sampled_from(["shadow", "enabled"]),
    st.dictionaries(st.sampled_from(list(SURFACES_OFF)), st.booleans()),
    st.sampled_from(["schema_version", "mode", "surfaces", "provider"]),
    near_values,
)
def test_one_wrong_value_is_never_active(version, mode, flags, key, value):
    surfaces = {**SURFACES_OFF, **flags}
    block = {"schema_version": version, "mode": mode, "surfaces": surfaces, "provider": dict(PROVIDER)}
    assert isinstance(parse_block(block), Active) is any(surfaces.values())
    original = block[key]
    block[key] = value
    if isinstance(parse_block(block), Active):
        legal = {"schema_version": (1, 2), "mode": ("shadow", "enabled")}
        assert value == original or value in legal.get(key, ())
