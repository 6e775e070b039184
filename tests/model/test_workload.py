"""Workload generation: moments, common random numbers, sentences."""

import math

import numpy as np
import pytest

from model.errors import LabError
from model.workload import Arrivals, Lengths, Requests, Stream, Workload

N = 100_000


def draw(lengths: Lengths, n: int = N, seed: int = 1) -> np.ndarray:
    return lengths.sample(np.random.default_rng(seed), n)


def gaps(arrivals: Arrivals, n: int = N) -> np.ndarray:
    return np.diff(arrivals.sample(np.random.default_rng(2), n))


def one_stream(**changes) -> Workload:
    return Workload((Stream("chat", 1000, **changes),))


# ---- lengths ------------------------------------------------------------------------------

AZURE_LIKE = ((0.0, 10.0), (0.5, 100.0), (1.0, 400.0))


@pytest.mark.parametrize(
    ("lengths", "mean", "cv"),
    [
        (Lengths("fixed", 512), 512, 0),
        # whole numbers 101..300: mean 200.5, variance (200² − 1)/12
        (Lengths("uniform", low_tokens=101, high_tokens=300), 200.5, 57.73 / 200.5),
        (Lengths("exponential", 200), 200, 1),
        (Lengths("geometric", 200), 200, math.sqrt(1 - 1 / 200)),
        (Lengths("geometric", 1), 1, 0),
        (Lengths("lognormal", 500, cv=0.5), 500, 0.5),
        (Lengths("lognormal", 500, cv=0.0), 500, 0.0),
        # halves uniform on (10, 100) and (100, 400): mean (55 + 250)/2 = 152.5;
        # E[X²] = (3,700 + 70,000)/2 = 36,850, variance 13,593.75, deviation 116.6
        (Lengths("quantiles", quantiles=AZURE_LIKE), 152.5, 116.6 / 152.5),
    ],
)
def test_lengths_have_the_mean_and_variation_asked_for(lengths, mean, cv):
    tokens = draw(lengths)
    assert tokens.dtype == np.int64
    assert tokens.min() >= 1
    standard_error = max(mean * cv, 1e-9) / math.sqrt(N)
    assert tokens.mean() == pytest.approx(mean, abs=4 * standard_error)
    assert tokens.std() / tokens.mean() == pytest.approx(cv, rel=0.02, abs=1e-9)


def test_quantiles_come_back():
    tokens = draw(Lengths("quantiles", quantiles=AZURE_LIKE))
    assert np.quantile(tokens, [0.25, 0.5, 0.75]) == pytest.approx([55, 100, 250], rel=0.02)
    assert (tokens.min(), tokens.max()) == (10, 400)


def test_uniform_reaches_both_ends():
    tokens = draw(Lengths("uniform", low_tokens=3, high_tokens=5))
    assert np.unique(tokens).tolist() == [3, 4, 5]


def test_max_tokens_cuts():
    tokens = draw(Lengths("lognormal", 500, cv=2.0, max_tokens=800))
    assert tokens.max() == 800


@pytest.mark.parametrize(
    ("lengths", "batch", "ratio"),
    [  # DOMAIN F16: E[max of the batch] / E[length]
        (Lengths("geometric", 200), 16, 3.375),
        (Lengths("exponential", 200), 16, 3.381),
        (Lengths("uniform", low_tokens=1, high_tokens=399), 16, 1.88),
        (Lengths("lognormal", 200, cv=0.5), 16, 2.13),
        (Lengths("lognormal", 200, cv=1.0), 16, 3.44),
        (Lengths("lognormal", 200, cv=2.0), 16, 5.49),
        (Lengths("geometric", 200), 32, 4.051),
        (Lengths("lognormal", 200, cv=1.0), 32, 4.34),
    ],
)
def test_longest_of_a_batch_as_published(lengths, batch, ratio):
    longest = draw(lengths, batch * 40_000).reshape(-1, batch).max(axis=1)
    standard_error = longest.std() / math.sqrt(len(longest)) / 200
    assert longest.mean() / 200 == pytest.approx(ratio, abs=4 * standard_error + 0.006)


