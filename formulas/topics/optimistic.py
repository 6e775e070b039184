"""Optimistic admission as SGLang does it: F42.

======  ==================================================================
F42     tokens that an admission must find free
F42a    share of the outstanding outputs that is reserved, as it decays
F42b    the share after a retraction
======

Tokens. Source: SGLang 0.5.23, ``schedule_policy.py`` and ``scheduler.py``.
"""

from __future__ import annotations

from formulas.formula import Formula
from formulas.functions import Smallest
from formulas.registry import formula
from formulas.relation import Relation, equation
from formulas.step import Algebra, Definition, Inequality
from formulas.symbols import symbols

rho_n, one_token = symbols("rho_n one_token")


@formula("F42")
def tokens_needed() -> Formula:
    """``ρ_n·N_rest + n_ext + min(n_new, n_clip)``: part of what runs may still need, and the new.

    N_rest sums min(max_new − generated, n_clip) over running requests; n_clip is 4,096 tokens.
    """
    needed, rest, extend, new, clip = symbols("N_need N_rest n_ext n_new n_clip")
    running, coming = symbols("N_run N_come")
    relation = equation(needed, rho_n * rest + extend + Smallest(new, clip))
    return Formula(
        relation,
        derivation=(
            Definition("running", equation(running, rho_n * rest)),
            Definition("coming", equation(coming, extend + Smallest(new, clip))),
            Definition("sum", equation(needed, running + coming)),
            Algebra("result", relation),
        ),
        consequences=(Inequality("at_most_all", Relation(needed, rest + extend + new, "≤")),),
        assumptions=("outputs_end_early",),
    )


@formula("F42a")
def decaying_share() -> Formula:
    """``ρ_n = ρ_0·s·(1 − 0.86·min(k, 600)/600)``: from 0.7·s to 0.098·s over 600 decode steps."""
    start, conservativeness, k, k_end, low = symbols("rho_0 s_cons k_dec k_end phi_low")
    relation = equation(
        rho_n, start * conservativeness * (1 - (1 - low) * Smallest(k, k_end) / k_end)
    )
    return Formula(
        relation,
        derivation=(Definition("result", relation),),
        assumptions=("linear_decay",),
    )


@formula("F42b")
def share_after_retraction() -> Formula:
    """``min(1, (Σ decoded + 20·n)/(Σ max_new + 1))``: raised to what was really used."""
    decoded, running, promised, step_tokens = symbols("N_dec B N_new k_ret")
    relation = equation(
        rho_n,
        Smallest(1, (decoded + step_tokens * running) / (promised + one_token)),
    )
    return Formula(
        relation,
        derivation=(Definition("result", relation),),
        consequences=(Inequality("at_most_one", Relation(rho_n, 1, "≤")),),
        assumptions=("after_retraction",),
    )
