// What is seen of a session: what was said and done, who did it and when, what it took, what the model was shown.
import { html, useEffect, useMemo, useRef, useState } from "./preact.js";
import { prompted, share, textOf, used } from "./fold.js";
import { Windowed } from "./list.js";
import { Diff, Markdown, Pre, t, change, clock, line, many, money, number, pretty, span } from "./text.js";

const opened = new Map();
/** Something that is opened and closed; what somebody chose outlives the row. */
function Fold({ id, open = false, head, kind = "", children }) {
  const [, draw] = useState(0);
  const is = opened.get(id) ?? open;
  const toggle = (event) => {
    if (event.target.open === is) return;
    opened.set(id, event.target.open); draw((n) => n + 1);
  };
  return html`<details class=${kind} open=${is} onToggle=${toggle}><summary>${head}</summary>${is && children}</details>`;
}

const PICTURES = /^image\/(png|jpeg|gif|webp)$/;
const Parts = ({ content, plain }) => (content ?? []).map((part) => {
  const data = part.source?.kind === "base64" && part.source.data;
  if (part.type === "text") return plain ? html`<${Pre} text=${part.text} />` : html`<${Markdown} text=${part.text} />`;
  if (part.type === "image" && data && PICTURES.test(part.media_type)) {
    return html`<img src=${`data:${part.media_type};base64,${data}`} alt=${`Picture, ${part.media_type}`} />`;
  }
  return html`<p class="chip">${t(`${part.type} ${part.name ?? ""} ${part.media_type ?? ""} ${part.source?.url ?? ""}`)}</p>`;
});

const MARKS = { __proto__: null, ok: "✓", running: "●", asked: "○", waits: "◷", denied: "⊘", cancelled: "⊘" };
export const Mark = ({ of }) => html`<span class=${`mark ${of}`} role="img" aria-label=${of}>${MARKS[of] ?? "✕"}</span>`;
export const State = ({ of }) => html`<span class=${`state ${of}`}>${line(of)}</span>`;

export const Change = ({ name, args, diff = change(name, args) }) => (diff ? html`<${Diff} text=${diff} />` : html`<${Pre} text=${pretty(args)} kind="code" />`);

function Call({ it: { call }, act }) {
  const { result, progress } = call;
  const diff = result?.details?.diff;
  const pictures = result?.content?.some((part) => part.type === "image");
  const bad = result && result.status !== "ok";
  const said = textOf((result ?? progress)?.content);
  const head = html`<${Mark} of=${call.void ? "void" : call.pause && !result ? "waits" : call.status} /> <b>${t(call.title ?? call.name)}</b>
    <span class="dim args">${t(call.args, 160)}</span><small>${call.ms != null && span(call.ms)}</small>`;
  return html`<${Fold} id=${call.key} open=${!!diff || pictures || bad || !result} head=${head} kind="call">
    <p class="sub">Arguments of ${t(call.name)}</p>
    ${!diff && html`<${Change} name=${call.name} args=${call.args} />`}
    ${call.asked && html`<p class="dim">The model had asked with:</p><${Pre} text=${pretty(call.asked)} kind="code" />`}
    ${(result || said) && html`<p class="sub">${result ? `Result: ${result.status}` : "So far"}</p>`}
    ${diff ? html`<${Diff} text=${diff} />` : html`<${Parts} content=${(result ?? progress)?.content} plain />`}
    ${call.status === "running" && act && html`<button onClick=${() => act.stopCall(call)}>Stop this call</button>`}
  <//>`;
}

