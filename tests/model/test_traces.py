"""Traces: the four formats, however they come, and the real ones as published."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from model.traces import HOPELESS, Trace, TraceError, read_trace

DATA = Path(__file__).parents[1] / "data"
SHARED = Path(__file__).parents[3] / "shared" / "data"
HEADER = b"arrival_s,prompt_tokens,output_tokens\n"
AZURE_HEADER = b"TIMESTAMP,ContextTokens,GeneratedTokens\n"


def sentences(trace: Trace) -> list[str]:
    return [fault.sentence for fault in trace.faults]


# ---- the formats --------------------------------------------------------------------------


def test_azure_keeps_seven_digits_and_starts_at_zero():
    trace = read_trace(DATA / "azure_sample.csv")
    assert (trace.format, trace.kept, trace.refused, trace.faults) == ("azure", 3, 0, ())
    assert trace.requests.arrival_s.tolist() == [0.0, 2e-7, 2.5000001]
    assert trace.requests.prompt_tokens.tolist() == [1200, 300, 80]
    assert trace.requests.output_tokens.tolist() == [40, 7, 250]
    assert trace.requests.request_id == ("0", "1", "2")
    assert trace.name == "azure_sample.csv"


def test_azure_of_2024_has_zones_and_whole_seconds():
    trace = read_trace(
        AZURE_HEADER
        + b"2024-05-12 02:00:00+02:00,10,1\n2024-05-12T00:00:01Z,10,2\n"
        + b"2024-05-11 19:00:01.5-05:00,10,3\n2024-05-12 00:00:04,10,4"
    )
    assert trace.requests.arrival_s.tolist() == [0, 1, 1.5, 4]


def test_burstgpt_failures_are_left_out_and_log_types_are_classes():
    trace = read_trace(DATA / "burstgpt_sample.csv")
    assert (trace.format, trace.kept, trace.refused) == ("burstgpt", 3, 1)
    assert sentences(trace) == ["Line 3: the request failed (0 response tokens); it was left out."]
    assert trace.requests.arrival_s.tolist() == [0, 15, 15]
    assert trace.requests.output_tokens.tolist() == [20, 280, 33]
    assert trace.requests.class_names == ("Conversation log", "API log")
    assert trace.requests.request_class.tolist() == [0, 1, 0]


def test_burstgpt_with_sessions():
    trace = read_trace(DATA / "burstgpt_sessions_sample.csv")
    assert (trace.kept, trace.refused) == (2, 1)
    assert trace.requests.arrival_s.tolist() == [0, 9.5]


def test_mooncake_keeps_the_prefix_blocks():
    trace = read_trace(DATA / "mooncake_sample.jsonl")
    assert (trace.format, trace.kept, trace.refused) == ("mooncake", 3, 0)
    assert trace.requests.arrival_s.tolist() == [0, 0, 1.5]
    assert trace.requests.hash_ids == ((0, 1, 2), (0, 1), (0, 5))
    assert trace.requests.hash_block_tokens == 512


def test_own_format_keeps_its_zero_and_every_column():
    trace = read_trace(DATA / "requests_sample.csv")
    requests = trace.requests
    assert (trace.format, trace.kept, trace.faults) == ("requests", 3, ())
    assert requests.arrival_s.tolist() == [0.5, 1.25, 1.25]
    assert requests.priority.tolist() == [0, 5, -1]
    assert requests.cancel_s.tolist() == [math.inf, 9.75, math.inf]
    assert requests.prefix_group.tolist() == [-1, 2, 2]
    assert requests.shared_prefix_tokens.tolist() == [0, 64, 60]
    assert requests.request_id == ("a", "b", "c")
    assert requests.class_names == ("interactive", "offline")
    assert requests.request_class.tolist() == [0, 1, 0]


def test_columns_may_come_in_any_order_and_case():
    trace = read_trace(b"Output_Tokens,ARRIVAL_S,prompt_tokens\n3,0.5,7\n")
    assert trace.requests.output_tokens.tolist() == [3]
    assert trace.requests.prompt_tokens.tolist() == [7]


# ---- how files come -----------------------------------------------------------------------

PLAIN = HEADER + b"0.5,7,3\n0.75,8,4\n"


@pytest.mark.parametrize(
    "data",
    [
        PLAIN.replace(b"\n", b"\r\n"),
        PLAIN.replace(b"\n", b"\r"),
        b"\xef\xbb\xbf" + PLAIN,
        PLAIN.decode().encode("utf-16"),
        b"\n\r\n  \n" + PLAIN.replace(b"0.75", b"\n,,\n0.75"),
        PLAIN.rstrip(b"\n"),
        PLAIN.replace(b",", b";"),
        PLAIN.replace(b",", b"\t"),
        PLAIN.replace(b",", b" , "),
        PLAIN.replace(b"0.5", b'"0.5"').replace(b"arrival_s", b'"arrival_s"'),
        PLAIN.replace(b"3\n", b"3,,\n"),
        bytearray(PLAIN),
    ],
    ids=[
        *("crlf", "cr", "bom", "utf-16", "blank lines", "no last newline", "semicolon", "tab"),
        *("spaces", "quotes", "trailing commas", "bytearray"),
    ],
)
def test_the_same_trace_in_other_clothes(data):
    trace = read_trace(data, "upload.csv")
    assert trace.requests.arrival_s.tolist() == [0.5, 0.75]
    assert trace.requests.prompt_tokens.tolist() == [7, 8]
    assert (trace.kept, trace.refused, trace.faults) == (2, 0, ())


def test_hash_names_the_bytes():
    # sha256 of the empty string is well known; here: equal bytes, equal hash, else another
    assert read_trace(PLAIN).sha256 == read_trace(bytearray(PLAIN)).sha256
    assert read_trace(PLAIN).sha256 != read_trace(PLAIN + b"\n").sha256
    assert len(read_trace(PLAIN).sha256) == 64


# ---- real traces --------------------------------------------------------------------------


@pytest.mark.skipif(not SHARED.exists(), reason="the Azure traces are not here")
@pytest.mark.parametrize(
    ("file", "n", "medians", "means", "cv"),
    [  # DOMAIN P18
        ("code", 8_819, (1469, 13), (2048, 27.9), 13.2),
        ("conv", 19_366, (1020, 129), (1155, 211), 1.09),
    ],
)
def test_azure_as_published(file, n, medians, means, cv):
    trace = read_trace(SHARED / f"AzureLLMInferenceTrace_{file}.csv")
    requests = trace.requests
    assert (trace.kept, trace.refused, trace.faults) == (n, 0, ())
    tokens = requests.prompt_tokens, requests.output_tokens
    assert tuple(np.median(column) for column in tokens) == medians
    assert tokens[0].mean() == pytest.approx(means[0], abs=0.5)
    assert tokens[1].mean() == pytest.approx(means[1], abs=0.15)
    gaps = np.diff(requests.arrival_s)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, abs=0.05 if cv > 2 else 0.005)


@pytest.mark.skipif(not SHARED.exists(), reason="the Mooncake trace is not here")
def test_mooncake_as_published():
    path = SHARED / "mooncake_conversation_first_2000.jsonl"
    trace = read_trace(path)
    assert (trace.kept, trace.refused) == (2000, 0)
    first = json.loads(path.read_text("utf-8").splitlines()[0])
    assert trace.requests.hash_ids[0] == tuple(first["hash_ids"])


def test_twenty_thousand_lines_are_read():
    line = b"2023-11-16 18:%02d:%02d.%07d,%d,%d\n"
    lines = [line % (i // 60 % 60, i % 60, i, i + 1, i + 1) for i in range(20_000)]
    trace = read_trace(AZURE_HEADER + b"".join(lines))
    assert trace.kept == 20_000


def test_a_file_without_one_good_line_is_given_up():
    """Three million bad lines are refused after the first ones, not counted to the end."""
    data = b"request_id,arrival_s,prompt_tokens,output_tokens,priority\n" + b"bad\n" * 200_000
    with pytest.raises(TraceError) as refused:
        read_trace(data)
    assert refused.value.values["refused"] == HOPELESS + 1
