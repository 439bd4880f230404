// The views of runs: overview, cases, triggers, attempts, time and cost.

const many = DATA.runs.length > 1;
// Trigger rates say nothing where a positive control did not fire.
const controlled = (run) => run.summary.controls.fired >= run.summary.controls.of;
const brand = () => DATA.runs[0].skill + (many ? ', ' + plural(DATA.runs.length, 'run') : '');

function banner(run) {
	const v = run.summary.verdict;
	return h('div', { class: 'banner v-' + v, role: 'status' },
		h('span', { class: 'mark', 'aria-hidden': 'true' }, v === 'pass' ? '✓' : v === 'fail' ? '✗' : '?'),
		h('p', {}, h('b', {}, v), ': ' + run.summary.why + '.', run.stopped && h('span', { class: 'why' }, ' It was stopped: ' + run.stopped + '.')));
}

function rateTile(label, rate, run, ink) {
	if (!rate || !rate.cases) return null;
	const value = rate.enough ? percent(rate.rate) : rate.passed + ' of ' + rate.n;
	const below = rate.enough ? range(rate) : rate.n >= run.min_n ? 'no rate: a control did not fire' : 'too few for a rate: ' + run.min_n + ' are needed';
	return h('div', { class: 'tile' }, h('dt', {}, ink && h('span', { class: 'dot', color: ink }), label),
		h('dd', {}, value, h('small', {}, below)));
}

const tile = (label, value, below) => h('div', { class: 'tile' }, h('dt', {}, label),
	h('dd', {}, value, below && h('small', {}, below)));

function tiles(run) {
	const sum = run.summary, d = sum.difference, lost = sum.attempts.done - sum.attempts.pass - sum.attempts.fail;
	return h('dl', { class: 'tiles' },
		run.configurations.map((c, i) => rateTile(shortName(c), sum.configurations[c], run, colour(i))),
		d && d.enough && tile('difference', points(d.difference), points(d.low) + ' to ' + points(d.high)),
		d && d.enough && known(d.normalised_gain) && tile('gain', d.normalised_gain.toFixed(2), 'of what was left'),
		sum.triggers && rateTile('recall', sum.triggers.recall, run),
		sum.triggers && rateTile('specificity', sum.triggers.specificity, run),
		tile('attempts', count(sum.attempts.done), !sum.attempts.done ? 'none has ended' : lost ? lost + ' without a verdict' : 'all gave a verdict'),
		sum.usd > 0 && tile('cost', dollars(sum.usd), shortCount(Object.values(sum.tokens).reduce((a, b) => a + b, 0)) + ' tokens'));
}

function subtitle(run) {
	const agent = [run.harness, run.version].filter(Boolean).join(' ');
	const took = known(run.ended) && known(run.started) ? ', took ' + duration(run.ended - run.started) : '';
	return h('p', { class: 'sub' }, [agent, run.model, run.profile].filter(Boolean).join(', '),
		agent ? ' · ' : '', day(run.started), took,
		!known(run.ended) && ' · this run did not end');
}

const plainName = (c) => shortName(c).replace(/ skill$/, '');

// The same rate of all runs stands together.
function rateRows(triggersOnly) {
	const rows = [];
	DATA.runs.forEach((run, r) => {
		const more = many ? ', run ' + (r + 1) : '';
		const row = (label, v, ink) => v && v.cases > 0 && rows.push({ of: label, label: label + more, colour: ink,
			value: v.enough ? v.rate : NaN, low: v.low, high: v.high,
			note: v.enough ? '' : v.passed + ' of ' + v.n + (v.n >= run.min_n ? ', no rate: a control did not fire' : ', too few for a rate') });
		if (!triggersOnly) run.configurations.forEach((c, i) => row(many ? plainName(c) : shortName(c), run.summary.configurations[c], colour(i)));
		if (run.summary.triggers) {
			row('recall', run.summary.triggers.recall, colour(2));
			row('specificity', run.summary.triggers.specificity, colour(3));
		}
	});
	const order = [...new Set(rows.map((row) => row.of))];
	return rows.sort((a, b) => order.indexOf(a.of) - order.indexOf(b.of));
}

