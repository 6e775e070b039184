"""Hardware: which numbers another GPU moves, by how much, and why Δ is not one of them."""

import math

import streamlit as st

from formulas import get
from model.errors import LabError
from model.iteration_time import Roofline
from ui import hardware as lesson_of
from ui import hardware_pictures as pictures
from ui import hardware_tables as tables
from ui.choose import choose, formula_viewer
from ui.claim import claim_card
from ui.hardware import MOST_OTHERS, says
from ui.language import error_markdown, sentences, t
from ui.lesson import Figure, figures, limits, number_exercise, predict, question, reveal
from ui.prose import prose
from ui.scenario import current_scenario
from ui.throughput import apply_style
from ui.units import NOTHING, signed, significant
from validation.hardware import elsewhere, tile
from validation.hardware_factor import REFERENCE, ratio_at, ratios, share_for
from validation.throughput import Case

FORMULAS = {
    "roof": ("F4", "F4a", "F4b", "F5"),
    "batch": ("F6", "F7"),
    "causes": ("F5",),
    "delta": ("F17a", "F39a", "F39p"),
    "block": ("F4c", "F4b", "F4"),
    "factor": ("F39", "F39a"),
}
AFTER = "h20"  # of the prediction: much bandwidth, little compute
AGREE = 0.02  # of Δ: as far as a formula may be from its run and still be said to agree
HUAWEI = ("910b2", "910b3")


def viewer(part: str, case: Case, **more: float) -> None:
    """The formulas of a part that hold for the case's model, with its values."""
    latent = lesson_of.decode_intensity(case) is None
    ids = [name for name in FORMULAS[part] if not (latent and name == "F4b")]
    formula_viewer(
        "hw", part, ids, lesson_of.formula_values(case, **more), lesson_of.where(case)
    )


def roofs(case: Case, devices: tuple[str, ...]) -> None:
    moved = ratios(AFTER)
    asks = says(
        "ask",
        model=lesson_of.model_name(case),
        memory=significant(moved["r_beta"]),
        compute=significant(moved["r_P"]),
        prompt=f"{case.prompt_tokens:,}",
    )
    guesses = ("both_faster", "decode_faster", "prefill_faster", "both_slower")
    guess = predict("hardware", asks, [(name, t(f"hw.guess.{name}")) for name in guesses])
    if guess is None:
        return
    numbers = lesson_of.prediction_numbers(case, REFERENCE, AFTER)
    reveal(says("roof", batch=case.dynamic_batch, **numbers))
    pictures.roofline_picture(case, devices)
    clock = case.engine.clock
    st.markdown(
        says(
            "points",
            compute=f"{clock.compute_efficiency:g}",
            memory=f"{clock.memory_efficiency:g}",
            fixed=f"{1e3 * clock.fixed_s:g}",
        )
    )
    st.markdown(tables.spots_table(case, devices))
    st.caption(t("hw.table.ms"))
    st.markdown(tables.sources_table(devices))
    claim_card("A19")
    limits(says("limits-roof"))
    viewer("roof", case)


def batch(case: Case, devices: tuple[str, ...]) -> None:
    pictures.batches_picture(case, devices)
    st.markdown(tables.batches_table(case, devices))
    st.markdown(says("batch", **lesson_of.border_numbers(case)))
    claim_card("A2")
    limits(says("limits-batch"))
    viewer("batch", case)
    your_turn()


def binding(case: Case, devices: tuple[str, ...]) -> None:
    scenario = current_scenario()
    if scenario.model is None:
        st.info(t("hw.no_model"), icon=":material/tune:")
        return
    st.markdown(says("causes"))
    if not isinstance(scenario.clock, Roofline):
        st.info(t("hw.other_clock"), icon=":material/timer:")
    runs = lesson_of.causes_under(scenario, devices)
    if not runs:
        return
    pictures.causes_pictures(runs)
    st.markdown(tables.causes_table(runs))
    st.caption(t("hw.table.counted"))
    limits(says("limits-causes"))
    viewer("causes", case)


def delta(case: Case, devices: tuple[str, ...]) -> None:
    fitting = lesson_of.fitting(case, devices)
    if not fitting:
        return
    found = [elsewhere(lesson_of.on_device(case, device)) for device in fitting]
    first = found[0]
    printed = get("F39p").evaluate({"Delta": first.formula, "phi_dev": lesson_of.PRINTED})
    low, high = (signed(pick(one.formula for one in found)) for pick in (min, max))
    apart = max(abs(one.formula - one.simulated) for one in found)
    pictures.gains_picture(case, fitting)
    st.markdown(
        sentences(
            says(
                "delta",
                device=lesson_of.device_name(first.device),
                here=signed(first.formula),
                printed=signed(printed),
                static=case.static_batch,
                dynamic=case.dynamic_batch,
            ),
            says(
                "delta-agree" if apart < AGREE else "delta-apart",
                range=low if low == high else t("hw.range", low=low, high=high),
                apart=significant(100 * apart),
            ),
            says("delta-why"),
        )
    )
    st.markdown(tables.gains_table(case, fitting))
    if crowded := [one.device for one in found if "memory" in one.continuous.reasons]:
        st.caption(t("hw.gain.memory", devices=lesson_of.device_names(crowded)))
    limits(says("limits-delta"))
    viewer("delta", lesson_of.on_device(case, first.device))


