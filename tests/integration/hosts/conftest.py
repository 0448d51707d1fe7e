import pytest

from tests.integration.hosts.support import HOSTS, need_package


@pytest.fixture(params=HOSTS)
def host(request, tmp_path, monkeypatch):
    if request.param == "hermes":
        need_package("hermes-agent==0.17.0")
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "TELEGRAM_PROXY", "TELEGRAM_WEBHOOK_URL"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name in ("HERMES_HOME", "HERMES_GATEWAY_LOCK_DIR", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "host"))
    monkeypatch.setenv("HERMES_TELEGRAM_DISABLE_FALLBACK_IPS", "1")
    return request.param