function differenceRows() {
	const rows = [];
	DATA.runs.forEach((run, r) => {
		const d = run.summary.difference, names = run.configurations.map(plainName);
		if (d && d.enough) rows.push({ label: many ? 'in run ' + (r + 1) : names[0] + ' − ' + names[1], ...d });
	});
	DATA.comparisons.forEach((c, i) => { if (c.enough) rows.push({ label: 'run ' + (i + 2) + ' − run 1', ...c }); });
	return rows;
}

function matrix(run) {
	const m = run.summary.triggers.matrix, keys = ['fired', 'not_fired', 'other_skill', 'error'];
	const cell = (n, good, key) => h('td', {}, h('b', { class: !n ? 'nil' : key === 'error' ? 'lost' : good ? 'good' : 'bad' }, count(n)));
	return h('table', { class: 'matrix' },
		h('caption', { class: 'gone' }, 'Attempts at trigger queries: what should have happened, and what did'),
		h('thead', {}, h('tr', {}, h('td', {}), ['fired', 'did not fire', 'other skill', 'no verdict'].map((t) => h('th', { scope: 'col' }, t)))),
		h('tbody', {},
			h('tr', {}, h('th', { scope: 'row' }, 'should trigger'), keys.map((k) => cell(m.should_trigger[k], k === 'fired', k))),
			h('tr', {}, h('th', { scope: 'row' }, 'should not'), keys.map((k) => cell(m.should_not_trigger[k], k !== 'fired', k)))));
}

const rateOf = (v) => v && v[1] ? v[0] / v[1] : NaN;

// Columns that the cases are compared by: configurations of one run, or the first of each run.
function caseColumns() {
	if (!many) return DATA.runs[0].configurations.map((c, i) => ({ name: shortName(c), run: DATA.runs[0], i }));
	return DATA.runs.map((run, r) => ({ name: 'run ' + (r + 1) + ', ' + shortName(run.configurations[0] || ''), run, i: 0 }));
}

function caseRows() {
	const columns = caseColumns(), rows = new Map();
	columns.forEach((column, k) => column.run.cases.forEach((c) => {
		if (!rows.has(c.id)) rows.set(c.id, { id: c.id, v: columns.map(() => [0, 0, 0]) });
		rows.get(c.id).v[k] = c.v[column.i] || [0, 0, 0];
	}));
	const list = [...rows.values()];
	// With less without; or the later run less the first.
	list.forEach((row) => { row.d = columns.length > 1 ? (many ? -1 : 1) * (rateOf(row.v[0]) - rateOf(row.v[1])) : NaN; });
	return list;
}

function caseCard() {
	const columns = caseColumns(), rows = caseRows();
	if (!rows.length) return null;
	const shown = columns.length > 1
		? [...rows].sort((a, b) => Math.abs(b.d || 0) - Math.abs(a.d || 0)).slice(0, 14)
		: [...rows].sort((a, b) => rateOf(a.v[0]) - rateOf(b.v[0])).slice(0, 14);
	const title = columns.length > 1 ? 'Case by case' : 'The hardest cases';
	if (!rows.some((row) => row.v.some((v) => v[1])))
		return card('', 'Cases', h('p', { class: 'note' }, 'No case has a verdict. ', h('a', { href: '#/attempts' }, 'What happened')));
	return card('', title,
		h('ul', { class: 'legend' }, columns.slice(0, 2).map((c, i) => h('li', {}, h('span', { class: 'dot', color: colour(i) }), c.name))),
		casePlot(shown.map((r) => ({ label: r.id, rates: [rateOf(r.v[0]), columns.length > 1 ? rateOf(r.v[1]) : NaN] })), columns.slice(0, 2).map((c) => c.name), many ? -1 : 1),
		h('p', { class: 'note' }, rows.length > shown.length ? 'The ' + shown.length + ' of ' + count(rows.length) + ' cases that ' +
			(columns.length > 1 ? 'differ most. ' : 'pass least often. ') : '', h('a', { href: '#/cases' }, 'All cases')));
}

function findable(rows) {
	const finite = rows.filter((row) => known(row.detectable));
	if (!finite.length) return 'The cases do not differ in their differences, so the interval is that of the two rates.';
	return 'A true difference inside the grey band may go unnoticed in a run of this size' +
		(rows.length === 1 ? ': it finds one of ' + Math.ceil(100 * Math.min(1, finite[0].detectable)) + ' points in 4 of 5 runs.' : '.');
}

