// The style of the page at /docs: light and dark, from 360 px up, without fonts, images or imports. Its hash is in the
// Content-Security-Policy, so the page must contain it unchanged.

export const API_PAGE_STYLE = `
:root {
  color-scheme: light dark;
  --ground: #fff; --raised: #f5f6f8; --line: #d9dde3; --text: #1b1f24; --soft: #545d69; --link: #0b57c2;
  --good: #11683a; --bad: #9a4a00; --fault: #a8202b; --mark: #5b3fb5;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #14171b; --raised: #1d2126; --line: #363d46; --text: #e6e9ed; --soft: #a5aeb9; --link: #86b7ff;
    --good: #6fd39b; --bad: #f0b26b; --fault: #ff9aa0; --mark: #bfa8ff;
  }
}
* { box-sizing: border-box; }
html { background: var(--ground); scroll-padding-top: 1rem; -webkit-text-size-adjust: 100%; }
body { margin: 0; color: var(--text); font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: anywhere; }
a { color: var(--link); text-underline-offset: .15em; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; border-radius: 3px; }
.skip { position: absolute; left: -999rem; }
.skip:focus { left: 1rem; top: 1rem; background: var(--ground); padding: .5rem 1rem; z-index: 1; }
.layout { max-width: 76rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { margin: 0; font-size: 2rem; line-height: 1.2; }
h2 { margin: 3rem 0 .25rem; font-size: 1.5rem; line-height: 1.25; }
h3 { margin: 0; font-size: 1.125rem; line-height: 1.4; }
h4 { margin: 1.75rem 0 .5rem; font-size: 1rem; }
p, ul { margin: .75rem 0; }
ul { padding-left: 1.25rem; }
li + li { margin-top: .3rem; }
.soft, figcaption, .type { color: var(--soft); }
.facts { margin: .5rem 0 0; }
code, pre, .codes a { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; font-size: .875em; }
:not(pre) > code, .codes a { background: var(--raised); border-radius: 3px; padding: .1em .3em; -webkit-box-decoration-break: clone; box-decoration-break: clone; }
pre code { font-size: inherit; }
h3 code, th code, nav code { background: none; padding: 0; }
pre { margin: .75rem 0; padding: .75rem .875rem; background: var(--raised); border: 1px solid var(--line); border-radius: 6px; white-space: pre-wrap; line-height: 1.5; }
nav { padding: .25rem 0 1rem; }
.side { display: none; }
.contents { margin: 1rem 0 0; }
.contents > summary { font-weight: 600; }
.contents > nav { padding: 0 .75rem .75rem; border-top: 1px solid var(--line); }
.languages { position: fixed; top: 0; right: 0; margin: 0; padding: 0; border: 0; opacity: 0; pointer-events: none; }
.example { margin: 1rem 0; }
.tabs { display: none; }
.example pre { margin: .5rem 0 0; white-space: pre; overflow-x: auto; }
.codes { list-style: none; padding: 0; font-size: .9375rem; }
nav h2 { margin: 1.25rem 0 .25rem; font-size: .875rem; color: var(--soft); }
nav ul { list-style: none; margin: 0; padding: 0; }
nav li + li { margin: 0; }
nav a { display: block; padding: .3rem 0; text-decoration: none; line-height: 1.35; }
nav a:hover { text-decoration: underline; }
.method { font-weight: 700; color: var(--mark); }
.operation { margin-top: 2rem; padding-top: 1.25rem; border-top: 1px solid var(--line); }
.operation h3 a { color: inherit; text-decoration: none; }
.operation h3 a:hover { text-decoration: underline; }
.note { color: var(--bad); font-weight: 600; }
table { width: 100%; margin: .75rem 0; border-collapse: collapse; font-size: .9375rem; }
th, td { padding: .5rem .75rem .5rem 0; border-top: 1px solid var(--line); text-align: left; vertical-align: top; }
thead th { border-top: 0; font-size: .875rem; color: var(--soft); }
tbody th { font-weight: 600; }
table.pairs { table-layout: fixed; }
table.pairs th:first-child { width: 36%; }
td > :first-child { margin-top: 0; }
td > :last-child { margin-bottom: 0; }
.type { display: block; font-size: .8125rem; font-weight: 400; }
details { border: 1px solid var(--line); border-radius: 6px; margin: .5rem 0; }
summary { padding: .5rem .75rem; cursor: pointer; }
details > div { padding: 0 .75rem .5rem; border-top: 1px solid var(--line); }
.status { font-weight: 700; font-variant-numeric: tabular-nums; margin-right: .35rem; }
.s2 { color: var(--good); }
.s4 { color: var(--bad); }
.s5 { color: var(--fault); }
figure { margin: .75rem 0; }
figure pre { margin: .25rem 0 0; }
figcaption { font-size: .875rem; }
@media (min-width: 60rem) {
  .layout { display: grid; grid-template-columns: 20rem minmax(0, 1fr); column-gap: 2.5rem; padding-top: 2.5rem; }
  .layout > header { grid-column: 1 / -1; }
  .contents { display: none; }
  .side { display: block; position: sticky; top: 0; align-self: start; max-height: 100vh; overflow-y: auto; }
  main > section:first-child h2 { margin-top: 1.25rem; }
}
@supports selector(:has(*)) {
  @media screen {
    .tabs { display: flex; }
    .tabs label { padding: .35rem .9rem; border: 1px solid transparent; border-bottom: 0; border-radius: 6px 6px 0 0; color: var(--soft); font-size: .9375rem; cursor: pointer; }
    .tabs label:hover { color: var(--text); }
    .example pre { display: none; margin: 0; border-top-left-radius: 0; }
    body:has(#language-curl:checked) .in-curl, body:has(#language-PHP:checked) .in-PHP, body:has(#language-Python:checked) .in-Python { display: block; }
    body:has(#language-curl:checked) [for=language-curl], body:has(#language-PHP:checked) [for=language-PHP], body:has(#language-Python:checked) [for=language-Python] { background: var(--raised); border-color: var(--line); color: var(--text); font-weight: 600; position: relative; top: 1px; }
    .languages:has(:focus-visible) { opacity: 1; pointer-events: auto; z-index: 2; padding: .5rem 1rem; background: var(--ground); border: 1px solid var(--line); border-radius: 0 0 0 6px; }
  }
}
@media print { nav, .skip, .contents, .languages, .tabs { display: none; } details { break-inside: avoid; } }
`
