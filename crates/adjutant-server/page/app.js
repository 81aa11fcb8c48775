// The page: which session is looked at, how, and as of when.
import { html, render, useEffect, useMemo, useRef, useState } from "./preact.js";
import { PASSING, begin, fold, prompted, standing, undone, used } from "./fold.js";
import { ask, at, enter, exported, follow, sliced } from "./net.js";
import { Composer, Fork, Pause, Undo } from "./forms.js";
import { Windowed } from "./list.js";
import { Agents, Context, Cost, Shared, State, Timeline, Transcript } from "./views.js";
import { t, ago, clock, line, many, money, number, span } from "./text.js";

const TABS = ["Transcript", "Agents", "Timeline", "Cost", "Context", "Shared", "Forks"];
const address = (agent, session = "", tab = "") => `#/${[agent, session, tab].map(encodeURIComponent).join("/").replace(/\/+$/, "")}`;
const read = (it) => { try { return decodeURIComponent(it); } catch { return it; } };
const route = () => location.hash.slice(2).split("/").map(read);

/** Draws again soon, however often it is told to; while very much comes, it draws less. */
function useDraw() {
  const [, set] = useState(0);
  return useMemo(() => {
    let [told, waited] = [0, 0];
    const turn = () => {
      if (told > 100 && (waited += 1) < 40) {
        told = 1; setTimeout(turn, 50);
      } else {
        told = waited = 0; set((n) => n + 1);
      }
    };
    return () => (told += 1) === 1 && setTimeout(turn, 40);
  }, []);
}

/** The events of a session, folded: as they are, and as they were at a record. */
function useSession(agent, session) {
  const draw = useDraw();
  const own = useMemo(() => ({ events: [], s: begin(), who: new Map(), past: null, at: null, trouble: null }), [agent, session]);
  useEffect(() => {
    const stop = new AbortController();
    const hear = (e) => {
      const key = `${e.who.agent_id}/${e.who.name}`;
      if (!own.who.has(key)) own.who.set(key, e.who);
      e.who = own.who.get(key); fold(own.s, e);
      if (!PASSING.has(e.event)) own.events.push(e);
      draw();
    };
    const tell = (trouble, status) => {
      Object.assign(own, { trouble, status }); draw();
    };
    if (exported) sliced(exported.events, hear, stop.signal);
    else follow(agent, session, hear, tell, stop.signal);
    return () => stop.abort();
  }, [own]);
  own.travel = async (to) => {
    own.at = to;
    own.job?.abort();
    const job = (own.job = new AbortController());
    if (to == null) own.past = null;
    else {
      const past = own.past && own.past.seq <= to ? own.past : Object.assign(begin(), { next: 0 });
      const end = own.events.findIndex((e) => e.seq > to);
      const due = own.events.slice(past.next, end < 0 ? undefined : end);
      await sliced(due, (e) => (fold(past, e), (past.next += 1)), job.signal);
      if (job.signal.aborted) return;
      own.past = past;
    }
    draw();
  };
  return own;
}

function useAsked(path, every, ...deps) {
  const [said, set] = useState(null);
  useEffect(() => {
    let [live, timer] = [true, 0];
    const again = async () => {
      if (!document.hidden || !said) {
        const got = await ask(path).catch((error) => ({ trouble: error.message, status: error.status }));
        if (live) set(got);
      }
      if (live && every) timer = setTimeout(again, every);
    };
    if (path && !exported) again();
    return () => ((live = false), clearTimeout(timer));
  }, [path, ...deps]);
  return said;
}

/** What each request was made of, as far as it is known: a page after the other, and what came since. */
function useContext(own, agent, session, wanted) {
  const [list, set] = useState(exported?.context ?? []);
  const [after, due] = [list.at(-1)?.seq ?? 0, own.s.requests.length > list.length];
  const said = useAsked(wanted && due && at(agent, "context", { session, after, limit: 1000 }), 0, own.s.requests.length >> 3);
  useEffect(() => said?.requests?.length > 0 && said.requests[0].seq > after && set([...list, ...said.requests]), [said]);
  return list;
}

