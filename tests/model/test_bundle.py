"""Bundles: nothing is lost on the way, and nothing is taken that should not be."""

import hashlib
import io
import json
import zipfile
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model import bundle, catalogue
from model.bundle import read_bundle, write_bundle
from model.errors import LabError
from model.requests import Requests
from model.scenario import Scenario, TraceReference
from model.simulator import simulate
from model.traces import read_trace
from model.workload import Stream, Turns, Workload

PLAIN = catalogue.presets()["customer-service"].scenario


def with_trace(n: int) -> Scenario:
    return replace(PLAIN, workload=TraceReference("my trace.csv", "a" * 64, n))


SMALL = Requests.from_columns(
    arrival_s=[0.0, 0.1, 1 / 3],
    prompt_tokens=[100, 2000, 7],
    output_tokens=[5, 1, 60],
    priority=[0, -3, 10],
    cancel_s=[np.inf, 0.7, np.inf],
    prefix_group=[-1, 4, 4],
    shared_prefix_tokens=[0, 64, 7],
    request_class=[0, 1, 1],
    class_names=("chat", "offline job", "unused"),
    request_id=("a-1", "b/2", "客服-3"),
    hash_ids=((), (1, 2, 3, 2**60), (9,)),
    hash_block_tokens=256,
)


def same(left: Requests, right: Requests) -> None:
    for field in fields(Requests):
        one, other = getattr(left, field.name), getattr(right, field.name)
        if isinstance(one, np.ndarray):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other, field.name)
        else:
            assert one == other, field.name


# -- there and back --------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", list(catalogue.presets()))
def test_a_scenario_comes_back(preset):
    scenario = catalogue.presets()[preset].scenario
    back = read_bundle(write_bundle(scenario, note="for class 3\nsecond line\r\n再见"))
    assert back.scenario == scenario
    assert back.requests is None
    assert back.note == "for class 3\nsecond line\r\n再见"


def test_a_trace_comes_back_with_prefixes_and_hash_ids():
    back = read_bundle(write_bundle(with_trace(3), SMALL))
    assert back.scenario == with_trace(3)
    same(back.requests, SMALL)


labels = st.from_regex(r"\A[\w.][\w.#/+ -]{0,20}\Z")
request_ids = st.from_regex(r"\A[\w.][\w.#/+-]{0,20}\Z")


@st.composite
def traces(draw):
    n = draw(st.integers(1, 6))

    def column(values):
        return draw(st.lists(values, min_size=n, max_size=n))

    users = draw(st.none() | st.integers(1, n))
    times = st.floats(0, 1e9)
    arrival = sorted(column(times))
    if users is not None:
        arrival[users:] = [np.nan] * (n - users)
    prompt = column(st.integers(1, 10**7))
    names = draw(st.lists(labels, min_size=1, max_size=3, unique=True))
    later = st.just(np.inf) if users is not None else st.floats(1e9, 1e12) | st.just(np.inf)
    hashes = st.lists(st.integers(0, 2**63), max_size=4).map(tuple)
    return Requests.from_columns(
        arrival_s=arrival,
        prompt_tokens=prompt,
        output_tokens=column(st.integers(1, 10**7)),
        priority=column(st.integers(-(10**9), 10**9)),
        cancel_s=column(later),
        prefix_group=column(st.integers(-1, 10**15)),
        shared_prefix_tokens=[draw(st.integers(0, tokens)) for tokens in prompt],
        request_class=column(st.integers(0, len(names) - 1)),
        class_names=names,
        request_id=draw(st.none() | st.lists(request_ids, min_size=n, max_size=n)),
        hash_ids=draw(st.none() | st.lists(hashes, min_size=n, max_size=n)),
        hash_block_tokens=draw(st.integers(1, 4096)),
        users=users,
        think_s=None if users is None else column(times),
        patience_s=draw(st.none() | st.just(column(st.floats(0, 1e9) | st.just(np.inf)))),
        retries=draw(st.none() | st.just(column(st.integers(0, 100)))),
        retry_after_s=draw(st.none() | st.just(column(times))),
        retry_factor=draw(st.none() | st.just(column(st.floats(1, 100)))),
    )


@settings(max_examples=100, deadline=None)
@given(traces(), st.text(max_size=40))
def test_every_trace_and_note_comes_back(requests, note):
    scenario = with_trace(len(requests))
    note = note.encode("utf-8", errors="replace").decode()
    data = write_bundle(scenario, requests, note)
    back = read_bundle(data)
    assert back.scenario == scenario
    assert back.note == note
    same(back.requests, requests)
    assert write_bundle(back.scenario, back.requests, back.note) == data


def test_a_conversation_comes_back():
    stream = Stream(n_requests=20, turns=Turns("geometric", 4.0), patience_s=9.0, retries=2)
    requests = Workload((stream,)).generate(1)
    assert (requests.follows >= 0).any()
    back = read_bundle(write_bundle(with_trace(len(requests)), requests))
    same(back.requests, requests)


