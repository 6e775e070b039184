"""Goodput (F31): the largest arrival rate per GPU at which a share of requests keeps both SLOs.

DistServe's definition: the largest load with an attainment of at least 90 % in a stable run. It is
not the SLO throughput, which counts the requests per second that kept both SLOs at one fixed load.

:func:`frontier` measures attainment over arrival rates for several scenarios, :func:`search` looks
for the goodput of one. Both are generators that yield what is known so far as frozen objects: a
rough curve of few requests first, then runs of 2,000 requests with several seeds, run by run.
Common random numbers: a seed means the same arrivals (only closer together at a higher rate) and
the same lengths everywhere, so curves differ by the rules and not by luck. Attainment falls with
the rate only approximately; the answer is therefore a bracket, and says where it is not monotone.

A rate is *good* where the mean attainment of its seeds reaches the share and it is stable in the
sense of :mod:`model.steady_load`. Runs are spared where they cannot change that verdict: when even
full attainment in all seeds to come would not lift the mean to the share, or when the rate is not
below the limit of saturation. Such a point is *settled*, with the seeds that it has.
"""

from model.goodput.records import FULL, ROUGH, SHARE, Bracket, Curve, Effort, Frontier, Point
from model.goodput.search import frontier, search
from model.intervals import Spread

__all__ = [
    "FULL",
    "ROUGH",
    "SHARE",
    "Bracket",
    "Curve",
    "Effort",
    "Frontier",
    "Point",
    "Spread",
    "frontier",
    "search",
]
