"""The simulator's views of pools, conversations and retries."""

import pytest

from tests.ui.test_simulator_views import VIEWS

POOLS = "engines-3~prefillers-2~link-2000000000~n-60"


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_knows_pools(open_app, view):
    app = open_app(view=view, x=POOLS, preset="customer-service")
    assert not app.exception
    if view == "film":
        slider = app.select_slider(key="film.engine")
        assert [option.split()[0] for option in slider.options] == ["0", "1", "2"]
        assert slider.options[0] != slider.options[2].replace("2", "0")  # each says its role
        slider.set_value(2).run()
        assert not app.exception
    if view == "requests":
        table = app.dataframe[0].value
        assert set(table["engine"]) == {0, 1}
        assert set(table["decode_engine"].dropna()) == {2}
        assert (table["transfer_s"].dropna() > 0).all()


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_knows_conversations(open_app, view):
    app = open_app(view=view, preset="conversation-turns")
    assert not app.exception


def test_requests_that_came_again_say_how_often(open_app):
    x = "capreqs-2~admission-queue_cap~retries-3~rate-200~n-80"
    app = open_app(view="requests", preset="customer-service", policy="lab", x=x, bd="4")
    assert not app.exception
    assert app.dataframe[0].value["attempts"].max() == 4
