// The one fold: events, and nothing else, become what is shown. It knows no page, clock or network, so live, stored and past
// runs are the same to it; time travel is this fold over fewer events.

const zero = () => ({ fresh: 0, read: 0, write: 0, out: 0, think: 0, cost: null, requests: 0 });

export const begin = () => ({
  seq: 0, first: 0, last: 0, items: [], spans: [], requests: [], runs: [], agents: new Map(), calls: new Map(),
  pauses: new Map(), models: new Map(), byRun: new Map(), total: zero(), reported: null,
  notes: new Map(), facts: new Map(), tasks: new Map(), mail: [], files: [],
});

/** What is not in a log, and so no point in time to go back to. */
export const PASSING = new Set(["reply_started", "reply_pending", "block_started", "text_delta", "thinking_delta", "args_delta",
  "block_finished", "tool_progress"]);

export function fold(s, e) {
  s.seq = Math.max(s.seq, e.seq); s.first ||= e.at_ms; s.last = Math.max(s.last, e.at_ms);
  const a = agent(s, e.who, e);
  a.last = e.at_ms;
  try {
    (ON[e.event] ?? note)(s, e, a);
  } catch {
    // An event of another version, which has not what it has here, is shown as it is.
    note(s, e, a);
  }
  return s;
}

/** Where the whole session stands: the state of its first agent, or that it waits for somebody. */
export const standing = (s) => (s.pauses.size ? "waiting" : s.agents.values().next().value?.state ?? "open");

/** What was read of a prompt, and which share of it a cache had. */
export const prompted = (sum) => sum.fresh + sum.read + sum.write;
export const share = (sum) => (prompted(sum) ? sum.read / prompted(sum) : 0);

/** What an undo puts back: the files that were changed since the newest run which changed some began; none if no run did. */
export function undone(s) {
  const last = s.files.at(-1);
  const run = last && s.runs.findLast((it) => !it.a.depth && it.seq <= last.seq);
  if (!run) return null;
  const files = new Map();
  for (const it of s.files) if (it.seq > run.seq && !files.has(it.path)) files.set(it.path, it.made);
  return { run: run.run, to: run.seq - 1, files: [...files] };
}

export const textOf = (content) =>
  (content ?? []).map((part) => part.text ?? (part.type ? `[${part.type}]` : "")).join("\n");

function agent(s, who, e) {
  let a = s.agents.get(who.thread);
  if (!a) {
    a = { thread: who.thread, sum: zero(), state: "open", turns: 0, calls: 0, first: e.at_ms, last: e.at_ms, reply: null,
      waits: 0, n: s.agents.size };
    s.agents.set(who.thread, a);
  }
  if (a.id !== who.agent_id || a.name !== who.name) {
    Object.assign(a, { id: who.agent_id, name: who.name || who.thread, path: who.path, parent: who.parent,
      depth: who.depth ?? 0, task: who.task ?? a.task });
  }
  return a;
}

function put(s, e, a, item) {
  Object.assign(item, { n: s.items.length, seq: e.seq, at: e.at_ms, a, turn: e.turn }); s.items.push(item);
  return item;
}

const note = (s, e, a) => put(s, e, a, { k: "note", e });

function open(s, e, a, kind, label, more) {
  const span = { n: s.spans.length, kind, label, a, start: e.at_ms, end: 0, seq: e.seq, run: e.run, ...more };
  s.spans.push(span);
  return span;
}

const shut = (span, e, state) => span && !span.end && Object.assign(span, { end: e.at_ms, state });

/** What a model used, by our names. */
export const used = (it) => ({ fresh: it?.input_uncached ?? 0, read: it?.cache_read ?? 0, write: it?.cache_write ?? 0,
  out: it?.output ?? 0, think: it?.reasoning ?? 0 });

function count(sum, usage, cost) {
  sum.requests += 1;
  for (const [key, n] of Object.entries(used(usage))) sum[key] += n;
  if (cost != null) sum.cost = (sum.cost ?? 0) + cost;
}

function bill(s, a, model, usage, cost) {
  // Agents below count their own runs: what they use is of the run above.
  const run = s.agents.values().next().value.run?.run ?? 0;
  for (const [map, key] of [[s.models, model], [s.byRun, run]]) if (!map.has(key)) map.set(key, zero());
  for (const sum of [s.total, a.sum, s.models.get(model), s.byRun.get(run)]) count(sum, usage, cost);
}

