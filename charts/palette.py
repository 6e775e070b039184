"""Colors and patterns by meaning, for both themes.

A hue means a phase, the same everywhere. Under color blindness recompute, waiting and swap turn
grey, so wherever areas or bars meet the pattern of :data:`PATTERNS` goes with the color.
"""

from __future__ import annotations

from types import MappingProxyType

__all__ = ["COLORS", "DASHES", "GHOST", "PATTERNS", "SERIES", "THEMES", "pattern", "translucent"]

COLORS = MappingProxyType(
    {
        "light": MappingProxyType(
            {
                "decode": "#0072B2",
                "prefill": "#E69F00",
                "recompute": "#9C3D7A",
                "swap": "#009E73",
                "waiting": "#8A95A5",
                "violated": "#C8440A",
                "late": "#C8440A",
                "free": "#C3CBD6",
                "ground": "#FFFFFF",
                "panel": "#F8F9FB",
                "sidebar": "#F2F4F7",
                "ink": "#17202B",
                "muted": "#556170",
                "track": "#E6EAF0",
            }
        ),
        "dark": MappingProxyType(
            {
                "decode": "#56B4E9",
                "prefill": "#F0B429",
                "recompute": "#DE94C3",
                "swap": "#2CC295",
                "waiting": "#8592A3",
                "violated": "#FF7B42",
                "late": "#FF7B42",
                "free": "#465364",
                "ground": "#0E131A",
                "panel": "#141A22",
                "sidebar": "#151B24",
                "ink": "#EAEFF5",
                "muted": "#A0ADBC",
                "track": "#252E3A",
            }
        ),
    }
)
THEMES = tuple(COLORS)

# Lines that are no phase (classes of requests, metrics of a sweep): told apart by dash as well.
# A thin line in ink with short dashes is always the baseline; long dashes are limits.
SERIES = MappingProxyType(
    {
        "light": ("#4B44A8", "#7D6608", "#A0345F", "#3E6B4F"),
        "dark": ("#A79FF7", "#D8C26A", "#F28BB0", "#93C9A3"),
    }
)
DASHES = ("solid", "dashdot", "dot", "longdash")
GHOST = MappingProxyType({"width": 1.3, "dash": "4px,3px"})

# Plotly's names of the patterns; a meaning that is not here is drawn solid.
AREA_OPACITY = 0.86  # large areas are a little quieter than marks of the same hue
PATTERNS = MappingProxyType(
    {"prefill": "/", "recompute": "x", "swap": "-", "free": "\\", "late": "."}
)


def pattern(meaning: str, theme: str) -> dict:
    """The ``fillpattern`` (areas) or ``marker.pattern`` (bars) of a meaning."""
    shape, color = PATTERNS.get(meaning, ""), COLORS[theme][meaning]
    ground, stroke = translucent(color, AREA_OPACITY), COLORS[theme]["ground"]
    if meaning == "free":  # nothing is there: an outline on the ground, not an area
        ground, stroke = COLORS[theme]["panel"], color
    elif meaning == "prefill":
        stroke = "rgba(23,32,43,.55)"
    if not shape:
        return {"shape": "", "bgcolor": ground}
    return {"shape": shape, "bgcolor": ground, "fgcolor": stroke, "size": 7, "solidity": 0.25}


def translucent(color: str, alpha: float) -> str:
    """``#RRGGBB`` as an ``rgba()`` string with the opacity ``alpha`` (0 to 1)."""
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha:g})"
