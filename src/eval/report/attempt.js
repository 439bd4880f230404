// The page of one attempt. Its details are unpacked here, when it is looked at.

async function unpack(a) {
	const id = 'a' + a.r + '-' + a.i;
	let element = document.getElementById(id);
	if (!element && document.readyState === 'loading') {
		await new Promise((done) => document.addEventListener('DOMContentLoaded', done, { once: true }));
		element = document.getElementById(id);
	}
	if (!element) return null;
	const bytes = Uint8Array.from(atob(element.textContent), (c) => c.charCodeAt(0));
	const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
	return JSON.parse(await new Response(stream).text());
}

const fact = (label, value, css) => value === null || value === undefined || value === '' || value === '–' ? null
	: h('div', { class: css }, h('dt', {}, label), h('dd', {}, value));

function facts(a, d) {
	const calls = Object.entries(d.tool_calls || {}).sort((x, y) => y[1] - x[1]).map(([name, n]) => name + ' ' + n).join(', ');
	return h('dl', { class: 'facts' },
		a.kind > 0 && fact('verdict', FIRED[a.fired]), fact('time', duration(a.seconds)), fact('cost', dollars(a.usd)),
		fact('turns', count(a.turns)), fact('exit', known(d.exit) ? String(d.exit) : ''), fact('retries', d.retries > 0 ? count(d.retries) : ''),
		fact('refused by permissions', d.denials > 0 ? count(d.denials) : ''),
		fact('input tokens', count(a.input)), fact('output tokens', count(a.output)), fact('from cache', count(a.cacheRead)), fact('into cache', count(a.cacheCreation)),
		fact('started', d.started && d.started.slice(11, 19) + ' UTC'), fact('tool calls', calls, 'wide'), fact('directory', d.directory, 'wide'), fact('plan', d.plan, 'wide'));
}

function grading(list) {
	return h('ul', { class: 'expect' }, list.map((e) => {
		const [mark, css, word] = e.passed === true ? ['✓', 'yes', 'met'] : e.passed === false ? ['✗', 'no', 'not met'] : ['–', 'none', 'no verdict'];
		return h('li', {}, h('span', { class: 'mark ' + css, role: 'img', 'aria-label': word }, mark), h('div', {}, h('p', {}, e.text || ''),
			e.evidence && h('p', { class: 'evidence' }, e.evidence),
			e.weak && h('p', { class: 'weak' }, 'A weak assertion: ' + e.weak), e.grader && h('p', { class: 'note' }, 'grader: ' + e.grader)));
	}));
}

function callNode(call, result, failed) {
	const values = Object.values(call.arguments || {}).filter((v) => typeof v === 'string');
	const line = values.length ? values[0].split('\n')[0].slice(0, 160) : '';
	const body = h('div', { class: 'body' });
	const node = h('details', { class: 'call' + (failed ? ' bad-call' : '') },
		h('summary', {}, h('b', {}, call.function_name), failed ? ' failed ' : ' ', h('span', {}, line)), body);
	node.addEventListener('toggle', () => {
		if (!node.open || body.firstChild) return;
		for (const [name, value] of Object.entries(call.arguments || {}))
			body.append(h('div', {}, h('h4', {}, name), h('div', { class: 'box', tabindex: '0' }, h('pre', {}, typeof value === 'string' ? value : JSON.stringify(value, null, 2)))));
		body.append(h('div', {}, h('h4', {}, failed ? 'result (failed)' : 'result'),
			result === undefined ? 'No result came.' : h('div', { class: 'box', tabindex: '0' }, h('pre', {}, result))));
	});
	return node;
}

function stepNode(step) {
	const results = new Map(((step.observation || {}).results || []).map((r) => [r.source_call_id, r.content]));
	const extra = step.extra || {}, failed = new Set(extra.failed_calls || []);
	const who = extra.subagent ? 'sub-agent' : step.source;
	return h('article', { class: 'step ' + step.source + (extra.subagent ? ' inner' : '') },
		h('h3', {}, extra.subagent && step.source === 'user' ? 'to the sub-agent' : who),
		step.reasoning_content && h('details', {}, h('summary', {}, 'Thinking'), h('pre', { class: 'box' }, step.reasoning_content)),
		step.message && h('pre', {}, step.message),
		(step.tool_calls || []).map((c) => callNode(c, results.get(c.tool_call_id), failed.has(c.tool_call_id))));
}

