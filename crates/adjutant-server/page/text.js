// Text of models and tools, made into nodes: text nodes alone, never markup. What cannot be seen is shown by its number.
import { html, useState } from "./preact.js";

const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;

export const clean = (text) => String(text ?? "").replace(/\r\n/g, "\n").replace(UNSEEN, (sign) => {
  const code = sign.codePointAt(0);
  return code < 32 ? String.fromCharCode(0x2400 + code) : `‹U+${code.toString(16).toUpperCase().padStart(4, "0")}›`;
});

/** A name on one line. */
export const line = (text, max = 200) => {
  const one = clean(String(text ?? "").slice(0, max + 1)).replace(/\s+/g, " ");
  return one.length > max ? `${one.slice(0, max)}…` : one;
};

export const t = (text, max) => html`<bdi>${line(text, max)}</bdi>`;

/** A long text, a piece at a time. */
export function Pre({ text, kind = "", first = 3000, show = (piece) => clean(piece) }) {
  const [size, grow] = useState(first);
  const all = String(text ?? "");
  let end = all.length > size ? size : all.length;
  if (size === first) {
    let at = -1;
    for (let n = 0; n < 40 && at < end; n += 1) {
      const next = all.indexOf("\n", at + 1);
      at = next < 0 ? all.length : next;
    }
    end = Math.min(end, at);
  }
  return html`<pre class=${kind} dir="auto">${show(all.slice(0, end))}</pre>
    ${end < all.length && html`<button class="more" onClick=${() => grow(end + 60000)}>Show more (${number(all.length - end)} characters left)</button>`}`;
}

/** JSON on lines of its own, its tokens as they are: no number is read and written anew. */
export function pretty(json) {
  const text = String(json ?? "");
  try {
    if (text.length > 200000 || typeof JSON.parse(text) !== "object") return text;
  } catch {
    return text;
  }
  let [out, deep] = ["", 0];
  const row = () => `\n${"  ".repeat(deep)}`;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/gs)) {
    if (token === "{" || token === "[") {
      deep += 1; out += token + row();
    } else if (token === "}" || token === "]") {
      deep -= 1; out = /[{[]\s*$/.test(out.slice(-200)) ? out.trimEnd() + token : out + row() + token;
    } else out += token === "," ? token + row() : token === ":" ? ": " : token;
  }
  return out;
}

const signed = (text) => clean(text).split("\n").map((it) => {
  const kind = /^(@@|---|\+\+\+|\*\*\*)/.test(it) ? "hunk" : it[0] === "+" ? "add" : it[0] === "-" ? "del" : "";
  return html`<span class=${kind}>${it}${"\n"}</span>`;
});
export const Diff = ({ text }) => html`<${Pre} kind="diff" text=${text} show=${signed} />`;

/** The change of a file that a call would make; none if it makes none. */
export function change(name, args) {
  try {
    const it = JSON.parse(args);
    const put = (sign, text) => text.split("\n").map((row) => sign + row);
    if (name === "apply_patch") return it.patch;
    if (name === "write_file") return [`+++ ${it.path}`, ...put("+", it.content)].join("\n");
    if (name !== "edit_file") return null;
    const [old, now] = [it.old_text.split("\n"), it.new_text.split("\n")];
    let [head, tail] = [0, 0];
    while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
    while (tail < Math.min(old.length, now.length) - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
    const part = (sign, rows, from, to) => rows.slice(from, to).map((row) => sign + row);
    return [`+++ ${it.path}`, ...part(" ", old, 0, head), ...part("-", old, head, old.length - tail),
      ...part("+", now, head, now.length - tail), ...part(" ", old, old.length - tail)].join("\n");
  } catch {
    return null;
  }
}

const link = (url, text) => html`<a href=${url} target="_blank" rel="noopener noreferrer">${text}</a>`;
const INLINE = /`([^`\n]+)`|\*\*([^*\n]+)\*\*|\*([^*\s][^*\n]*)\*|!?\[([^\]\n]{1,300})\]\((https?:\/\/[^\s)]{1,2000})\)|https?:\/\/[^\s<>"'`)\]]{1,2000}/g;

function inline(text) {
  const out = [];
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    const [all, code, bold, slanted, label, url] = found;
    out.push(text.slice(at, found.index)); at = found.index + all.length;
    out.push(code ? html`<code>${code}</code>` : bold ? html`<b>${inline(bold)}</b>` : slanted ? html`<i>${slanted}</i>`
      : link(url ?? all, label ?? all));
  }
  return [...out, text.slice(at)];
}