function callOf(s, e, a, id, block) {
  const key = `${a.thread}/${id}`;
  let call = s.calls.get(key);
  // A reply that is tried again, or a turn after a crash, may use the id once more.
  if (!call || call.void) {
    call = { id, key, name: block?.name ?? "?", args: block?.args ?? "", status: "asked", a }; s.calls.set(key, call);
    call.item = put(s, e, a, { k: "call", call });
  }
  return call;
}

function reply(s, e, a) {
  a.reply ??= put(s, e, a, { k: "reply", blocks: [], open: true });
  return a.reply;
}

function grow(s, e, a, type) {
  const item = reply(s, e, a);
  const block = (item.blocks[e.block] ??= { type, text: "" });
  if (type === "call") {
    const call = block.id && s.calls.get(`${a.thread}/${block.id}`);
    if (call && call.status === "asked") call.args += e.text;
  } else block.text += e.text;
  item.size = (item.size ?? 0) + e.text.length;
}

function ended(s, e, a, state, outcome) {
  a.state = state;
  if (a.run) Object.assign(a.run, { state, outcome });
  for (const span of [a.run?.span, a.asking]) shut(span, e, state);
  a.run = null; hush(a);
}

/** What is being said stays as it is. */
function hush(a) {
  if (a.reply) a.reply.open = false;
  a.reply = null;
}

function unpause(s, e, pause, answer) {
  const open = s.pauses.get(pause);
  if (!open) return;
  s.pauses.delete(pause); shut(open.span, e, answer?.answer ?? "ok"); open.a.waits -= 1;
  if (!open.a.waits && open.a.state === "waiting") open.a.state = "working";
}

function pausedBy(s, e, a, pause) {
  const own = s.agents.get(pause.thread) ?? a;
  if (s.pauses.has(pause.id)) return;
  own.state = "waiting"; own.waits += 1;
  const call = pause.call && s.calls.get(`${own.thread}/${pause.call.id}`);
  if (call) call.pause = pause.id;
  const span = open(s, e, own, "wait", pause.call?.name ?? pause.ask.kind);
  s.pauses.set(pause.id, { pause, a: own, seq: e.seq, at: e.at_ms, span });
}