function Sessions({ agent, session }) {
  const [search, find] = useState("");
  const [state, choose] = useState("");
  const [limit, more] = useState(100);
  const said = useAsked(agent && at(agent, "sessions", { limit, search, state }), 3000);
  const row = (it) => html`<a class=${`session ${it.name === session ? "on" : ""}`} href=${address(agent, it.name)} aria-current=${it.name === session ? "page" : null}>
    <span class="row"><b>${t(it.title ?? it.name, 80)}</b><${State} of=${it.state ?? "open"} /></span>
    <small class="row"><span>${ago(it.changed_ms)}${it.title && html` · ${t(it.name, 60)}`}</span><span>${it.usage ? `${number(prompted(used(it.usage)) + it.usage.output)} tok · ` : ""}${money(it.cost)}</span></small></a>`;
  return html`<nav aria-label="Sessions"><div class="bar"><input type="search" id="search" aria-label="Search sessions" placeholder="Search sessions" value=${search} onInput=${(event) => find(event.target.value)} />
    <select aria-label="State" value=${state} onChange=${(event) => choose(event.target.value)}><option value="">all</option>${["working", "waiting", "open", "done", "failed", "aside"].map((it) => html`<option>${it}</option>`)}</select></div>
    ${said?.trouble && html`<p class="bad pad" role="alert">${line(said.trouble)}</p>`}
    <${Windowed} items=${said?.sessions ?? []} row=${row} tall=${58} keyOf=${(it) => it.name} label="Sessions" />
    <div class="bar">${said?.after && limit < 1000 && html`<button onClick=${() => more(Math.min(limit * 3, 1000))}>More sessions</button>`}<button onClick=${() => (location.hash = address(agent, `session-${new Date().toISOString().slice(0, 19)}`))}>New session</button><span class="grow"></span><a href=${address(agent)}>Workers</a></div></nav>`;
}

/** Who drives a session, and what its work is, in words. */
const driver = ({ owner, is_owned }) => owner?.split(",")[0] ?? (is_owned ? "a worker" : "");
const stand = ({ work, is_owned }) => ({ __proto__: null, open: is_owned ? "at work" : "due", parked: `waits: ${work?.on}`, aside: `set aside: ${work?.why}` })[work?.work] ?? "";

function Workers({ agent }) {
  const said = useAsked(at(agent, "fleet"), 3000);
  const rows = [...(said?.sessions ?? [])].sort((a, b) => (driver(a) ? driver(b) ? driver(a).localeCompare(driver(b)) : -1 : driver(b) ? 1 : 0));
  return html`<div class="pad scroll" tabindex="0" role="region" aria-label="Workers"><h1>Workers</h1>${!said ? html`<p class="dim">Reading…</p>` : said.trouble ? html`<p class="dim">${t(said.trouble)}</p>`
    : html`<dl class="big">${Object.entries({ due: "due", at_work: "at work", parked: "waiting", aside: "set aside" }).map(([key, name]) => html`<div><dt>${name}</dt><dd>${said[key] ?? 0}</dd></div>`)}</dl>
      ${said.oldest_ms != null && html`<p class="dim">Due for ${span(said.oldest_ms)} at most.</p>`}
      <table><caption>What each drives</caption><thead><tr><th scope="col">Driven by</th><th scope="col">Session</th><th scope="col">Work</th><th scope="col">Changed</th></tr></thead>
      <tbody>${rows.map((it) => html`<tr><td title=${line(it.owner)}>${t(driver(it) || "nobody")}</td><th scope="row"><a href=${address(agent, it.log)}>${t(it.log)}</a></th>
        <td>${t(stand(it))}</td><td>${ago(it.updated_ms)}</td></tr>`)}</tbody></table>`}</div>`;
}

