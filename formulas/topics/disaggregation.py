"""Prefill and decode on instances of their own: F32.

======  ==================================================================
F32     ratio of prefill to decode instances
F32a    instances for a rate, F32b rate per instance of a placement
F32c    prefill rate of an instance, F32d decode rate of an instance
F32e    time to send the KV of a prompt, F32f what layer-wise sending leaves
F32g    prompt throughput up to which sending hides behind the prefill
F32h    bandwidth that a rate of prompts needs
======

Requests per second and per instance. Sources: DistServe (OSDI 2024) §3.3, Alg. 1; Splitwise (ISCA
2024); derived here.
"""

from __future__ import annotations

from sympy import ceiling

from formulas.formula import Formula
from formulas.functions import Smallest
from formulas.registry import formula
from formulas.relation import Relation, equation
from formulas.step import Algebra, Assumption, Definition, Inequality
from formulas.symbols import symbols

n_p, n_d, mu_p, mu_d, lam = symbols("n_p n_d mu_p mu_d lambda")
t_p, t_d, B_d, L, L_in, n_L = symbols("t_p t_d B_d L L_in n_L")
kappa, beta_net = symbols("kappa beta_net")
one_token, one_request = symbols("one_token one_request")


@formula("F32")
def instance_ratio() -> Formula:
    """``n_p/n_d = μ_d/μ_p``: both pools are busy alike. μ_p = 5.6, μ_d = 10: 1.79."""
    ratio = symbols("r_pd")[0]
    balance = equation(n_p * mu_p, n_d * mu_d)
    relation = equation(ratio, mu_d / mu_p)
    return Formula(
        relation,
        derivation=(
            Assumption("balance", balance),
            Algebra("prefill", equation(n_p, n_d * mu_d / mu_p), solves=balance),
            Definition("ratio", equation(ratio, n_p / n_d)),
            Algebra("result", relation),
        ),
        assumptions=("rates_known", "load_spread"),
    )


@formula("F32a")
def instances() -> Formula:
    """``⌈λ/μ⌉`` instances of a pool carry the rate λ."""
    n, mu = symbols("n_inst mu_inst")
    relation = equation(n, ceiling(lam / mu))
    return Formula(
        relation,
        derivation=(Definition("result", relation),),
        consequences=(Inequality("enough", Relation(n * mu, lam, "≥")),),
        assumptions=("rates_known", "load_spread"),
    )


@formula("F32b")
def rate_per_instance() -> Formula:
    """``min(n_p·μ_p, n_d·μ_d)/(n_p + n_d)``: 2P1D at 5.6 and 10 gives 3.33 per GPU."""
    rate, served = symbols("mu_pd mu_all")
    relation = equation(rate, Smallest(n_p * mu_p, n_d * mu_d) / (n_p + n_d))
    return Formula(
        relation,
        derivation=(
            Definition("slower", equation(served, Smallest(n_p * mu_p, n_d * mu_d))),
            Definition("each", equation(rate, served / (n_p + n_d))),
            Algebra("result", relation),
        ),
        consequences=(
            Inequality("prefill", Relation(rate, n_p * mu_p / (n_p + n_d), "≤")),
            Inequality("decode", Relation(rate, n_d * mu_d / (n_p + n_d), "≤")),
        ),
        assumptions=("rates_known", "load_spread", "transfer_hidden"),
    )


@formula("F32c")
def prefill_rate() -> Formula:
    """``μ_p = 1/t_p``: one prompt after the other."""
    relation = equation(mu_p, one_request / t_p)
    return Formula(
        relation,
        derivation=(Definition("result", relation),),
        assumptions=("one_at_a_time",),
    )


@formula("F32d")
def decode_rate() -> Formula:
    """``μ_d = B_d/(L·t_d)``: B_d requests leave every L iterations."""
    iterations, stay = symbols("I_req t_stay")
    relation = equation(mu_d, B_d / (L / (one_token / one_request) * t_d))
    return Formula(
        relation,
        derivation=(
            Definition("iterations", equation(iterations, L / (one_token / one_request))),
            Definition("stay", equation(stay, iterations * t_d)),
            Definition("rate", equation(mu_d, B_d / stay)),
            Algebra("result", relation),
        ),
        assumptions=("constant_batch", "mean_decode_time"),
    )


@formula("F32e")
def transfer_time() -> Formula:
    """``κ·L_in/β_net`` seconds. OPT-66B, 512 tokens: 1.208 GB."""
    t_net, sent = symbols("t_net Q_net")
    relation = equation(t_net, kappa * L_in * one_request / beta_net)
    return Formula(
        relation,
        derivation=(
            Definition("bytes", equation(sent, kappa * L_in * one_request)),
            Definition("time", equation(t_net, sent / beta_net)),
            Algebra("result", relation),
        ),
        assumptions=("large_copies",),
    )


@formula("F32f")
def visible_transfer_time() -> Formula:
    """``κ·L_in/(n_L·β_net) + t_sync``: sent layer by layer, only the last layer is seen."""
    seen, sync, t_net = symbols("t_seen t_sync t_net")
    whole = kappa * L_in * one_request / beta_net
    relation = equation(seen, whole / n_L + sync)
    return Formula(
        relation,
        derivation=(
            Definition("whole", equation(t_net, whole), formula="F32e"),
            Definition("last_layer", equation(seen, t_net / n_L + sync)),
            Algebra("result", relation),
        ),
        assumptions=("layer_by_layer", "overlap_complete"),
    )


@formula("F32g")
def overlap_bandwidth() -> Formula:
    """``κ·L_in/t_p`` bytes/s: with at least this bandwidth sending keeps up with the prefill."""
    needed = symbols("beta_need")[0]
    balance = equation(kappa / needed, t_p / (L_in * one_request))
    relation = equation(needed, kappa * L_in * one_request / t_p)
    return Formula(
        relation,
        derivation=(Assumption("keeps_up", balance), Algebra("result", relation, solves=balance)),
        assumptions=("layer_by_layer",),
    )


@formula("F32h")
def bandwidth_of_rate() -> Formula:
    """``λ·κ·L_in`` bytes/s. OPT-66B, 512 tokens, 10 requests/s: 12.1 GB/s = 97 Gbit/s."""
    needed = symbols("beta_need")[0]
    relation = equation(needed, lam * kappa * L_in)
    return Formula(
        relation,
        derivation=(Definition("result", relation),),
        assumptions=("stable",),
    )
