"""Recorded decisions of real schedulers, reproduced one by one, in process and by command line."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from model import recording
from model.__main__ import main
from model.simulator import simulate

GOLDEN = Path(__file__).parents[1] / "golden"
CASES = sorted(path.name for path in GOLDEN.iterdir() if (path / "config.json").exists())
TIMES = ("start_s", "end_s", "first_token_s", "last_token_s")
LISTS = ("scheduled", "preempted", "swapped_out", "swapped_in", "cached", "cancelled")


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def assert_same(expected: list[dict], found: list[dict]) -> None:
    """Every column of the recording; times to its microseconds, lists in any order."""
    for i, (wanted, got) in enumerate(zip(expected, found, strict=False)):
        for name, value in wanted.items():
            where = f"row {i}, {name}: {wanted} / {got}"
            if name in TIMES and value:
                assert float(got[name]) == pytest.approx(float(value), abs=1.1e-6), where
            elif name in LISTS:
                assert sorted(got[name].split()) == sorted(value.split()), where
            else:
                assert str(got[name]) == value, where
    assert len(found) == len(expected)


def test_all_recordings_are_there():
    assert len(CASES) == 29


@pytest.mark.parametrize("fast_forward", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_decision_by_decision(case, fast_forward):
    config = json.loads((GOLDEN / case / "config.json").read_text())
    scenario, requests = recording.load(config, read(GOLDEN / case / "requests.csv"))
    result = simulate(scenario, requests, fast_forward=fast_forward)
    assert_same(read(GOLDEN / case / "iterations.csv"), list(recording.iteration_rows(result)))


@pytest.mark.parametrize("case", CASES)
def test_by_command_line(case, tmp_path):
    folder = GOLDEN / case
    arguments = ["--config", folder / "config.json", "--requests", folder / "requests.csv"]
    assert main(["simulate", *map(str, arguments), "--out", str(tmp_path)]) == 0
    assert_same(read(folder / "iterations.csv"), read(tmp_path / "iterations.csv"))
    assert_same(read(folder / "tokens.csv"), read(tmp_path / "tokens.csv"))
    assert json.loads((tmp_path / "summary.json").read_text())["unfinished_requests"] == 0


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"policy": "vllm-v2"}, "choose one of orca"),
        ({"policy": ["orca"]}, "choose one of"),
        ({"scheduler": {"max_num_seq": 4}}, "scheduler.max_num_seq is not known"),
        ({"scheduler": 3}, "scheduler should be an object"),
        ({"iteration_time": {"base": 1}}, "iteration_time.base is not known"),
        ({"scheduler": {"kv_blocks": "many"}}, "memory.kv_blocks is 'many'"),
    ],
)
def test_a_wrong_config_gets_a_sentence(change, sentence, tmp_path, capsys):
    folder = GOLDEN / "v1_ample"
    config = json.loads((folder / "config.json").read_text()) | change
    (tmp_path / "config.json").write_text(json.dumps(config))
    arguments = ["--config", tmp_path / "config.json", "--requests", folder / "requests.csv"]
    assert main(["simulate", *map(str, arguments), "--out", str(tmp_path / "out")]) == 2
    assert sentence in capsys.readouterr().err
