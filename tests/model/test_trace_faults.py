"""Faults in traces: each gets a sentence and costs its own line only; nothing crashes."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.errors import MESSAGES, LabError
from model.traces import LISTED_FAULTS, LONGEST_LINE, Trace, read_trace

DATA = Path(__file__).parents[1] / "data"
HEADER = b"arrival_s,prompt_tokens,output_tokens\n"
AZURE_HEADER = b"TIMESTAMP,ContextTokens,GeneratedTokens\n"
PLAIN = HEADER + b"0.5,7,3\n0.75,8,4\n"


def sentences(trace: Trace) -> list[str]:
    return [fault.sentence for fault in trace.faults]


def test_each_fault_costs_its_line_and_gets_a_sentence():
    trace = read_trace(DATA / "faulty_requests.csv")
    assert sentences(trace) == [
        "Line 3: prompt_tokens is -5, not between 1 and 10,000,000; the line was left out.",
        "Line 4: output_tokens is 0, not between 1 and 10,000,000; the line was left out.",
        "Line 5: prompt_tokens is 'many', not a number; the line was left out.",
        "Line 6: arrival_s is 'nan', not a number; the line was left out.",
        "Line 7: arrival_s is 'inf', not a number; the line was left out.",
        "Line 8: prompt_tokens is 10.5, not a whole number; the line was left out.",
        "Line 9: prompt_tokens is 99999999999999999999999999, not between 1 and 10,000,000; "
        "the line was left out.",
        "Line 10: request_id 'good' was already used on line 2; the line was left out.",
        "Line 12: cancel_s is 7.5, before the request arrives; the line was left out.",
        "Line 13: shared_prefix_tokens is 101, more than the prompt of 100; the line was left out.",
        "Line 14: shared_prefix_tokens is 50 but prefix_group is empty; the line was left out.",
        "Line 15 has 2 values where the header names 8; it was left out.",
        "Line 16 has 9 values where the header names 8; it was left out.",
        "Line 17: prompt_tokens is empty; the line was left out.",
        "Line 18: prompt_tokens is '1_000', not a number; the line was left out.",
        "Line 19: prompt_tokens is '١٢٣', not a number; the line was left out.",
        "Line 20: the request_id '=1+1' could run as a formula or has odd characters; the request "
        "got another name.",
        "Line 21: the time goes back (1 times in the file); the requests were sorted by time.",
        "Line 21: the request_id '@SUM(A1)' could run as a formula or has odd characters; the "
        "request got another name.",
        "Line 23 has 4 values where the header names 8; it was left out.",
    ]
    assert (trace.kept, trace.refused) == (4, 17)
    assert trace.kept + trace.refused == 21
    assert sum(trace.fault_counts.values()) == 20
    assert trace.requests.arrival_s.tolist() == [0.5, 1.0, 16.0, 17.0]
    assert trace.requests.request_id == ("line-21", "good", "line-20", "spreadsheet")
    assert trace.requests.output_tokens.tolist() == [20, 20, 20, 20]


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        (b"2023-11-16", "is '2023-11-16', not a date and time such as"),
        (b"2023-02-30 10:00:00", "not a date and time"),
        (b"2023-11-16 25:00:00", "not a date and time"),
        (b"0001-01-01 00:00:00", "not a date and time"),
        (b"=NOW()", "is '=NOW()', not a date and time"),
        (b"", "TIMESTAMP is empty"),
        (b"2019-11-16 10:00:00", "its time is 1,461 days away from the middle of the trace"),
    ],
)
def test_azure_dates(cell, says):
    good = b"2023-11-16 10:00:0%d.25,10,1\n"
    trace = read_trace(AZURE_HEADER + good % 1 + cell + b",10,1\n" + good % 2 + good % 3)
    assert trace.requests.arrival_s.tolist() == [0, 1, 2]
    assert [fault.line for fault in trace.faults if fault.refused] == [3]
    assert any(says in sentence for sentence in sentences(trace))


GOOD = '{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [1, 2]}'


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"timestamp": 0, "input_length": 6', "Line 2 is not a complete JSON object"),
        ("[" * 100_000, "Line 2 is not a complete JSON object"),
        ('{"a":' * 30_000, "Line 2 is not a complete JSON object"),
        ("[1, 2]", "Line 2 is not a complete JSON object"),
        ("null", "Line 2 is not a complete JSON object"),
        ('{"timestamp": 0, "output_length": 5}', "Line 2 has no input_length"),
        (GOOD.replace("600", "1" + "0" * 400), "input_length is a huge number, not between"),
        (GOOD.replace("600", "1" + "0" * 5000), "Line 2 is not a complete JSON object"),
        (GOOD.replace("600", "1e400"), "input_length is a huge number, not between"),
        (GOOD.replace("600", "NaN"), "input_length is nan, not between"),
        (GOOD.replace("600", "-600"), "input_length is -600, not between 1 and"),
        (GOOD.replace("600", "600.5"), "input_length is 600.5, not a whole number"),
        (GOOD.replace("600", '"=1+1"'), "input_length is '=1+1', not a number"),
        (GOOD.replace("600", "true"), "input_length is 'bool', not a number"),
        (GOOD.replace("600", "[[[600]]]"), "input_length is 'list', not a number"),
        (GOOD.replace('"timestamp": 0', '"timestamp": -1'), "timestamp is -1, not between 0"),
    ],
)
def test_mooncake_lines_that_are_refused(line, says):
    trace = read_trace("\n".join([GOOD, line, GOOD]).encode())
    assert (trace.kept, trace.refused) == (2, 1)
    assert says in sentences(trace)[0]


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        ("[1]", "Line 2: 1 hash_ids do not cover a prompt of 2 blocks"),
        ("[1, 2, 3]", "Line 2: 3 hash_ids do not cover a prompt of 2 blocks"),
        ("[1, -2]", "Line 2: hash_ids is not a list of whole numbers"),
        ('[1, "x"]', "hash_ids is not a list"),
        ("[1, [2]]", "hash_ids is not a list"),
        ('"12"', "hash_ids is not a list"),
    ],
)
def test_mooncake_prefixes_that_cannot_be_used_do_not_cost_the_line(ids, says):
    trace = read_trace(f"{GOOD}\n{GOOD.replace('[1, 2]', ids)}".encode())
    assert (trace.kept, trace.refused) == (2, 0)
    assert trace.requests.hash_ids == ((1, 2), ())
    assert says in sentences(trace)[0]


def test_mooncake_without_prefixes():
    lines = GOOD.replace(', "hash_ids": [1, 2]', "")
    assert read_trace(lines.encode()).requests.hash_ids is None


def test_a_gigantic_field_costs_its_line():
    gigantic = b"0.5,7," + b"9" * LONGEST_LINE
    quoted = b'"' + b"9" * 150_000 + b'",7,3'
    trace = read_trace(PLAIN + gigantic + b"\n" + quoted + b"\n0.8,1,1\n")
    assert (trace.kept, trace.refused) == (3, 2)
    assert sentences(trace)[0].startswith("Line 4 is longer than 200,000 characters")
    assert all(len(sentence) < 200 for sentence in sentences(trace))


def test_a_stray_quote_costs_one_line():
    trace = read_trace(HEADER + b'0.5,"7,3\n0.75,8,4\n0.8,9,5\n')
    assert trace.requests.prompt_tokens.tolist() == [8, 9]
    assert sentences(trace) == ["Line 2 has 2 values where the header names 3; it was left out."]


def test_foreign_text_is_shown_short_and_on_one_line():
    nasty = "\x1b[31m<script>" + "A" * 500
    sentence = sentences(read_trace(PLAIN + f"0.8,{nasty},1\n".encode()))[0]
    assert len(sentence) < 130
    assert sentence.isprintable()


def test_many_faults_are_counted_and_few_listed():
    trace = read_trace(PLAIN + b"1,0,1\n" * 5000 + b"2,1,x\n")
    assert trace.refused == 5001
    assert len(trace.faults) == LISTED_FAULTS
    assert trace.fault_counts == {"trace_out_of_range": 5000, "trace_not_a_number": 1}
    assert trace.faults[-1].line == 5004  # the rare fault is not crowded out
    assert trace.faults[-1].sentence.startswith("Line 5,004: output_tokens is 'x'")


def test_columns_that_are_not_known_are_named():
    trace = read_trace(b"arrival_s,prompt_tokens,output_tokens,color\n0.5,7,3,red\n")
    assert sentences(trace) == ["Line 1: the column 'color' is not known; it was not used."]
    assert (trace.kept, trace.refused) == (1, 0)


def test_a_limit_of_requests():
    trace = read_trace(PLAIN + b"\n1,1,1\n1,1,1\n", max_requests=2)
    assert (trace.kept, trace.refused) == (2, 2)
    assert sentences(trace) == [
        "Line 5 and those after it were left out: at most 2 requests are read."
    ]


# ---- whole files --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "The file is empty"),
        (b"\xef\xbb\xbf\r\n \n", "The file is empty"),
        (b"a,b,c\n1,2,3\n", "The first line is 'a,b,c', which names no known columns."),
        (b"2023-11-16 18:17:03.97,4808,10\n", "which names no known columns."),
        (b"version https://git-lfs.github.com/spec/v1\n", "which names no known columns."),
        (b"TIMESTAMP,ContextTokens\n", "like the azure format but does not name the column gen"),
        (b"Timestamp,Model,Request tokens\n", "burstgpt format but does not name the column resp"),
        (b"request_id,arrival_s,prompt_tokens\n", "does not name the column output_tokens; add"),
        (HEADER.replace(b"output_tokens", b"output_tokens,arrival_s"), "arrival_s twice; remove"),
        (HEADER, "None of the 0 lines is a request"),
        (HEADER + b"x,y,z\n\n1,2\n", "None of the 2 lines is a request (the first fault is on lin"),
        (b'{"timestamp": 0\n', "None of the 1 lines is a request"),
        (b'[{"timestamp": 0}]\n', "The file is one JSON list; write one JSON object on each"),
        (b"PK\x03\x04" + bytes(100), "packed or a workbook (zip or xlsx)"),
        (b"\x1f\x8b\x08" + bytes(100), "packed or a workbook (gzip)"),
        (bytes(range(256)) * 20, "The file is not text"),
        (b"\x89PNG\r\n\x1a\n" + b"\xff" * 3000, "which names no known columns."),
        (b"," * LONGEST_LINE + b",", "which names no known columns."),
        (b"x" * 1_000_000, "which names no known columns."),
    ],
)
def test_files_that_are_refused_say_why(data, says):
    with pytest.raises(LabError) as caught:
        read_trace(data)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_refused_file_carries_the_faults_of_its_lines():
    with pytest.raises(LabError) as caught:
        read_trace(HEADER + b"x,y,z\n1,2\n")
    assert [fault.line for fault in caught.value.faults] == [2, 3]


def test_a_missing_file():
    with pytest.raises(LabError, match=r"The file nowhere\.csv cannot be read"):
        read_trace(DATA / "nowhere.csv")


def test_every_code_of_a_trace_has_its_sentence():
    source = "".join(
        (Path(__file__).parents[2] / "model" / name).read_text("utf-8")
        for name in ("traces.py", "trace_formats.py")
    )
    codes = set(re.findall(r'"(trace_\w+)"', source))
    assert len(codes) > 20
    assert codes <= set(MESSAGES)


MIXED = (
    PLAIN,
    (DATA / "azure_sample.csv").read_bytes(),
    (DATA / "burstgpt_sample.csv").read_bytes(),
    (DATA / "mooncake_sample.jsonl").read_bytes(),
    (DATA / "requests_sample.csv").read_bytes(),
)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(MIXED),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 3), st.binary(max_size=6)), max_size=4),
)
def test_damaged_files_never_crash(data, edits):
    for at, width, piece in edits:
        data = data[:at] + piece + data[at + width :]
    try:
        trace = read_trace(data)
    except LabError as refusal:
        error = refusal
    else:
        error = None
    if error is not None:
        assert len(str(error)) < 500
        return
    requests = trace.requests
    assert len(requests) == trace.kept > 0
    if not data.startswith((b"\xff\xfe", b"\xfe\xff")):  # utf-16
        lines = re.split(r"\r\n|\r|\n", data.decode("utf-8-sig", errors="replace"))
        filled = sum(1 for line in lines if line.strip(" \t,;"))
        assert trace.kept + trace.refused == filled - (trace.format != "mooncake")
    assert (np.diff(requests.arrival_s) >= 0).all()
    assert min(requests.prompt_tokens.min(), requests.output_tokens.min()) >= 1
    assert all(fault.sentence for fault in trace.faults)
