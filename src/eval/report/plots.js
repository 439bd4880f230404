const largest = (list) => list.reduce((a, b) => Math.max(a, b), -Infinity);
const smallest = (list) => list.reduce((a, b) => Math.min(a, b), Infinity);

// Plots, all of them inline SVG. A plot is drawn for one of two widths and scaled, so that its
// text can be read on a phone as well.
const narrow = matchMedia('(max-width: 46rem)');
const plotWidth = (wide) => narrow.matches ? 350 : wide;
const labelWidth = () => narrow.matches ? 108 : 150;
const letters = () => narrow.matches ? 15 : 19;

// Rates with their intervals: rows of {label, value, low, high, colour, note}.
function ratePlot(rows) {
	const wide = plotWidth(560), left = labelWidth(), right = wide - 20, gap = 38, height = rows.length * gap + 30;
	const x = (v) => left + (right - left) * v;
	const svg = s('svg', { viewBox: '0 0 ' + wide + ' ' + height });
	for (const tick of [0, 0.25, 0.5, 0.75, 1]) {
		svg.append(s('line', { class: 'rule', x1: x(tick), x2: x(tick), y1: 4, y2: height - 24 }),
			s('text', { class: 'axis', x: x(tick), y: height - 8, 'text-anchor': 'middle' }, 100 * tick + ' %'));
	}
	rows.forEach((row, i) => {
		const y = gap * i + gap / 2 + 2;
		svg.append(rowLabel(row.label, left, y));
		if (!known(row.value)) {
			svg.append(s('text', { class: 'axis', x: left + 8, y: y + 4 }, row.note || 'no verdict'));
			return;
		}
		const bar = s('rect', { x: x(row.low), width: Math.max(1, x(row.high) - x(row.low)), y: y - 6, height: 12, rx: 6 });
		const dot = s('circle', { cx: x(row.value), cy: y, r: 6.5 });
		bar.style.fill = dot.style.fill = row.colour;
		bar.style.opacity = 0.28;
		svg.append(bar, dot);
		if (row.note) svg.append(s('text', { class: 'axis', x: x(row.value), y: y - 10, 'text-anchor': 'middle' }, row.note));
	});
	return figure(svg, 'Rates with 95 % intervals: ' + rows.map((r) => r.label + ' ' + percent(r.value)).join(', '),
		['', 'rate', 'interval'], rows.map((r) => [r.label, percent(r.value), range(r)]));
}

// A clipped label keeps both of its ends, and says all of itself to a pointer.
function rowLabel(label, left, y) {
	const text = visible(label), n = letters(), most = Math.floor(n / 2);
	const clipped = text.length > n ? text.slice(0, most) + '…' + text.slice(most + 1 - n) : text;
	return s('text', { x: left - 12, y: y + 4, 'text-anchor': 'end' }, clipped, clipped !== text && s('title', {}, text));
}

// Differences on an axis from -100 to 100: rows of {label, difference, low, high, detectable}.
function differencePlot(rows) {
	const wide = plotWidth(560), left = labelWidth(), right = wide - 20, gap = 42, height = rows.length * gap + 30;
	const x = (v) => left + (right - left) * (Math.max(-1, Math.min(1, v)) + 1) / 2;
	const svg = s('svg', { viewBox: '0 0 ' + wide + ' ' + height });
	for (const tick of [-1, -0.5, 0, 0.5, 1]) {
		svg.append(s('line', { class: tick ? 'rule' : 'zero', x1: x(tick), x2: x(tick), y1: 4, y2: height - 24 }),
			s('text', { class: 'axis', x: x(tick), y: height - 8, 'text-anchor': 'middle' }, tick ? points(tick) : '0'));
	}
	rows.forEach((row, i) => {
		const y = gap * i + gap / 2;
		svg.append(rowLabel(row.label, left, y));
		if (known(row.detectable)) {
			const d = Math.min(1, row.detectable);
			const band = s('rect', { x: x(-d), width: x(d) - x(-d), y: y - 15, height: 30, rx: 4 });
			band.style.fill = 'var(--quiet-soft)';
			svg.append(band);
		}
		if (!known(row.difference)) return;
		const sure = row.low > 0 || row.high < 0;
		const bar = s('rect', { x: x(row.low), width: Math.max(1, x(row.high) - x(row.low)), y: y - 6, height: 12, rx: 6 });
		const dot = s('circle', { cx: x(row.difference), cy: y, r: 6.5 });
		bar.style.fill = dot.style.fill = !sure ? 'var(--quiet)' : row.low > 0 ? 'var(--pass)' : 'var(--fail)';
		bar.style.opacity = 0.3;
		svg.append(bar, dot);
	});
	return figure(svg, rows.map((r) => r.label + ': difference ' + points(r.difference) + ', interval ' +
		points(r.low) + ' to ' + points(r.high)).join('; '));
}