def test_the_simulation_is_the_same_to_the_last_bit():
    requests = PLAIN.requests().take(np.arange(60))
    scenario = with_trace(60)
    back = read_bundle(write_bundle(scenario, requests))
    before, after = simulate(scenario, requests), simulate(back.scenario, back.requests)
    for name, values in before.iterations.items():
        np.testing.assert_array_equal(values, after.iterations[name])


def test_bytes_do_not_depend_on_the_clock():
    data = write_bundle(PLAIN, note="x")
    assert data == write_bundle(PLAIN, note="x")
    entries = zipfile.ZipFile(io.BytesIO(data)).infolist()
    assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}


def test_requests_csv_is_also_a_trace():
    data = write_bundle(with_trace(3), SMALL)
    text = zipfile.ZipFile(io.BytesIO(data)).read("requests.csv")
    trace = read_trace(text)
    assert (trace.kept, trace.refused) == (3, 0)
    np.testing.assert_array_equal(trace.requests.arrival_s, SMALL.arrival_s)
    assert trace.requests.request_id == SMALL.request_id


def test_columns_that_say_nothing_are_left_out():
    plain = Requests.from_columns(arrival_s=[0, 1], prompt_tokens=[3, 4], output_tokens=[5, 6])
    data = write_bundle(with_trace(2), plain)
    text = zipfile.ZipFile(io.BytesIO(data)).read("requests.csv").decode()
    assert text == "arrival_s,prompt_tokens,output_tokens\n0.0,3,5\n1.0,4,6\n"


# -- what is not written ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scenario", "requests", "code"),
    [
        (with_trace(3), None, "trace_needed"),
        (with_trace(4), SMALL, "bundle_trace_differs"),
        (with_trace(3), replace(SMALL, request_id=("a", "=1+1", "c")), "bundle_label"),
        (with_trace(3), replace(SMALL, class_names=("a", "@b", "c")), "bundle_label"),
        (with_trace(3), replace(SMALL, class_names=("a", "b", "b")), "stream_names"),
    ],
)
def test_what_is_not_written(scenario, requests, code):
    with pytest.raises(LabError) as refusal:
        write_bundle(scenario, requests)
    assert refusal.value.code == code
    assert str(refusal.value)


def test_a_note_has_a_limit():
    with pytest.raises(LabError) as refusal:
        write_bundle(PLAIN, note="x" * 200_000)
    assert "note.txt is too large" in str(refusal.value)


# -- what is not read ------------------------------------------------------------------------------


def contents(data: bytes) -> dict[str, bytes]:
    archive = zipfile.ZipFile(io.BytesIO(data))
    return {name: archive.read(name) for name in archive.namelist()}


