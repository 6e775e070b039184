"""What another device changes: F39.

======  ==================================================================
F39p    text A: Δ times 0.85 on the 910B
F39     throughput on another device over that on a reference
F39a    a factor on both throughputs leaves Δ as it is
======

f is the share of time, on the reference, in which memory binds. Sources: text A; derived here.
"""

from __future__ import annotations

from sympy import Limit

from formulas import step
from formulas.formula import Formula
from formulas.registry import formula
from formulas.relation import equation
from formulas.step import Algebra, Definition
from formulas.symbols import symbols

f, r_beta, r_P, r_X = symbols("f_mem r_beta r_P r_X")
Delta, Delta_dev, X_old, X_new = symbols("Delta Delta_dev X_old X_new")


@formula("F39p")
def device_factor_as_printed() -> Formula:
    """``Δ' = 0.85·Δ``: text A multiplies the improvement by a device factor."""
    factor = symbols("phi_dev")[0]
    relation = equation(Delta_dev, factor * Delta)
    return Formula(
        relation,
        derivation=(Definition("result", relation),),
        assumptions=("factor_on_improvement",),
    )


@formula("F39")
def device_change() -> Formula:
    """``1/(f/r_β + (1 − f)/r_P)``: 0.85 of an A100 on a 910B3 means f = 0.647, 910B2 0.780."""
    time = symbols("t_rel")[0]
    relation = equation(r_X, 1 / (f / r_beta + (1 - f) / r_P))
    return Formula(
        relation,
        derivation=(
            Definition("time", equation(time, f / r_beta + (1 - f) / r_P)),
            Definition("throughput", equation(r_X, 1 / time)),
            Algebra("result", relation),
        ),
        consequences=(
            step.Limit("memory", equation(Limit(r_X, f, 1, "-"), r_beta)),
            step.Limit("compute", equation(Limit(r_X, f, 0, "+"), r_P)),
        ),
        assumptions=("same_software", "binding_unchanged"),
    )


@formula("F39a")
def factor_cancels() -> Formula:
    """``Δ' = Δ``: a factor on the old and the new throughput cancels in their ratio."""
    factor, X_1, X_2 = symbols("phi_dev X_dev_old X_dev_new")
    relation = equation(Delta_dev, Delta)
    return Formula(
        relation,
        derivation=(
            Definition("here", equation(Delta, X_new / X_old - 1)),
            Definition("old", equation(X_1, factor * X_old)),
            Definition("new", equation(X_2, factor * X_new)),
            Definition("there", equation(Delta_dev, X_2 / X_1 - 1)),
            Algebra("result", relation),
        ),
        assumptions=("same_factor",),
    )
