"""What people should do next, for each cause: the most urgent first, what is risky named as risky."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bot.model.rehearsal.hypotheses import Hypothesis
from bot.model.rehearsal.investigation import Investigation
from bot.model.rehearsal.judges import suspect


def advice(state: Investigation, hypothesis: Hypothesis | None) -> list[str]:
    """Next steps for a verdict, or for none."""
    if hypothesis is None:
        return [
            "Name a service or a cause that you suspect, and it is checked next.",
            "Ask somebody who knows these services: the rules know six kinds of causes.",
        ]
    return [*_ADVICE[hypothesis](state, state.place_of(hypothesis) or "the service"), *_runbook(state)]


def _deploy(state: Investigation, service: str) -> list[str]:
    near = suspect(state.picture, state.source)
    name = near.name if near else f"the last deploy of {service}"
    commit = f" (commit {near.commit[:12]})" if near and near.commit else ""
    return [
        f"Roll {name} back to the version before{commit}. Risky if the old one cannot read its data.",
        f"Watch p99 of {service} for five minutes afterwards.",
    ]


def _pool(state: Investigation, service: str) -> list[str]:
    return [
        f"Find what in {service} takes connections and keeps them; switch it off (a flag, a job).",
        f"Restart {service} one instance at a time to free the connections. Risky: what runs is lost.",
        "A larger pool only buys time.",
    ]


def _dependency(state: Investigation, service: str) -> list[str]:
    caller = state.source.caller if state.source else "the caller"
    return [
        f"Ask whoever runs {service}, with the times above.",
        f"Lower {caller}'s time limit for {service}, or answer without it. Risky: some requests fail sooner.",
    ]


def _certificate(state: Investigation, service: str) -> list[str]:
    return [
        f"Renew the certificate of {service} and load it; check that its callers trust the new one.",
        "Do not switch the check of certificates off: risky, and forgotten afterwards.",
        "Alert on certificates that end within two weeks.",
    ]


def _neighbour(state: Investigation, service: str) -> list[str]:
    most = max(state.picture.changes("workloads"), key=lambda each: each.rise, default=None)
    name = most.labels.get("workload", "the neighbour") if most else "the neighbour"
    return [
        f"Stop, limit or move {name}. Ask its owners first: it may be in the middle of something.",
        f"Reserve processors for {service}, so that no neighbour can take them.",
    ]


def _nothing(state: Investigation, service: str) -> list[str]:
    return [
        "Nothing to mend. Ask whoever reported it what they saw and when.",
        "If the alert comes and goes, look at its threshold and its `for` time.",
    ]


_ADVICE: Mapping[Hypothesis, Callable[[Investigation, str], list[str]]] = {
    Hypothesis.DEPLOY: _deploy,
    Hypothesis.POOL: _pool,
    Hypothesis.DEPENDENCY: _dependency,
    Hypothesis.CERTIFICATE: _certificate,
    Hypothesis.NEIGHBOUR: _neighbour,
    Hypothesis.NOTHING: _nothing,
}


def _runbook(state: Investigation) -> list[str]:
    keys = state.picture.keys("runbook")
    heads = [(key, state.picture.text(key).strip().partition("\n")[0]) for key in keys[-1:]]
    return [
        f"Follow the runbook {head.partition(' (')[0]}{state.picture.cite(key)}."
        for key, head in heads
        if head
    ]
