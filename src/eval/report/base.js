'use strict';
// Helpers. Every string that comes from a run becomes a text node or an attribute that is no
// address; nothing here parses HTML.

const DATA = JSON.parse(document.getElementById('data').textContent);
const OUTCOMES = ['pass', 'fail', 'error', 'limit', 'skipped', 'ungraded'];
const FIRED = ['', 'fired', 'not fired', 'other skill', 'error'];
const KINDS = ['case', 'trigger', 'control'];
const NS = 'http://www.w3.org/2000/svg';

// The columns of an attempt, in the order in which report.c writes them.
const COLUMNS = ['kind', 'id', 'configuration', 'run', 'outcome', 'fired', 'started', 'seconds',
	'usd', 'turns', 'input', 'output', 'cacheRead', 'cacheCreation', 'reason'];

DATA.runs.forEach((run, r) => {
	run.attempts = run.attempts.map((row, i) => {
		const a = { r, i };
		COLUMNS.forEach((name, k) => { a[name] = row[k]; });
		return a;
	});
});

// Characters that steer a terminal or the direction of text, or that nobody sees, are shown and
// not obeyed. Joiners stay: scripts and emoji need them.
function visible(text) {
	return String(text).replace(
		/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]|\udb40[\udc00-\udc7f]/g,
		(c) => {
			const n = c.codePointAt(0);
			if (n === 13) return '';
			if (n < 32) return String.fromCharCode(0x2400 + n);
			return '\u27e8U+' + n.toString(16).toUpperCase().padStart(4, '0') + '\u27e9';
		});
}

function fill(node, attributes, children) {
	for (const [name, value] of Object.entries(attributes || {})) {
		if (value === null || value === undefined || value === false) continue;
		if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
		else if (name === 'color') node.style.background = value;
		else node.setAttribute(name, value === true ? '' : visible(value));
	}
	for (const child of children.flat(Infinity)) {
		if (child === null || child === undefined || child === false) continue;
		node.append(child instanceof Node ? child : visible(child));
	}
	return node;
}
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) => fill(document.createElementNS(NS, tag), attributes, children);

const known = (x) => typeof x === 'number' && isFinite(x);
const percent = (x) => known(x) ? Math.round(100 * x) + ' %' : '–';
const points = (x) => !known(x) ? '–' : !Math.round(100 * x) ? '0' : (x < 0 ? '−' : '+') + Math.abs(Math.round(100 * x));
const range = (v) => known(v.low) ? Math.round(100 * v.low) + ' to ' + Math.round(100 * v.high) + ' %' : '';
const dollars = (x) => known(x) ? '$' + (x ? x.toFixed(x < 1 ? 3 : 2) : '0') : '–';
const count = (x) => known(x) ? x.toLocaleString('en') : '–';
const shortCount = (x) => x < 1e4 ? count(x) : x < 1e6 ? Math.round(x / 1e3) + ' k' : (x / 1e6).toFixed(x < 1e7 ? 1 : 0) + ' M';
const plural = (n, one, many) => count(n) + ' ' + (n === 1 ? one : many || one + 's');
const shortName = (c) => c === 'with_skill' ? 'with skill' : c === 'without_skill' ? 'without skill' : c;
const colour = (i) => 'var(--c' + (i % 4) + ')';

function duration(x) {
	if (!known(x)) return '–';
	if (x < 60) return x.toFixed(x < 10 && x > 0 ? 1 : 0) + ' s';
	if (x < 3600) return Math.floor(x / 60) + ' min ' + Math.round(x % 60) + ' s';
	return Math.floor(x / 3600) + ' h ' + Math.round(x % 3600 / 60) + ' min';
}

function day(x) {
	return known(x) ? new Date(1000 * x).toISOString().slice(0, 16).replace('T', ' ') + ' UTC' : '';
}

const chip = (outcome) => h('span', { class: 'chip o-' + OUTCOMES[outcome] }, OUTCOMES[outcome]);
const attemptPath = (a) => '#/attempt/' + a.r + '/' + a.i;

function attemptName(a) {
	const run = DATA.runs[a.r];
	const where = a.kind === 0 ? ', ' + shortName(run.configurations[a.configuration] || '') : '';
	return (a.kind === 2 ? 'control ' : a.kind === 0 && /^\d/.test(a.id) ? 'case ' : '') + a.id + where + ', #' + a.run;
}

function card(width, title, ...children) {
	return h('section', { class: 'card ' + width }, title && h('h2', {}, title), children);
}

// A figure that screen readers hear as one sentence, with its numbers as a table.
function figure(svg, sentence, head, rows) {
	svg.setAttribute('role', 'img');
	svg.setAttribute('aria-label', visible(sentence));
	return h('figure', {}, svg, head && h('div', { class: 'gone' }, h('table', {}, h('caption', {}, sentence),
		h('thead', {}, h('tr', {}, head.map((t) => h('th', { scope: 'col' }, t)))),
		h('tbody', {}, rows.map((row) => h('tr', {}, row.map((t) => h('td', {}, t))))))));
}

// One small square for each attempt of a case, or a figure where there are many.
function share(v) {
	const [passed, n, lost] = v;
	const label = passed + ' of ' + n + (lost ? ', ' + lost + ' without a verdict' : '');
	const squares = n + lost > 0 && n + lost <= 12 && h('span', { class: 'share', 'aria-hidden': 'true' },
		Array.from({ length: n + lost }, (_, i) => h('i', { class: i < passed ? 'p' : i < n ? 'f' : 'l' })));
	return [squares, h('span', {}, n ? label : lost ? 'no verdict' : '–')];
}
