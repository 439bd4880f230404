"""The report's page in Chromium: what it shows, how it is used, and that hostile text is inert.

With CARREL_PICTURES=DIR pictures of the page are left there, to be looked at.
"""

import json
import os
import re

import lib
import pytest
import runs

MANY = 10_000


def write(path, place, *more):
    """The page of a run, where the browser may read it."""
    out = place / "page.html"
    done = lib.carrel("report", str(path), *map(str, more), "-o", str(out))
    assert done.returncode == 0, done.stderr
    return out


def quiet(page):
    """Nothing failed, nothing was refused, and nothing but the file was asked for."""
    assert not page.named("Runtime.exceptionThrown")
    assert not page.named("Log.entryAdded")
    assert not page.named("Page.javascriptDialogOpening")
    asked = {r["request"]["url"].split("#")[0] for r in page.named("Network.requestWillBeSent")}
    assert len(asked) == 1 and asked.pop().startswith("file:///")


def text(page, selector="main"):
    return page.run(f"document.querySelector({json.dumps(selector)}).innerText")


def picture(page, name):
    if os.environ.get("CARREL_PICTURES"):
        page.picture(os.path.join(os.environ["CARREL_PICTURES"], name + ".png"))


def loaded(page):
    """Until the details of an attempt are unpacked."""
    page.wait("!document.querySelector('main').innerText.includes('Unpacking')")


@pytest.fixture
def sample(place):
    return write(runs.sample(place).end(), place)


def test_overview(page, sample):
    page.open(sample)
    quiet(page)
    shown = text(page)
    summary = page.run("DATA.runs[0].summary")
    rate = summary["configurations"]["with_skill"]
    assert f"{round(100 * rate['rate'])} %" in shown
    assert f"{round(100 * rate['low'])} to {round(100 * rate['high'])} %" in shown
    assert summary["why"] in shown
    matrix = page.run("[...document.querySelectorAll('.matrix tbody tr')].map((r) => [...r.querySelectorAll('td')].map((d) => Number(d.innerText)))")
    assert matrix == [list(summary["triggers"]["matrix"][k].values()) for k in ("should_trigger", "should_not_trigger")]
    picture(page, "overview")


@pytest.mark.parametrize("view", ["", "cases", "triggers", "attempts", "time"])
def test_every_view_can_be_read_aloud(page, sample, view):
    page.open(sample, "#/" + view)
    quiet(page)
    assert page.run("document.documentElement.lang") == "en"
    assert page.run("document.querySelectorAll('h1').length") == 1
    assert page.run("[...document.querySelectorAll('figure svg')].every((s) => s.getAttribute('role') === 'img' && s.getAttribute('aria-label'))")
    assert page.run("[...document.querySelectorAll('th')].every((t) => t.scope)")
    assert page.run("[...document.querySelectorAll('table')].every((t) => t.caption)")
    assert page.run("[...document.querySelectorAll('input, select')].every((i) => i.labels.length)")
    assert page.run("[...document.querySelectorAll('button, a')].every((b) => b.textContent.trim() || b.getAttribute('aria-label'))")
    assert page.run("document.querySelectorAll('nav [aria-current]').length") == 1


CONTRAST = """
(() => {
	const probe = document.createElement('canvas').getContext('2d');
	const style = getComputedStyle(document.documentElement);
	const light = (name) => {
		probe.fillStyle = style.getPropertyValue('--' + name);
		const n = parseInt(probe.fillStyle.slice(1), 16);
		const [r, g, b] = [n >> 16, n >> 8 & 255, n & 255].map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	return [['ink', 'paper'], ['soft', 'paper'], ['soft', 'card'], ['accent', 'card'], ['accent', 'accent-soft'], ['pass', 'pass-soft'],
		['fail', 'fail-soft'], ['error', 'error-soft'], ['quiet', 'quiet-soft'], ['ink', 'fail-soft']].map(([a, b]) => {
		const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
		return [a + ' on ' + b, (x + 0.05) / (y + 0.05)];
	});
})()
"""


@pytest.mark.parametrize("dark", [False, True])
def test_colours(page, sample, dark):
    page.dark(dark)
    page.open(sample)
    assert page.run("document.documentElement.dataset.theme") == ("dark" if dark else "light")
    # WCAG 2.2, 1.4.3: text needs 4.5 to 1; "quiet" is only ever beside a word that says the same.
    for pair, ratio in page.run(CONTRAST):
        assert ratio >= (3 if "quiet" in pair else 4.5), f"{pair}: {ratio:.2f}"
    picture(page, "dark" if dark else "light")
    page.run("document.getElementById('theme').click()")
    assert page.run("document.documentElement.dataset.theme") == ("light" if dark else "dark")


