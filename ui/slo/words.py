"""The lesson's prose with its numbers, and where the values of its formulas come from."""

from __future__ import annotations

from collections.abc import Mapping

from model import catalogue
from model.errors import LabError
from model.parameters import RATE, value_at
from model.scenario import Scenario
from model.steady_load import gpus, rate_of
from ui.language import t
from ui.panel.uploads import requests_of
from ui.prose import prose
from ui.units import setting, time
from validation import slo_lesson as lesson

__all__ = [
    "PAGE",
    "bound",
    "engine_name",
    "formula_values",
    "mean_prompt",
    "rate_or_none",
    "says",
    "time",
    "where",
]

PAGE = "slo"


def says(section: str, **numbers: object) -> str:
    """A section of the lesson's prose with its numbers."""
    return prose(PAGE, section).text.format(**numbers)


def bound(seconds: float) -> str:
    """A time that was set, with its unit."""
    return "\u00a0".join(setting(seconds))


def engine_name(scenario: Scenario) -> str:
    """Model and GPUs of one engine, for people."""
    if scenario.model is None or scenario.hardware is None:
        return t("slo.engine.none")
    device, gpus = catalogue.device(scenario.hardware).name, scenario.tensor_parallel
    return f"{catalogue.model(scenario.model).name} · {f'{gpus} × ' if gpus > 1 else ''}{device}"


def mean_prompt(scenario: Scenario) -> float:
    """Mean prompt in tokens, of a file's requests where the scenario has one."""
    file = requests_of(scenario.workload)
    if file is None or file.requests is None:
        return lesson.mean_lengths(scenario)[0]
    return float(file.requests.prompt_tokens.mean())


def rate_or_none(scenario: Scenario) -> float | None:
    """Requests/s that arrive; None where they are released by answers, or come from a file."""
    try:
        return float(value_at(scenario, RATE))
    except LabError:
        return None


def formula_values(scenario: Scenario) -> Mapping[str, float]:
    """Values of the symbols of this lesson, as far as the scenario has them."""
    if rate_or_none(scenario) is None:
        return {}
    found = lesson.values(scenario, rate_of(scenario) * gpus(scenario))
    return found | {"rho_max": 1.0, "g": float(scenario.tensor_parallel)}


def where(scenario: Scenario) -> dict[str, str]:
    """Of each symbol where its value comes from."""
    found = dict.fromkeys(("lambda", "s_mean", "L", "ctx"), t("slo.where.workload"))
    found |= dict.fromkeys(("D_ttft", "TBT", "x_ttft"), t("slo.where.slo"))
    found |= dict.fromkeys(("C_p", "D", "t_p", "t_d"), t("slo.where.clock"))
    found |= dict.fromkeys(("P", "beta", "g", "M_kv"), t("slo.where.device"))
    found |= dict.fromkeys(("Psi_a", "n_L", "d_a", "kappa", "b_w"), t("slo.where.model"))
    return found | dict.fromkeys(("q_share", "rho_max", "s_0"), t("slo.where.chosen"))
