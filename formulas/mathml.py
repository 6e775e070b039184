"""Boxes as presentation MathML (MathML Core, which browsers draw without a library).

Every symbol, and every number that stands for one, is an element with ``data-symbol="<id>"``, so
that a page can find it, explain it and link it to its slider. Public: :func:`render`,
:func:`document`.
"""

from __future__ import annotations

from html import escape

from formulas import layout as box
from formulas.symbols import quantities

ACCENTS = {"hat": "^", "bar": "¯", "dot": "˙"}
INVISIBLE_TIMES = "\u2062"
APPLY = "\u2061"


def document(node: box.Node, display: bool = True) -> str:
    """A whole ``<math>`` element."""
    style = ' display="block"' if display else ""
    return f'<math xmlns="http://www.w3.org/1998/Math/MathML"{style}>{render(node)}</math>'


def render(node: box.Node) -> str:
    """MathML of a node; always exactly one element."""
    match node:
        case box.Sym(id=name):
            return _symbol(name)
        case box.Num():
            return _number(node)
        case box.Op(text=text):
            return _operator(text)
        case box.Word(text=text):
            return f"<mi>{escape(text)}</mi>"
        case box.Row(items=items):
            return _row("".join(_row_items(items)))
        case box.Fence(left=left, item=item, right=right):
            return _row(
                f'<mo fence="true" form="prefix">{left}</mo>{render(item)}'
                f'<mo fence="true" form="postfix">{right}</mo>'
            )
        case box.Frac(above=above, below=below):
            return f"<mfrac>{render(above)}{render(below)}</mfrac>"
        case box.Power(base=base, exponent=exponent):
            return f"<msup>{render(base)}{render(exponent)}</msup>"
        case box.Root(item=item):
            return f"<msqrt>{render(item)}</msqrt>"
        case box.Big():
            return _big(node)
        case box.Cases(rows=rows):
            return _cases(rows)
    raise TypeError(f"no MathML for {node!r}")


def _row(inner: str, attributes: str = "") -> str:
    return f"<mrow{attributes}>{inner}</mrow>"


def _row_items(items: tuple[box.Node, ...]):
    before: box.Node | None = None
    for item in items:
        if isinstance(before, box.Word) and isinstance(item, box.Fence):
            yield f"<mo>{APPLY}</mo>"
        if isinstance(item, box.Op) and item.text == "−" and before is None:
            yield '<mo form="prefix">−</mo>'
        else:
            yield render(item)
        before = item


def _operator(text: str) -> str:
    if text == "":
        return f"<mo>{INVISIBLE_TIMES}</mo>"
    if text == ",":
        return '<mo separator="true">,</mo>'
    return f"<mo>{escape(text)}</mo>"


def _number(node: box.Num) -> str:
    inner = f"<mn>{escape(node.text)}</mn>"
    if node.exponent is not None:
        power = str(node.exponent).replace("-", "−")
        inner += f"<mo>×</mo><msup><mn>10</mn><mn>{power}</mn></msup>"
    if node.symbol is not None:
        return _row(inner, f' data-symbol="{escape(node.symbol)}"')
    return inner if node.exponent is None else _row(inner)


def _symbol(name: str) -> str:
    entry = quantities().get(name)
    if entry is None:
        return _letter(name)
    core = _letter(entry.base)
    if entry.accent:
        core = f'<mover accent="true">{core}<mo>{ACCENTS[entry.accent]}</mo></mover>'
    if entry.sub and entry.sup:
        core = f"<msubsup>{core}{_index(entry.sub)}{_index(entry.sup)}</msubsup>"
    elif entry.sub:
        core = f"<msub>{core}{_index(entry.sub)}</msub>"
    elif entry.sup:
        core = f"<msup>{core}{_index(entry.sup)}</msup>"
    return _row(core, f' data-symbol="{escape(name)}"')


def _letter(text: str) -> str:
    """One letter is italic by itself and a word upright; a digit is a number."""
    if text.isdigit():
        return f"<mn>{text}</mn>"
    return f"<mi>{escape(text)}</mi>"


def _index(text: str) -> str:
    parts = [f"<mo>{part}</mo>" if part == "*" else _letter(part) for part in text.split(",")]
    return parts[0] if len(parts) == 1 else _row('<mo separator="true">,</mo>'.join(parts))


def _big(node: box.Big) -> str:
    body = render(node.body)
    lower = render(node.lower) if node.lower else "<mrow></mrow>"
    if node.sign == "lim":
        return _row(f"<munder><mo>lim</mo>{lower}</munder>{body}")
    upper = render(node.upper) if node.upper else "<mrow></mrow>"
    element = "msubsup" if node.sign == "∫" else "munderover"
    return _row(f"<{element}><mo>{node.sign}</mo>{lower}{upper}</{element}>{body}")


def _cases(rows: tuple[tuple[box.Node, box.Node | None], ...]) -> str:
    lines = "".join(
        f"<mtr><mtd>{render(value)}</mtd><mtd>{render(condition) if condition else ''}</mtd></mtr>"
        for value, condition in rows
    )
    brace = '<mo fence="true" form="prefix">{</mo>'
    return _row(f"{brace}<mtable>{lines}</mtable>")