# ---- arrivals -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arrivals", "cv"),
    [
        (Arrivals("poisson", 5.0), 1.0),
        (Arrivals("constant", 5.0), 0.0),
        (Arrivals("gamma", 5.0, cv=0.5), 0.5),
        (Arrivals("gamma", 5.0, cv=4.0), 4.0),
        (Arrivals("gamma", 5.0, cv=0.0), 0.0),
    ],
)
def test_arrivals_have_the_rate_and_variation_asked_for(arrivals, cv):
    between = gaps(arrivals)
    assert (between >= -1e-9).all()
    assert between.mean() == pytest.approx(0.2, abs=4 * 0.2 * cv / math.sqrt(N) + 1e-9)
    # The fourth moment of a gamma of CV 4 is heavy: the sample CV wanders by about 2 %.
    assert between.std() / between.mean() == pytest.approx(cv, rel=0.05, abs=1e-6)


def test_poisson_counts_have_variance_equal_to_mean():
    times = Arrivals("poisson", 5.0).sample(np.random.default_rng(3), N)
    counts = np.bincount(times.astype(int))[:-1]
    assert counts.var() / counts.mean() == pytest.approx(1, abs=4 * math.sqrt(2 / len(counts)))


def test_at_once_and_start():
    requests = one_stream(arrivals=Arrivals("at_once"), start_s=3.5).generate(0)
    assert (requests.arrival_s == 3.5).all()


def test_closed_loop_releases_users_first():
    arrivals = Arrivals("closed_loop", users=3, think_s=2.0)
    requests = Workload((Stream("chat", 10, arrivals),)).generate(0)
    assert requests.users == 3
    assert requests.arrival_s[:3].tolist() == [0, 0, 0]
    assert np.isnan(requests.arrival_s[3:]).all()
    assert (requests.think_s == 2.0).all()
    assert np.isinf(requests.cancel_s).all()


def test_closed_loop_with_fewer_requests_than_users():
    requests = Workload((Stream("chat", 2, Arrivals("closed_loop", users=9)),)).generate(0)
    assert requests.users == 2
    assert requests.arrival_s.tolist() == [0, 0]


def test_exponential_think_time():
    arrivals = Arrivals("closed_loop", users=8, think_s=2.0, think_kind="exponential")
    think = Workload((Stream("chat", N, arrivals),)).generate(0).think_s
    assert think.mean() == pytest.approx(2.0, rel=0.02)
    assert think.std() == pytest.approx(2.0, rel=0.02)


# ---- common random numbers ----------------------------------------------------------------


def columns(requests: Requests) -> dict[str, np.ndarray]:
    return {name: value for name, value in vars(requests).items() if isinstance(value, np.ndarray)}


def assert_same(first: Requests, second: Requests, *, but=()):
    ours, theirs = columns(first), columns(second)
    for name in ours.keys() - set(but):
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)


def test_same_seed_same_requests_and_other_seed_others():
    workload = one_stream(prompt=Lengths("lognormal", 500), output=Lengths("geometric", 200))
    assert_same(workload.generate(7), workload.generate(7))
    assert (workload.generate(7).arrival_s != workload.generate(8).arrival_s).any()


def test_lengths_leave_arrivals_alone():
    base = one_stream(prompt=Lengths("lognormal", 500), output=Lengths("geometric", 200))
    longer = one_stream(prompt=Lengths("exponential", 900), output=Lengths("geometric", 200))
    assert_same(base.generate(7), longer.generate(7), but={"prompt_tokens"})


def test_another_rate_scales_the_same_arrivals():
    slow = one_stream(arrivals=Arrivals("poisson", 2.0)).generate(7)
    fast = one_stream(arrivals=Arrivals("poisson", 4.0)).generate(7)
    np.testing.assert_allclose(slow.arrival_s, 2 * fast.arrival_s)