@pytest.mark.parametrize("view", ["", "cases", "triggers", "attempts", "time", "attempt/0/0"])
def test_narrow(page, sample, view):
    page.size(360, 800)
    page.open(sample, "#/" + view)
    loaded(page)
    assert page.run("document.documentElement.scrollWidth") <= 360
    picture(page, "narrow-" + (view.replace("/", "-") or "overview"))


def test_keys(page, sample):
    page.open(sample)
    page.key("Tab")
    assert page.run("document.activeElement.className") == "skip"
    page.key("Enter")
    assert page.run("document.activeElement.id") == "main"
    for key, title in zip("12345", ("review", "Cases", "Triggers", "Attempts", "Time and cost")):
        page.key(key)
        page.wait(f"document.querySelector('h1').innerText === {json.dumps(title)}")
    page.key("/")
    page.wait("document.activeElement.id === 'find'")
    for letter in "A3":
        page.key(letter)
    assert page.run("document.getElementById('find').value") == "A3"
    assert page.run("[...document.querySelectorAll('tbody tr')].every((r) => r.innerText.startsWith('A3'))")
    page.key("Escape")
    page.run("document.querySelector('tbody a').focus()")
    page.key("Enter")
    page.wait("document.querySelector('h1').innerText.includes('#1')")
    page.key("j")
    page.wait("document.querySelector('h1').innerText.includes('#2')")
    page.key("k")
    page.wait("document.querySelector('h1').innerText.includes('#1')")
    loaded(page)
    page.key("e")
    page.wait("[...document.querySelectorAll('details.call')].every((d) => d.open)")
    page.key("c")
    page.wait("![...document.querySelectorAll('details.call')].some((d) => d.open)")
    page.key("u")
    page.wait("document.querySelector('h1').innerText === 'Attempts'")
    page.key("?")
    page.wait("document.getElementById('help').open")
    page.key("Escape")
    page.wait("!document.getElementById('help').open")
    quiet(page)


def test_attempt(page, place):
    made = runs.Run(place)
    where = made.artifact(
        "A1",
        outcome="fail",
        reason="the brief names no owner",
        expectations=[
            runs.expectation("It names an owner", False, evidence="no line has 'Owner'"),
            runs.expectation("Any file exists", True, weak="any file would do"),
            {"text": "It reads well", "passed": None, "evidence": "the grader gave no JSON", "grader": "model"},
        ],
        artifacts={"added": ["notes/new.md"], "changed": ["main.c", "kept.txt"], "deleted": ["old.txt"]},
    )
    made.file(f"{where}/artifacts/notes/new.md", "# New\n")
    made.file(f"{where}/artifacts/main.c", "int a;\nint b;\n")
    made.file(f"{where}/before/main.c", "int a;\n")
    made.file(f"{where}/artifacts/kept.txt", "as it is now\n")
    made.file(f"{where}/stderr.txt", "a warning\n")
    page.open(write(made.end(), place), "#/attempt/0/0")
    loaded(page)
    quiet(page)
    shown = text(page)
    for words in ("A1, with skill, #1", "the brief names no owner", "no line has 'Owner'", "A weak assertion: any file would do", "a warning", "Do it.", "Wrote it."):
        assert words in shown
    assert page.run("[...document.querySelectorAll('.expect .mark')].map((m) => m.getAttribute('aria-label'))") == ["not met", "met", "no verdict"]
    # Tool calls are folded; their text comes when they are opened.
    assert "6 brief.md" not in shown
    page.key("e")
    page.wait("document.querySelector('main').innerText.includes('6 brief.md')")
    assert page.run("[...document.querySelectorAll('.diff .add')].map((n) => n.textContent)") == ["+# New", "+int b;"]
    shown = text(page)
    assert "as it is now" in shown and "The agent deleted it." in shown
    picture(page, "attempt")


def test_two_runs(page, place):
    first = runs.sample(place, name="20261118-100000-review", seed=1, lift=0.0)
    second = runs.sample(place, name="20261118-110000-review", seed=2, lift=0.5)
    page.open(write(first.end(), place, second.end()))
    quiet(page)
    shown = text(page)
    assert "2 runs compared" in shown and "Run 1: review" in shown and "Run 2: review" in shown
    compared = page.run("DATA.comparisons[0]")
    rates = [page.run(f"DATA.runs[{r}].cases.map((c) => c.v[0])") for r in (0, 1)]
    paired = [b[0] / b[1] - a[0] / a[1] for a, b in zip(*rates) if a[1] and b[1]]
    assert compared["difference"] == pytest.approx(sum(paired) / len(paired)) and compared["cases"] == len(paired)
    page.go("#/cases")
    assert "run 2 − run 1" in text(page)
    picture(page, "two-runs")


