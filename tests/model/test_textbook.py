"""The source text's throughput formulas come out of the simulator under the Textbook clock.

F12, static batching: Bs·L / (Ts·(Lin + L)); F13, dynamic batching: Bd / Ts. Their ratio gives the
famous 719 %. Most of it is bookkeeping: F12 pays for prompts one token an iteration ("serial"),
F13 gets them for nothing ("free"). With the same accounting on both sides 130 % remain, which is
Bd / Bs − 1.

How the steady window is kept free of edges: the queue is saturated from time 0, so batch follows
batch without a gap and, as all prompts and outputs are equal, everything repeats with the length of
one request's stay. The window runs from the first completion, which is the end of the first stay,
to the last arrival. So all requests but one arrive at 0, more than the window can serve, and the
last one arrives when ``STAYS`` stays have passed (a hundredth of an iteration later, so that the
rounding of a sum of 0.0126 s does not decide whether the last iteration counts). The window then
holds whole stays.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from model.iteration_time import Textbook
from model.metrics import output_throughput_per_s, steady_window
from model.requests import Requests
from model.result import SimulationResult
from model.scenario import Memory, Scenario, TraceReference
from model.schedulers import Orca, Scheduler, Static, VllmV1
from model.simulator import simulate

BS, BD, LIN, L = 10, 23, 512, 200
STAYS = 13
"""Stays of a request until the last arrival; the window holds all but the first."""

STATIC = Static(max_num_seqs=BS)
STATIC_PADDED = Static(max_num_seqs=BS, finished_rows="padded")
ORCA = Orca(max_num_seqs=BD, reserve="oracle")
V1 = VllmV1(max_num_seqs=BD, max_num_batched_tokens=BD * LIN)
DYNAMIC = pytest.mark.parametrize("dynamic", [ORCA, V1], ids=["orca", "vllm-v1"])
FORWARD = pytest.mark.parametrize("forward_s", [2**-6, 0.0126], ids=["exact", "rounded"])


def stay_iterations(accounting: str) -> int:
    """Iterations in which a request holds its slot.

    The iteration that computes the last prompt token gives the first output, hence the − 1.
    """
    return LIN + L - 1 if accounting == "serial" else L


def run(policy: Scheduler, accounting: str, forward_s: float = 2**-6) -> SimulationResult:
    stay_s = stay_iterations(accounting) * forward_s
    at_once = (STAYS + 1) * policy.max_num_seqs  # the queue is not empty when the window ends
    arrival_s = np.append(np.zeros(at_once), STAYS * stay_s + forward_s / 100)
    requests = Requests.from_columns(
        arrival_s=arrival_s,
        prompt_tokens=np.full(len(arrival_s), LIN),
        output_tokens=np.full(len(arrival_s), L),
    )
    scenario = Scenario(
        workload=TraceReference("textbook", "0" * 64, len(requests)),
        policy=policy,
        clock=Textbook(forward_s, accounting),
        model=None,
        hardware=None,
        memory=Memory(kv_blocks=BD * 45, max_model_len=LIN + L),  # 45 blocks hold 720 tokens
    )
    return simulate(scenario, requests)


def tokens_per_s(policy: Scheduler, accounting: str, forward_s: float = 2**-6) -> float:
    result = run(policy, accounting, forward_s)
    window = steady_window(result.requests)
    assert window.is_steady
    return output_throughput_per_s(result, window)


def f12(forward_s: Fraction) -> Fraction:
    return BS * L / (forward_s * (LIN + L))


def f13(forward_s: Fraction) -> Fraction:
    return BD / forward_s


@pytest.mark.parametrize("accounting", ["serial", "free"])
@pytest.mark.parametrize("policy", [STATIC, STATIC_PADDED, ORCA, V1], ids=lambda p: p.name)
def test_the_window_holds_whole_stays_of_whole_batches(policy, accounting):
    result = run(policy, accounting)
    window = steady_window(result.requests)
    stay = stay_iterations(accounting)
    in_window = window.holds(result.iterations["end_s"])
    assert in_window.sum() == (STAYS - 1) * stay
    assert (result.iterations["running"][in_window] == policy.max_num_seqs).all()
    assert (result.iterations["waiting"][in_window] > 0).all()
    assert result.requests["preemptions"].sum() == 0
    # And a stay is as long as said, from the first scheduled iteration to the last token.
    first = result.requests["first_scheduled_s"]
    np.testing.assert_array_equal((result.requests["last_token_s"] - first) / 2**-6, stay)


@FORWARD
def test_f12_static_serial(forward_s):
    simulated = tokens_per_s(STATIC, "serial", forward_s)
    ts = Fraction(forward_s)
    assert simulated == pytest.approx(float(f12(ts)), rel=2e-3)
    # The 0.14 % in between are the text's one iteration too many, 712 instead of 711.
    assert simulated == pytest.approx(float(f12(ts) * Fraction(LIN + L, LIN + L - 1)), rel=1e-5)


@FORWARD
@DYNAMIC
def test_f13_dynamic_free(dynamic, forward_s):
    simulated = tokens_per_s(dynamic, "free", forward_s)
    assert simulated == pytest.approx(float(f13(Fraction(forward_s))), rel=1e-5)


@FORWARD
@DYNAMIC
def test_719_percent(dynamic, forward_s):
    text = Fraction(BD * (LIN + L), BS * L) - 1
    assert text == Fraction(1797, 250)  # F14's check value
    assert round(100 * text) == 719
    gain = tokens_per_s(dynamic, "free", forward_s) / tokens_per_s(STATIC, "serial", forward_s)
    assert gain == pytest.approx(float(text + 1), rel=2e-3)
    assert gain - 1 == pytest.approx(7.19, rel=2e-3)
    # To the last digit: with 711 iterations instead of 712.
    assert gain == pytest.approx(float(Fraction(BD * (LIN + L - 1), BS * L)), rel=1e-5)


@FORWARD
@pytest.mark.parametrize("accounting", ["serial", "free"])
@pytest.mark.parametrize("static", [STATIC, STATIC_PADDED], ids=["removed", "padded"])
@DYNAMIC
def test_130_percent_with_one_accounting_for_both(dynamic, static, accounting, forward_s):
    gain = tokens_per_s(dynamic, accounting, forward_s) / tokens_per_s(
        static, accounting, forward_s
    )
    assert gain == pytest.approx(float(Fraction(BD, BS)), rel=1e-9)
    assert round(100 * (gain - 1)) == 130


@pytest.mark.parametrize("accounting", ["serial", "free"])
def test_dynamic_engines_agree(accounting):
    assert tokens_per_s(ORCA, accounting) == tokens_per_s(V1, accounting)


@DYNAMIC
def test_f13_also_when_arrivals_are_spread(dynamic):
    """Nothing depends on everybody starting together: one arrival every eight iterations is 8 %
    more than the 23 slots serve, so the queue grows from the 24th request on."""
    ts = 2**-6
    requests = Requests.from_columns(
        arrival_s=np.arange(1200) * 8 * ts,
        prompt_tokens=np.full(1200, LIN),
        output_tokens=np.full(1200, L),
    )
    scenario = Scenario(
        workload=TraceReference("textbook", "0" * 64, 1200),
        policy=dynamic,
        clock=Textbook(ts, "free"),
        model=None,
        hardware=None,
        memory=Memory(kv_blocks=BD * 45, max_model_len=LIN + L),
    )
    result = simulate(scenario, requests)
    window = steady_window(result.requests)
    assert output_throughput_per_s(result, window) == pytest.approx(BD / ts, rel=2e-3)