def packed(files: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def changed(**new) -> bytes:
    """A good bundle with other contents, hashes made to fit; None removes a file."""
    files = contents(write_bundle(with_trace(3), SMALL, note="hello"))
    manifest = json.loads(files["manifest.json"])
    manifest |= new.pop("manifest", {})
    for name, content in new.items():
        name = name.replace("__", ".")
        if content is None:
            del files[name]
            manifest["files"].pop(name)
        else:
            files[name] = content
            manifest["files"][name] = {"sha256": hashlib.sha256(content).hexdigest()}
    files["manifest.json"] = json.dumps(manifest).encode()
    return packed(files)


def rows(*lines: str) -> bytes:
    return "\n".join(lines).encode()


HEADER = "arrival_s,prompt_tokens,output_tokens"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "bundle_not_one"),
        (b"PK\x05\x06" + bytes(18), "bundle_file_missing"),
        (b"arrival_s,prompt_tokens\n1,2\n" * 50, "bundle_not_one"),
        (packed({}), "bundle_file_missing"),
        (packed({"scenario.json": b"{}"}), "bundle_file_missing"),
        (packed({"manifest.json": b"{}", "scenario.json": b"{}"}), "bundle_not_one"),
        (packed({"manifest.json": b"[1", "scenario.json": b"{}"}), "json_syntax"),
        (packed({"manifest.json": b"[" * 9999, "scenario.json": b"{}"}), "json_syntax"),
        (packed({"manifest.json": b"\xff", "scenario.json": b"{}"}), "bundle_not_text"),
        (packed({"../scenario.json": b"{}"}), "bundle_unexpected_file"),
        (packed({"/etc/passwd": b"{}"}), "bundle_unexpected_file"),
        (packed({"a\u202e=HYPERLINK": b"{}"}), "bundle_unexpected_file"),
        (packed({str(i): b"" for i in range(500)}), "bundle_not_one"),
        (packed({"manifest.json": b"{}"}, zipfile.ZIP_BZIP2), "bundle_broken"),
        (changed(manifest={"version": 2}), "bundle_version"),
        (changed(manifest={"version": [1] * 1000}), "bundle_version"),
        (changed(manifest={"format": "zip"}), "bundle_not_one"),
        (changed(manifest={"files": {}}), "bundle_hash"),
        (changed(manifest={"files": 3}), "bundle_not_one"),
        (changed(manifest={"files": {"other.txt": {}}}), "bundle_file_missing"),
        (changed(manifest={"requests": None}), "bundle_not_one"),
        (changed(manifest={"requests": {"class_names": [1]}}), "bundle_label"),
        (changed(manifest={"requests": {"class_names": ["a"]}}), "not_a_number"),
        (
            changed(
                manifest={"requests": {"class_names": ["a"], "hash_block_tokens": 512, "users": 9}}
            ),
            "out_of_range",
        ),
        (changed(requests__csv=None), "bundle_file_missing"),
        (changed(scenario__json=b"{"), "json_syntax"),
        (changed(scenario__json=b'{"version": 99}'), "json_version"),
        (changed(scenario__json=b'{"speed": 1}'), "json_unknown_key"),
        (changed(scenario__json=PLAIN.to_json().encode()), "bundle_unexpected_file"),
        (changed(note__txt=b"\xff\xfe"), "bundle_not_text"),
        (changed(note__txt=b"x" * 200_000), "bundle_too_large"),
        (changed(requests__csv=b""), "bundle_columns"),
        (changed(requests__csv=rows(HEADER)), "trace_empty"),
        (changed(requests__csv=rows("arrival_s,arrival_s,prompt_tokens")), "bundle_columns"),
        (changed(requests__csv=rows(HEADER + ",speed", "0,1,2,3")), "bundle_columns"),
        (changed(requests__csv=rows(HEADER, "0,1,2", "0,1")), "bundle_row"),
        (changed(requests__csv=rows(HEADER, "0,1,2", "9" * 200_000)), "bundle_row"),
        (changed(requests__csv=rows(HEADER, "0,1,x")), "bundle_cell"),
        (changed(requests__csv=rows(HEADER, "0,1," + "9" * 5000)), "bundle_cell"),
        (changed(requests__csv=rows(HEADER, "0,1," + "9" * 400)), "request_out_of_range"),
        (changed(requests__csv=rows(HEADER, "0,1,0")), "request_out_of_range"),
        (changed(requests__csv=rows(HEADER, ",1,1")), "request_out_of_range"),
        (changed(requests__csv=rows(HEADER, "nan,1,1")), "request_out_of_range"),
        (changed(requests__csv=rows(HEADER, "0,1,1")), "bundle_trace_differs"),
        (changed(requests__csv=rows(HEADER + ",request_class", "0,1,1,nobody")), "bundle_cell"),
        (changed(requests__csv=rows(HEADER + ",request_id", "0,1,1,=1+1")), "bundle_label"),
        (changed(requests__csv=rows(HEADER + ",hash_ids", "0,1,1,1  2")), "bundle_cell"),
    ],
)
def test_what_is_not_read(data, code):
    with pytest.raises(LabError) as refusal:
        read_bundle(data)
    assert refusal.value.code == code
    assert 0 < len(str(refusal.value)) < 500


def test_a_changed_byte_is_noticed():
    files = contents(write_bundle(PLAIN, note="hello"))
    files["note.txt"] = b"hallo"
    with pytest.raises(LabError) as refusal:
        read_bundle(packed(files))
    assert refusal.value.code == "bundle_hash"


def test_two_files_of_one_name():
    data = io.BytesIO(write_bundle(PLAIN))
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(data, "a") as archive:
        archive.writestr("scenario.json", b"{}")
    with pytest.raises(LabError) as refusal:
        read_bundle(data.getvalue())
    assert refusal.value.code == "bundle_unexpected_file"


def test_a_bomb_is_not_unpacked():
    bomb = packed({"manifest.json": b"{}", "scenario.json": bytes(30 * 2**20)})
    assert len(bomb) < 100_000
    with pytest.raises(LabError) as refusal:
        read_bundle(bomb)
    assert refusal.value.code == "bundle_too_large"


def test_a_bomb_that_lies_about_its_size():
    """The directory says 100 bytes; what comes out is bounded and does not match its checksum."""
    data = bytearray(packed({"manifest.json": b"{}", "scenario.json": bytes(8 * 2**20)}))
    directory = data.rindex(b"PK\x01\x02")
    data[directory + 24 : directory + 28] = (100).to_bytes(4, "little")
    with pytest.raises(LabError) as refusal:
        read_bundle(bytes(data))
    assert refusal.value.code == "bundle_broken"


def test_a_file_too_large_to_look_at(monkeypatch):
    monkeypatch.setattr(bundle, "LARGEST_PACKED", 500)
    for act in (lambda: read_bundle(bytes(501)), lambda: write_bundle(with_trace(3), SMALL)):
        with pytest.raises(LabError) as refusal:
            act()
        assert refusal.value.code == "bundle_too_large"


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_no_damage_breaks_it(data):
    good = bytearray(write_bundle(with_trace(3), SMALL, "note"))
    for _ in range(data.draw(st.integers(1, 4))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    start = data.draw(st.sampled_from([0, 0, 0, 5]))
    try:
        read_bundle(bytes(good[start:]))
    except LabError as fault:
        sentence = str(fault)
    else:
        sentence = "read"
    assert sentence
