"""What the browser tests do with a page, by what a person sees of it."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, TimeoutError, expect


def settle(page: Page) -> None:
    """Wait until the script has run and the page stands still."""
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    page.wait_for_function("() => !document.querySelector('[data-stale=\"true\"]')", timeout=20_000)


def figures(page: Page) -> list[str]:
    """The key figures, as shown."""
    return page.get_by_test_id("stMetricValue").all_inner_texts()


def pick(page: Page, label: str, option: str) -> None:
    """Choose from a select box by its visible words."""
    box = page.get_by_test_id("stSelectbox").get_by_label(label, exact=True)
    box.scroll_into_view_if_needed()
    settle(page)
    for tries_left in (2, 1, 0):  # a list that opens while its place moves closes again
        box.click()
        try:
            page.get_by_role("option", name=option, exact=True).click(timeout=5_000)
            break
        except TimeoutError:
            if not tries_left:
                raise
    settle(page)


def slide(page: Page, label: str, *keys: str) -> None:
    """Move a slider with these keys, one after the other."""
    for key in keys:
        slider(page, label).press(key)
    settle(page)


def slider(page: Page, label: str) -> Locator:
    """The handle of a slider; its ``aria-valuetext`` is what it shows."""
    return page.locator(f'input[type=range][aria-label="{label}"]')


def open_expert(page: Page, title: str, group: str) -> None:
    """Open the expert part of the panel at one of its groups."""
    panel = page.get_by_test_id("stSidebar")
    panel.get_by_test_id("stExpander").get_by_text(title, exact=True).click()
    panel.get_by_role("radio", name=group, exact=True).click()
    settle(page)
