"""The formulas from the command line.

::

    python -m formulas list [--topic TOPIC]
    python -m formulas show ID
    python -m formulas evaluate ID --set name=value [name=value ...]

All three take ``--language zh``. Values are SI units; ``show`` names the symbols of a formula.
"""

from __future__ import annotations

import argparse
import os
import re
import sys

from formulas.entry import entries, entry
from formulas.errors import FormulaError
from formulas.texts import LANGUAGES, text

NUMBER = re.compile(r"[+-]?(\d[\d_]*\.?\d*|\.\d+)([eE][+-]?\d+)?")
"""A decimal number, nothing else: no names, no operators, no infinities."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return the exit status (2 for input that cannot be used)."""
    if hasattr(sys.stdout, "reconfigure"):  # Greek letters, also where the terminal is not UTF-8
        sys.stdout.reconfigure(encoding="utf-8")
    options = _parser().parse_args(arguments)
    try:
        status = options.run(options)
        sys.stdout.flush()
        return status
    except FormulaError as error:
        print(error.sentence(options.language), file=sys.stderr)
    except BrokenPipeError:  # who reads has had enough, as `head` has; say no more at exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m formulas", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    listed = commands.add_parser("list", help="list the formulas")
    topics = sorted({row.topic for row in entries().values()})
    listed.add_argument("--topic", choices=topics, help="only those of one topic")
    listed.set_defaults(run=_list)
    shown = commands.add_parser("show", help="show a formula, its symbols and its derivation")
    shown.add_argument("id", metavar="ID", help="for example F14")
    shown.set_defaults(run=_show)
    evaluated = commands.add_parser("evaluate", help="compute a formula")
    evaluated.add_argument("id", metavar="ID", help="for example F14")
    evaluated.add_argument(
        "--set",
        dest="values",
        metavar="NAME=VALUE",
        nargs="+",
        action="extend",
        default=[],
        help="values in SI units, for example L_in=512 t_0=0.002 beta=2.039e12",
    )
    evaluated.set_defaults(run=_evaluate)
    for command in (listed, shown, evaluated):
        command.add_argument("--language", choices=LANGUAGES, default="en")
    return parser


def _list(options: argparse.Namespace) -> int:
    for row in entries().values():
        if options.topic in (None, row.topic):
            mark = text("words", f"verdict.{row.verdict}", options.language) if row.verdict else ""
            print(f"{row.id:5} {row.name(options.language)}{f'  [{mark}]' if mark else ''}")
    return 0


def _show(options: argparse.Namespace) -> int:
    from formulas.registry import get

    language, word = options.language, lambda key: text("words", key, options.language)
    formula = get(_known(options.id))
    row = formula.entry
    print(f"{row.id}  {formula.name(language)}")
    print(f"\n    {formula.plain()}\n")
    if row.verdict:
        line = f"{word('status.printed')} {word(f'verdict.{row.verdict}')}."
        print(f"{line} {word('see')} {', '.join(row.corrected_by)}.")
    if formula.reason(language):
        print(formula.reason(language))
    print(f"\n{word('symbols')}")
    for symbol in formula.symbols:
        print(f"    {symbol.id:10} {symbol.plain:8} [{symbol.unit}]  {symbol.meaning(language)}")
    if formula.assumptions:
        print(f"\n{word('assumptions')}")
        for sentence in formula.assumption_texts(language):
            print(f"    {sentence}")
    for key, steps in (
        ("derivation", formula.derivation),
        ("consequences", formula.consequences),
    ):
        if steps:
            print(f"\n{word(key)}")
        for number, step in enumerate(steps, start=1):
            case = ", ".join(_line(relation) for relation in step.special_case)
            print(f"  {number:2}. {_line(step.relation)}{f'   ({case})' if case else ''}")
            print(f"      {word(f'kind.{step.kind}')}. {formula.step_reason(step, language)}")
    print(f"\n{word('sources')}")
    for source in row.source_texts(language):
        print(f"    {source}")
    print(f"\nLaTeX\n    {formula.latex()}")
    return 0


def _line(relation) -> str:
    from formulas.layout import layout
    from formulas.plain import render

    return render(layout(relation))


def _evaluate(options: argparse.Namespace) -> int:
    from formulas.registry import get

    formula = get(_known(options.id))
    bound = formula.bind(_values(formula, options.values))
    value = bound.value
    if formula.is_condition:
        print(text("words", "holds" if value else "fails", options.language))
        return 0
    print(f"{formula.result.id} = {value:.10g} {_unit(formula.result.unit)}".rstrip())
    return 0


def _unit(unit) -> str:
    return "" if str(unit) == "1" else str(unit)


def _known(formula_id: str) -> str:
    """The id as the index writes it; "f14" is F14."""
    return entry(formula_id[:1].upper() + formula_id[1:]).id


def _values(formula, pairs: list[str]) -> dict[str, float]:
    values: dict[str, float] = {}
    names = {symbol.id for symbol in formula.inputs}
    for pair in pairs:
        name, sign, number = (part.strip() for part in pair.partition("="))
        if not sign or not name or not number:
            raise FormulaError("set_syntax", text=pair)
        if name not in names:
            choices = ", ".join(symbol.id for symbol in formula.inputs)
            raise FormulaError("unknown_input", formula=formula.id, name=name, choices=choices)
        if name in values:
            raise FormulaError("set_twice", name=name)
        if not NUMBER.fullmatch(number):
            raise FormulaError("not_a_number", name=name, value=number)
        values[name] = float(number.replace("_", ""))
    return values


if __name__ == "__main__":
    sys.exit(main())