// With and without, case by case: a line from one rate to the other.
function casePlot(cases, names, sign) {
	const wide = plotWidth(560), left = labelWidth(), right = wide - 20, gap = 26, height = cases.length * gap + 30;
	const x = (v) => left + (right - left) * v;
	const svg = s('svg', { viewBox: '0 0 ' + wide + ' ' + height });
	for (const tick of [0, 0.5, 1]) {
		svg.append(s('line', { class: 'rule', x1: x(tick), x2: x(tick), y1: 4, y2: height - 24 }),
			s('text', { class: 'axis', x: x(tick), y: height - 8, 'text-anchor': 'middle' }, 100 * tick + ' %'));
	}
	cases.forEach((c, i) => {
		const y = gap * i + gap / 2 + 2, [a, b] = c.rates;
		svg.append(rowLabel(c.label, left, y));
		if (known(a) && known(b)) {
			const line = s('line', { x1: x(a), x2: x(b), y1: y, y2: y, 'stroke-width': 3 });
			line.style.stroke = sign * (a - b) > 0 ? 'var(--pass)' : sign * (a - b) < 0 ? 'var(--fail)' : 'var(--line)';
			line.style.opacity = 0.45;
			svg.append(line);
		}
		[b, a].forEach((rate, k) => {
			if (!known(rate)) return;
			const dot = s('circle', { cx: x(rate), cy: y, r: k ? 6 : a === b ? 9 : 5 });
			dot.style.fill = k ? colour(0) : 'var(--card)';
			dot.style.stroke = colour(k ? 0 : 1);
			dot.style.strokeWidth = 2;
			svg.append(dot);
		});
	});
	return figure(svg, 'Rates of each case, ' + names.join(' and '), ['case', ...names],
		cases.map((c) => [c.label, ...c.rates.map(percent)]));
}

// pass@k and pass^k over k.
function passPlot(at, hat) {
	const ks = Object.keys(at).map(Number), last = Math.max(...ks);
	const wide = plotWidth(560), left = 44, right = wide - 60, top = 12, bottom = 170;
	const x = (k) => last > 1 ? left + (right - left) * (k - 1) / (last - 1) : left;
	const y = (v) => bottom - (bottom - top) * v;
	const svg = s('svg', { viewBox: '0 0 ' + wide + ' 205' });
	for (const tick of [0, 0.5, 1]) {
		svg.append(s('line', { class: 'rule', x1: left, x2: right, y1: y(tick), y2: y(tick) }),
			s('text', { class: 'axis', x: left - 8, y: y(tick) + 4, 'text-anchor': 'end' }, 100 * tick + ' %'));
	}
	ks.forEach((k) => svg.append(s('text', { class: 'axis', x: x(k), y: bottom + 20, 'text-anchor': 'middle' }, 'k = ' + k)));
	[[at, 'pass@k', 'var(--c0)'], [hat, 'pass^k', 'var(--c3)']].forEach(([v, name, ink], i) => {
		const line = s('polyline', { points: ks.map((k) => x(k) + ',' + y(v[k])).join(' '), fill: 'none', 'stroke-width': 2.5 });
		line.style.stroke = ink;
		svg.append(line);
		ks.forEach((k) => { const dot = s('circle', { cx: x(k), cy: y(v[k]), r: 4 }); dot.style.fill = ink; svg.append(dot); });
		const near = Math.abs(at[last] - hat[last]) < 0.1;
		svg.append(s('text', { x: right + 8, y: y(v[last]) + (near ? (i ? 12 : -4) : 4) }, name));
	});
	return figure(svg, 'pass@k and pass^k', ['k', 'pass@k', 'pass^k'], ks.map((k) => [k, percent(at[k]), percent(hat[k])]));
}

const INKS = ['var(--pass)', 'var(--fail)', 'var(--error)', 'var(--error)', 'var(--quiet)', 'var(--quiet)'];

// Attempts over time: a bar each while they can be told apart, else how many ran.
function timePlot(attempts) {
	const timed = attempts.filter((a) => known(a.started) && known(a.seconds)).sort((a, b) => a.started - b.started);
	if (!timed.length) return h('p', { class: 'note' }, 'No attempt has a time.');
	const from = timed[0].started, to = Math.max(largest(timed.map((a) => a.started + a.seconds)), from + 1);
	const x = (t) => 6 + (plotWidth(1100) - 12) * (t - from) / (to - from);
	return timed.length <= 1500 ? lanePlot(timed, x, from, to) : binPlot(timed, from, to);
}

function timeAxis(svg, from, to, height) {
	const parts = narrow.matches ? 2 : 4;
	for (let i = 0; i <= parts; i++) {
		const at = 6 + (plotWidth(1100) - 12) * i / parts;
		svg.append(s('line', { class: 'rule', x1: at, x2: at, y1: 0, y2: height - 20 }),
			s('text', { class: 'axis', x: at, y: height - 4, 'text-anchor': i === 0 ? 'start' : i === parts ? 'end' : 'middle' },
				duration((to - from) * i / parts)));
	}
}

