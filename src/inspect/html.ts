import { type Inside, style, tag } from './markup.js'
import { themeCss } from './theme.js'

const pageCss = [
  'body{margin:0;background:var(--tutti-ground);color:var(--tutti-text);font-size:14px;line-height:1.5}',
  'main{max-width:1180px;margin:0 auto;padding:24px 20px 48px}',
  'h1{font-size:20px;margin:0 0 4px;overflow-wrap:anywhere}',
  'h2{font-size:15px;margin:28px 0 8px}',
  'p{margin:4px 0 12px;color:var(--tutti-dim);overflow-wrap:anywhere}',
  '.picture{overflow-x:auto;border:1px solid var(--tutti-line);border-radius:8px}',
  '.picture svg{display:block;width:100%;height:auto;min-width:860px}',
  'table{border-collapse:collapse;width:100%;font-size:13px}',
  'th,td{text-align:left;vertical-align:top;padding:4px 12px 4px 0;border-bottom:1px solid var(--tutti-line);overflow-wrap:anywhere}',
  // A long word may be broken anywhere, and then wants every column: those beside it keep the width of their headings.
  'th{color:var(--tutti-dim);font-weight:600}',
  'th,.short{white-space:nowrap}',
  // A name stays in one piece as far as there is room for one; so does its column.
  '.name{overflow-wrap:break-word;max-width:22em}',
  'pre{background:var(--tutti-panel);border-radius:8px;padding:12px;overflow-x:auto;font-size:12.5px}',
].join('')

/** Nothing is loaded and nothing is executed, even if something slipped through: the page forbids it to itself. */
const policy = "default-src 'none'; style-src 'unsafe-inline'"

/** A page in one file: no script, no request to anywhere, dark or light as its reader is. */
export function htmlFile(title: string, ...inside: readonly Inside[]): string {
  const head = tag(
    'head',
    {},
    tag('meta', { charset: 'utf-8' }),
    tag('meta', { 'http-equiv': 'Content-Security-Policy', content: policy }),
    tag('meta', { name: 'viewport', content: 'width=device-width, initial-scale=1' }),
    tag('meta', { name: 'referrer', content: 'no-referrer' }),
    tag('title', {}, title),
    style(themeCss + pageCss),
  )
  return `<!doctype html>\n${tag('html', { lang: 'en' }, head, tag('body', { class: 'tutti' }, tag('main', {}, inside))).markup}\n`
}
