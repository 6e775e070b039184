"""Speculative decoding: F35.

======  ==================================================================
F35p    text A: throughput doubles once more
F35     tokens per verification step
F35a    speed-up where verification costs as much as a decode iteration
F35b    accepted share of the drafted tokens, F35c the step from that share
F35d    speed-up of a batch
F35e    corrected improvement Δ with speculation
F35f    draft length with the largest speed-up
======

α is the chance that a drafted token is accepted, γ the draft length, c the time of a draft token
over that of a decode iteration. Source: Leviathan et al. (ICML 2023), Eq. 1, Thm 3.8, Cor. 3.9.
"""

from __future__ import annotations

import sympy
from sympy import Limit, Sum, oo

from formulas import step
from formulas.formula import Algorithm, Formula
from formulas.registry import formula
from formulas.relation import Relation, equation
from formulas.step import Algebra, Definition, Inequality, Numeric
from formulas.symbols import symbols

alpha, gamma, c, E, S = symbols("alpha_acc gamma c_draft E_tok S_spec")
t_d, t_v, t_q, t_p, t_pB, t_ds = symbols("t_d t_v t_q t_p t_pB t_ds")
B_s, B_d, L, L_max, X_s = symbols("B_s B_d L L_max X_s")
Delta, Delta_spec, X_spec, X_old, X_new = symbols("Delta Delta_spec X_spec X_old X_new")
one_token, one_request = symbols("one_token one_request")
TOKEN_EACH = one_token / one_request
i = sympy.Symbol("i", nonnegative=True, integer=True)
_z = sympy.Dummy("z", positive=True)
TOKENS = (1 - alpha ** (gamma + 1)) / (1 - alpha)


@formula("F35p")
def speculation_as_printed() -> Formula:
    """``Δ' = 2·(1 + Δ) − 1``: text A lets speculation double the throughput at any batch."""
    relation = equation(Delta_spec, 2 * (1 + Delta) - 1)
    return Formula(
        relation,
        derivation=(
            Definition("new", equation(X_spec, 2 * X_new)),
            Definition("before", equation(Delta, X_new / X_old - 1)),
            Definition("after", equation(Delta_spec, X_spec / X_old - 1)),
            Algebra("result", relation),
        ),
        assumptions=("doubles_at_any_batch",),
    )


@formula("F35")
def tokens_per_step() -> Formula:
    """``E = (1 − α^(γ+1))/(1 − α)``: 2.88 at α = 0.72, γ = 4, and at most 3.57."""
    reached = symbols("p_reach")[0]
    j = symbols("j_pos")[0]
    relation = equation(E, TOKENS)
    return Formula(
        relation,
        derivation=(
            Definition("reached", equation(reached, alpha**j)),
            Definition("sum", equation(E, Sum(alpha**i, (i, 0, gamma)))),
            Algebra("telescope", equation(E - alpha * E, 1 - alpha ** (gamma + 1))),
            Algebra("result", relation),
        ),
        consequences=(
            step.Limit(
                "long_draft", equation(Limit(E, gamma, oo), 1 / (1 - alpha)),
                given={alpha: 1 / (1 + _z)},
            ),
            Algebra("one_draft", equation(E, 1 + alpha), given={gamma: sympy.S.One}),
            Numeric("text_case", Relation(E, sympy.Float("2.880"), "≈"),
                    values={"alpha_acc": 0.72, "gamma": 4}),
        ),
        assumptions=("accepted_independently",),
    )  # fmt: skip


@formula("F35a")
def speedup() -> Formula:
    """``S = E/(γ·c + 1)``: 2.80 at α = 0.72, γ = 4, c = 0.0074. Improves if α > c."""
    relation = equation(S, TOKENS / (gamma * c + 1))
    t_step, t_token = symbols("t_step t_each")
    return Formula(
        relation,
        derivation=(
            Definition("tokens", equation(E, TOKENS), formula="F35"),
            Definition("step", equation(t_step, t_d + gamma * c * t_d)),
            Definition("per_token", equation(t_token, t_step / E)),
            Definition("speedup", equation(S, t_d / t_token)),
            Algebra("result", relation),
        ),
        consequences=(
            Algebra(
                "one_draft", equation(S, (1 + alpha) / (1 + c)), given={gamma: sympy.S.One}
            ),
            Inequality(
                "improves", Relation((1 + alpha) / (1 + c), 1, ">"), given={alpha: c + _z}
            ),
            step.Limit("endless_draft", equation(Limit(S, gamma, oo), 0),
                       given={alpha: 1 / (1 + _z)}),
        ),
        assumptions=("accepted_independently", "verify_as_decode"),
    )  # fmt: skip


