"""The one exception that carries a sentence for a person, and the table of those sentences.

A sentence says what is wrong and what to change. The user interface translates by ``code`` and
fills in the same ``values``; ``str(error)`` is the English sentence.
"""

from __future__ import annotations

MESSAGES: dict[str, str] = {
    # workload
    "not_a_number": "{field} is {value!r}; give a number.",
    "not_a_whole_number": "{field} is {value}; give a whole number.",
    "out_of_range": "{field} is {value}; it must be between {low:,} and {high:,}.",
    "unknown_choice": "{field} is {value!r}; choose one of {choices}.",
    "low_above_high": "{field}: the lowest value {low:,} is above the highest {high:,}; swap them.",
    "quantiles_shape": "{field} must be pairs (share, tokens) whose shares rise from 0 to 1 and "
    "whose tokens never fall; give at least two pairs.",
    "no_streams": "The workload is empty; give it at least one stream of requests.",
    "stream_names": "Two streams are called {name!r}; give each stream a name of its own.",
    "too_many_requests": "The workload has {n_requests:,} requests; at most {limit:,} can be "
    "simulated at once.",
    "prefix_incomplete": "Stream {name!r} shares {tokens:,} prefix tokens among {groups:,} groups; "
    "give both numbers, or set both to 0.",
    "closed_loop_alone": "Stream {name!r} is a closed loop (a request arrives when another ends), "
    "so it cannot be mixed with other streams; simulate it alone.",
    "closed_loop_patience": "Stream {name!r} is a closed loop; its users wait for their answer, "
    "so remove patience_s.",
    "columns_differ": "Column {column} has {rows:,} rows and arrival_s has {expected:,}; give "
    "every request a value.",
    "request_out_of_range": "Request {row:,}: {column} is {value}; it must be between {low:,} "
    "and {high:,}.",
    "prefix_longer_than_prompt": "Request {row:,}: {value:,} shared prefix tokens are more than "
    "its prompt; lower shared_prefix_tokens or lengthen the prompt.",
    "unknown_class": "Request {row:,}: request_class is {value}, but there are only {classes:,} "
    "class names; name the class or change the number.",
    "cancel_before_arrival": "Request {row:,}: cancel_s is {value}, before the request arrives; "
    "give a later time, or leave it empty.",
    "closed_loop_arrivals": "Request {row:,}: arrival_s is {value}; in a closed loop the first "
    "{users:,} requests have a time and the others none.",
}


class LabError(ValueError):
    """A fault that the user can mend.

    ``code`` is a key of :data:`MESSAGES`, stable and language neutral; ``values`` are the numbers
    of the sentence.
    """

    def __init__(self, code: str, **values: object) -> None:
        self.code = code
        self.values = values
        super().__init__(code)

    def __str__(self) -> str:
        return MESSAGES[self.code].format(**self.values)

    def __reduce__(self):  # keeps the values when the error crosses a process boundary
        return _rebuild, (self.code, self.values)


def _rebuild(code: str, values: dict[str, object]) -> LabError:
    return LabError(code, **values)