function lanePlot(timed, x, from, to) {
	const free = [];
	const lanes = timed.map((a) => {
		let lane = free.findIndex((t) => t <= a.started + 0.001);
		if (lane < 0) lane = free.length;
		free[lane] = a.started + a.seconds;
		return lane;
	});
	const tall = Math.max(4, Math.min(18, 320 / free.length)), height = free.length * (tall + 2) + 28;
	const svg = s('svg', { viewBox: '0 0 ' + plotWidth(1100) + ' ' + height });
	timeAxis(svg, from, to, height);
	timed.forEach((a, i) => {
		const bar = s('rect', { x: x(a.started), width: Math.max(1.5, x(a.started + a.seconds) - x(a.started) - 1),
			y: lanes[i] * (tall + 2), height: tall, rx: Math.min(3, tall / 3) },
			s('title', {}, attemptName(a) + ': ' + OUTCOMES[a.outcome] + ', ' + duration(a.seconds)));
		bar.style.fill = INKS[a.outcome];
		svg.append(s('a', { href: attemptPath(a), tabindex: '-1' }, bar));
	});
	return figure(svg, plural(timed.length, 'attempt') + ' over ' + duration(to - from) + ', up to ' + free.length + ' at a time');
}

function binPlot(timed, from, to) {
	const bins = narrow.matches ? 70 : 160, height = 200, wide = plotWidth(1100) - 12, counts = Array.from({ length: bins }, () => [0, 0, 0, 0, 0, 0]);
	timed.forEach((a) => {
		const bin = (t) => Math.max(0, Math.min(bins - 1, Math.floor(bins * (t - from) / (to - from))));
		for (let b = bin(a.started); b <= bin(a.started + a.seconds); b++) counts[b][a.outcome]++;
	});
	const most = Math.max(...counts.map((c) => c.reduce((x, y) => x + y)));
	const svg = s('svg', { viewBox: '0 0 ' + plotWidth(1100) + ' ' + height });
	timeAxis(svg, from, to, height);
	counts.forEach((c, b) => {
		let y = height - 22;
		c.forEach((n, o) => {
			if (!n) return;
			const tall = (height - 26) * n / most;
			const bar = s('rect', { x: 6 + wide * b / bins, width: wide / bins - 1, y: y - tall, height: tall });
			bar.style.fill = INKS[o];
			svg.append(bar);
			y -= tall;
		});
	});
	return figure(svg, plural(timed.length, 'attempt') + ' over ' + duration(to - from) + ', up to ' + most + ' at a time');
}

// What was spent, added up over time.
function costPlot(runs) {
	const series = runs.map((run) => {
		const paid = run.attempts.filter((a) => known(a.usd) && known(a.started) && known(a.seconds))
			.map((a) => [a.started + a.seconds, a.usd]).sort((a, b) => a[0] - b[0]);
		const from = paid.length ? smallest(run.attempts.filter((a) => known(a.started)).map((a) => a.started)) : 0;
		let sum = 0;
		return paid.map(([t, usd]) => [t - from, sum += usd]);
	});
	const most = Math.max(0, ...series.map((v) => v.length ? v[v.length - 1][1] : 0));
	const last = Math.max(1, ...series.map((v) => v.length ? v[v.length - 1][0] : 0));
	if (!most) return h('p', { class: 'note' }, 'No attempt has a cost.');
	const wide = plotWidth(560), svg = s('svg', { viewBox: '0 0 ' + wide + ' 230' });
	const x = (t) => 60 + (wide - 80) * t / last, y = (v) => 195 - 180 * v / most;
	for (const part of [0, 0.5, 1]) {
		svg.append(s('line', { class: 'rule', x1: 60, x2: wide - 20, y1: y(part * most), y2: y(part * most) }),
			s('text', { class: 'axis', x: 52, y: y(part * most) + 4, 'text-anchor': 'end' }, dollars(part * most)),
			s('text', { class: 'axis', x: x(part * last), y: 218, 'text-anchor': part ? part === 1 ? 'end' : 'middle' : 'start' }, duration(part * last)));
	}
	series.forEach((v, i) => {
		const few = v.length > 400 ? v.filter((_, k) => k % Math.ceil(v.length / 400) === 0 || k === v.length - 1) : v;
		let path = 'M' + x(0) + ',' + y(0);
		few.forEach(([t, sum]) => { path += 'H' + x(t).toFixed(1) + 'V' + y(sum).toFixed(1); });
		const line = s('path', { d: path, fill: 'none', 'stroke-width': 2.5 });
		line.style.stroke = colour(i);
		svg.append(line);
	});
	return figure(svg, 'Cost added up over time, ' + dollars(most) + ' in the end');
}