const ON = {
  __proto__: null,
  run_started(s, e, a) {
    if (a.run) ended(s, e, a, "left");
    a.state = "working"; a.run = { run: e.run, a, seq: e.seq, at: e.at_ms, span: open(s, e, a, "run", a.name) };
    s.runs.push(a.run); note(s, e, a);
  },
  entry_added(s, e, a) {
    const by = e.content.origin?.by;
    put(s, e, a, { k: "entry", entry: e.content });
    if (by === "memory") s.facts.set(`r${e.seq}`, { text: textOf(e.content.content), how: "recalled", a, seq: e.seq });
  },
  turn_started(s, e, a) { a.state = "working"; a.turns += 1; a.asking = open(s, e, a, "model", ""); },
  reply_started(s, e, a) {
    // Told again after the stream was cut: what was heard of it is forgotten.
    Object.assign(reply(s, e, a), { model: e.model, attempt: e.attempt, blocks: [], size: 0 });
    if (a.asking) a.asking.label = e.model;
  },
  reply_pending() {},
  block_started(s, e, a) {
    reply(s, e, a).blocks[e.block] = { ...e.kind, text: "" };
    if (e.kind.type !== "call") return;
    const call = callOf(s, e, a, e.kind.id, e.kind);
    if (call.status === "asked") call.args = "";
  },
  text_delta: (s, e, a) => grow(s, e, a, "text"),
  thinking_delta: (s, e, a) => grow(s, e, a, "thinking"),
  args_delta: (s, e, a) => grow(s, e, a, "call"),
  block_finished(s, e, a) {
    const item = reply(s, e, a);
    item.blocks[e.block] = e.content;
    if (e.content.type === "call") callOf(s, e, a, e.content.id, e.content).args = e.content.args;
  },
  reply_retracted(s, e, a) {
    const item = reply(s, e, a);
    Object.assign(item, { open: false, void: e.cause });
    for (const block of item.blocks) {
      const call = block?.id && s.calls.get(`${a.thread}/${block.id}`);
      if (call) call.void = true;
    }
    bill(s, a, item.model ?? "?", e.usage, null); a.reply = null;
  },
  reply_finished(s, e, a) {
    const { model, blocks, stop, usage } = e.reply;
    const item = reply(s, e, a);
    Object.assign(item, { blocks, model, stop, usage: used(usage), cost: e.cost, open: false, seq: e.seq, done: true });
    a.reply = null;
    for (const block of blocks) if (block.type === "call") callOf(s, e, a, block.id, block).args = block.args;
    const start = a.asking?.start ?? e.at_ms;
    if (a.asking) a.asking.label = model;
    shut(a.asking, e, stop);
    s.requests.push({ n: s.requests.length, seq: e.seq, a, run: e.run, turn: e.turn, model, usage: used(usage), cost: e.cost,
      at: e.at_ms, ms: e.at_ms - start, stop });
    bill(s, a, model, usage, e.cost);
  },
  tool_started(s, e, a) {
    const call = callOf(s, e, a, e.call, e);
    if (call.args !== e.args) call.asked ??= call.args;
    Object.assign(call, { status: "running", name: e.name, title: e.title, args: e.args, at: e.at_ms }); a.calls += 1;
    call.span = open(s, e, a, "call", e.title ?? e.name, { call });
  },
  tool_progress: (s, e, a) => (callOf(s, e, a, e.call, e).progress = e.progress),
  tool_finished(s, e, a) {
    const call = callOf(s, e, a, e.call, e);
    const ms = e.duration && e.duration.secs * 1e3 + e.duration.nanos / 1e6;
    Object.assign(call, { status: e.result.status, result: e.result, ms, seq: e.seq, name: e.name });
    shut(call.span, e, e.result.status);
    for (const [id, open] of s.pauses) if (open.a === a && open.pause.call?.id === e.call) unpause(s, e, id);
    if (e.result.status === "ok" && SHARED[e.name]) shared(s, call, a, e);
  },
  turn_finished() {},
  message_placed() {},
  paused(s, e, a) { pausedBy(s, e, a, e.pause); note(s, e, a); },
  answered(s, e, a) { unpause(s, e, e.pause, e.answer); note(s, e, a); },
  child_opened(s, e, a) {
    const child = agent(s, e.child, e);
    child.by = `${a.thread}/${e.call}`; child.parent ??= a.thread; note(s, e, a);
  },
  child_ended(s, e, a) {
    const child = s.agents.get(e.thread);
    if (child) ended(s, e, child, e.outcome.outcome, e.outcome);
    note(s, e, a);
  },
  app(s, e, a) {
    if (e.kind === "file.changed") s.files.push({ seq: e.seq, path: e.data.path, made: e.data.before == null });
    if (/^(team|background|handoff)/.test(e.kind)) s.mail.push({ n: s.mail.length, kind: e.kind, data: e.data, a, seq: e.seq, at: e.at_ms });
    note(s, e, a);
  },
  run_resumed(s, e, a) { a.state = "working"; note(s, e, a); },
  run_paused(s, e, a) {
    for (const pause of e.result?.outcome?.pauses ?? []) pausedBy(s, e, a, pause);
    hush(a);
  },
  run_finished(s, e, a) {
    const outcome = e.result.outcome;
    if (!a.run) return;
    for (const [id, open] of s.pauses) if (open.a === a || !a.depth) unpause(s, e, id);
    ended(s, e, a, outcome.outcome, outcome);
    if (!a.depth) {
      s.reported = e.result.total_usage ? e.result : s.reported;
      for (const it of s.agents.values()) if (it.state === "working") ended(s, e, it, outcome.outcome);
    }
    note(s, e, a);
  },
};

/** What calls that went well tell of the board, the notes and the memory. */
function task(s, call, args, at) {
  const told = call.result.details ?? {};
  for (const it of told.tasks ?? [told.task ?? told]) if (it?.id) s.tasks.set(it.id, { ...s.tasks.get(it.id), ...it, ...at });
}
const fact = (how) => (s, call, args, at) => {
  const id = args.memory_id ?? /\[id:([^\]]+)\]/.exec(textOf(call.result.content))?.[1] ?? call.key;
  s.facts.set(id, { text: args.fact ?? s.facts.get(id)?.text ?? id, how, ...at });
};
const SHARED = {
  __proto__: null,
  write_note(s, call, { name, content = "", mode }, at) {
    s.notes.set(name, { text: mode === "append" ? (s.notes.get(name)?.text ?? "") + content : content, ...at });
  },
  store_memory: fact("stored"), replace_memory: fact("replaced"), delete_memory: fact("deleted"),
};
for (const name of ["create", "list", "get", "claim", "update", "complete", "wait", "cancel", "retry"]) {
  SHARED[`${name}_task`] = SHARED[`${name}_tasks`] = task;
}

function shared(s, call, a, e) {
  let args = {};
  try {
    args = JSON.parse(call.args) ?? {};
  } catch {
    // Arguments need not be JSON.
  }
  SHARED[e.name](s, call, args, { a, seq: e.seq });
}
