"""The app in Streamlit's own test harness: the real entry script, no browser."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

ENTRY = Path(__file__).resolve().parents[2] / "app.py"


@pytest.fixture
def open_app():
    """A function that opens a page of the app, given the address's parameters, and runs it once."""

    def opened(page: str = "simulator", **params: str) -> AppTest:
        app = AppTest.from_file(str(ENTRY), default_timeout=120)
        app.switch_page(f"app_pages/{page}.py")
        for name, value in params.items():
            app.query_params[name] = value
        return app.run()

    return opened
