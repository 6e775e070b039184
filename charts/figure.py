"""What all figures share: fonts, ground, axes and legend, in both themes."""

from __future__ import annotations

import plotly.graph_objects as go

from charts.palette import COLORS

__all__ = ["CONFIG", "FONT", "base_figure", "legend_at"]

FONT = (
    "'Source Sans', 'Source Sans 3', 'Noto Sans CJK SC', 'Noto Sans SC', 'PingFang SC', "
    "'Microsoft YaHei', sans-serif"
)

# Options of Plotly's own frame: its tool bar speaks English only, and a double click resets a zoom.
CONFIG = {"displayModeBar": False, "displaylogo": False, "responsive": True}


def base_figure(theme: str, height: int) -> go.Figure:
    """An empty figure in the lab's look; fonts never below 12 px."""
    color = COLORS[theme]
    figure = go.Figure()
    figure.update_layout(
        template="none",
        height=height,
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor=color["panel"],
        font={"family": FONT, "size": 13, "color": color["ink"]},
        hoverlabel={
            "bgcolor": color["ground"],
            "bordercolor": color["free"],
            "font": {"family": FONT, "size": 13, "color": color["ink"]},
        },
    )
    return figure


def legend_at(top: float) -> dict:
    """A horizontal legend whose right end stands above a row that begins at ``top`` (paper)."""
    return {
        "orientation": "h",
        "traceorder": "normal",
        "x": 1,
        "xanchor": "right",
        "y": top,
        "yanchor": "bottom",
        "font": {"size": 13},
        "bgcolor": "rgba(0,0,0,0)",
        "itemclick": False,
        "itemdoubleclick": False,
        "itemwidth": 30,
    }
