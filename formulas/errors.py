"""The exception of this layer: a sentence for a person, with a stable code and its numbers.

The sentences are rows of ``texts/errors.csv`` in every language. It has the shape of the model's
``LabError`` (``code``, ``values``, ``str``), but the two layers know nothing of each other.
"""

from __future__ import annotations

from formulas.texts import text


class FormulaError(ValueError):
    """A fault that the user can mend; ``str(error)`` is the English sentence."""

    def __init__(self, code: str, **values: object) -> None:
        self.code = code
        self.values = values
        super().__init__(code)

    def sentence(self, language: str = "en") -> str:
        """What is wrong and what to change, in a language."""
        return text("errors", self.code, language).format(**self.values)

    def __str__(self) -> str:
        return self.sentence()

    def __reduce__(self):
        return _rebuilt, (self.code, self.values)


def _rebuilt(code: str, values: dict[str, object]) -> FormulaError:
    return FormulaError(code, **values)
