"""A formula to walk through: its derivation, its symbols, and what happens when they change.

::

    from ui import derivation
    derivation.show("F14", {"B_s": 10, "B_d": 23, "L_in": 512, "L": 200}, key="delta")

Public: :func:`show`, :func:`name_of`.
"""

from ui.derivation.component import name_of, show

__all__ = ["name_of", "show"]
