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
    made = runs.sample(place)
    made.artifact("Z-a-case-whose-name-is-longer-than-the-screen-of-a-telephone", outcome="fail")
    return write(made.end(), place)


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


@pytest.mark.parametrize("view", ["", "cases", "triggers", "attempts", "time", "attempt/0/0"])
def test_every_view_can_be_read_aloud(page, sample, view):
    page.open(sample, "#/" + view)
    loaded(page)
    quiet(page)
    assert page.run("document.documentElement.lang") == "en"
    assert page.run("document.querySelectorAll('h1').length") == 1
    assert page.run("[...document.querySelectorAll('figure svg')].every((s) => s.getAttribute('role') === 'img' && s.getAttribute('aria-label'))")
    assert page.run("[...document.querySelectorAll('th')].every((t) => t.scope)")
    assert page.run("[...document.querySelectorAll('table')].every((t) => t.caption)")
    assert page.run("[...document.querySelectorAll('input, select')].every((i) => i.labels.length)")
    assert page.run("[...document.querySelectorAll('button, a')].every((b) => b.textContent.trim() || b.getAttribute('aria-label'))")
    assert page.run("document.querySelectorAll('nav [aria-current]').length") == 1
    levels = page.run("[...document.querySelectorAll('h1, h2, h3, h4')].filter((n) => n.checkVisibility()).map((n) => Number(n.tagName[1]))")
    assert levels[0] == 1 and all(b - a <= 1 for a, b in zip(levels, levels[1:])), levels


# WCAG 2.2, 1.4.3, of every text that is drawn: its colour against the first ground behind it.
CONTRAST = """
(() => {
	const read = (text) => { const v = text.match(/[\\d.]+/g).map(Number); return { v, a: v.length > 3 ? v[3] : 1 }; };
	const light = ({ v }) => {
		const [r, g, b] = v.map((x) => x / 255).map((x) => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const ground = (node) => {
		for (let n = node; n; n = n.parentElement) {
			const c = read(getComputedStyle(n).backgroundColor);
			if (c.a === 1) return c;
			if (c.a) throw new Error('a ground that is neither there nor not');
		}
		return read('rgb(255, 255, 255)');
	};
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), seen = [];
	while (walk.nextNode()) {
		const node = walk.currentNode.parentElement, style = getComputedStyle(node);
		if (!walk.currentNode.textContent.trim() || !node.checkVisibility() || node.closest('script, style, noscript, title, option, :disabled')) continue;
		const ink = read(node.closest('svg') ? style.fill : style.color);
		const [x, y] = [light(ink), light(ground(node))].sort((p, q) => q - p), size = parseFloat(style.fontSize);
		const large = size >= 24 || size >= 18.66 && Number(style.fontWeight) >= 700;
		seen.push([walk.currentNode.textContent.trim().slice(0, 40), (x + 0.05) / (y + 0.05), large ? 3 : 4.5]);
	}
	return seen;
})()
"""


@pytest.mark.parametrize("dark", [False, True])
def test_colours(page, sample, dark):
    page.dark(dark)
    for view in ("", "cases", "triggers", "attempts", "time", "attempt/0/0", "attempt/0/999999"):
        page.open(sample, "#/" + view)
        loaded(page)
        page.key("e")
        assert page.run("document.documentElement.dataset.theme") == ("dark" if dark else "light")
        seen = page.run(CONTRAST)
        assert len(seen) > 10 or "999999" in view
        assert [s for s in seen if s[1] < s[2]] == []
    page.open(sample)
    picture(page, "dark" if dark else "light")
    page.run("document.getElementById('theme').click()")
    assert page.run("document.documentElement.dataset.theme") == ("light" if dark else "dark")


