"""The answer: what the evidence says, how sure that is, what is open, and what each message changed."""

from __future__ import annotations

from bot.model.rehearsal.advice import advice
from bot.model.rehearsal.checks import kinds_of
from bot.model.rehearsal.findings import diff
from bot.model.rehearsal.hypotheses import TABLE, Hypothesis, Judged
from bot.model.rehearsal.investigation import Investigation
from bot.model.rehearsal.judges import Sign
from bot.model.rehearsal.planning import MOST_STEPS, unavailable
from bot.model.rehearsal.steering import Hint, told
from bot.model.rehearsal.transcript import Ending, Said
from bot.model.rehearsal.words import listed, took

SCRIPTED = "_Scripted: this comes from the rehearsal model, a set of rules, not from a language model._"
BEST_GUESS = 2


def answer(state: Investigation) -> str:
    """The whole answer, scripted as it is."""
    if not kinds_of(state.specs) and not state.transcript.made:
        return _signed(
            ["**Verdict**: I cannot check anything: no tool for metrics, logs or deploys is declared."]
        )
    verdict = state.verdict
    shown = verdict or _guess(state)
    parts = [f"**Verdict**: {_verdict(state, verdict)}"]
    parts += _part("Evidence", [sign.line for sign in _evidence(state, shown)])
    parts += _part(
        "Ruled out", [_ruled_out(each) for each in state.ranked if each is not shown and each.is_ruled_out]
    )
    parts += _part("Not checked", _open(state, shown))
    parts += _part("Next steps", advice(state, verdict.hypothesis if verdict else None))
    parts += _part(
        "Steers", [line for said in _steered(state) for line in [_steer(state, said, shown)] if line]
    )
    return _signed(parts)


def _signed(parts: list[str]) -> str:
    return "\n\n".join([*parts, SCRIPTED])


def _part(title: str, lines: list[str]) -> list[str]:
    return [f"**{title}**\n" + "\n".join(f"- {line}" for line in lines)] if lines else []


def _guess(state: Investigation) -> Judged | None:
    """The best supported hypothesis where the evidence does not decide."""
    best = state.ranked[0]
    return best if best.points >= BEST_GUESS else None


def _verdict(state: Investigation, verdict: Judged | None) -> str:
    if verdict is None:
        return _undecided(state)
    best = sorted(verdict.signs, key=lambda sign: -sign.points)[:2]
    strong = [sign.words for sign in verdict.signs if sign in best and sign.points > 0]
    rivals = [each for each in state.ranked if each is not verdict]
    unclear = [each.hypothesis.value for each in rivals if not each.signs]
    against = [each.hypothesis.value for each in rivals if each.points > 0]
    reason, sure = "the mechanism shows, and everything else is ruled out or far behind", "high"
    if unclear:
        reason, sure = f"the mechanism shows, but {listed(unclear)} could not be checked", "medium"
    elif against:
        reason, sure = f"the mechanism shows; {listed(against)} has something for it too", "medium"
    elif verdict.hypothesis is Hypothesis.NOTHING:
        reason = "all that can be measured is as it was before"
    if state.verdict is verdict and verdict.hypothesis in state.course.dropped:
        reason += "; it was to be left out, yet the evidence points there"
    place = state.place_of(verdict.hypothesis)
    what = verdict.hypothesis.value + (
        f" ({place})" if place and verdict.hypothesis is not Hypothesis.NOTHING else ""
    )
    return f"{_capital(what)}: {'; '.join(strong)}. Confidence: {sure}, {reason}."


def _undecided(state: Investigation) -> str:
    worst = [
        f"p99 of {each.labels.get('service', 'a service')} is {took(each.now)} ({took(each.before)} before)"
        for each in state.picture.slow[:1]
    ]
    seen = f" What is certain: {worst[0]}." if worst else ""
    guess = _guess(state)
    if guess is not None and guess.hypothesis is Hypothesis.NOTHING:
        rest = " Nothing got worse in the hours that I compare, but that is not all there is to it."
    elif guess is not None:
        rest = (
            f" The best explanation is {guess.hypothesis.value}. Confidence: low, its mechanism was not seen."
        )
    elif state.transcript.steps >= MOST_STEPS:
        rest = f" I stopped after {MOST_STEPS} rounds of checks."
    else:
        rest = " None of the causes that I know fits what could be read."
    return f"The evidence does not decide.{seen}{rest}"