function overview() {
	const first = DATA.runs[0], rates = rateRows(), differences = differenceRows();
	const one = (run, r) => h('div', {}, many && h('h2', {}, 'Run ' + (r + 1) + ': ' + run.skill), many && subtitle(run), banner(run), tiles(run));
	const k = first.configurations.length && first.summary.configurations[first.configurations[0]];
	return [
		h('h1', {}, many ? plural(DATA.runs.length, 'run') + ' compared' : first.skill), many ? h('p', { class: 'sub' }, DATA.runs.map((r) => r.id).join(' and ')) : subtitle(first),
		many ? h('div', { class: 'runs' }, DATA.runs.map(one)) : one(first),
		h('div', { class: 'cols' },
			rates.length > 0 && card('', 'Rates', ratePlot(rates), h('p', { class: 'note' }, 'The dot is the rate, the bar its 95 % interval. Attempts without a verdict are not counted.')),
			differences.length > 0 && card('', 'Differences, in points', differencePlot(differences),
				h('p', { class: 'note' }, many ? 'In a run: ' + first.configurations.slice(0, 2).map(plainName).join(' − ') + '. ' : '', 'Paired by case. ', findable(differences))),
			k && Object.keys(k.pass_at_k).length > 1 && card('', 'More than one try, ' + shortName(first.configurations[0]), passPlot(k.pass_at_k, k.pass_hat_k),
				h('p', { class: 'note' }, 'pass@k: at least one of k attempts passes. pass^k: all of them do.')),
			caseCard(),
			DATA.runs.map((run, r) => run.summary.triggers && card('', 'Triggers' + (many ? ', run ' + (r + 1) : ''), matrix(run),
				run.summary.controls.of > 0 && h('p', { class: 'note' }, 'Positive controls: ' + run.summary.controls.fired + ' of ' + run.summary.controls.of + ' fired. ', h('a', { href: '#/triggers' }, 'All queries'))))),
		h('div', { class: 'grid' }, DATA.runs.map((run, r) => card('', 'Time' + (many ? ', run ' + (r + 1) : ''), outcomeLegend(), timePlot(run.attempts)))),
	];
}

const outcomeLegend = () => h('ul', { class: 'legend' }, [['pass', 'var(--pass)'], ['fail', 'var(--fail)'], ['error or limit', 'var(--error)'], ['skipped or ungraded', 'var(--quiet)']]
	.map(([t, c]) => h('li', {}, h('span', { class: 'dot', color: c }), t)));

// ---- tables ----

// Pages of rows: {rows, columns: [{title, key, num, cell}]}; the headers sort.
function pagedTable(name, rows, columns, size, counted) {
	const state = { at: 0, sort: -1, down: false };
	const body = h('tbody', {}), where = h('span', { role: 'status' });
	const back = h('button', { type: 'button', onclick: () => turn(-1) }, 'Previous');
	const next = h('button', { type: 'button', onclick: () => turn(1) }, 'Next');
	const heads = columns.map((c, i) => h('th', { scope: 'col', class: c.num && 'num' },
		c.key ? h('button', { type: 'button', onclick: () => sortBy(i) }, c.title) : c.title));
	let list = rows;
	function draw() {
		body.replaceChildren(...list.slice(state.at, state.at + size).map((row) => h('tr', {},
			columns.map((c) => h('td', { class: [c.num && 'num', c.css].filter(Boolean).join(' ') || null, 'data-label': c.label }, c.cell(row))))));
		where.textContent = list.length ? count(state.at + 1) + ' to ' + count(Math.min(list.length, state.at + size)) + ' of ' + count(list.length) : 'none';
		back.disabled = state.at === 0;
		next.disabled = state.at + size >= list.length;
	}
	function turn(by) {
		const at = state.at + by * size;
		if (at < 0 || at >= list.length) return;
		state.at = at;
		draw();
	}
	function sortBy(i) {
		state.down = state.sort === i ? !state.down : false;
		state.sort = i;
		const order = (x) => known(x) || typeof x === 'string' ? x : -Infinity;
		list = [...list].sort((a, b) => {
			const x = order(columns[i].key(a)), y = order(columns[i].key(b));
			return (x < y ? -1 : x > y ? 1 : 0) * (state.down ? -1 : 1);
		});
		heads.forEach((th, k) => k === i ? th.setAttribute('aria-sort', state.down ? 'descending' : 'ascending') : th.removeAttribute('aria-sort'));
		state.at = 0;
		draw();
	}
	draw();
	const node = h('div', {}, h('div', { class: 'scroll' }, h('table', { class: 'stack' }, h('caption', { class: 'gone' }, name),
		h('thead', {}, h('tr', {}, heads)), body)), (counted || rows.length > size) && h('div', { class: 'pager' }, rows.length > size && back, rows.length > size && next, where));
	return { node, turn, show(some) { list = some; state.at = 0; state.sort = -1; draw(); } };
}

