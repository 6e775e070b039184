"""Time quanta: F37 and F41.

======  ==================================================================
F37     share of time used when iterations end on ticks only
F41     quantum of a queue of a multi-level feedback queue,
F41a    queue that a job joins (skip-join)
======

Sources: derived here; FastServe (skip-join MLFQ).
"""

from __future__ import annotations

import sympy
from sympy import ceiling, log

from formulas.formula import Formula
from formulas.functions import Largest
from formulas.registry import formula
from formulas.relation import Relation, equation
from formulas.step import Algebra, Definition, Inequality, Numeric
from formulas.symbols import symbols

t_iter, q = symbols("t_iter q_t")


@formula("F37")
def quantum_efficiency() -> Formula:
    """``t/(q·⌈t/q⌉)``: an iteration of 10.1 ms in ticks of 10 ms uses half of the time."""
    used, ticks = symbols("e_q n_tick")
    relation = equation(used, t_iter / (q * ceiling(t_iter / q)))
    return Formula(
        relation,
        derivation=(
            Definition("ticks", equation(ticks, ceiling(t_iter / q))),
            Definition("share", equation(used, t_iter / (ticks * q))),
            Algebra("result", relation),
        ),
        consequences=(
            Inequality("at_most_all", Relation(used, 1, "≤")),
            Numeric(
                "just_missed",
                Relation(used, sympy.Float("0.505"), "≈"),
                values={"t_iter": 0.0101, "q_t": 0.01},
            ),
            Inequality(
                "more_than_half",
                Relation(used, sympy.Rational(1, 2), ">"),
                given={t_iter: q * (1 + sympy.Dummy("z", positive=True))},
            ),
        ),
        assumptions=("acts_on_ticks",),
    )


@formula("F41")
def queue_quantum() -> Formula:
    """``q_j = q_0·2^j``: each lower queue allows twice as long before it demotes."""
    q_j, q_0, j = symbols("q_j q_0 j_q")
    relation = equation(q_j, q_0 * 2**j)
    return Formula(
        relation,
        derivation=(Definition("result", relation),),
        assumptions=("whole_iterations",),
    )


@formula("F41a")
def joined_queue() -> Formula:
    """``max(0, ⌈log₂(t_p/q_0)⌉)``: the highest queue whose quantum holds the first iteration."""
    q_0, j, t_p = symbols("q_0 j_q t_p")
    relation = equation(j, Largest(0, ceiling(log(t_p / q_0) / log(2))))
    return Formula(
        relation,
        derivation=(Definition("result", relation),),
        assumptions=("whole_iterations", "prompt_time_known"),
    )
