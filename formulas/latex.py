"""Boxes as LaTeX that KaTeX understands. Public: :func:`render`."""

from __future__ import annotations

from formulas import layout as box
from formulas.symbols import quantities

GREEK = {
    "α": r"\alpha", "β": r"\beta", "γ": r"\gamma", "δ": r"\delta", "Δ": r"\Delta",
    "ε": r"\varepsilon", "η": r"\eta", "κ": r"\kappa", "λ": r"\lambda", "μ": r"\mu",
    "ν": r"\nu", "π": r"\pi", "ρ": r"\rho", "σ": r"\sigma", "τ": r"\tau", "φ": r"\varphi",
    "Ψ": r"\Psi", "ω": r"\omega", "ℓ": r"\ell",
}  # fmt: skip
ACCENTS = {"hat": r"\hat", "bar": r"\bar", "dot": r"\dot"}
SIGNS = {
    "": r"\,", "+": " + ", "−": "-", "×": r" \times ", "=": " = ", "≈": r" \approx ", "<": " < ",
    ":": r" : ", "≤": r" \le ", ">": " > ", "≥": r" \ge ", "→": r" \to ", ",": r",\; ", "!": "!",
}  # fmt: skip
BRACKETS = {
    "{": r"\{", "}": r"\}", "⌊": r"\lfloor", "⌋": r"\rfloor", "⌈": r"\lceil", "⌉": r"\rceil",
}  # fmt: skip
BIG = {"∑": r"\sum", "∫": r"\int", "lim": r"\lim"}


def render(node: box.Node) -> str:
    """LaTeX of a node, without dollar signs."""
    match node:
        case box.Sym(id=name):
            return _symbol(name)
        case box.Num(text=text, exponent=exponent):
            text = text.replace(",", "{,}").replace("−", "-").replace("∞", r"\infty")
            return text if exponent is None else rf"{text} \times 10^{{{exponent}}}"
        case box.Op(text=text):
            return SIGNS[text]
        case box.Word(text=text):
            return text if len(text) == 1 and text.isupper() else rf"\{_word(text)}"
        case box.Row(items=items):
            return "".join(_spaced(items))
        case box.Fence(left=left, item=item, right=right):
            inner = render(item)
            return rf"\left{BRACKETS.get(left, left)} {inner} \right{BRACKETS.get(right, right)}"
        case box.Frac(above=above, below=below):
            return rf"\frac{{{render(above)}}}{{{render(below)}}}"
        case box.Power(base=base, exponent=exponent):
            return f"{{{render(base)}}}^{{{render(exponent)}}}"
        case box.Root(item=item):
            return rf"\sqrt{{{render(item)}}}"
        case box.Big(sign=sign, lower=lower, upper=upper, body=body):
            bounds = f"_{{{render(lower)}}}" if lower else ""
            bounds += f"^{{{render(upper)}}}" if upper else ""
            return rf"{BIG[sign]}{bounds} {render(body)}"
        case box.Cases(rows=rows):
            lines = [
                rf"{render(value)} & {render(condition) if condition else ''}"
                for value, condition in rows
            ]
            return r"\begin{cases}" + r" \\ ".join(lines) + r"\end{cases}"
    raise TypeError(f"no LaTeX for {node!r}")


def _spaced(items: tuple[box.Node, ...]):
    """Renderings of a row; a sign that opens it or follows another sign has no spaces."""
    before: box.Node | None = None
    for item in items:
        text = render(item)
        if isinstance(item, box.Op) and item.text in ("−", "+"):
            text = text.strip() if before is None or isinstance(before, box.Op) else f" {text} "
        yield text.replace("  ", " ")
        before = item


def _symbol(name: str) -> str:
    entry = quantities().get(name)
    if entry is None:
        return letter(name)
    core = letter(entry.base)
    if entry.accent:
        core = rf"{ACCENTS[entry.accent]}{{{core}}}"
    if entry.sub:
        core += f"_{{{index(entry.sub)}}}"
    if entry.sup:
        core += f"^{{{index(entry.sup)}}}"
    return core


def letter(text: str) -> str:
    """One letter in italics, a word upright."""
    if text in GREEK:
        return GREEK[text]
    return text if len(text) == 1 else rf"\mathrm{{{text}}}"


def index(text: str) -> str:
    """An index: single letters in italics, words upright, joined by commas."""
    return ",".join(letter(part) if part != "*" else "*" for part in text.split(","))


def _word(text: str) -> str:
    known = ("max", "min", "ln", "exp")
    return text if text in known else rf"mathrm{{{text}}}"
