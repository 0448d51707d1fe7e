"""Loggers that the host cannot turn on again. Each test runs in a process of its own: silencing is for good."""

import subprocess
import sys

PRELUDE = """
import logging, logging.config, sys, types

captured = []

class Capture(logging.Handler):
    def emit(self, record):
        captured.append(record.name + " " + record.getMessage())

def host_configures():
    logging.config.dictConfig({
        "version": 1, "disable_existing_loggers": False,
        "handlers": {"all": {"()": Capture}},
        "root": {"level": "DEBUG", "handlers": ["all"]},
        "loggers": {name: {"level": "DEBUG", "handlers": ["all"], "propagate": True}
                    for name in ("openai", "openai._base_client", "httpx", "httpcore", "httpcore.http11")},
    })
"""


def run(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", PRELUDE + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_disabled_logger_comes_back_and_an_inert_one_does_not():
    run("""
import openai._base_client as base
logging.getLogger("openai._base_client").disabled = True
logging.getLogger("openai").setLevel(logging.CRITICAL)
host_configures()
base.log.debug("the prompt")
assert captured == ["openai._base_client the prompt"] * 3, captured

from kexpr.transport import ClientFactory
ClientFactory().warm()
host_configures()
captured.clear()
for level in range(0, 60, 10):
    base.log.log(level, "the prompt")
base.log.handle(logging.LogRecord("openai", 50, "", 0, "the prompt", None, None))
assert not base.log.isEnabledFor(logging.CRITICAL)
assert captured == [], captured
""")


def test_no_module_of_the_packages_keeps_a_logger():
    run("""
from kexpr.transport import ClientFactory
from kexpr.transport.quiet import InertLogger
factory = ClientFactory()
factory.warm()

def left():
    return [(module.__name__, name) for module in list(sys.modules.values())
            if module.__name__.split(".")[0] in ("openai", "httpx", "httpcore", "httpx2", "httpcore2")
            for name, value in list(vars(module).items())
            if issubclass(type(value), logging.Logger) and type(value) is not InertLogger]

assert left() == [], left()
# Loaded later by somebody else in the process, before the next attempt.
late = sys.modules["openai.late"] = types.ModuleType("openai.late")
late.anything = logging.getLogger("openai.late")
assert left() != []
factory.open("sk-x", 0.0)
assert left() == [], left()
""")


def test_silencing_wakes_no_lazy_object_of_the_sdk():
    run("""
import os
os.environ["OPENAI_API_KEY"] = "sk-x"
from kexpr.transport import ClientFactory
ClientFactory().warm()
import openai
assert openai._client is None, "the SDK's module-level client reads the environment"
""")
