// Which view is shown: the part of the address after "#/". Nothing is loaded.

const VIEWS = [['', 'Overview', overview], ['cases', 'Cases', casesView], ['triggers', 'Triggers', triggersView],
	['attempts', 'Attempts', attemptsView], ['time', 'Time and cost', timeView]];
const main = document.getElementById('main');
let shown = null;

const noAttempt = () => [h('h1', {}, 'No such attempt'), h('p', { class: 'sub' }, h('a', { href: '#/attempts' }, 'All attempts'))];

function show(first) {
	const hash = location.hash.startsWith('#/') ? location.hash.slice(2) : '';
	if (!first && location.hash && !location.hash.startsWith('#/')) return;
	const [path, search] = hash.split('?'), parts = path.split('/');
	const view = VIEWS.find((v) => v[0] === parts[0]) || VIEWS[0];
	const run = parts[0] === 'attempt' && DATA.runs[Number(parts[1])];
	shown = run ? run.attempts[Number(parts[2])] || null : null;
	pages = null;
	main.replaceChildren(...(shown ? attemptView(shown) : parts[0] === 'attempt' ? noAttempt() : view[2](new URLSearchParams(search || ''))).flat(Infinity).filter(Boolean));
	document.querySelectorAll('#views a').forEach((link, i) => {
		if (parts[0] === 'attempt' ? VIEWS[i][0] === 'attempts' : VIEWS[i] === view) link.setAttribute('aria-current', 'page');
		else link.removeAttribute('aria-current');
	});
	document.title = visible((shown ? attemptName(shown) : view[1]) + ' · ' + DATA.runs[0].skill);
	if (!first) { scrollTo(0, 0); main.focus({ preventScroll: true }); }
}

function colours(name) {
	document.documentElement.dataset.theme = name;
}

function key(event) {
	if (event.ctrlKey || event.metaKey || event.altKey || document.getElementById('help').open) return;
	if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
		if (event.key === 'Escape') event.target.blur();
		return;
	}
	const all = (open) => document.querySelectorAll('details.call').forEach((d) => { d.open = open; });
	const go = (rel, by) => {
		const link = document.querySelector('a[rel=' + rel + ']');
		if (shown && link) link.click();
		else if (pages) pages.turn(by);
	};
	const keys = { j: () => go('next', 1), k: () => go('prev', -1), e: () => all(true), c: () => all(false),
		u: () => { if (shown) location.hash = '#/attempts'; }, '?': () => document.getElementById('help').showModal(),
		'/': () => { if (!document.getElementById('find')) location.hash = '#/attempts'; setTimeout(() => document.getElementById('find').focus()); } };
	VIEWS.forEach((v, i) => { keys[i + 1] = () => { location.hash = '#/' + v[0]; }; });
	if (!Object.hasOwn(keys, event.key)) return;
	event.preventDefault();
	keys[event.key]();
}

document.getElementById('brand').textContent = visible(brand());
document.getElementById('views').append(...VIEWS.map((v) => h('a', { href: '#/' + v[0] }, v[1])));
document.getElementById('keys').addEventListener('click', () => document.getElementById('help').showModal());
document.getElementById('theme').addEventListener('click', () => colours(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'));
document.querySelector('.skip').addEventListener('click', (event) => { event.preventDefault(); main.focus(); });
document.addEventListener('keydown', key);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', (e) => colours(e.matches ? 'dark' : 'light'));
colours(matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
narrow.addEventListener('change', () => show(true));
// Paper cannot be unfolded.
addEventListener('beforeprint', () => document.querySelectorAll('main details').forEach((d) => { d.open = true; d.dispatchEvent(new Event('toggle')); }));
addEventListener('hashchange', () => show(false));
show(true);
performance.mark('carrel-shown');