function diffNode(text) {
	return h('pre', { class: 'diff' }, text.replace(/\n$/, '').split('\n').map((line) => h('span',
		{ class: line[0] === '+' ? 'add' : line[0] === '-' ? 'del' : line[0] === '@' ? 'at' : null }, line || ' ')));
}

function fileNode(file) {
	const size = known(file.bytes) ? ', ' + plural(file.bytes, 'byte') : '';
	const node = h('details', { class: 'call' }, h('summary', {}, h('b', {}, file.path), ' ', h('span', {}, (file.how || '') + size)));
	const body = h('div', { class: 'body' });
	if (file.diff) body.append(h('div', { class: 'box', tabindex: '0' }, diffNode(file.diff)));
	else if (typeof file.text === 'string') body.append(h('div', { class: 'box', tabindex: '0' }, file.how === 'added' ? diffNode(file.text.replace(/\n$/, '').split('\n').map((l) => '+' + l).join('\n')) : h('pre', {}, file.text)));
	if (file.left_out) body.append(h('p', { class: 'note' }, 'The last ' + plural(file.left_out, 'byte') + ' are left out.'));
	if (file.note) body.append(h('p', { class: 'note' }, file.note));
	if (file.how === 'deleted') body.append(h('p', { class: 'note' }, 'The agent deleted it.'));
	node.append(body);
	return node;
}

// The same case and repeat in the other configurations, and in the other runs.
function twins(a) {
	return DATA.runs.flatMap((run) => run.attempts.filter((b) => b !== a && b.kind === a.kind && b.id === a.id && b.run === a.run))
		.slice(0, 6).map((b) => h('a', { href: attemptPath(b) }, (many ? 'run ' + (b.r + 1) + ' ' : '') +
			(b.kind === 0 ? shortName(DATA.runs[b.r].configurations[b.configuration] || '') : ''), chip(b.outcome)));
}

function attemptView(a) {
	const at = listed.indexOf(a), before = listed[at - 1], after = at < 0 ? null : listed[at + 1];
	const details = h('div', {}, h('p', { class: 'sub', role: 'status' }, 'Unpacking…'));
	const same = twins(a), query = a.kind > 0 && DATA.runs[a.r].queries.find((q) => q.id === a.id);
	unpack(a).then((d) => {
		if (!d) { details.replaceChildren(h('p', { class: 'note' }, 'The details of this attempt are left out: the file would be too large. They are in ' + DATA.runs[a.r].path + '.')); return; }
		const steps = h('div', {}, d.steps.map(stepNode));
		details.replaceChildren(
			d.reason && d.reason !== a.reason ? h('p', { class: 'sub' }, d.reason) : '', h('div', { class: 'grid' },
			card('', 'Facts', facts(a, d)),
			d.expectations.length ? card('', 'Grading', grading(d.expectations)) : '',
			card('', 'Conversation', steps, d.transcript_left_out && h('p', { class: 'note' }, 'The last ' + plural(d.transcript_left_out, 'byte') + ' of the transcript are not read.')),
			d.files.length ? card('', 'Files', d.files.map(fileNode)) : '',
			d.stderr ? card('', 'Standard error', h('div', { class: 'box', tabindex: '0' }, h('pre', {}, d.stderr))) : ''));
	}).catch((e) => details.replaceChildren(h('p', { class: 'note' }, 'The details cannot be read: ' + e)));
	return [
		h('div', { class: 'crumbs' }, h('a', { href: '#/attempts' }, 'Attempts'), same.length > 0 && h('span', {}, 'see also: '), same,
			h('span', { class: 'far' }, before && h('a', { href: attemptPath(before), rel: 'prev' }, 'previous'), after && h('a', { href: attemptPath(after), rel: 'next' }, 'next'))),
		h('h1', {}, attemptName(a)), h('p', { class: 'sub' }, chip(a.outcome), ' ', a.reason),
		query && h('p', {}, h('b', {}, query.should ? 'Should trigger: ' : 'Should not trigger: '), query.query), details];
}