function Forks({ agent, session }) {
  const [other, choose] = useState("");
  const tree = useAsked(at(agent, "tree", { session }), 0);
  const diff = useAsked(other && at(agent, "diff", { session, with: other }), 0);
  const again = useAsked(at(agent, "explain", { session }), 0);
  const sides = (rows) => html`<table class="diff"><thead><tr><th scope="col">Where</th><th scope="col">${t(session)}</th><th scope="col">${t(other)}</th></tr></thead>
    <tbody>${rows.map((it) => html`<tr><th scope="row">${t(it.at)}</th>${it.sides.map((side) => html`<td class=${side == null ? "dim" : ""}>${side == null ? "–" : html`${t(side, 2000)}`}</td>`)}</tr>`)}</tbody></table>`;
  return html`<div class="pad scroll" tabindex="0" role="region" aria-label="Forks and comparison"><h2>Forks</h2>
    <ul class="cards">${[...(tree?.ancestors ?? []).map((info) => ({ depth: 0, info })), ...(tree?.branches ?? [])].map(({ depth, info }) => html`<li style=${{ marginLeft: `${depth}rem` }}><a href=${address(agent, info.log)}>${t(info.log)}</a> <small>${info.head} records, ${ago(info.updated_ms)}</small>
      ${info.log !== session && html` <button onClick=${() => choose(info.log)}>Compare</button>`}</li>`)}</ul>
    <h2>Compare with</h2><form class="fields" onSubmit=${(event) => (event.preventDefault(), choose(event.target.other.value))}><input name="other" key=${other} aria-label="Another session" defaultValue=${other} /><button>Compare</button></form>
    ${diff && (diff.trouble ? html`<p class="bad">${t(diff.trouble)}</p>` : html`<p>The same through record <b>${diff.shared}</b>; from there, ${diff.beyond[0]} and ${diff.beyond[1]} records.</p>
      ${diff.fields.length > 0 && html`<h3>The first difference</h3>${sides(diff.fields)}`}${diff.lines.length > 0 && html`<h3>From where they part</h3>${sides(diff.lines)}`}`)}
    ${again?.again?.length > 0 && html`<h2>What would run again</h2><ul>${again.again.map((it) => html`<li>${t(it.text, 500)}</li>`)}</ul>`}</div>`;
}