def _evidence(state: Investigation, shown: Judged | None) -> list[Sign]:
    """What speaks for it, after the symptom itself."""
    symptom = state.of(Hypothesis.NOTHING)
    lines = [sign for sign in symptom.signs if sign.points < 0]
    if state.source is not None and len(state.source.path) > 1:
        keys = ("failing",) if state.picture.fails_more_than_it_lags else ("mean", "spent")
        lines.append(Sign(0, f"the way down: {' → '.join(state.source.path)}", state.picture.cite(*keys)))
    if shown is not None:
        lines += [sign for sign in shown.signs if sign.points > 0]
        if shown.hypothesis is Hypothesis.DEPLOY:
            for key in state.picture.keys("deploy"):
                lines.append(_diff(state, key))
    return lines


def _diff(state: Investigation, key: str) -> Sign:
    subject, added = diff(state.picture.text(key))
    shown = f"; it adds `{max(added, key=len)[:120].replace('`', '')}`" if added else ""
    return Sign(0, f"the change: {subject or 'see its diff'}{shown}", state.picture.cite(key))


def _ruled_out(judged: Judged) -> str:
    sign = judged.decisive
    return f"{judged.hypothesis.value}: {sign.line if sign else ''}"


def _open(state: Investigation, shown: Judged | None) -> list[str]:
    missing = [check.topic for check in unavailable(state)]
    lines = [f"{listed(missing)}: no tool for it, or no way of asking worked"] if missing else []
    failed = [
        f"{each.call.name} failed{f' [{each.label}]' if each.label else ''}: {_first_line(each.text)}"
        for each in state.transcript.made
        if each.ending is Ending.FAILED and each.text.strip()
    ]
    cut = [each for each in state.transcript.made if each.ending is Ending.CUT_SHORT]
    lost = [each for each in cut if not state.picture.answered(each.check)]
    lines += failed[:3] + [f"{each.call.name} was cut short and not asked again" for each in lost[:2]]
    for each in state.ranked:
        if each is not shown and not each.is_ruled_out and each.points > 0:
            lines.append(f"{each.hypothesis.value} is not excluded: {each.signs[0].line}")
        elif each is not shown and not each.signs:
            lines.append(f"{each.hypothesis.value}: nothing that could be read speaks for or against it")
    return lines


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:160]


def _steered(state: Investigation) -> list[Said]:
    """Messages whose effect is told: all later ones, and the question where it names a cause."""
    question = state.transcript.question
    hinted = {id(hint.said) for hint in state.course.hints if hint.hypothesis is not None}
    first = [question] if question is not None and id(question) in hinted else []
    return [*first, *state.transcript.later]


def _steer(state: Investigation, said: Said, shown: Judged | None) -> str:
    mine = [hint for hint in state.course.hints if hint.said is said]
    if not mine:
        return f"{said.name}: it changed nothing: it names no service or cause that these rules know."
    return f"{said.name}: " + " ".join(_effect(state, hint, shown) for hint in mine)


def _effect(state: Investigation, hint: Hint, shown: Judged | None) -> str:
    if hint.hypothesis is None:
        return _looked_at(state, hint)
    judged = state.of(hint.hypothesis)
    sign = judged.decisive
    seen = f": {sign.line}" if sign else ""
    if hint.dropped:
        if shown is judged:
            return f"{told(hint)} was to be left out, but what was seen anyway points there{seen}."
        return f"{told(hint)} was left out: no further call was spent on it."
    if shown is judged:
        return f"{told(hint)} was checked first, and it holds{seen}."
    if not judged.signs:
        return f"{told(hint)} was to be checked first, but nothing that could be read tells ({_needs(hint)})."
    if judged.points > 0:
        return f"{told(hint)} was checked first; something speaks for it, more for the verdict{seen}."
    return f"{told(hint)} was checked first, and the evidence speaks against it{seen}. The verdict stays."


def _needs(hint: Hint) -> str:
    return listed(TABLE[hint.hypothesis].tells) if hint.hypothesis else ""


def _looked_at(state: Investigation, hint: Hint) -> str:
    """What became of a service that a person named."""
    name, picture = hint.service, state.picture
    if hint.dropped:
        return f"{name} got no checks of its own."
    source = state.source
    if source is not None and name == source.service:
        return f"{name} was looked at first, and the way down ends there."
    logs = [key for key in picture.keys("logs") if key == f"logs__{name.lower().replace('-', '_')}"]
    for key, what in (("latency", "p99"), ("queries", "a query"), ("spent", "what a request spends in it")):
        label = "dependency" if key == "spent" else "service"
        change = max(picture.changes(key, **{label: name}), key=lambda each: each.rise, default=None)
        if change is not None and change.before is not None:
            on_the_way = source is not None and name in source.path
            part = "is on the way, but it does not begin there" if on_the_way else "is not the origin"
            words = f"{what} went {took(change.before)} → {took(change.now)}"
            return f"{name} was looked at first and {part}: {words}{picture.cite(key, *logs)}."
    return f"{name} was looked at first; no numbers of its own were found{picture.cite(*logs)}."


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