function Reply({ it }) {
  const usage = it.usage && ` · ${number(prompted(it.usage))} in, ${number(it.usage.out)} out · ${money(it.cost)}`;
  return html`<div class=${it.void ? "void" : ""}><p class="dim">${t(it.model ?? "")}${usage}${it.stop && !["end", "calls"].includes(it.stop) && html` · ${line(it.stop)}`}</p>
    ${it.void && html`<p class="bad">Taken back: ${t(it.void.message ?? "the attempt ended", 500)}</p>`}
    ${it.blocks.map((block, at) => block && (block.type === "text" ? html`<${Markdown} text=${block.text} />`
      : block.type === "thinking" ? html`<${Fold} id=${`${it.n}/${at}`} open=${it.open} kind="thinking" head=${`Thinking${block.redacted ? " (withheld)" : ""} · ${number(block.text.length)} characters`}><${Pre} text=${block.text} /><//>`
        : block.type === "opaque" && html`<p class="chip">Something that only ${t(block.issuer)} understands</p>`))}
    ${it.open && html`<span class="caret" aria-label="being written"></span>`}</div>`;
}

const ORIGINS = { __proto__: null, person: "Prompt", steering: "Steering", follow_up: "Follow-up", task: "Task", peer: "From another agent" };
function Entry({ it: { entry } }) {
  const origin = entry.origin ?? {};
  const head = origin.kind === "reminder" ? `Reminder of ${line(origin.by)}` : entry.entry === "user" ? ORIGINS[origin.kind] ?? "Message" : entry.entry;
  const body = entry.content ? html`<${Parts} content=${entry.content} />` : html`<${Pre} text=${entry.text ?? pretty(JSON.stringify(entry.value ?? entry))} />`;
  return html`<div class="said"><p class="dim">${head}</p>${body}</div>`;
}

const say = {
  __proto__: null,
  run_started: (e) => `Run ${e.run} began`,
  run_finished: ({ result: { outcome: it } }) => `Run ended: ${it.outcome}${it.limit ? ` (${JSON.stringify(it.limit)})` : it.by ? ` by ${it.by}` : ""}`,
  run_resumed: () => "The run goes on",
  warning: (e) => `Warning: ${e.warning.message ?? e.warning.kind}`,
  cancel_asked: (e) => `Asked to stop, by ${e.by}`,
  message_queued: (e) => `Waits for its place (${e.lane}): ${textOf(e.content.content)}`,
  message_withdrawn: () => "A waiting message was taken back",
  denied: (e) => `Denied at ${e.point}: ${e.reason}`,
  output_refused: (e) => `The answer is not what was wanted: ${e.reason}`,
  paused: ({ pause: { ask, call } }) => (call ? `Asks about ${call.name}: ${ask.data?.why ?? ask.prompt}` : `Asks: ${ask.prompt}`),
  answered: ({ answer: it }) => `Answered: ${it.answer}${it.args ? " with other arguments" : ""} ${it.reason ?? it.message ?? (it.value === undefined ? "" : JSON.stringify(it.value))}`,
  child_opened: (e) => `Opened the agent ${e.child.name}${e.child.task ? `: ${e.child.task}` : ""}`,
  child_ended: (e) => `The agent ended: ${e.outcome.outcome}`,
  report: (e) => `${e.by}: ${JSON.stringify(e.data)}`,
  overflowed: () => "The request did not fit the model; it is prepared once more",
  limit_reached: (e) => `Limit reached: ${JSON.stringify(e.limit)}`,
  overruled: (e) => `${e.by} judged the end otherwise: ${e.outcome.outcome}`,
  app: (e) => (e.kind === "file.changed" ? `Changes the file ${e.data.path}` : `${e.kind}: ${JSON.stringify(e.data)}`),
  lagged: () => "Some events were missed here",
};
/** An event in words; one that is not known, or is not as it should be, as it came. */
const spoken = (e) => {
  try {
    return say[e.event](e);
  } catch {
    return `${e.event} ${JSON.stringify(e)}`;
  }
};

function Note({ it: { e } }) {
  const bad = /denied|refused|limit|overflow|warning|lagged|cancel/.test(e.event) || e.result?.outcome?.outcome === "failed";
  const failure = e.result?.outcome?.failure;
  return html`<p class=${`note ${bad ? "bad" : ""} ${e.event}`}>${t(spoken(e), 500)}
    ${failure && html` – ${t(failure.error?.message ?? failure.message ?? failure.reason ?? failure.text ?? failure.failure, 1000)}`}</p>`;
}

const KINDS = { entry: Entry, reply: Reply, call: Call, note: Note };
const words = (it) => (it.k === "entry" ? it.entry.text ?? textOf(it.entry.content) : it.k === "reply" ? it.blocks.map((block) => block?.text ?? "").join("\n")
  : it.k === "call" ? `${it.call.name} ${it.call.args} ${textOf(it.call.result?.content)}` : spoken(it.e));

/** What of a growing list fits, found in slices: only what came since is looked at. */
function useFound(items, key, fits) {
  const own = useRef({}).current;
  const [, draw] = useState(0);
  if (own.items !== items || own.key !== key) Object.assign(own, { items, key, at: 0, found: [] });
  const until = performance.now() + 6;
  while (own.at < items.length && performance.now() < until) {
    const it = items[own.at++];
    if (fits(it)) own.found.push(it);
  }
  useEffect(() => { if (own.at < items.length) requestAnimationFrame(() => draw((n) => n + 1)); });
  return own.found;
}

export function Transcript({ s, only, find, cursor, act }) {
  const low = find.toLowerCase();
  const found = useFound(s.items, `${only}\n${low}`, (it) => (!only || it.a.thread === only) && (!low || words(it).toLowerCase().includes(low)));
  const items = (act.seen = only || low ? found : s.items);
  const row = (it, at) => {
    const Kind = KINDS[it.k];
    return html`<article class=${`item ${it.k} ${at === cursor ? "cursor" : ""}`} aria-label=${`${it.k} of ${line(it.a.name)}, record ${it.seq}`}>
      <div class="who">${it.k !== "note" && html`<b style=${{ color: `var(--a${it.a.n % 6})` }}>${t(it.k === "entry" ? `→ ${it.a.name}` : it.a.name, 40)}</b>`}
        <small>${clock(it.k === "call" && it.call.seq ? it.call.at ?? it.at : it.at)}</small></div>
      <div class="what"><${Kind} it=${it} act=${act} /></div>
      <div class="do">${act.fork && html`<button onClick=${() => act.fork(it)} title="Make another session that begins as this one, up to here">Fork</button>`}
        <button onClick=${() => act.travel(it.call?.seq ?? it.seq)} title="Show everything as it was at this record" aria-label=${`Go to record ${it.seq}`}>#${it.seq}</button></div>
    </article>`;
  };
  return html`<${Windowed} items=${items} row=${row} tall=${64} tail=${cursor == null} cursor=${cursor} label="Transcript" kind="transcript" />`;
}

const under = (s) => {
  const of = new Map();
  for (const a of s.agents.values()) of.set(a.parent ?? null, [...(of.get(a.parent ?? null) ?? []), a]);
  const out = [];
  const walk = (key) => (of.get(key) ?? []).forEach((a) => { out.push(a); walk(a.thread); });
  walk(null);
  return out.length === s.agents.size ? out : [...s.agents.values()];
};

export function Agents({ s, act }) {
  const row = (a) => html`<div class="agent" style=${{ paddingLeft: `${1 + Math.min(a.depth, 12) * 1.4}rem` }}>
    <button class="plain" onClick=${() => act.only(a.thread)} title="Show what it said and did"><b style=${{ color: `var(--a${a.n % 6})` }}>${a.depth > 0 && "└ "}${t(a.name)}</b></button>
    <${State} of=${a.state} /><small>${many(a.turns, "turn")} · ${many(a.calls, "call")} · ${number(prompted(a.sum) + a.sum.out)} tokens · ${money(a.sum.cost)} · ${span(a.last - a.first)}</small>
    ${a.task && html`<p class="dim task">${t(a.task, 300)}</p>`}</div>`;
  return html`<${Windowed} items=${under(s)} row=${row} tall=${60} label="Agents" keyOf=${(a) => a.thread} />`;
}

export function Timeline({ s, act }) {
  const [run, choose] = useState("");
  const roots = s.runs.filter((it) => !it.a.depth);
  const chosen = roots[run];
  const items = useFound(s.spans, `${run}`, (it) => !chosen || (it.seq >= chosen.seq && it.start <= (chosen.span.end || Infinity)));
  const [from, to] = chosen ? [chosen.at, chosen.span.end || s.last] : [s.first, s.last];
  const wide = Math.max(to - from, 1);
  const place = (ms) => Math.min(100, Math.max(0, ((ms - from) / wide) * 100));
  const row = (it) => {
    const end = it.end || s.last;
    const name = (it.kind === "run" ? "Run of " : it.kind === "wait" ? "Waits: " : "") + (it.label || it.kind);
    return html`<button class=${`span ${it.kind} ${it.state ?? "open"}`} onClick=${() => act.show(it.seq)}>
      <span class="name" style=${{ paddingLeft: `${Math.min(it.a.depth, 8) * 2 + (it.kind !== "run")}rem` }}>${t(name, 60)}</span>
      <span class="lane"><i style=${{ left: `${place(it.start)}%`, width: `max(3px, ${place(end) - place(it.start)}%)` }}></i></span><span class="long">${span(end - it.start)}<span class="seen">, ${line(it.a.name)}, ${line(it.state ?? "open")}</span></span></button>`;
  };
  return html`<div class="bar"><label>Run <select value=${run} onChange=${(event) => choose(event.target.value)}><option value="">all</option>
      ${roots.slice(-200).map((it) => html`<option value=${roots.indexOf(it)}>${it.run}, ${clock(it.at)}</option>`)}</select></label>
    <span class="key"><i class="model"></i>model <i class="call"></i>tools <i class="wait"></i>waits <i class="run"></i>runs</span><small>${clock(from)} – ${clock(to)}, ${span(wide)}</small></div>
    <${Windowed} items=${items} row=${row} tall=${28} label="Timeline" kind="spans" />`;
}

const sums = (title, rows) => html`<table><caption>${title}</caption><thead><tr><th scope="col">What</th>${["Requests", "Input", "Cached", "Output", "Thinking", "Cost"].map((it) => html`<th scope="col" class="num">${it}</th>`)}</tr></thead>
  <tbody>${rows.map(([name, sum]) => html`<tr><th scope="row">${t(name, 80)}</th><td>${sum.requests}</td><td>${number(prompted(sum))}</td>
    <td><meter min="0" max="1" value=${share(sum)} aria-label="cached share"></meter> ${Math.round(share(sum) * 100)}%</td><td>${number(sum.out)}</td><td>${number(sum.think)}</td><td>${money(sum.cost)}</td></tr>`)}</tbody></table>`;

export function Cost({ s }) {
  const { total_usage: usage, total_cost: cost } = s.reported ?? {};
  const most = [...s.agents.values()].sort((a, b) => b.sum.cost - a.sum.cost || prompted(b.sum) - prompted(a.sum));
  return html`<div class="pad scroll" tabindex="0" role="region" aria-label="Cost and tokens">
    <dl class="big"><div><dt>Cost</dt><dd>${money(s.total.cost)}</dd></div><div><dt>Input</dt><dd>${number(prompted(s.total))}</dd></div>
      <div><dt>of it cached</dt><dd>${Math.round(share(s.total) * 100)}%</dd></div><div><dt>Output</dt><dd>${number(s.total.out)}</dd></div><div><dt>Requests</dt><dd>${s.total.requests}</dd></div></dl>
    ${sums("By model", [...s.models])}${s.byRun.size > 1 && sums("By run", [...s.byRun].slice(-50).map(([run, sum]) => [`Run ${run}`, sum]))}${sums(`By agent${most.length > 100 ? " (the first 100)" : ""}`, most.slice(0, 100).map((a) => [a.path ?? a.name, a.sum]))}
    ${usage && html`<p class="dim">The last run by its own count, helpers included: ${number(prompted(used(usage)))} in, ${number(usage.output)} out, ${money(cost)}.</p>`}</div>`;
}

const CATEGORIES = ["system", "tools", "user", "reminders", "summaries", "replies", "thinking", "calls", "results", "media"];
const CACHED = { read: "read from the cache", write: "written to it", fresh: "not cached" };
const Stack = ({ parts, most }) => html`<span class="stack">${parts.map(([name, n], at) => n > 0 && html`<i class=${`c${at % 10}`} style=${{ width: `${(n / most) * 100}%` }} title=${`${name}: ${n}`}></i>`)}</span>`;
const told = (parts) => parts.filter(([, n]) => n > 0).map(([name, n]) => `${name} ${number(n)}`).join(", ");

export function Context({ s, context, load }) {
  const [at, choose] = useState(null);
  const [seen, see] = useState(null);
  const known = useMemo(() => new Map((context ?? []).map((it) => [`${it.thread}/${it.turn}`, it.tokens])), [context]);
  const most = useMemo(() => s.requests.reduce((max, it) => Math.max(max, prompted(it.usage)), 1), [s, s.requests.length]);
  const parts = (it) => {
    const tokens = known.get(`${it.a.thread}/${it.turn}`);
    return tokens ? Object.entries(tokens) : Object.entries(CACHED).map(([key, name]) => [name, it.usage[key]]);
  };
  const look = async (it) => {
    choose(it.n); see(null); see(await load(it.seq).catch((error) => ({ trouble: error.message })));
  };
  const row = (it) => html`<button class=${`request ${at === it.n ? "on" : ""}`} onClick=${() => look(it)} aria-pressed=${at === it.n}>
    <span class="name">${t(`${it.a.name} · turn ${it.turn}`, 60)}</span><${Stack} parts=${parts(it)} most=${Math.max(most, parts(it).reduce((sum, [, n]) => sum + n, 0))} />
    <span class="long">${number(prompted(it.usage))}<span class="seen">: ${told(parts(it))}</span></span></button>`;
  const legend = known.size ? CATEGORIES : Object.values(CACHED);
  return html`<div class="bar"><span class="key">${legend.map((name, n) => html`<i class=${`c${n}`}></i>${name} `)}</span></div>
    <div class="split"><${Windowed} items=${s.requests} row=${row} tall=${30} label="Requests" kind="spans" />
      ${at != null && html`<section class="scroll pad" aria-label="The exact request" tabindex="0">${!seen ? html`<p class="dim">Reading…</p>` : seen.trouble ? html`<p class="bad">${line(seen.trouble, 500)}</p>` : html`<${Exact} of=${seen} />`}</section>`}</div>`;
}

function Exact({ of }) {
  const tokens = Object.entries(of.tokens ?? {});
  return html`<h2>The request of record ${of.seq}</h2><p class="dim">${t(of.model)} · ${of.counted ? `${number(of.counted)} tokens, counted by the provider` : `about ${number(of.estimated)} tokens`}</p>
    <table><tbody>${tokens.map(([name, n]) => n > 0 && html`<tr><th scope="row">${name}</th><td>${number(n)}</td></tr>`)}</tbody></table>
    <${Fold} id=${`s${of.seq}`} open head="System prompt"><${Pre} text=${of.system} /><//>
    <${Fold} id=${`t${of.seq}`} head=${`Tools (${of.tools?.length ?? 0})`}><ul>${of.tools?.map((it) => html`<li>${t(it.name)}</li>`)}</ul><//>
    <${Fold} id=${`o${of.seq}`} head="Options"><${Pre} text=${pretty(JSON.stringify(of.options ?? {}))} kind="code" /><//>
    <${Fold} id=${`e${of.seq}`} open head=${`Messages (${of.entries?.length ?? 0})`}>${(of.entries ?? []).slice(0, 500).map(({ entry }, n) => html`<${Fold} id=${`e${of.seq}/${n}`}
      head=${html`<b>${line(entry.entry)}</b> <small>${t(textOf(entry.content) || entry.text || textOf(entry.reply?.blocks) || "", 120)}</small>`}><${Pre} text=${pretty(JSON.stringify(entry))} kind="code" /><//>`)}<//>`;
}