const LIST = /^\s*(?:[-*+]|(\d{1,9})[.)])\s+/;
const cells = (row) => row.trim().replace(/^\||\|$/g, "").split("|").map((it) => inline(it.trim()));

function blocks(text, deep = 0) {
  const [out, rows] = [[], text.split("\n")];
  const take = (fits) => {
    const from = at;
    while (at < rows.length && fits(rows[at])) at += 1;
    return rows.slice(from, at);
  };
  let at = 0;
  while (at < rows.length) {
    const row = rows[at];
    const head = /^(#{1,6})\s+(.*)/.exec(row);
    if (/^\s*(```|~~~)/.test(row)) {
      const fence = row.trim().slice(0, 3);
      at += 1; out.push(html`<pre class="code" dir="auto">${take((it) => !it.trim().startsWith(fence)).join("\n")}</pre>`);
      at += 1;
    } else if (!row.trim() || /^\s*([-*_])(\s*\1){2,}\s*$/.test(row)) {
      if (row.trim()) out.push(html`<hr />`);
      at += 1;
    } else if (head) {
      out.push(html`<p class=${`h h${head[1].length}`}>${inline(head[2])}</p>`); at += 1;
    } else if (row[0] === ">" && deep < 5) {
      out.push(html`<blockquote>${blocks(take((it) => it[0] === ">").map((it) => it.replace(/^> ?/, "")).join("\n"), deep + 1)}</blockquote>`);
    } else if (LIST.test(row)) {
      const kind = LIST.exec(row)[1] ? "ol" : "ul";
      const items = [];
      for (const it of take((it) => LIST.test(it) || (it.trim() && /^\s{2,}/.test(it)))) {
        if (LIST.test(it)) items.push([it.replace(LIST, "")]);
        else items.at(-1).push(it);
      }
      const start = Number(LIST.exec(row)[1] ?? 1);
      out.push(html`<${kind} start=${kind === "ol" ? start : null}>${items.map((it) => html`<li>${inline(it.join("\n"))}</li>`)}<//>`);
    } else if (row.includes("|") && /^[\s|:-]*-[\s|:-]*$/.test(rows[at + 1] ?? "x")) {
      const [top, , ...body] = take((it) => it.includes("|"));
      out.push(html`<table><thead><tr>${cells(top).map((it) => html`<th scope="col">${it}</th>`)}</tr></thead>
        <tbody>${body.map((it) => html`<tr>${cells(it).map((cell) => html`<td>${cell}</td>`)}</tr>`)}</tbody></table>`);
    } else {
      const said = [rows[at++], ...take((it) => it.trim() && !/^(#{1,6}\s|>|\s*(```|~~~))/.test(it) && !LIST.test(it))];
      out.push(html`<p>${inline(said.join("\n"))}</p>`);
    }
  }
  return out;
}

let known = new Map(); // What was made of a text is kept.
/** Markdown; a very long one as plain text. */
export function Markdown({ text }) {
  if (text.length > 20000) return html`<${Pre} text=${text} kind="plain" />`;
  if (known.size > 500) known = new Map();
  if (!known.has(text)) known.set(text, blocks(clean(text)));
  return html`<div class="md" dir="auto">${known.get(text)}</div>`;
}

export const many = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
export const number = (n) => (n < 1000 ? `${n ?? 0}` : n < 1e6 ? `${(n / 1e3).toFixed(n < 1e4 ? 1 : 0)}k` : `${(n / 1e6).toFixed(1)}M`);
export const money = (nano) => (nano == null ? "–" : `$${(nano / 1e9).toFixed(nano < 1e9 ? 4 : 2)}`);
export const span = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : ms < 6e4 ? `${(ms / 1e3).toFixed(1)} s`
  : ms < 36e5 ? `${Math.floor(ms / 6e4)} min ${Math.round((ms % 6e4) / 1e3)} s` : ms < 2e8 ? `${(ms / 36e5).toFixed(1)} h` : `${Math.round(ms / 864e5)} days`);
export const clock = (ms) => new Date(ms).toLocaleTimeString([], { hour12: false });
export const ago = (ms, now = Date.now()) => (now - ms < 6e4 ? "just now" : `${span(now - ms).split(" ").slice(0, 2).join(" ")} ago`);
