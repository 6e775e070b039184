"""A figure gathered as plain data and built at once.

Plotly checks every addition to a figure and copies what is there already, which for a dozen traces
and notes costs more than everything else. A sheet collects them and hands them over in one go.
"""

from __future__ import annotations

import plotly.graph_objects as go

from charts.figure import base_figure, legend_at
from charts.palette import COLORS, SERIES, translucent

__all__ = ["LINE_PX", "Sheet", "numbered", "plain"]

LINE_PX = 24  # of a heading or a line of a legend
_UNSTEADY = 0.12


def numbered(name: str, index: int) -> str:
    """Plotly's name of an axis or legend by its index from 0: y, y2, y3, ..."""
    return name if index == 0 else f"{name}{index + 1}"


def plain(text: object) -> str:
    """Somebody else's words (names in a trace) as they are: Plotly would read <b> as markup."""
    return str(text).replace("<", "‹").replace("%{", "% {")


class Sheet:
    """Traces, shapes and notes of a figure in the making."""

    def __init__(self, theme: str, height: int) -> None:
        self.theme = theme
        self.color = COLORS[theme]
        self.height = height
        self.traces: list[dict] = []
        self.shapes: list[dict] = []
        self.notes: list[dict] = []
        self.layout: dict = {}

    def figure(self) -> go.Figure:
        figure = base_figure(self.theme, self.height)
        figure.add_traces(self.traces)
        figure.update_layout(shapes=self.shapes, annotations=self.notes, **self.layout)
        return figure

    def hue(self, color: str | int) -> str:
        """A color of the theme: by its meaning, or by its place in SERIES."""
        return SERIES[self.theme][color] if isinstance(color, int) else self.color[color]

    # -- axes ----------------------------------------------------------------------------------

    def axis(self, **more: object) -> dict:
        """An axis in the lab's look."""
        return {
            "gridcolor": self.color["track"],
            "zeroline": False,
            "tickfont": {"size": 12},
            "automargin": True,
            **more,
        }

    def bottom_axis(self, title: str, **more: object) -> dict:
        """A horizontal axis with ticks and a title under it."""
        return self.axis(
            ticks="outside",
            tickcolor=self.color["free"],
            title={"text": title, "font": {"size": 13}, "standoff": 6},
            **more,
        )

    def side_axis(self, title: str, **more: object) -> dict:
        """A vertical axis with a title beside it."""
        return self.axis(title={"text": title, "font": {"size": 13}, "standoff": 6}, **more)

    def cursor(self, title: str) -> dict:
        """Of a horizontal axis: one line at the mouse through all rows, and what its box says."""
        return {
            "unifiedhovertitle": {"text": title},
            "showspikes": True,
            "spikemode": "across",
            "spikesnap": "cursor",
            "spikecolor": self.color["ink"],
            "spikethickness": 1,
            "spikedash": "solid",
        }

    def legend(self, index: int, top: float, **more: object) -> None:
        """A legend whose right end stands above what begins at ``top`` (paper)."""
        self.layout[numbered("legend", index)] = {**legend_at(top), **more}

    def legend_line(self, index: int, line: int, title: str = "") -> None:
        """A legend in a line of its own over the headings, counted from the top of the figure."""
        # Plotly hangs a title by its size: at 17 its foot is level with that of the entries.
        text = f"<span style='font-size:13px'><b>{title}</b></span>"
        more = {"title": {"text": text, "side": "left", "font": {"size": 17}}}
        self.legend(
            index,
            1 - (line * LINE_PX + 8) / self.height,
            x=0,
            xanchor="left",
            yref="container",
            yanchor="top",
            **(more if title else {}),
        )

    # -- words ---------------------------------------------------------------------------------

    def heading(self, name: str, more: str, x: float, y: float, yshift: float = 0) -> None:
        """A bold name and a quieter remark above the point (x, y) of the paper."""
        self.note(
            f"<b>{name}</b>  <span style='color:{self.color['muted']}'>{more}</span>",
            x,
            y,
            xanchor="left",
            yanchor="bottom",
            yshift=yshift,
            font={"size": 14},
        )

    def note(self, text: str, x: float, y: float, **more: object) -> None:
        """Words without an arrow, by default at a place on the paper.

        ``on_curves`` puts them on a ground of their own.
        """
        font = {"size": 12, "color": self.color["ink"], **more.pop("font", {})}
        if more.pop("on_curves", False):  # readable where lines run behind it
            more |= {"bgcolor": translucent(self.color["panel"], 0.8), "borderpad": 0}
        self.notes.append(
            {
                "text": text,
                "x": x,
                "y": y,
                "xref": "paper",
                "yref": "paper",
                "showarrow": False,
                "font": font,
                **more,
            }
        )

    # -- marks ---------------------------------------------------------------------------------

    def line(self, x0, x1, y0, y1, *, color: str, dash: str, width: float = 1.5, **more) -> None:
        """A straight line; ``xref`` and ``yref`` say whose coordinates these are."""
        self.shapes.append(
            {
                "type": "line",
                "x0": x0,
                "x1": x1,
                "y0": y0,
                "y1": y1,
                "line": {"color": color, "width": width, "dash": dash},
                **more,
            }
        )

    def shade(self, spans: tuple[tuple[float, float], ...], yref: str = "y") -> None:
        """Quiet ground under stretches of time that do not count; yref is an axis."""
        for left, right in spans:
            self.shapes.append(
                {
                    "type": "rect",
                    "x0": left,
                    "x1": max(left, right),
                    "y0": 0,
                    "y1": 1,
                    "xref": "x",
                    "yref": f"{yref} domain",
                    "fillcolor": translucent(self.color["waiting"], _UNSTEADY),
                    "line": {"width": 0},
                    "layer": "below",
                }
            )

    def key(self, label: str, **marker: object) -> None:
        """A line of the legend for what is drawn as a shape."""
        self.traces.append(
            {
                "type": "scatter",
                "x": [None],
                "y": [None],
                "name": label,
                "mode": "markers",
                "marker": {"symbol": "square", "size": 12, **marker},
                "hoverinfo": "skip",
            }
        )