@pytest.mark.parametrize("view", ["", "cases", "triggers", "attempts", "time", "attempt/0/0"])
def test_narrow(page, sample, view):
    page.size(360, 800)
    page.open(sample, "#/" + view)
    loaded(page)
    assert page.run("document.documentElement.scrollWidth") <= 360
    assert page.run("[...document.querySelectorAll('.scroll')].every((n) => n.scrollWidth <= n.clientWidth)")
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
        artifacts={"added": ["notes/new.md", "notes/red.txt", "notes/raw"], "changed": ["main.c", "kept.txt"], "deleted": ["old.txt"]},
    )
    made.file(f"{where}/artifacts/notes/new.md", "# New\n")
    made.file(f"{where}/artifacts/notes/red.txt", b"a\x1b[31mred\xff\n")
    made.file(f"{where}/artifacts/notes/raw", b"a\0b")
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
    assert page.run("[...document.querySelectorAll('.diff .add')].map((n) => n.textContent)") == ["+# New", "+a\u241b[31mred\ufffd", "+int b;"]
    shown = text(page)
    assert "as it is now" in shown and "It is no text." in shown and "The agent deleted it." in shown
    picture(page, "attempt")


def test_it_is_opened(place):
    """`--open` gives the page to xdg-open; where that fails, the page is there all the same."""
    made = runs.Run(place)
    made.artifact("A1")
    path = made.end()
    program = lib.make_file(place / "bin" / "xdg-open", '#!/bin/sh\necho "$#:$1" > opened\n', mode=0o755)
    env = {"PATH": f"{place}/bin:/usr/bin:/bin"}
    done = lib.carrel("report", "--open", str(path), env=env)
    assert (done.returncode, done.stdout.decode()) == (0, f"{path}/report.html\n"), done.stderr
    assert (place / "opened").read_text() == f"1:{path}/report.html\n"
    program.write_text("#!/bin/sh\nexit 4\n")
    (path / "report.html").unlink()
    done = lib.carrel("report", "--open", str(path), env=env)
    assert done.returncode == 3 and "open it in any browser" in done.stderr.decode()
    assert (path / "report.html").exists()


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


def stray(page):
    """Text that no element of the page's own words holds: a figure that fell out of a condition."""
    return page.run("""[...document.querySelectorAll('main, main div')].flatMap((n) => [...n.childNodes])
        .filter((n) => n.nodeType === 3 && /^(0|null|undefined|NaN|false)$/.test(n.textContent.trim())).length""")


def test_runs_with_little_in_them(page, place):
    """Nothing yet, no verdict at all, and a client that loads no skills: it says so, in words."""
    empty = runs.Run(place, "20261118-100000-empty").end(finished=False)
    broken = runs.Run(place, "20261118-110000-broken")
    broken.head["stopped"] = "the API refused the credential"
    for k in (1, 2):
        broken.artifact("A1", "with_skill", k, "error", reason="the API refused the credential")
    deaf = runs.Run(place, "20261118-120000-deaf")
    deaf.control(1, "not_fired")
    for number in (1, 2, 3):
        deaf.trigger(number, number < 3, "not_fired")
    for path, words in ((empty, "none has ended"), (broken.end(), "No case has a verdict"), (deaf.end(), "no rate: a control did not fire")):
        out = write(path, place).rename(place / f"{path.name}.html")
        for view in ("", "cases", "triggers", "attempts", "time"):
            page.open(out, "#/" + view)
            assert not page.named("Runtime.exceptionThrown")
            assert stray(page) == 0, (path, view)
            assert "NaN" not in text(page) and "undefined" not in text(page).replace("undecided", "")
            if not view:
                quiet(page)
                assert words in text(page)
            if "broken" in path.name and not view:
                assert "It was stopped: the API refused the credential" in text(page)


def test_paper(page, sample):
    """On paper it is light, and nothing is folded."""
    page.dark(True)
    page.open(sample, "#/attempt/0/0")
    loaded(page)
    page.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    page.run("dispatchEvent(new Event('beforeprint'))")
    assert "6 brief.md" in text(page)
    assert page.run("getComputedStyle(document.querySelector('.card')).backgroundColor") == "rgb(255, 255, 255)"
    assert page.run("getComputedStyle(document.querySelector('.top')).display") == "none"
    page.call("Emulation.setEmulatedMedia", media="", features=[])


# ---- hostile text -----------------------------------------------------------------------

EVIL = (
    "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>"
    "<svg onload=window.pwned=1><!--<script>\u2028 \x1b[31mred\x1b[0m \u202egnp.exe \u2066\u200b\U000e0041 javascript:window.pwned=1"
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
    assert "onerror=window.pwned=1" in shown and "\x1b" not in shown and not set("\u202e\u2066\u200b\U000e0041") & set(shown)
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