# ---- hostile text -----------------------------------------------------------------------

EVIL = (
    "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>"
    "<svg onload=window.pwned=1><!--<script>\u2028 \x1b[31mred\x1b[0m \u202egnp.exe javascript:window.pwned=1"
)


@pytest.fixture
def evil(place):
    made = runs.Run(place, skill=EVIL)
    made.head["agent"] = {k: EVIL for k in ("harness", "version", "model", "profile")}
    where = made.attempt(
        "eval-A1/with_skill/run-1",
        kind="artifact",
        configuration="with_skill",
        outcome="fail",
        case=EVIL,
        reason=EVIL,
        prompt=EVIL,
        transcript=runs.conversation(EVIL, tool=EVIL, value=EVIL, result=EVIL) + [{"type": "assistant", "message": {"id": "x" * 10_000_000}}],
        expectations=[runs.expectation(EVIL, False, evidence=EVIL, weak=EVIL, grader=EVIL)],
        artifacts={"added": ["x", "<p>.md"], "changed": ["../../../../../../../etc/passwd"], "deleted": [EVIL]},
        tool_calls={EVIL: 2},
        plan=EVIL,
        started=EVIL,
    )
    made.file(f"{where}/artifacts/x", EVIL)
    made.file(f"{where}/artifacts/<p>.md", EVIL.replace("\x1b", ""))
    made.file(f"{where}/stderr.txt", EVIL)
    made.trigger(1, True, "not_fired", query=EVIL, reason=EVIL)
    return write(made.end(), place)


@pytest.mark.parametrize("view", ["", "cases", "triggers", "attempts", "time", "attempt/0/0", "attempt/0/1"])
def test_hostile_text_is_inert(page, evil, view):
    page.open(evil, "#/" + view)
    loaded(page)
    page.key("e")
    page.run("new Promise((done) => setTimeout(done, 50))")
    quiet(page)
    assert page.run("typeof window.pwned") == "undefined"
    assert page.run("document.images.length + document.querySelectorAll('iframe, object, embed, link, svg [onload]').length") == 0
    # One script that runs: the page's own.
    assert page.run("[...document.scripts].filter((s) => !s.type).length") == 1
    assert page.run("[...document.links].every((a) => a.href.startsWith('file:'))")
    shown = text(page, "body")
    assert "onerror=window.pwned=1" in shown and "\x1b" not in shown and "\u202e" not in shown
    assert "root:" not in shown


def test_a_line_of_ten_megabytes_is_left_out(page, evil):
    assert evil.stat().st_size < 1_000_000
    page.open(evil, "#/attempt/0/0")
    loaded(page)
    assert re.search(r"A line of 100000\d\d bytes is left out", text(page))


INJECT = "(() => { const s = document.createElement('script'); s.textContent = 'window.pwned = 1'; document.body.append(s); return window.pwned; })()"


def test_the_policy_refuses_other_scripts(page, sample):
    """The last of three walls, by itself; without the policy the same script runs."""
    page.open(sample)
    assert page.run(INJECT) is None
    assert page.run("fetch('data:,x').then(() => 'fetched', () => 'refused')") == "refused"
    page.call("Page.navigate", url="about:blank")
    page.wait("location.href === 'about:blank'")
    assert page.run(INJECT) == 1


# ---- size -------------------------------------------------------------------------------


def test_ten_thousand_attempts(page, place, capsys):
    path = runs.many(place, MANY)
    out = write(path, place)
    page.open(out)
    quiet(page)
    shown, complete = page.run("[performance.getEntriesByName('carrel-shown')[0].startTime, performance.getEntriesByType('navigation')[0].domComplete]")
    with capsys.disabled():
        print(f"\n{MANY} attempts, {out.stat().st_size / 1e6:.1f} MB: usable after {shown:.0f} ms, all parsed after {complete:.0f} ms")
    assert page.run("DATA.runs[0].attempts.length") == MANY
    page.key("4")
    page.wait("document.querySelector('.pager').innerText.includes('1 to 100 of 10,000')")
    page.key("j")
    page.wait("document.querySelector('.pager').innerText.includes('101 to 200 of 10,000')")
    page.go(f"#/attempt/0/{MANY - 1}")
    page.wait("document.querySelectorAll('.step').length > 2")
    quiet(page)
    picture(page, "many")
