"""The simulator from the command line.

::

    python -m model simulate --config config.json --requests requests.csv --out DIR
    python -m model simulate --scenario PRESET_OR_JSON [--requests TRACE] --out DIR
    python -m model presets
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from model import catalogue, codec, export, metrics, recording
from model.errors import LabError
from model.requests import Requests
from model.scenario import Scenario, TraceReference
from model.simulator import simulate
from model.traces import Trace, read_trace


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return the exit status (2 for input that cannot be used)."""
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except LabError as error:
        print(error, file=sys.stderr)
    except OSError as error:
        print(f"{error.filename or 'output'}: {error.strerror}", file=sys.stderr)
    except UnicodeDecodeError:
        print("The JSON is not UTF-8 text; save it as UTF-8.", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m model", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("simulate", help="run a scenario and write its tables")
    what = run.add_mutually_exclusive_group(required=True)
    what.add_argument("--config", type=Path, help="config.json in the form of tests/golden")
    what.add_argument("--scenario", help="id of a preset, or a scenario's JSON file")
    run.add_argument("--requests", type=Path, help="requests.csv, or a trace in a known format")
    run.add_argument("--out", type=Path, required=True, help="folder for the tables")
    run.set_defaults(run=_simulate)
    presets = commands.add_parser("presets", help="list the presets")
    presets.set_defaults(run=_presets)
    return parser


def _simulate(options: argparse.Namespace) -> int:
    scenario, requests = _inputs(options)
    result = simulate(scenario, requests)
    export.write(result, options.out)
    numbers = metrics.summary(result)
    print(
        f"{options.out}: {numbers['requests']:,} requests, {numbers['iterations']:,} iterations, "
        f"{numbers['throughput_output_tokens_per_s']:,.0f} output tokens/s, "
        f"median TTFT {numbers['ttft_p50_s'] * 1e3:,.0f} ms, "
        f"median TPOT {numbers['tpot_p50_s'] * 1e3:,.1f} ms, "
        f"SLO attainment {numbers['slo_attainment_share']:.1%}, "
        f"{numbers['preemptions']:,} preemptions"
    )
    return 0


def _inputs(options: argparse.Namespace) -> tuple[Scenario, Requests | None]:
    if options.config is not None:
        if options.requests is None:
            raise LabError("requests_needed")
        config = codec.parse_json(options.config.read_text(encoding="utf-8-sig"))
        trace = _read(options.requests)
        return recording.scenario_of(config, len(trace.requests)), trace.requests
    preset = catalogue.presets().get(options.scenario)
    if preset is not None:
        scenario = preset.scenario
    elif Path(options.scenario).suffix == ".json":
        scenario = Scenario.from_json(Path(options.scenario).read_text(encoding="utf-8-sig"))
    else:
        raise LabError(
            "not_a_choice_of_ids",
            what="preset",
            value=options.scenario,
            choices=", ".join(catalogue.presets()),
        )
    if options.requests is None:
        return scenario, None
    trace = _read(options.requests)
    reference = TraceReference(trace.name[:200], trace.sha256, len(trace.requests))
    return replace(scenario, workload=reference), trace.requests


def _read(path: Path) -> Trace:
    """A trace; its faults go to standard error, a line each."""
    trace = read_trace(path)
    for fault in trace.faults:
        print(f"{path.name}: {fault.sentence}", file=sys.stderr)
    if trace.refused:
        print(
            f"{path.name}: {trace.refused:,} lines left out, {trace.kept:,} kept", file=sys.stderr
        )
    return trace


def _presets(options: argparse.Namespace) -> int:
    for preset in catalogue.presets().values():
        print(f"{preset.id:24} {preset.note}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