function casesView() {
	const columns = caseColumns(), rows = caseRows();
	const table = pagedTable('Cases', rows, [
		{ title: 'case', key: (r) => r.id, css: 'case', cell: (r) => h('a', { href: '#/attempts?q=' + encodeURIComponent(r.id) }, r.id) },
		...columns.map((c, k) => ({ title: c.name, label: c.name, key: (r) => rateOf(r.v[k]), cell: (r) => share(r.v[k]) })),
		columns.length > 1 && { title: many ? 'run 2 − run 1' : 'difference', label: 'difference', num: true, key: (r) => r.d, cell: (r) => points(r.d) },
	].filter(Boolean), 100);
	pages = table;
	return [h('h1', {}, 'Cases'), h('p', { class: 'sub' }, plural(rows.length, 'case') + '; a case passes if ' + percent(DATA.runs[0].threshold) + ' of its attempts do'), card('', '', table.node)];
}

function triggersView() {
	const rows = DATA.runs.flatMap((run, r) => run.queries.map((q) => ({ ...q, run, r })));
	const passes = (q) => !q.v[0][1] ? NaN : (rateOf(q.v[0]) >= q.run.threshold) === q.should ? 1 : 0;
	if (!rows.length) return [h('h1', {}, 'Triggers'), h('p', {}, 'This run has no trigger queries.')];
	const table = pagedTable('Queries', rows, [
		many && { title: 'run', label: 'run', cell: (q) => q.r + 1 },
		{ title: 'query', key: (q) => q.query || q.id, cell: (q) => h('a', { href: '#/attempts?kind=1&q=' + encodeURIComponent(q.id) }, q.query || q.id) },
		{ title: 'should trigger', label: 'should trigger', key: (q) => q.should ? 1 : 0, cell: (q) => q.should ? 'yes' : 'no' },
		{ title: 'fired', label: 'fired', num: true, key: (q) => rateOf(q.v[0]), cell: (q) => q.v[0][0] + ' of ' + q.v[0][1] + (q.v[0][2] ? ' (+' + q.v[0][2] + ' without verdict)' : '') },
		{ title: 'verdict', key: passes, cell: (q) => known(passes(q)) ? chip(passes(q) ? 0 : 1) : h('span', { class: 'chip o-error' }, 'none') },
	].filter(Boolean), 100);
	pages = table;
	return [h('h1', {}, 'Triggers'), h('p', { class: 'sub' }, plural(rows.length, 'query', 'queries')),
		h('div', { class: 'grid' }, DATA.runs.map((run, r) => run.summary.triggers && card('w6', many ? 'Run ' + (r + 1) : 'What should have happened, and what did', matrix(run))),
			card('w6', 'Rates', ratePlot(rateRows(true)), !DATA.runs.every(controlled) && h('p', { class: 'note' }, 'Where a positive control did not fire, there is no rate.')),
			card('', 'Queries', table.node))];
}

// The attempts that the list shows: an attempt's page goes on to its neighbours in it.
let listed = DATA.runs.flatMap((run) => run.attempts);
let pages = null;

