"""What is really wrong in each story. Only tests and tables import this: nothing of the program may.

An answer is right when it names one word of each group in `names`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Truth:
    """The cause, how to recognise that somebody found it, and what people may say on the way."""

    cause: str
    culprit: str
    names: tuple[tuple[str, ...], ...]
    right_hint: str
    wrong_hint: str
    mend: str

    def found_in(self, text: str) -> bool:
        """Whether a conclusion names the cause."""
        lower = text.lower()
        return all(any(word in lower for word in group) for group in self.names)


TRUTHS: Mapping[str, Truth] = {
    "bad_deploy": Truth(
        cause="checkout 2.31.0 asks the database for the price of every order line, one query each",
        culprit="checkout",
        names=(("checkout",), ("2.31.0", "deploy"), ("quer", "price")),
        right_hint="look at what was deployed to checkout shortly before",
        wrong_hint="I bet it is the payment company again",
        mend="roll checkout back to 2.30.0",
    ),
    "exhausted_pool": Truth(
        cause="stock's reservation sweep keeps a connection at every empty run until the pool has none left",
        culprit="stock",
        names=(
            ("stock",),
            ("pool", "connection"),
            ("sweep", "idle in transaction", "exhaust", "leak", "full"),
        ),
        right_hint="check the connection pools",
        wrong_hint="it must be the gateway's deploy, roll it back",
        mend="turn the flag reservation_sweep off and restart stock",
    ),
    "slow_dependency": Truth(
        cause="the payment company's API answers about eleven times as slowly as usual",
        culprit="payments",
        names=(("payment",), ("slow", "latency", "late", "seconds")),
        right_hint="what do the calls to other companies look like?",
        wrong_hint="the rounding deploy of checkout looks suspicious to me",
        mend="tell the payment company, shorten the time limit, or take orders on account",
    ),
    "expired_certificate": Truth(
        cause="the certificate that stock serves as stock.internal has expired, so callers refuse it",
        culprit="stock",
        names=(("certificate", "tls"), ("stock",), ("expired", "ended", "ran out", "not after")),
        right_hint="did a certificate run out?",
        wrong_hint="I think the database is overloaded",
        mend="renew the certificate of stock.internal and restart stock",
    ),
    "noisy_neighbour": Truth(
        cause="the search-indexer on node-b takes nearly all processors, so stock waits for one",
        culprit="search-indexer",
        names=(("search-indexer", "indexer", "node-b"), ("cpu", "processor", "pressure", "core")),
        right_hint="who else runs on that machine?",
        wrong_hint="checkout's rounding deploy did this, roll it back",
        mend="limit or move the search-indexer",
    ),
    "nothing_wrong": Truth(
        cause="nothing is wrong: latency, errors and resources are as on any day",
        culprit="",
        names=(("nothing is wrong", "nothing wrong", "healthy", "false alarm", "no fault"),),
        right_hint="is it slow at all? compare with yesterday",
        wrong_hint="roll back checkout, it was deployed just now",
        mend="look at the alert rule",
    ),
}
