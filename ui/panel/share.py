"""Share a scenario: a link to copy, and a file for what no link holds."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import urlencode

import streamlit as st

from model import bundle, catalogue
from model.errors import LabError
from model.scenario import Scenario
from ui.language import error_markdown, t
from ui.panel import link, session
from ui.panel.choices import Base, Choices, Draft, choices_for, with_basic
from ui.panel.uploads import hold, name_of

__all__ = ["bundle_upload", "draw_share", "link_to", "rebased", "share_dialog"]

LARGEST_UPLOAD_MB = 20
NOTHING: Mapping[str, str] = MappingProxyType({})


def share_dialog() -> None:
    """Open the dialog; its words are those of the language now."""
    st.dialog(t("share.title"), width="medium", icon=":material/share:")(draw_share)()


def draw_share() -> None:
    """What the dialog holds."""
    found = session.current_draft()
    choices, file = session.current_choices(), session.held_now()
    requests = file.requests if file else None
    scenario = None if found is None else found.scenario
    if file is not None and scenario is not None:
        # Link and file belong together, so both are of what holds now.
        name = name_of(scenario, file.digest)
        choices = rebased(choices, found, name, Base(scenario, file.base.means))
    st.markdown(t("share.link"))
    st.code(link_to(choices), language=None, wrap_lines=True)
    if choices.base in catalogue.presets():
        st.caption(t("share.link.about"))
    else:
        st.warning(t("share.link.file"), icon=":material/folder_zip:")
    st.markdown(t("share.file"))
    st.caption(t("share.file.about"))
    if scenario is not None:
        st.download_button(
            t("share.download"),
            data=lambda: bundle.write_bundle(scenario, requests),
            file_name=f"iteration-lab-{choices.base}.zip",
            mime="application/zip",
            key="share.download",
            on_click="ignore",
            icon=":material/download:",
        )
    bundle_upload("share.upload")


def rebased(choices: Choices, found: Draft, name: str, base: Base) -> Choices:
    """Choices on another base that has their scenario: what is left is what no scenario says."""
    kept = Choices(name, measured=choices.measured)
    for field in ("bs", "bd"):
        kept = with_basic(kept, base, field, found.basic[field])
    return kept


def link_to(choices: Choices, page: Mapping[str, str] = NOTHING) -> str:
    """The address of this page as it stands, with these choices; ``page`` are codes of the page.

    An empty code is left out. The preset is always named, so that the link stays what it is when
    another preset becomes the first one.
    """
    of_scenario = (link.PARAMETER, *link.PLAIN)
    kept = {name: st.query_params.get_all(name) for name in st.query_params}
    fields = {name: values for name, values in kept.items() if name not in of_scenario} | page
    given = {name: value for name, value in fields.items() if value not in ("", [], [""])}
    query = urlencode({link.PARAMETER: link.spelled(choices), **given}, doseq=True)
    return f"{st.context.url or ''}?{query}"


# -- files -----------------------------------------------------------------------------------------


def bundle_upload(key: str) -> None:
    """A place for a bundle; what is wrong with it is said below."""
    data = st.file_uploader(
        t("share.upload"), type="zip", key=key, max_upload_size=LARGEST_UPLOAD_MB
    )
    if data is None:
        return
    try:
        read = bundle.read_bundle(data.getvalue())
    except LabError as error:
        st.error(error_markdown(error), icon=":material/error:")
        return
    asked = session.current_choices().base
    before = session.current_draft()
    file = hold(read.scenario, read.requests, data.name.removesuffix(".zip")[:60])
    if file.name == asked and before is None:  # what the link named: its differences hold
        st.rerun()
    near = None if read.requests is not None else _near_a_preset(read.scenario)
    choices = near or Choices(file.name)
    if choices == session.current_choices():
        st.success(t("share.upload.same"), icon=":material/check:")
        return
    session.adopt(choices)
    st.rerun()


def _near_a_preset(scenario: Scenario) -> Choices | None:
    """The shortest way from a preset to this scenario, None where there is none."""
    ways = []
    for name, preset in catalogue.presets().items():
        base = session.base_of(Choices(name))
        if preset.scenario == scenario:
            return Choices(name)
        choices = choices_for(scenario, Choices(name), base)
        if choices is not None and link.holds(choices):
            ways.append(choices)
    return min(ways, key=lambda way: len(link.write(way)), default=None)
