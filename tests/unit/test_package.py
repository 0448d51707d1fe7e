"""What `import kexpr` gives, and what it must not bring along."""

import subprocess
import sys

import kexpr

HEAVY = ("openai", "httpx", "httpcore", "prometheus_client", "psycopg", "structlog", "yaml", "ssl", "pandas", "harness")


def test_public_names_are_pinned_and_load():
    assert set(kexpr.__all__) == set(kexpr._HOME) | {"__version__"}
    for name in kexpr.__all__:
        assert getattr(kexpr, name) is not None
    assert dir(kexpr) == sorted(kexpr.__all__)


def modules_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_kexpr_is_light():
    assert not modules_after("import kexpr") & set(HEAVY)


def test_importing_the_coordinator_loads_no_client():
    clients = {"openai", "httpx", "httpcore"}
    assert not modules_after("import kexpr.coordinator, kexpr.state, kexpr.paths.daily") & clients


def test_kexpr_never_imports_the_harness():
    from pathlib import Path

    sources = Path(kexpr.__file__).parent.rglob("*.py")
    assert not [path for path in sources if "harness" in path.read_text("utf-8").replace("harnesses", "")]
