"""The section Theory: a table of all records, and one of them in detail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

import formulas
from charts import validation as charts
from charts.figure import CONFIG
from charts.numbers import NOTHING, significant
from charts.validation import Points
from ui.choose import choose, code_field, formula_viewer
from ui.evidence.records import CASES, Case, curve_of, gap, how, number, records_of
from ui.language import current_language, t, translator
from ui.lesson import Figure, figures
from ui.prose import prose
from ui.reference import marks
from ui.theme import current_theme
from validation.comparison import Record
from validation.table import COMPARISONS, TOPICS

__all__ = ["theory"]

_INTACT, _ALL = "intact", "all"
_TOPIC_OF = {one.name: topic for topic, group in TOPICS.items() for one in group}
_ROW, _TALLEST = 35, 330  # pixels
_WIDTHS = {
    "formula": 315,
    "assumption": 185,
    "says": 125,
    "run": 135,
    "gap": 85,
    "verdict": 90,
}
_COLORS = {"agrees": "green", "apart": "orange", "fails": "red"}


def theory() -> None:
    """Every formula that a simulation can repeat, beside it."""
    st.markdown(prose("validation", "theory").text)
    case = case_of(code_field("row"))
    topic = choose(
        "topic", (*TOPICS, _ALL), "val.topic", t("val.topic"), default=_TOPIC_OF[case[0]]
    )
    rows = [one for one in CASES if topic in (_ALL, _TOPIC_OF[one[0]])]
    case = case if case in rows else rows[0]
    found = records_of(rows)
    _counts(found)
    _table(found, topic, case)
    _detail(found[case], case)
    st.markdown(f":gray[**{t('lesson.limits')}**] {prose('validation', 'limits').text}")


def _counts(found: Mapping[Case, Record]) -> None:
    intact = [record for record in found.values() if not record.broken]
    known = {name for record in intact for name in record.formulas}
    exact = [record for record in intact if record.kind == "deterministic"]
    chance = [record for record in intact if record.kind != "deterministic"]
    apart = [record for record in found.values() if record.broken]
    figures(
        (
            Figure(t("val.count.formulas"), str(len(known))),
            *(
                Figure(
                    t(f"val.count.{name}"),
                    _share(rows),
                    more=t(f"val.count.{name}.more"),
                )
                for name, rows in (("exact", exact), ("chance", chance), ("apart", apart))
            ),
        )
    )


def _share(rows: Sequence[Record]) -> str:
    """How many of them are as they should be; a topic may have none of a kind."""
    if not rows:
        return NOTHING
    return t("val.count.of", n=sum(row.verdict != "fails" for row in rows), m=len(rows))


# -- the table -------------------------------------------------------------------------------------


def _table(found: Mapping[Case, Record], topic: str, case: Case) -> None:
    """These records, of which this one is chosen; the address keeps which."""
    rows = list(found)

    def take() -> None:
        taken = st.session_state[key]["selection"]
        # A click on any cell counts for its row.
        row = next((row for row, _ in taken.get("cells", ())), None)
        if row is None and taken["rows"]:
            row = taken["rows"][0]
        if row is not None:
            st.session_state["row"] = code_of(rows[row])

    # A new key lets the chosen row be the selected one, wherever the choice came from.
    key = f"val.table.{topic}.{code_of(case)}"
    st.dataframe(
        _frame(current_language(), topic, tuple(found.values())),
        key=key,
        on_select=take,
        selection_mode=["single-row-required", "single-cell"],
        selection_default={"selection": {"rows": [rows.index(case)]}},
        hide_index=True,
        height=min(_TALLEST, _ROW * (len(rows) + 1) + 2),
        alt=t("val.table.alt"),
        column_config={
            t(f"val.table.{head}"): st.column_config.TextColumn(width=width)
            for head, width in _WIDTHS.items()
        },
    )


def case_of(code: str) -> Case:
    """The case of a code in the address, ``NAME`` or ``NAME.BROKEN``; the first if unknown."""
    name, _, broken = code.partition(".")
    return (name, broken) if (name, broken) in CASES else CASES[0]


def code_of(case: Case) -> str:
    """The code of a case."""
    return ".".join(filter(None, case))


@st.cache_resource(max_entries=16, show_spinner=False)
def _frame(language: str, topic: str, _records: Sequence[Record]) -> pd.DataFrame:
    speak = translator(language)
    rows = [
        (
            f"{COMPARISONS[record.name].formula_id(record.broken)} · "
            f"{speak(f'val.name.{record.name}')}",
            speak(f"val.broken.{record.broken or _INTACT}"),
            number(record.formula, record),
            number(record.simulated, record),
            gap(record),
            speak(f"val.verdict.{record.verdict}"),
        )
        for record in _records
    ]
    return pd.DataFrame(rows, columns=[speak(f"val.table.{head}") for head in _WIDTHS])


# -- one of them -----------------------------------------------------------------------------------


def _detail(record: Record, case: Case) -> None:
    name, broken = case
    comparison = COMPARISONS[name]
    st.subheader(t(f"val.name.{name}"), anchor=False)
    if comparison.broken:
        _assumptions(case)
    picture, words = st.columns([3, 2], gap="large")
    with words:
        unit = t(f"val.unit.{record.unit}")
        verdict = f":{_COLORS[record.verdict]}-badge[{t(f'val.verdict.{record.verdict}')}]"
        figures(
            (
                Figure(t("val.table.says"), significant(record.formula, 4), unit),
                Figure(t("val.table.run"), significant(record.simulated, 4), unit),
            )
        )
        tolerance = t("val.tolerance", percent=f"{100 * record.tolerance:g}")
        if record.tolerance < 1e-6:
            tolerance = t("val.tolerance.digits")
        st.markdown(f"{verdict} **{gap(record)}** :gray[{tolerance}]")
        st.markdown(t(f"val.reason.{record.reason}"))
        st.markdown(f":gray[{t('val.how')} {t(how(name))}]")
        _assumed(comparison.formula_id(broken))
    with picture:
        with st.spinner(t("val.drawing")):
            figure, alt = _figure(case, current_language(), current_theme())
        st.plotly_chart(figure, theme=None, config=CONFIG, key="val.chart", alt=alt)
    formula_viewer(
        "val", name, comparison.formulas, comparison.values(comparison.at, broken), {}
    )


def _assumptions(case: Case) -> None:
    """Assumptions met, or one of them broken; the address keeps it in the row."""
    name, broken = case
    options = (_INTACT, *COMPARISONS[name].broken)
    widget = f"val.broken.{name}"
    st.session_state[widget] = broken or _INTACT

    def take() -> None:
        chosen = st.session_state[widget]
        st.session_state["row"] = code_of((name, "" if chosen == _INTACT else chosen))

    speak = translator(current_language())
    st.segmented_control(
        t("val.assumptions"),
        options,
        required=True,
        format_func=lambda option: speak(f"val.broken.{option}"),
        key=widget,
        on_change=take,
    )


def _assumed(formula_id: str) -> None:
    """What the formula takes for granted."""
    language = current_language()
    texts = formulas.get(formula_id).assumption_texts(language)
    if texts:
        st.markdown(
            f"**{t('val.assumes', formula=formula_id)}**\n\n"
            + "\n".join(f"- {marks.plain(text)}" for text in texts)
        )


@st.cache_resource(max_entries=256, show_spinner=False)
def _figure(case: Case, language: str, theme: str) -> tuple[go.Figure, str]:
    name, broken = case
    comparison, speak = COMPARISONS[name], translator(language)
    intact = curve_of((name, ""))
    points = []
    if intact.again is not None and not broken:
        points.append(Points("again", speak("val.points.again"), intact.x, intact.again))
    line = curve_of(case)
    if not broken or np.array_equal(line.line_y, intact.line_y):  # one line for both
        points.append(Points("intact", speak("val.points.intact"), intact.x, intact.simulated))
    if broken:
        points.append(Points("broken", speak(f"val.broken.{broken}"), line.x, line.simulated))
    unit = speak(f"val.unit.{comparison.unit}")
    words = {
        "title": speak(f"val.name.{name}"),
        "more": unit,
        "x": speak(f"val.axis.{comparison.axis}"),
        "y": unit,
        "formula": comparison.formula_id(broken),
    }
    figure = charts.beside(
        (line.line_x, line.line_y), points, comparison.at, words, theme, log_x=comparison.log_axis
    )
    return figure, charts.description(words, points)
