"""Boxes as one line of plain text, for the terminal and for alternative texts.

Public: :func:`render`.
"""

from __future__ import annotations

from formulas import layout as box
from formulas.symbols import quantities

_SPACED = {"+", "−", "=", "≈", "<", "≤", ">", "≥", "→", "×"}
_SUPERSCRIPT = str.maketrans("0123456789-−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁻")


def render(node: box.Node) -> str:
    """The node as text such as ``B_d·(L_in + L)/(B_s·L) − 1``."""
    match node:
        case box.Sym(id=name):
            return _symbol(name)
        case box.Num(text=text, exponent=exponent):
            return text if exponent is None else f"{text}×10{str(exponent).translate(_SUPERSCRIPT)}"
        case box.Op(text=text):
            return {"": "·", ",": ", ", ":": ": "}.get(
                text, f" {text} " if text in _SPACED else text
            )
        case box.Word(text=text):
            return text
        case box.Row(items=items):
            return "".join(_items(items))
        case box.Fence(left=left, item=item, right=right):
            return f"{left}{render(item)}{right}"
        case box.Frac(above=above, below=below):
            return f"{_factor(above)}/{_factor(below, product=False)}"
        case box.Power(base=base, exponent=exponent):
            return f"{render(base)}^{_factor(exponent, product=False)}"
        case box.Root(item=item):
            return f"√({render(item)})"
        case box.Big(sign="lim", lower=lower, body=body):
            return f"lim[{render(lower)}] {render(body)}"
        case box.Big(sign=sign, lower=lower, upper=upper, body=body):
            return f"{sign}[{render(lower)} … {render(upper)}] {render(body)}"
        case box.Cases(rows=rows):
            lines = (f"{render(v)} if {render(c)}" if c else f"{render(v)} else" for v, c in rows)
            return "{" + "; ".join(lines) + "}"
    raise TypeError(f"no text for {node!r}")


def _items(items: tuple[box.Node, ...]):
    for place, item in enumerate(items):
        yield "−" if place == 0 and item == box.Op("−") else render(item)


def _factor(node: box.Node, product: bool = True) -> str:
    """In parentheses where the slash would tear it apart."""
    if isinstance(node, box.Row):
        signs = {item.text for item in node.items if isinstance(item, box.Op)}
        if signs & {"+", "−"} or (signs and not product):
            return f"({render(node)})"
    if isinstance(node, box.Frac):
        return f"({render(node)})"
    return render(node)


def _symbol(name: str) -> str:
    entry = quantities().get(name)
    if entry is None:
        return name
    core = entry.base + {"hat": "\u0302", "bar": "\u0304", "dot": "\u0307"}.get(entry.accent, "")
    core += f"_{entry.sub}" if entry.sub else ""
    return core + (entry.sup if entry.sup else "")