function Session({ agent, session, tab, help }) {
  const own = useSession(agent, session);
  const [only, choose] = useState("");
  const [find, look] = useState("");
  const [cursor, move] = useState(null);
  const [forking, ask_fork] = useState(null);
  const [undoing, ask_undo] = useState(null);
  const context = useContext(own, agent, session, tab === "Context");
  const row = useAsked(at(agent, "sessions", { search: session, limit: 50 }), 5000)?.sessions?.find((it) => it.name === session);
  const s = own.past ?? own.s;
  // A run that nobody drives any more looks in its events like one that goes on.
  const now = standing(own.s) === "working" && row?.state === "open" ? "open" : standing(own.s);
  const control = (said) => ask(at(agent, "control", { session }), said);
  const act = {
    travel: (seq) => own.travel(seq),
    only: (thread) => (choose(thread), go("Transcript")),
    show: (seq) => (choose(""), look(""), move(s.items.findIndex((it) => (it.call?.seq ?? it.seq) >= seq)), go("Transcript")),
    seen: [], ...(!exported && { fork: ask_fork, stopCall: (call) => control({ control: "stop_call", call: call.id }) }),
  };
  const go = (to) => (exported ? help.tab(to) : (location.hash = address(agent, session, to)));
  // What is drawn now: effects run later, and a key may come before.
  const heard = useRef();
  heard.current = (event) => {
    if (/INPUT|TEXTAREA|SELECT/.test(event.target.tagName) || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const step = (by) => own.travel(Math.min(Math.max((own.at ?? own.s.seq) + by, 1), own.s.seq));
    const keys = {
      j: () => move((at) => Math.min((at ?? -1) + 1, act.seen.length - 1)), k: () => move((at) => Math.max((at ?? act.seen.length) - 1, 0)), "[": () => step(-1), "]": () => step(1),
      l: () => (own.travel(null), move(null)), f: () => act.fork && act.seen[cursor] && act.fork(act.seen[cursor]), "/": () => document.getElementById("find")?.focus(), "?": help.show,
  };
    const tabbed = TABS[Number(event.key) - 1];
    if (tabbed) go(tabbed);
    else if (keys[event.key]) keys[event.key]();
    else return;
    event.preventDefault();
  };
  useEffect(() => {
    const key = (event) => heard.current(event);
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);
  const load = (seq) => (exported ? Promise.reject(new Error("An exported page has no requests.")) : ask(at(agent, "request", { session, seq })));
  const views = {
    Transcript: () => html`<div class="bar"><input type="search" id="find" aria-label="Find in the transcript" placeholder="Find" value=${find} onInput=${(event) => (move(null), look(event.target.value))} />
        <select aria-label="Agent" value=${only} onChange=${(event) => choose(event.target.value)}><option value="">all agents</option>${[...s.agents.values()].slice(0, 500).map((it) => html`<option value=${it.thread}>${line(it.name, 60)}</option>`)}</select></div>
      <${Transcript} s=${s} only=${only} find=${find} cursor=${cursor} act=${act} />`,
    Agents: () => html`<${Agents} s=${s} act=${act} />`, Timeline: () => html`<${Timeline} s=${s} act=${act} />`, Cost: () => html`<${Cost} s=${s} />`,
    Context: () => html`<${Context} s=${s} context=${context} load=${load} />`, Shared: () => html`<${Shared} s=${s} act=${act} />`, Forks: () => html`<${Forks} agent=${agent} session=${session} />`,
  };
  const waits = own.past ? [] : [...own.s.pauses.values()];
  return html`<div class="head"><h1>${t(session)}</h1><${State} of=${now} /><span class="dim">${many(s.runs.filter((it) => !it.a.depth).length, "run")} · ${many(s.total.requests, "request")} · ${money(s.total.cost)}</span>
      <span class="grow"></span>${!exported && own.s.files.length > 0 && html`<button onClick=${() => ask_undo(undone(own.s))}>Undo</button>`}${!exported && html`<a class="button" href=${`/v1${at(agent, "export", { session })}`} download>Export</a>`}
      <span class="seen" aria-live="polite">${waits.length ? `${many(waits.length, "question")} wait` : `The session is ${now}`}</span></div>
    ${own.trouble && html`<p class="bad pad" role="alert">${own.status === 401 ? "Open the address that the command printed: this browser is not signed in." : own.status === 404 ? "There is no such session yet. A prompt begins it." : `Not connected: ${line(own.trouble)}`}</p>`}
    ${waits.length > 0 && html`<section class="pauses" aria-label="What waits" tabindex="0">${waits.slice(0, 20).map((it) => html`<${Pause} key=${it.pause.id + it.pause.digest} of=${it} answer=${!exported && ((answer) => control({ control: "answer", answers: [answer] }))} />`)}${waits.length > 20 && html`<p>${waits.length - 20} more</p>`}</section>`}
    <div class="tabs" role="tablist" aria-label="Views">${TABS.filter((it) => !exported || it !== "Forks").map((it) => html`<button role="tab" id=${`tab-${it}`} aria-controls="view" aria-selected=${it === tab} tabindex=${it === tab ? 0 : -1} onClick=${() => go(it)}
      onKeyDown=${(event) => {
        const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (by) (go(TABS.at((TABS.indexOf(tab) + by) % TABS.length)), event.currentTarget.parentNode.children[(TABS.indexOf(tab) + by + TABS.length) % TABS.length]?.focus());
      }}>${it}</button>`)}</div>
    <div id="view" role="tabpanel" aria-labelledby=${`tab-${tab}`}>${views[tab]()}</div>
    <div class=${`time ${own.past ? "past" : ""}`}><button onClick=${() => own.travel(null)} disabled=${own.at == null} aria-pressed=${own.at == null}>${now === "working" ? "Live" : "Now"}</button>
      <input type="range" min="1" max=${Math.max(own.s.seq, 1)} value=${own.at ?? own.s.seq} aria-label="Record" onInput=${(event) => own.travel(Number(event.target.value))} /><output>${own.at ? `as at record ${own.at}` : `record ${own.s.seq}`} of ${own.s.seq} · ${clock(s.last || Date.now())}</output></div>
    ${!exported && !own.past && html`<${Composer} state=${now} say=${control} />`}
    ${undoing && html`<${Undo} of=${undoing} close=${() => ask_undo(null)} undo=${() => ask(at(agent, "undo", { session }), { to: undoing.to })} />`}
    ${forking && html`<${Fork} of=${forking} session=${session} close=${() => ask_fork(null)} fork=${async (said) => {
      const made = await ask(at(agent, "fork", { session }), said);
      location.hash = address(agent, made.name ?? said.to);
    }} />`}`;
}

const KEYS = [["j, k", "next and previous item"], ["f", "fork at it"], ["[, ]", "one record back and forth in time"], ["l", "live again"], ["/", "find"], ["1–7", "views"], ["?", "this help"]];
function App() {
  const [path, go] = useState(route());
  const [view, tabbed] = useState(TABS[0]);
  const [entered, enter_now] = useState(!!exported);
  const help = useRef();
  useEffect(() => {
    const moved = () => go(route());
    addEventListener("hashchange", moved);
    if (!exported) enter().finally(() => (enter_now(true), moved()));
    return () => removeEventListener("hashchange", moved);
  }, []);
  const agents = useAsked(entered && "/agents", 5000, entered);
  const names = agents?.agents?.map((it) => it.agent) ?? [];
  const agent = exported ? "exported" : path[0] || names[0];
  const session = exported?.session ?? path[1] ?? "";
  const tab = exported ? view : TABS.includes(path[2]) ? path[2] : TABS[0];
  const theme = (event) => (document.documentElement.style.colorScheme = event.target.value);
  return html`<header><a class="brand" href=${exported ? "#" : address(agent ?? "")}>Adjutant</a>${names.length > 1 && html`<select aria-label="Agent" value=${agent} onChange=${(event) => (location.hash = address(event.target.value))}>${names.map((it) => html`<option value=${it}>${line(it)}</option>`)}</select>`}
      <span class="grow"></span><select aria-label="Colours" onChange=${theme}><option value="light dark">auto</option><option>light</option><option>dark</option></select><button onClick=${() => help.current.showModal()} aria-label="Keys">?</button></header>
    <div class=${`body ${session ? "in" : ""}`}>${!exported && entered && agent && html`<${Sessions} agent=${agent} session=${session} />`}
    <main>${agents?.status === 401 ? html`<p class="pad" role="alert">This browser is not signed in: open the address that the command printed.</p>` : agent && (session ? html`<${Session} key=${`${agent}\n${session}`} agent=${agent} session=${session} tab=${tab} help=${{ show: () => help.current.showModal(), tab: tabbed }} />` : entered && html`<${Workers} agent=${agent} />`)}</main></div>
    <dialog ref=${help} aria-label="Keys"><h2>Keys</h2><table><tbody>${KEYS.map(([key, what]) => html`<tr><th scope="row"><kbd>${key}</kbd></th><td>${what}</td></tr>`)}</tbody></table><form method="dialog"><button class="main">Close</button></form></dialog>`;
}

render(html`<${App} />`, document.getElementById("page"));
