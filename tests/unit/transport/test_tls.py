"""The TLS context: certifi's roots or one file, and no key log."""

import ssl

import certifi
import pytest

from kexpr.codes import Reason
from kexpr.errors import Rejected
from kexpr.transport.tls import build_context, build_untrusting_context


@pytest.fixture
def key_log(monkeypatch, tmp_path):
    path = tmp_path / "keys"
    monkeypatch.setenv("SSLKEYLOGFILE", str(path))
    return path


def test_a_default_context_opens_the_key_log(key_log):
    context = ssl.create_default_context(cafile=certifi.where())
    assert context.keylog_filename == str(key_log)
    assert key_log.exists()


def test_ours_does_not_know_it(key_log):
    context = build_context(None)
    assert context.keylog_filename is None
    assert not key_log.exists()


def test_it_verifies_as_the_default_context_does():
    ours, default = build_context(None), ssl.create_default_context(cafile=certifi.where())
    assert ours.verify_mode is ssl.CERT_REQUIRED is default.verify_mode
    assert ours.check_hostname is True
    assert ours.verify_flags == default.verify_flags
    assert ours.minimum_version >= ssl.TLSVersion.TLSv1_2
    assert ours.options == default.options
    assert ours.cert_store_stats() == default.cert_store_stats()


def test_the_context_the_pool_gets_trusts_no_one():
    context = build_untrusting_context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname is True
    assert context.cert_store_stats() == {"x509": 0, "crl": 0, "x509_ca": 0}


def test_a_replaced_context_class_is_refused(monkeypatch):
    class TrustsMore(ssl.SSLContext):
        """What packages that trust the system's roots put in place of the standard class."""

    monkeypatch.setattr(ssl, "SSLContext", TrustsMore)
    with pytest.raises(Rejected, match=Reason.PROVIDER_ENVIRONMENT.value):
        build_context(None)