export function Shared({ s, act }) {
  const at = (seq) => html`<button class="plain dim" onClick=${() => act.show(seq)}>#${seq}</button>`;
  const part = (title, list, row) => html`<h2>${title}</h2>${list.length ? html`<ul class="cards">${list.slice(-200).map((it) => html`<li>${row(it)}</li>`)}</ul>` : html`<p class="dim">Nothing so far.</p>`}`;
  return html`<div class="pad scroll" tabindex="0" role="region" aria-label="Board, notes and memory">
    ${part("Board", [...s.tasks.values()], (it) => html`<${State} of=${it.status} /> <b>${t(it.title)}</b> <small>${t(it.assignee ?? "")}</small> ${at(it.seq)}${it.result && html`<${Pre} text=${it.result} first=${300} />`}`)}
    ${part("Notes", [...s.notes], ([name, it]) => html`<b>${t(name)}</b> <small>by ${t(it.a.name)}</small> ${at(it.seq)}<${Pre} text=${it.text} first=${600} />`)}
    ${part("Memory", [...s.facts.values()], (it) => html`<${State} of=${it.how} /> ${t(it.text, 600)} ${at(it.seq)}`)}
    ${part("Between agents", s.mail, (it) => html`<b>${line(it.kind)}</b> ${t(JSON.stringify(it.data), 400)} ${at(it.seq)}`)}</div>`;
}