@pytest.mark.parametrize("kind", ["exponential", "geometric", "lognormal", "uniform"])
@pytest.mark.parametrize("arrivals", ["poisson", "gamma"])
def test_more_requests_extend_the_same_sequence(kind, arrivals):
    def workload(n):
        how = Arrivals(arrivals, 3.0, cv=3.0)
        return Workload((Stream("chat", n, how, Lengths(kind), patience_s=9.0),))

    few, many = workload(50).generate(1), workload(500).generate(1)
    for name, values in columns(few).items():
        np.testing.assert_array_equal(values, columns(many)[name][:50], err_msg=name)


def test_a_further_stream_disturbs_no_other():
    chat = Stream("chat", 300, Arrivals("poisson", 3.0), Lengths("lognormal", 500))
    batch = Stream("batch", 200, Arrivals("gamma", 2.0, cv=3), priority=5, start_s=10.0)
    alone = Workload((chat,)).generate(4)
    mixed = Workload((chat, batch)).generate(4)
    assert mixed.class_names == ("chat", "batch")
    assert (np.diff(mixed.arrival_s) >= 0).all()
    picked = mixed.take(mixed.request_class == 0)
    assert_same(alone, picked)
    assert mixed.priority[mixed.request_class == 1].tolist() == [5] * 200
    assert mixed.arrival_s[mixed.request_class == 1].min() == 10.0


def test_equal_streams_draw_differently():
    twin = {"arrivals": Arrivals("poisson", 3.0), "n_requests": 50}
    mixed = Workload((Stream("a", **twin), Stream("b", **twin))).generate(0)
    first, second = (mixed.arrival_s[mixed.request_class == k] for k in (0, 1))
    assert first[0] == second[0] == 0.0
    assert (first[1:] != second[1:]).all()


def test_columns_are_uncorrelated():
    stream = Stream(
        "chat", N, Arrivals("poisson", 1.0), Lengths("exponential", 900), Lengths("exponential", 90)
    )
    requests = Workload((stream,)).generate(0)
    gap = np.diff(requests.arrival_s, prepend=0)
    correlation = np.corrcoef([gap, requests.prompt_tokens, requests.output_tokens])
    assert np.abs(correlation[np.triu_indices(3, 1)]).max() < 4 / math.sqrt(N)


# ---- merge, prefixes, patience ------------------------------------------------------------


def test_merge_is_stable():
    at_once = {"arrivals": Arrivals("at_once"), "n_requests": 3}
    mixed = Workload((Stream("a", **at_once), Stream("b", **at_once))).generate(0)
    assert mixed.request_class.tolist() == [0, 0, 0, 1, 1, 1]
    assert mixed.request_id == ("0", "1", "2", "3", "4", "5")


def test_prefix_groups_of_streams_are_apart_and_fit_the_prompt():
    short = Stream("a", 400, prompt=Lengths("fixed", 40), prefix_groups=2, shared_prefix_tokens=64)
    long = Stream("b", 400, prompt=Lengths("fixed", 99), prefix_groups=3, shared_prefix_tokens=64)
    plain = Stream("c", 10)
    requests = Workload((short, long, plain)).generate(0)
    groups = [set(requests.prefix_group[requests.request_class == k].tolist()) for k in range(3)]
    assert groups == [{0, 1}, {2, 3, 4}, {-1}]
    shared = [set(requests.shared_prefix_tokens[requests.request_class == k]) for k in range(3)]
    assert shared == [{40}, {64}, {0}]


def test_patience():
    fixed = one_stream(patience_s=4.0, patience_kind="fixed").generate(0)
    np.testing.assert_array_equal(fixed.cancel_s, fixed.arrival_s + 4.0)
    drawn = Workload((Stream("chat", N, patience_s=4.0),)).generate(0)
    assert (drawn.cancel_s - drawn.arrival_s).mean() == pytest.approx(4.0, rel=0.02)
    assert np.isinf(one_stream().generate(0).cancel_s).all()


