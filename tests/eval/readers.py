"""The reading rules of the public tools that show a run, written down anew.

They are those of skill-creator's aggregate_benchmark.py, generate_review.py and viewer.html, and
of BMAD v2's aggregate_benchmark.py. Each function reads as the tool does, also where the tool
raises an exception; so a run that a function reads is one that the tool reads.
"""

import json
import statistics

HIDDEN = {"transcript.md", "user_notes.md", "metrics.json"}
FIGURES = ("pass_rate", "time_seconds", "tokens")


def _read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def _directories(top):
    return sorted(p for p in top.iterdir() if p.is_dir())


def _eval_id(directory, position):
    if (directory / "eval_metadata.json").exists():
        return _read(directory / "eval_metadata.json").get("eval_id", position)
    try:
        return int(directory.name.split("-")[1])
    except ValueError:
        return position


def _run(directory, eval_id):
    grading = _read(directory / "grading.json")
    summary, seconds = grading.get("summary", {}), grading.get("timing", {}).get("total_duration_seconds", 0.0)
    metrics = grading.get("execution_metrics", {})
    tokens = metrics.get("output_chars", 0)
    # The file with the tokens is read only where the grading has no time.
    if seconds == 0.0 and (directory / "timing.json").exists():
        timing = _read(directory / "timing.json")
        seconds, tokens = timing.get("total_duration_seconds", 0.0), timing.get("total_tokens", 0)
    for e in grading.get("expectations", []):
        assert "text" in e and "passed" in e
    notes = grading.get("user_notes_summary", {})
    return {
        "eval_id": eval_id,
        "run_number": int(directory.name.split("-")[1]),
        "pass_rate": summary.get("pass_rate", 0.0),
        "passed": summary.get("passed", 0),
        "failed": summary.get("failed", 0),
        "total": summary.get("total", 0),
        "time_seconds": seconds,
        "tokens": tokens,
        "tool_calls": metrics.get("total_tool_calls", 0),
        "errors": metrics.get("errors_encountered", 0),
        "expectations": grading.get("expectations", []),
        "notes": [x for key in ("uncertainties", "needs_review", "workarounds") for x in notes.get(key, [])],
    }


def aggregate(top):
    """{configuration: [run]}, the ids in order, and the delta of the first two configurations."""
    search = top / "runs" if (top / "runs").exists() else top
    found = {}
    for position, directory in enumerate(sorted(search.glob("eval-*"))):
        eval_id = _eval_id(directory, position)
        for configuration in _directories(directory):
            if not list(configuration.glob("run-*")):
                continue
            rows = found.setdefault(configuration.name, [])
            for run in sorted(configuration.glob("run-*")):
                if (run / "grading.json").exists():
                    rows.append(_run(run, eval_id))
                else:
                    int(run.name.split("-")[1])
    ids = sorted({row["eval_id"] for rows in found.values() for row in rows})
    names = sorted(found)
    means = [{k: statistics.mean(r[k] for r in found[n]) if found[n] else 0 for k in FIGURES} for n in names]
    delta = {k: means[0][k] - means[1][k] for k in FIGURES} if len(names) > 1 else {}
    return found, ids, delta


def _find_runs(top, found):
    if (top / "outputs").is_dir():
        found.append(top)
        return
    for child in _directories(top):
        if child.name not in ("node_modules", ".git", "__pycache__", "skill", "inputs"):
            _find_runs(child, found)


def review(workspace):
    """What the review page lists: {id, prompt, eval_id, outputs, grading} of each run."""
    found, runs = [], []
    _find_runs(workspace, found)
    for directory in found:
        prompt, eval_id, grading = "", None, None
        for place in (directory, directory.parent):
            if not prompt and (place / "eval_metadata.json").exists():
                metadata = _read(place / "eval_metadata.json")
                prompt, eval_id = metadata.get("prompt", ""), metadata.get("eval_id")
            if grading is None and (place / "grading.json").exists():
                grading = _read(place / "grading.json")
        outputs = [p.name for p in sorted((directory / "outputs").iterdir()) if p.is_file() and p.name not in HIDDEN]
        name = str(directory.relative_to(workspace)).replace("/", "-")
        runs.append({"id": name, "prompt": prompt, "eval_id": eval_id, "outputs": outputs, "grading": grading})
    runs.sort(key=lambda r: (r["eval_id"], r["id"]))  # a null beside a number raises TypeError
    return runs


def viewer(benchmark):
    """The benchmark tab: its calls of toFixed and its keys, as the page evaluates them."""
    assert isinstance(benchmark["metadata"]["evals_run"], list)
    summary = benchmark["run_summary"]
    names = [n for n in summary if n != "delta"]
    for name in names:
        for figure in FIGURES:
            for member in ("mean", "stddev"):
                assert type(summary[name][figure][member]) in (int, float)
    assert all(isinstance(v, str) for v in summary.get("delta", {}).values())
    for run in benchmark["runs"]:
        assert run["configuration"] in names
        result = run["result"]
        assert all(type(result[k]) in (int, float) for k in ("pass_rate", "passed", "total", "errors"))
        assert result["time_seconds"] is None or type(result["time_seconds"]) in (int, float)
        assert all(isinstance(e["passed"], bool) and e["text"] and "evidence" in e for e in run["expectations"])
    sorted({run["eval_id"] for run in benchmark["runs"]})
    return names


def bmad(top):
    """BMAD v2: the mean of every numeric field of every timing.json below a directory."""
    sums = {}
    for path in top.rglob("timing.json"):
        for key, value in _read(path).items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                sums.setdefault(key, []).append(value)
    return {key: statistics.mean(values) for key, values in sums.items()}
