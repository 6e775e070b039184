"""The planner's prose with its numbers, the values of its formulas, and where they come from."""

from __future__ import annotations

from collections.abc import Mapping

from ui.language import t
from ui.planner.asks import Asked
from ui.prose import prose
from ui.slo.words import bound, engine_name, time
from ui.slo.words import where as where_of_slo
from ui.units import significant
from validation import throughput
from validation.planner import Plan
from validation.planner_load import Load
from validation.planner_split import Split

__all__ = [
    "PAGE",
    "bound",
    "engine_name",
    "lengths",
    "pool_values",
    "promised",
    "says",
    "significant",
    "step_values",
    "time",
    "where",
]

PAGE = "planner"


def says(section: str, **numbers: object) -> str:
    """A section of the prose with its numbers."""
    return prose(PAGE, section).text.format(**numbers)


def promised(promise: float | None) -> str:
    """For how many requests TTFT is promised."""
    return t("plan.promise.mean") if promise is None else f"{100 * promise:g} %"


def lengths(load: Load) -> str:
    """Mean prompt and output in words."""
    return t("plan.lengths", prompt=f"{load.prompt_tokens:,.0f}",
             output=f"{load.output_tokens:,.0f}")  # fmt: skip


def _engine(asked: Asked, load: Load) -> dict[str, float]:
    """Symbols of the model, its GPUs and its clock."""
    case = throughput.Case(
        prompt_tokens=max(round(load.prompt_tokens), 1),
        output_tokens=max(round(load.output_tokens), 1),
        engine=throughput.engine_of(asked.scenario),
    )
    known = dict(throughput.values(case))
    return known | {"g": float(asked.scenario.tensor_parallel), "ctx": load.context_tokens}


def step_values(step: str, asked: Asked, plan: Plan) -> Mapping[str, float]:
    """Values of the symbols of a step's formulas, in SI units."""
    load, one, slo = plan.load, plan.beside, asked.scenario.slo
    known = _engine(asked, load)
    capacity = asked.scenario.kv_capacity()
    each = 2 * known["Psi_a"] + 4 * known["n_L"] * known["d_a"] * load.context_tokens
    own = {
        "chunk": {
            "TBT": slo.tpot_s,
            "B": float(one.decodes),
            "F_dec": one.decodes * each,
            "s_0": max(load.prompt_tokens - one.chunk_tokens, 0.0) / 2,
            "C_grid": 16.0,
        },
        "batch": {
            "N_kv": float(capacity.tokens),
            "bs": float(capacity.block_size),
            "n": load.context_tokens,
            "B": float(plan.batch_tpot),
        },
        "prefill": {
            "n": load.prompt_tokens,
            "C": float(one.chunk_tokens),
            "t_iter": one.iteration_s,
            "x_ttft": one.x,
            "q_share": plan.promise or 0.99,
            "lambda": load.rate_per_s / plan.engines,
            "s_mean": load.prompt_tokens,
            "C_p": one.prefill_tokens_per_s,
            "rho_max": 1.0,
        },
        "engines": {
            "lambda": load.rate_per_s,
            "W": plan.stay_s,
            "TTFT": one.prefill_s,
            "TPOT": plan.tpot_s,
            "M_kv": capacity.pool_tokens * known["kappa"],
            "mu_inst": min(plan.carried),
        },
        "price": {
            "N_gpu": float(plan.gpus),
            "p_gpu": asked.price / 3600,
            "X": plan.tokens_per_s,
        },
    }
    return known | own[step]


def pool_values(asked: Asked, load: Load, found: Split) -> Mapping[str, float]:
    """Values of the symbols of F32 and its letters."""
    link = asked.scenario.link()
    return _engine(asked, load) | {
        "lambda": load.rate_per_s,
        "L_in": load.prompt_tokens,
        "t_p": found.prefill_s,
        "B_d": float(found.batch),
        "t_d": found.decode_s,
        "mu_p": found.prefill_rate,
        "mu_d": found.decode_rate,
        "mu_inst": found.prefill_rate,
        "n_p": float(found.prefill_engines),
        "n_d": float(found.decode_engines),
        "kappa": link.bytes_per_token,
        "beta_net": link.bytes_per_s,
        "t_sync": link.latency_s,
    }


def where(asked: Asked) -> dict[str, str]:
    """Of each symbol where its value comes from."""
    found = where_of_slo(asked.scenario)
    chosen = ("lambda", "TBT", "q_share", "p_gpu")
    found |= dict.fromkeys(chosen, t("plan.where.asked"))
    planned = ("B", "C", "F_dec", "s_0", "t_iter", "W", "TTFT", "TPOT", "N_gpu", "X", "C_p")
    pools = ("x_ttft", "mu_inst", "B_d", "n_p", "n_d", "mu_p", "mu_d")
    found |= dict.fromkeys((*planned, *pools), t("plan.where.plan"))
    return found | dict.fromkeys(("beta_net", "t_sync"), t("slo.where.device"))
