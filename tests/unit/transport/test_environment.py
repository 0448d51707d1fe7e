"""The environment of the host is hostile until shown clean."""

import pytest

from kexpr.codes import Reason
from kexpr.errors import Rejected
from kexpr.transport import REFUSED_NAMES, check_environment, read_api_key

CONTRACT = [
    "OPENAI_ORG_ID",
    "OPENAI_PROJECT_ID",
    "OPENAI_WEBHOOK_SECRET",
    "OPENAI_BASE_URL",
    "OPENAI_API_BASE",
    "OPENAI_ORGANIZATION",
    "OPENAI_PROJECT",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
]
MEASURED = [
    "OPENAI_CUSTOM_HEADERS",
    "OPENAI_LOG",
    "OPENAI_ADMIN_KEY",
    "SSLKEYLOGFILE",
    "OPENSSL_CONF",
    "OPENSSL_MODULES",
    "OPENSSL_ENGINES",
]


def test_the_table_is_the_contract_and_what_was_measured():
    assert set(CONTRACT) | set(MEASURED) == REFUSED_NAMES


@pytest.mark.parametrize("value", ["", "x"])
@pytest.mark.parametrize("spell", [str.upper, str.lower, str.title, str.swapcase])
@pytest.mark.parametrize("name", CONTRACT + MEASURED)
def test_every_name_is_refused_in_every_spelling_and_when_empty(name, spell, value):
    with pytest.raises(Rejected) as refused:
        check_environment({"PATH": "/bin", spell(name): value})
    assert refused.value.reason is Reason.PROVIDER_ENVIRONMENT


def test_ordinary_environments_pass():
    check_environment({"PATH": "/bin", "OPENAI_API_KEY": "sk-x", "MY_HTTP_PROXY": "x", "HTTP_PROXY_": "x", "LANG": "C"})


@pytest.mark.parametrize("key", ["sk-x", "sk-proj-_A9", "!", "~" * 512])
def test_a_key_that_can_stand_in_a_header_is_read(key):
    assert read_api_key({"OPENAI_API_KEY": key}) == key


@pytest.mark.parametrize(
    "key",
    [
        "",
        " ",
        "sk x",
        "sk-x\n",
        "\tsk-x",
        "sk-x\r\nX-Evil: 1",
        "sk-\u00a0x",
        "sk-\u3000",
        "sk-\x00",
        "sk-\x7f",
        "키",
        "x" * 513,
    ],
)
def test_any_other_key_is_no_key(key):
    assert read_api_key({"OPENAI_API_KEY": key}) is None


def test_an_absent_key_is_no_key():
    assert read_api_key({"openai_api_key": "sk-x"}) is None
