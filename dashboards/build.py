"""`python -m dashboards.build`: write the Grafana dashboards next to this file, from `dashboards.panels`."""

from pathlib import Path
from typing import Final

from dashboards.panels import DASHBOARDS, encode

__all__ = ["GRAFANA", "PROMETHEUS", "main"]

GRAFANA: Final = Path(__file__).parent / "grafana"
PROMETHEUS: Final = Path(__file__).parent / "prometheus"


def main() -> None:
    for name, spec in DASHBOARDS.items():
        (GRAFANA / f"{name}.json").write_text(encode(spec), "utf-8")


if __name__ == "__main__":
    main()
