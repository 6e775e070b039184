"""Static batching, as FasterTransformer does it."""

from __future__ import annotations

from tests.reference.orca import Orca


class Static(Orca):
    """A batch is formed only when nothing runs, from whatever waits then (without waiting for it
    to be full), and runs until all its requests have ended. One that ends earlier leaves the batch
    at once (neither scheduled nor counted, its reservation is free), but nobody takes its place.
    """

    def may_admit(self) -> bool:
        return not self.running
