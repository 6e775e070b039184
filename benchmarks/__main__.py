"""Measure and print: ``python -m benchmarks [SECTION ...] [--data DIR] [--repeat N]``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks import goodput, simulator
from benchmarks.inputs import BESIDE_THE_PROJECT

SECTIONS = {**simulator.SECTIONS, **goodput.SECTIONS}


def main(arguments: list[str] | None = None) -> int:
    """Print one table a section; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument(
        "--data",
        type=Path,
        default=BESIDE_THE_PROJECT,
        help="folder with workloads/ and the Azure trace; without it look-alikes are generated",
    )
    parser.add_argument("--repeat", type=int, default=5, help="runs to take the median of")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.sections if name not in SECTIONS]
    if unknown:
        parser.error(f"unknown section {unknown[0]}; there are {', '.join(SECTIONS)}")
    if options.repeat < 1:
        parser.error("--repeat must be at least 1")
    for name in options.sections or SECTIONS:
        print(SECTIONS[name](options.data, options.repeat), end="\n\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
