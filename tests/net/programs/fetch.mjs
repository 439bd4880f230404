// fetch.mjs http|fetch URL N: N requests at once; how many were answered, and how.
import http from 'node:http'
import https from 'node:https'

const [how, url, n] = process.argv.slice(2)

const get = () => new Promise((done, failed) => {
	(url.startsWith('https') ? https : http).get(url, { agent: false }, answer => {
		let text = ''
		answer.on('data', part => { text += part })
		answer.on('end', () => done(text))
	}).on('error', failed)
})
const one = how === 'http' ? get : async () => (await fetch(url)).text()
const all = await Promise.all(Array.from({ length: Number(n) }, one))
console.log(all.length, [...new Set(all)].join('|').trim())