def test_a_hundred_thousand_requests_are_generated_as_arrays(monkeypatch):
    calls = []
    original = Lengths._draw
    monkeypatch.setattr(Lengths, "_draw", lambda *a: calls.append(a[2]) or original(*a))
    requests = Workload((Stream("chat", N, prompt=Lengths("lognormal", 500)),)).generate(0)
    assert len(requests) == N
    assert calls == [N, N]  # one draw for the prompts, one for the outputs


def test_columns_cannot_be_changed():
    requests = one_stream().generate(0)
    with pytest.raises(ValueError, match="read-only"):
        requests.arrival_s[0] = 5


# ---- sentences ----------------------------------------------------------------------------

CLOSED = Arrivals("closed_loop")


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: Lengths("zipf"), "kind is 'zipf'; choose one of fixed, uniform, exponential"),
        (lambda: Lengths("fixed", 0), "mean_tokens is 0; it must be between 1 and 10,000,000."),
        (lambda: Lengths("fixed", math.nan), "mean_tokens is nan"),
        (lambda: Lengths("fixed", "12"), "mean_tokens is '12'; give a number."),
        (lambda: Lengths("fixed", True), "mean_tokens is True; give a number."),
        (lambda: Lengths("fixed", 1.5), "mean_tokens is 1.5; give a whole number."),
        (lambda: Lengths("lognormal", 9, cv=-1), "cv is -1; it must be between 0 and 100."),
        (lambda: Lengths("uniform", low_tokens=9, high_tokens=3), "lowest value 9 is above the"),
        (lambda: Lengths("quantiles"), "quantiles must be pairs"),
        (lambda: Lengths("quantiles", quantiles=((0, 5), (0.5, 9))), "rise from 0 to 1"),
        (lambda: Lengths("quantiles", quantiles=((0, 9), (1, 5))), "never fall"),
        (lambda: Lengths("quantiles", quantiles=((0, 0), (1, 5))), "quantiles is 0; it must be"),
        (lambda: Lengths(max_tokens=0), "max_tokens is 0; it must be between"),
        (lambda: Arrivals("poisson", 0), "rate_per_s is 0; it must be between"),
        (lambda: Arrivals("poisson", math.inf), "rate_per_s is inf"),
        (lambda: Arrivals(users=0), "users is 0; it must be between 1 and 1,000,000."),
        (lambda: Stream(n_requests=0), "n_requests is 0; it must be between"),
        (lambda: Stream(n_requests=1.5), "n_requests is 1.5; give a whole number."),
        (lambda: Stream("x", shared_prefix_tokens=5), "Stream 'x' shares 5 prefix tokens among 0"),
        (lambda: Stream("x", arrivals=CLOSED, patience_s=5), "remove patience_s"),
        (lambda: Stream(""), "A stream is called ''; begin the name with a letter or digit"),
        (lambda: Stream("=1+1"), "A stream is called '=1+1'; begin the name"),
        (lambda: Stream("x" * 65), "64 at most"),
        (lambda: Workload(()), "The workload is empty; give it at least one stream"),
        (lambda: Workload((Stream("x"), Stream("x"))), "Two streams are called 'x'"),
        (lambda: Workload((Stream("x"), Stream("y", arrivals=CLOSED))), "simulate it alone"),
        (lambda: Workload((Stream("x", 10**6), Stream("y"))), "1,000,100 requests; at most"),
        (lambda: one_stream().generate(-1), "seed is -1; it must be between"),
    ],
)
def test_faults_are_sentences_that_name_the_field(build, sentence):
    with pytest.raises(LabError) as caught:
        build()
    assert sentence in str(caught.value)


def test_specs_are_hashable_and_lists_become_tuples():
    lengths = Lengths("quantiles", quantiles=[[0, 5], [1, 9]])
    assert hash(Workload([Stream(prompt=lengths)])) == hash(Workload((Stream(prompt=lengths),)))
