"""What a person reads on a page in the test harness, and the answers that open a lesson."""

from collections.abc import Collection


def answered(app, keys: Collection[str]):
    """The page after the prediction whose button has one of these keys, if it asks for one."""
    for button in app.main.button:
        if button.key in keys:
            button.click().run()
            break
    assert not app.exception
    return app


def numbers(app) -> list[str]:
    """The big figures without their units."""
    return [metric.value.split()[0] for metric in app.main.metric]


def figures(app) -> list[str]:
    """The big figures up to their units, with what has several parts: "100 / 200"."""
    return [metric.value.split(" :")[0] for metric in app.main.metric]


def text_of(app) -> str:
    """All words of the page."""
    return "\n".join(element.value for element in app.main.markdown)


def check(app):
    """The button under the exercise."""
    return next(button for button in app.main.button if button.label == "Check")
