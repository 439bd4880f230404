// lookup.mjs NAME: by libc (lookup) and by c-ares (resolve4, resolve6, and more types).
import dns from 'node:dns/promises'

const name = process.argv[2]
const show = async (what, promise) => {
	try {
		console.log(what, JSON.stringify(await promise))
	} catch (error) {
		console.log(what, error.code)
	}
}
await show('lookup', dns.lookup(name, { all: true }))
await show('resolve4', dns.resolve4(name))
await show('resolve6', dns.resolve6(name))
await show('mx', dns.resolveMx(name))
await show('txt', dns.resolveTxt(name))
await show('srv', dns.resolveSrv(name))
await show('none', dns.resolve4('not-allowed.example'))
