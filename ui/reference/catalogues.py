"""Glossary, devices and models as tables: units in the heads, sources and confidence beside."""

from __future__ import annotations

import streamlit as st

from model import catalogue
from model.catalogue import Model
from ui.glossary import GROUPS, entries, meaning
from ui.language import current_language, t
from ui.prose import prose
from ui.reference import marks
from ui.reference.finding import terms_found
from ui.units import significant

__all__ = ["device_table", "glossary_table", "model_table"]

NONE = "–"


def glossary_table() -> None:
    """Terms in both languages, with their meaning in this session's."""
    st.markdown(prose("reference", "glossary").text)
    groups = marks.words("ref.group", GROUPS)
    with st.container(key="tools"):
        search, group_at = st.columns([2, 4])
        query = search.text_input(
            t("ref.search.glossary"),
            placeholder=t("ref.search.glossary.example"),
            key="ref.glossary.query",
            persist_state="page",
        )
        group = group_at.segmented_control(
            t("ref.group"),
            GROUPS,
            format_func=groups.get,
            key="ref.glossary.group",
            persist_state="page",
        )
    found = terms_found(query, group or "")
    if not found:
        st.info(t("ref.nothing"), icon=":material/search_off:")
        return
    rows = [
        (
            f"**{marks.plain(entries()[name].name('en'))}**",
            f"**{marks.plain(entries()[name].name('zh'))}**",
            marks.plain(meaning(name)),
        )
        for name in found
    ]
    with st.container(key="wide-glossary"):
        st.markdown(marks.table(("English", "中文", t("ref.meaning")), rows))


def device_table() -> None:
    """All devices: compute, memory, links."""
    st.markdown(prose("reference", "devices").text)
    numbers = ("compute", "memory", "bandwidth", "ridge", "host", "host_real", "link")
    rows = [
        (
            f"**{device.name}**",
            _short(device.bf16_flop_per_s / 1e12),
            _whole(device.hbm_bytes / 1e9),
            _short(device.hbm_bytes_per_s / 1e12),
            _whole(device.ridge_flop_per_byte),
            _whole(device.host_link_bytes_per_s / 1e9),
            _whole(device.host_link_effective_bytes_per_s / 1e9),
            _whole(device.gpu_link_bytes_per_s / 1e9),
            marks.confidence(device.confidence),
            marks.plain(device.source),
        )
        for device in catalogue.devices().values()
    ]
    _catalogue("devices", "device", numbers, rows)


def model_table() -> None:
    """All models: shape, parameters, KV of a token."""
    st.markdown(prose("reference", "models").text)
    numbers = ("parameters", "active", "layers", "hidden", "heads", "head", "kv", "context")
    rows = []
    for model in catalogue.models().values():
        moe = bool(model.experts)
        latent = model.kv_kind == "mla"
        rows.append(
            (
                f"**{model.name}**",
                significant(model.parameters / 1e9),
                significant(model.active_parameters / 1e9) if moe else NONE,
                str(model.layers),
                _whole(model.hidden),
                f"{model.heads} / {'MLA' if latent else model.kv_heads}",
                str(model.head_dim),
                _short(model.kv_bytes_per_token() / 1024),
                _context(model),
                marks.confidence(model.confidence),
                marks.plain(model.source),
            )
        )
    _catalogue("models", "model", numbers, rows)


def _catalogue(name: str, first: str, numbers: tuple[str, ...], rows: list) -> None:
    """A table with the name of the entry, numbers, confidence and source; and what these mean."""
    heads = [t(f"ref.head.{head}") for head in (first, *numbers, "confidence", "source")]
    with st.container(key=f"wide-{name}"):
        st.markdown(marks.table(heads, rows, numbers=range(1, len(numbers) + 1)))
    written = " ".join(cell for row in rows for cell in row)
    codes = [code for code, icon in marks.CONFIDENCES.items() if icon in written]
    lines = (f"- {marks.confidence(code)}: {t(f'ref.confidence.{code}.means')}" for code in codes)
    st.markdown("\n".join(lines))
    if current_language() != "en":
        st.caption(t("ref.sources_in_english"))


def _context(model: Model) -> str:
    """The context length, marked where it is less sure than the rest of the row."""
    tokens = _whole(model.max_context_tokens)
    if model.context_confidence == model.confidence:
        return tokens
    return f"{marks.CONFIDENCES[model.context_confidence]} {tokens}"


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _short(value: float) -> str:
    """As many digits as the table has, up to four."""
    return f"{value:,.4g}"
