// What was built; TUTTI_DIST names another build, one with a guard taken out.
import { appendFileSync } from 'node:fs'

const at = process.env['TUTTI_DIST'] ?? new URL('../../../dist/', import.meta.url).href

/** @type {typeof import('../../../dist/index.js')} */
const index = await import(`${at}index.js`)
/** @type {typeof import('../../../dist/stores/sqlite.js')} */
const sqlite = await import(`${at}stores/sqlite.js`)
/** @type {typeof import('../../../dist/stores/sqlite-open.js')} */
const opening = await import(`${at}stores/sqlite-open.js`)
/** @type {typeof import('../../../dist/stores/sqlite-driver.js')} */
const driver = await import(`${at}stores/sqlite-driver.js`)

/** @type {typeof import('../../../dist/stores/sqlite-connection.js')} */
const connecting = await import(`${at}stores/sqlite-connection.js`)

export const tutti = index
export const { open, TuttiError } = index
export const { sqliteStore, storeOver } = sqlite
export const { openConnection } = opening
export const { loadDriver, openDatabase } = driver
export const { Connection } = connecting

/** What the test has to say, as JSON. */
export const given = JSON.parse(process.argv[2] ?? '{}')

/** Says a line to the test. @param {unknown} what */
export const say = (what) => process.stdout.write(`${JSON.stringify(what)}\n`)

/** The next line of the test. */
export const told = () => new Promise((resolve) => process.stdin.once('data', (text) => resolve(String(text).trim())))

/** An effect: a line that stays, whatever becomes of this process. @param {string} line */
export const write = (line) => appendFileSync(given.log, `${line}\n`)
