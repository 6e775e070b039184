"""What the browser tests do with a page, by what a person sees of it."""

from __future__ import annotations

from playwright.sync_api import Page, expect


def settle(page: Page) -> None:
    """Wait until the script has run and the page stands still."""
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    page.wait_for_function("() => !document.querySelector('[data-stale=\"true\"]')", timeout=20_000)


def figures(page: Page) -> list[str]:
    """The key figures, as shown."""
    return page.get_by_test_id("stMetricValue").all_inner_texts()


def pick(page: Page, label: str, option: str) -> None:
    """Choose from a select box by its visible words."""
    page.get_by_test_id("stSelectbox").get_by_label(label, exact=True).click()
    page.get_by_role("option", name=option, exact=True).click()
    settle(page)