@formula("F35b")
def accepted_share() -> Formula:
    """``a = (E − 1)/γ``: of the drafts, not per token; α = 0.72 and γ = 4 give 0.47."""
    share, accepted = symbols("a_acc n_acc")
    relation = equation(share, (TOKENS - 1) / gamma)
    return Formula(
        relation,
        derivation=(
            Definition("tokens", equation(E, TOKENS), formula="F35"),
            Definition("accepted", equation(accepted, E - 1)),
            Definition("share", equation(share, accepted / gamma)),
            Algebra("result", relation),
        ),
        consequences=(Algebra("one_draft", equation(share, alpha), given={gamma: sympy.S.One}),),
        assumptions=("accepted_independently",),
    )


@formula("F35c")
def tokens_from_metric() -> Formula:
    """``E = 1 + a·γ``: if 72 % of the drafts are accepted, γ = 4 gives 3.88 tokens a step."""
    share = symbols("a_acc")[0]
    relation = equation(E, 1 + share * gamma)
    return Formula(relation, derivation=(Definition("result", relation),))


@formula("F35d")
def batched_speedup() -> Formula:
    """``S = E·t_d/(t_v + γ·t_q)``: where compute binds, verifying γ + 1 tokens costs as many.

    Check: 70B on 4 A100, α = .72, γ = 4: 2.57 up to B = 16, below 1 from B = 64 on.
    """
    relation = equation(S, E * t_d / (t_v + gamma * t_q))
    t_step, t_token = symbols("t_step t_each")
    return Formula(
        relation,
        derivation=(
            Definition("step", equation(t_step, t_v + gamma * t_q)),
            Definition("per_token", equation(t_token, t_step / E)),
            Definition("speedup", equation(S, t_d / t_token)),
            Algebra("result", relation),
        ),
        consequences=(
            Algebra(
                "compute_bound",
                equation(S, E / (gamma + 1)),
                given={t_v: (gamma + 1) * t_d, t_q: sympy.S.Zero},
            ),
            Numeric("text_case", Relation(E / (gamma + 1), sympy.Float("0.576"), "≈"),
                    values={"E_tok": 2.880, "gamma": 4}),
            Algebra("memory_bound", equation(S, E / (gamma * c + 1)),
                    given={t_v: t_d, t_q: c * t_d}),
        ),
        assumptions=("accepted_independently", "draft_before_verify"),
    )  # fmt: skip


@formula("F35e")
def improvement_with_speculation() -> Formula:
    """Δ of continuous batching with speculation over static batching without.

    A step of t_v + γ·t_q gives E tokens per request; the prefill is paid as before.
    """
    step_time = t_v + gamma * t_q
    per_token = step_time / (B_d * E * TOKEN_EACH) + t_p / (one_request * L)
    batch = t_pB + L_max / TOKEN_EACH * t_ds
    relation = equation(Delta_spec, batch / (B_s * L * per_token) - 1)
    N, total = symbols("N_done t_total")
    return Formula(
        relation,
        derivation=(
            Definition("static", Relation(X_s, B_s * L / batch, "≈"), formula="F15"),
            Definition(
                "time",
                equation(total, N / one_request * t_p + N * L / (B_d * E * TOKEN_EACH) * step_time),
            ),
            Definition("throughput", equation(X_spec, N * L / total)),
            Algebra("per_token", equation(X_spec, 1 / per_token)),
            Definition("improvement", equation(Delta_spec, X_spec / X_s - 1)),
            Algebra("result", relation),
        ),
        consequences=(
            Algebra(
                "without",
                equation(
                    Delta_spec,
                    batch / (B_s * L * (t_d / (B_d * TOKEN_EACH) + t_p / (one_request * L))) - 1,
                ),
                given={E: sympy.S.One, t_v: t_d, t_q: sympy.S.Zero},
            ),
            step.Limit(
                "only_prefill",
                equation(Limit(Delta_spec, E, oo), batch * one_request / (B_s * t_p) - 1),
            ),
        ),
        assumptions=("accepted_independently", "exclusive_prefill", "joint_prefill", "batch_stays"),
    )


@formula("F35f")
def best_draft_length() -> Formula:
    """Draft length γ with the largest speed-up F35a, tried from 1 to 64."""
    relation = equation(gamma, sympy.Function("argmax")(S))
    return Formula(
        relation,
        algorithm=Algorithm(("alpha_acc", "c_draft"), _best_draft),
        assumptions=("accepted_independently", "verify_as_decode"),
    )


def _best_draft(values) -> float:
    a, cost = values["alpha_acc"], values["c_draft"]

    def speed(draft: int) -> float:
        tokens = draft + 1 if a == 1 else (1 - a ** (draft + 1)) / (1 - a)
        return tokens / (draft * cost + 1)

    return float(max(range(1, 65), key=speed))