def block(case: Case, devices: tuple[str, ...]) -> None:
    tokens = st.slider(t("hw.slider.block"), 16, 1024, 64, 16, key="blk", bind="query-params")
    device = devices[0]
    found = tile(device, tokens)
    decode = lesson_of.decode_intensity(case)
    shown = NOTHING if decode is None else significant(decode)
    figures(
        (
            Figure(t("hw.figure.tile"), significant(found.share * found.ridge), "FLOP/B"),
            Figure(
                t("hw.figure.ridge", name=lesson_of.device_name(device)),
                significant(found.ridge),
                "FLOP/B",
            ),
            Figure(t("hw.figure.needed"), f"{math.ceil(found.needed):,}", t("unit.tokens")),
            Figure(t("hw.figure.decode"), shown, "FLOP/B"),
        )
    )
    pictures.tiles_picture(case, devices, float(tokens))
    st.markdown(tables.blocks_table(devices, float(tokens)))
    latent = says("block-latent", model=lesson_of.model_name(case))
    st.markdown(
        sentences(
            says("block"),
            latent if decode is None else says("block-decode", decode=shown),
            says("block-verdict"),
        )
    )
    claim_card("A20")
    limits(says("limits-block"))
    viewer("block", case, b_blk=float(tokens))


def with_huawei(devices: tuple[str, ...]) -> tuple[str, ...]:
    """Devices to compare with the A100: both of Huawei's, others as far as colors go."""
    own, *others = devices
    room = MOST_OTHERS - len(set(HUAWEI) - {own})
    kept = [name for name in others if name not in HUAWEI][:room]
    shown = [name for name in devices if name in (own, *kept, *HUAWEI)]
    return tuple(name for name in dict.fromkeys((*shown, *HUAWEI)) if name != REFERENCE)


def factor(case: Case, devices: tuple[str, ...]) -> None:
    percent = st.slider(t("hw.slider.share"), 0, 100, 65, 1, key="f", bind="query-params")
    share = percent / 100
    row = [
        Figure(
            t("hw.figure.ratio", name=lesson_of.device_name(name)),
            significant(float(ratio_at(name, share))),
            "×",
            t("hw.figure.solved", f=significant(share_for(name, lesson_of.PRINTED))),
        )
        for name in HUAWEI
    ]
    figures(row)
    pictures.mixtures_picture(case, with_huawei(devices), share)
    solved = [significant(share_for(name, lesson_of.PRINTED)) for name in HUAWEI]
    st.markdown(says("factor", first=solved[0], second=solved[1]))
    if lesson_of.mixed(lesson_of.on_device(case, HUAWEI[0])):
        st.markdown(f"**{lesson_of.device_name(HUAWEI[0])}** / {lesson_of.device_name(REFERENCE)}")
        st.markdown(tables.mixtures_table(case, HUAWEI[0]))
    else:
        st.warning(t("hw.mix.no_runs"), icon=":material/memory:")
    limits(says("limits-factor"))
    viewer("factor", lesson_of.on_device(case, HUAWEI[0]), f_mem=share)


# Device, bytes of a weight, achieved shares of compute and bandwidth.
EXERCISES = (
    ("l40s", 2, 0.5, 0.8),
    ("h200-sxm", 1, 0.6, 0.8),
    ("mi300x", 2, 0.4, 0.8),
    ("910b4", 1, 0.7, 0.6),
)


def your_turn() -> None:
    """The exercise on the critical batch."""
    variant = st.session_state.setdefault("hw.variant", 0) % len(EXERCISES)
    device, size, compute, memory = EXERCISES[variant]
    numbers = lesson_of.device_numbers(device)
    given = {**numbers, "b_w": float(size), "eta_c": compute, "eta_m": memory}
    F6 = get("F6")
    answer = round(F6.evaluate(given))
    at_peak = round(F6.evaluate({**given, "eta_c": 1.0, "eta_m": 1.0}))
    swapped = round(F6.evaluate({**given, "eta_c": memory, "eta_m": compute}))
    doubled = round(F6.evaluate({**given, "b_w": 2.0 * size}))
    st.subheader(prose(lesson_of.PAGE, "exercise").title, anchor=False)
    words = {
        "device": lesson_of.device_name(device),
        "flop": f"{numbers['P'] / 1e12:,g}",
        "bandwidth": f"{numbers['beta'] / 1e12:,g}",
        "size": size,
        "compute": compute,
        "memory": memory,
    }
    st.markdown(says("exercise", **words))
    number_exercise(
        f"hardware.{variant}",
        answer,
        (
            (at_peak, says("hint-peak")),
            (swapped, says("hint-swapped")),
            (doubled, says("hint-doubled")),
        ),
        says("solved", answer=answer, **words),
    )

    def other_numbers() -> None:
        st.session_state["hw.variant"] += 1

    st.button(t("lesson.again"), icon=":material/casino:", on_click=other_numbers)


SHOWN = {
    "roof": roofs,
    "batch": batch,
    "causes": binding,
    "delta": delta,
    "block": block,
    "factor": factor,
}


@st.fragment
def lesson() -> None:
    part = choose("part", tuple(SHOWN), "hw.part", t("hw.part"), label_visibility="collapsed")
    case = lesson_of.case_of(current_scenario())
    devices = lesson_of.devices_chosen(case.engine.hardware)
    st.caption(lesson_of.case_line(case))
    try:
        SHOWN[part](case, devices)
    except LabError as error:
        st.warning(error_markdown(error), icon=":material/tune:")


question(lesson_of.PAGE)
apply_style()
lesson()
