"""Look for alarms that nobody was told of, and make the attack as short as it can be.

An attack's full list says little about its cause. So what raised an alarm is reduced until every
operation is needed: then each of its names is part of the cause, and carrel has to have said one.
"""

import rig


def same(alarm, alarms):
    return any(alarm.key() == other.key() for other in alarms)


def shorter(runs):
    """All lists with one piece less, larger pieces first."""
    sizes = [len(run) for run in runs]
    size = max(sizes)
    while size:
        for number, run in enumerate(runs):
            for at in range(0, len(run), size):
                if size <= len(run):
                    less = run[:at] + run[at + size :]
                    yield [less if n == number else other for n, other in enumerate(runs)]
        size //= 2


def reduce(name, runs, alarm, most=80, **how):
    """The shortest list found that still raises the alarm, and its round."""
    best, tried, again = None, 0, True
    while again and tried < most:
        again = False
        for less in shorter(runs):
            tried += 1
            less = [run for run in less if run]
            result = rig.play(name, less, **how) if less else None
            if result and same(alarm, result.alarms):
                runs, best, again = less, result, True
                break
            if tried >= most:
                break
    return best or rig.play(name, runs, **how)


def commands_until(result, alarm, **how):
    """The user's commands as far as the first after which there is the alarm."""
    low, high = -1, len(result.commands)
    while high - low > 1:
        middle = (low + high) // 2
        again = rig.play(result.shape, result.runs, result.commands[:middle], **how)
        low, high = (low, middle) if same(alarm, again.alarms) else (middle, high)
    return result.commands[:high]


def suspects(alarm, runs):
    """The operations that have the alarm's mark or the written file in them."""
    words = [f"{{trip}} {alarm.what}"] if alarm.kind == "ran" else [alarm.what, alarm.what[4:]]
    found = []
    for op in (op for run in runs for op in run):
        texts = [word for word in op[1:] if isinstance(word, str)]
        if any(text.endswith(word) or word + end in text
               for text in texts for word in words for end in '"\n;'):
            found.append(op)
    return found


def unreported(result, **how):
    """The alarms of a round of which carrel said nothing: (alarm, command, the reduced round)."""
    found, seen = [], []
    for alarm in result.alarms:
        if same(alarm, seen) or rig.is_reported(result.said, suspects(alarm, result.runs)):
            continue
        how["traced"] = alarm.kind not in ("ran", "wrote")
        commands = commands_until(result, alarm, **how)
        small = reduce(result.shape, result.runs, alarm, commands=commands, **how)
        seen += small.alarms
        operations = [op for run in small.runs for op in run]
        if not (rig.is_reported(small.said, operations) and rig.is_reported(result.said, operations)):
            found.append((alarm, (commands or ["carrel"])[-1], small))
    return found
