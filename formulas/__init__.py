"""The formulas of LLM inference scheduling: derived, checked and ready to compute with.

::

    import formulas
    delta = formulas.get("F14")
    delta.latex(), delta.derivation, delta.entry.verdict
    delta.evaluate({"B_s": 1, "B_d": 2.3, "L_in": 512, "L": 200})      # 7.188
    bound = delta.bind({...}); bound.latex(); bound.elasticities(); bound.solve_for("B_d", 5.0)

Public: :func:`get`, :func:`family`, :func:`all`, :func:`entries` (the index, without SymPy),
:func:`claims` (what the source texts claim, and verdicts), :class:`FormulaError`. Symbols are in
:mod:`formulas.symbols`. Values are SI units by symbol id. Nothing is derived before it is asked
for, and then only once.
"""

from formulas.claims import claims
from formulas.entry import entries
from formulas.errors import FormulaError
from formulas.registry import all, family, get

__all__ = ["FormulaError", "all", "claims", "entries", "family", "get"]