function attemptsView(query) {
	const all = DATA.runs.flatMap((run) => run.attempts);
	const text = h('input', { type: 'search', id: 'find', value: query.get('q') || '', placeholder: 'case, query, reason', oninput: () => filter() });
	const choice = (label, name, options) => {
		const node = h('select', { onchange: () => filter() }, h('option', { value: '' }, 'all'), options.map((o, i) => h('option', { value: i, selected: query.get(name) === String(i) }, o)));
		return { node, label: h('label', {}, label, node) };
	};
	const outcome = choice('outcome', 'outcome', OUTCOMES), kind = choice('kind', 'kind', KINDS);
	const names = [...new Set(DATA.runs.flatMap((run) => run.configurations))];
	const configuration = choice('configuration', 'configuration', names.map(shortName));
	const queries = DATA.runs.map((run) => new Map(run.queries.map((q) => [q.id, q.query || ''])));
	const saying = (a) => a.kind === 0 ? a.id : a.id + ' ' + (queries[a.r].get(a.id) || '');
	const table = pagedTable('Attempts', all, [
		{ title: 'attempt', key: (a) => a.id, cell: (a) => h('a', { href: attemptPath(a) }, (many ? (a.r + 1) + ': ' : '') + attemptName(a)) },
		{ title: 'outcome', key: (a) => a.outcome, cell: (a) => chip(a.outcome) },
		{ title: 'time', label: 'time', num: true, key: (a) => a.seconds, cell: (a) => duration(a.seconds) },
		{ title: 'cost', label: 'cost', num: true, key: (a) => a.usd, cell: (a) => dollars(a.usd) },
		{ title: 'turns', label: 'turns', num: true, key: (a) => a.turns, cell: (a) => count(a.turns) },
		{ title: 'reason', css: 'why', cell: (a) => a.kind === 1 && a.fired ? FIRED[a.fired] + (a.reason ? ': ' + a.reason : '') : a.reason },
	], 100, true);
	function filter() {
		const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
		listed = all.filter((a) => (!outcome.node.value || a.outcome === Number(outcome.node.value)) &&
			(!kind.node.value || a.kind === Number(kind.node.value)) &&
			(!configuration.node.value || a.kind === 0 && DATA.runs[a.r].configurations[a.configuration] === names[Number(configuration.node.value)]) &&
			words.every((w) => (saying(a) + ' ' + a.reason).toLowerCase().includes(w)));
		table.show(listed);
	}
	filter();
	pages = table;
	return [h('h1', {}, 'Attempts'), h('p', { class: 'sub' }, count(all.length) + ' in all'),
		h('div', { class: 'tools', role: 'search' }, h('label', {}, 'find', text), outcome.label, kind.label, names.length > 1 && configuration.label), card('', '', table.node)];
}

function timeView() {
	const rows = DATA.runs.flatMap((run, r) => run.configurations.map((c) => ({ name: (many ? 'run ' + (r + 1) + ', ' : '') + shortName(c), v: run.summary.configurations[c] })).filter((x) => x.v && Object.values(x.v.outcomes).some(Boolean)));
	const done = (v) => Math.max(1, Object.values(v.outcomes).reduce((a, b) => a + b, 0));
	const table = pagedTable('Cost of configurations', rows, [
		{ title: 'configuration', cell: (x) => x.name },
		{ title: 'cost', label: 'cost', num: true, cell: (x) => dollars(x.v.usd) },
		{ title: 'each', label: 'each', num: true, cell: (x) => dollars(x.v.usd / done(x.v)) },
		{ title: 'time each', label: 'time each', num: true, cell: (x) => duration(x.v.seconds / done(x.v)) },
		{ title: 'input', label: 'input', num: true, cell: (x) => count(Math.round(x.v.tokens.input)) },
		{ title: 'output', label: 'output', num: true, cell: (x) => count(Math.round(x.v.tokens.output)) },
		{ title: 'cache read', label: 'cache read', num: true, cell: (x) => count(Math.round(x.v.tokens.cache_read)) },
		{ title: 'cache write', label: 'cache write', num: true, cell: (x) => count(Math.round(x.v.tokens.cache_creation)) },
	], 50);
	const dear = DATA.runs.flatMap((run) => run.attempts).filter((a) => known(a.usd)).sort((a, b) => b.usd - a.usd).slice(0, 10);
	return [h('h1', {}, 'Time and cost'), h('p', { class: 'sub' }, dollars(DATA.runs.reduce((t, r) => t + r.summary.usd, 0)) + ' in all'),
		h('div', { class: 'grid' },
			DATA.runs.map((run, r) => card('', many ? 'Attempts of run ' + (r + 1) : 'Attempts', outcomeLegend(), timePlot(run.attempts))),
			card('w6', 'Cost, added up', costPlot(DATA.runs)),
			dear.length > 0 && card('w6', 'The most expensive attempts', pagedTable('The most expensive attempts', dear, [
				{ title: 'attempt', cell: (a) => h('a', { href: attemptPath(a) }, attemptName(a)) },
				{ title: 'cost', num: true, cell: (a) => dollars(a.usd) }, { title: 'time', num: true, cell: (a) => duration(a.seconds) }], 10).node),
			rows.length > 0 && card('', 'Configurations', table.node))];
}
