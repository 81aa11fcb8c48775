// Made events: a session in which everything happens once, one whose every text is hostile, and a long one.

const START = Date.now() - 45_000;
const who = (thread, name, parent, task) => ({
  thread, agent_id: `id-${thread}`, name, config_name: name, path: parent ? `lead/${name}` : name, depth: parent ? 1 : 0, prefix: "",
  ...(parent && { parent }), ...(task && { task }),
});
const text = (it) => [{ type: "text", text: it }];
const usage = (fresh, read, write, output, reasoning = 0) => ({ input_uncached: fresh, cache_read: read, cache_write: write, cache_write_1h: 0, output, reasoning });
const PIXELS = "iVBORw0KGgoAAAANSUhEUgAAAMgAAABkCAIAAABM5OhcAAABJElEQVR4nO3SQQ3AIADAQMC/52GCJaW5U9BH57cHvG79HUCTsUgYi4SxSBiLhLFIGIuEsUgYi4SxSBiLhLFIGIuEsUgYi4SxSBiLhLFIGIuEsUgYi4SxSBiLhLFIGIuEsUgYi4SxSBiLhLFIGIuEsUgYi4SxSBiLhLFIGIuEsUgYi4SxSBiLhLFIGIuEsUgYi4SxSBiLhLFIGIuEsUgYi4SxSBiLhLFIGIuEsUgYi4SxSBiLhLFIGIuEsUgYi4SxSBiLhLFIGIuEsUgYi4SxSBiLhLFIGIuEsUgYi4SxSBiLhLFIGIuEsUgYi4SxSBiLhLFIGIuEsUgYi4SxSBiLhLFIGIuEsUgYi4SxSBiLhLFIGIuEsUgYi4SxSBiLhLFIGIuEsUgYi4Sx7gNZPQLGdI8xhAAAAABJRU5ErkJggg==";

/** Writes events down one after the other. */
class Log {
  events = [];
  seq = 0;
  at = START;
  run = 1;
  turn = 0;
  add(who, event, fields = {}, ms = 40) {
    this.seq += 1;
    this.at += ms;
    this.events.push({ seq: this.seq, at_ms: this.at, run: this.run, turn: this.turn, who, event, ...fields });
  }
  begin(who, prompt, origin = { kind: "person" }) {
    this.add(who, "run_started");
    this.add(who, "entry_added", { content: { entry: "user", content: text(prompt), origin } });
  }
  ask(who, blocks, used, cost, model = "anthropic/claude-sonnet-5", ms = 2400) {
    this.turn += 1;
    this.add(who, "turn_started");
    const stop = blocks.some((it) => it.type === "call") ? "calls" : "end";
    this.add(who, "reply_finished", { reply: { model, blocks, stop, usage: used }, cost }, ms);
  }
  run_call(who, call, result, ms = 300) {
    this.add(who, "tool_started", { call: call.id, name: call.name, args: call.args, ...(call.title && { title: call.title }) });
    this.add(who, "tool_finished", { call: call.id, name: call.name, result: { status: "ok", ...result }, duration: { secs: Math.floor(ms / 1000), nanos: (ms % 1000) * 1e6 } }, ms);
  }
  end(who, outcome = { outcome: "finished", why: "answer" }) {
    this.add(who, "turn_finished");
    this.add(who, "run_finished", { result: { run: this.run, agent: who, outcome, entries: [], calls: [], turns: this.turn } });
  }
}

const call = (id, name, args, title) => ({ type: "call", id, name, args: JSON.stringify(args), ...(title && { title }) });

/** A lead with two readers mends a test, keeps notes, and waits for a word in the end. */
export function rich() {
  const log = new Log();
  const lead = who("main", "lead");
  log.begin(lead, "The test `totals_are_rounded` fails since yesterday. Find out why, mend it, and tell me what you changed.");
  log.add(lead, "entry_added", { content: { entry: "user", content: text("- The user likes short answers with the commands that were run."), origin: { kind: "reminder", by: "memory" } } });
  const board = call("c1_0_1", "create_task", { title: "Find the failing rounding", priority: 5 });
  const hand = call("c1_0_2", "delegate", { tasks: [{ agent: "reader", task: "Where are totals rounded?" }, { agent: "tester", task: "Run the tests of billing" }] }, "Delegate");
  log.ask(lead, [{ type: "thinking", text: "The failure began yesterday. First the code that rounds, then the tests; both can be looked at at the same time by two agents. I write the task down, so that a second lead would see it." }, { type: "text", text: "I look at the rounding and at the tests at the same time." }, board, hand], usage(2210, 0, 6120, 214, 96), 41_200_000);
  log.run_call(lead, board, { content: text("ok"), details: { id: "t1", title: "Find the failing rounding", status: "in_progress", priority: 5, assignee: "lead" } }, 20);
  log.add(lead, "tool_started", { call: hand.id, name: hand.name, title: hand.title, args: hand.args });
  const reader = who("main.c1_0_2.0", "reader-totals-1", "main", "Where are totals rounded?");
  const tester = who("main.c1_0_2.1", "tester-billing-2", "main", "Run the tests of billing");
  for (const it of [reader, tester]) {
    log.add(lead, "child_opened", { call: hand.id, child: it });
    log.add(it, "run_started");
    log.add(it, "entry_added", { content: { entry: "user", content: text(it.task), origin: { kind: "task", from: "main" } } });
  }
  const search = call("c1_0_0", "search_text", { pattern: "round\\(", path: "src" }, "Search in files");
  const run = call("c1_0_0", "run_command", { command: "cargo test -p billing --quiet" }, "Run a command");
  log.ask(reader, [search], usage(820, 0, 1900, 60), 8_100_000, "anthropic/claude-haiku-4.5", 900);
  log.run_call(reader, search, { content: text("src/total.rs:41:        let cents = (sum * 100.0).round() as i64;\nsrc/tax.rs:12:        round(cents)\n[2 matches in 2 files]") }, 120);
  log.ask(tester, [run], usage(760, 0, 1900, 44), 7_400_000, "anthropic/claude-haiku-4.5", 1100);
  log.run_call(tester, run, { status: "failed", content: text("running 24 tests\n.......F................\n---- totals_are_rounded stdout ----\nthread panicked at tests/total.rs:88:5:\nassertion `left == right` failed\n  left: 1005\n right: 1004\n\ntest result: FAILED. 23 passed; 1 failed") }, 8400);
  log.ask(reader, [{ type: "text", text: "Totals are rounded in `src/total.rs`, line 41, **half away from zero**; the tax in `src/tax.rs` rounds *half to even*." }], usage(240, 2700, 0, 70), 3_000_000, "anthropic/claude-haiku-4.5", 1200);
  log.end(reader);
  log.add(lead, "child_ended", { call: hand.id, thread: reader.thread, outcome: { outcome: "finished", why: "answer" }, usage: usage(1060, 2700, 1900, 130) });
  log.ask(tester, [{ type: "text", text: "One of 24 fails: `totals_are_rounded`, 1005 instead of 1004." }], usage(310, 2600, 0, 40), 2_700_000, "anthropic/claude-haiku-4.5", 800);
  log.end(tester);
  log.add(lead, "child_ended", { call: hand.id, thread: tester.thread, outcome: { outcome: "finished", why: "answer" }, usage: usage(1070, 2600, 1900, 84) });
  log.add(lead, "tool_finished", { call: hand.id, name: hand.name, result: { status: "ok", content: text("reader-totals-1: completed\ntester-billing-2: completed") }, duration: { secs: 14, nanos: 0 } });
  log.add(lead, "turn_finished");
  const note = call("c2_0_0", "write_note", { name: "rounding", content: "Totals: half away from zero (src/total.rs:41).\nTax: half to even (src/tax.rs:12).\nThey must agree." });
  const edit = call("c2_0_1", "edit_file", { path: "src/total.rs", old_text: "        let cents = (sum * 100.0).round() as i64;\n", new_text: "        let cents = (sum * 100.0).round_ties_even() as i64;\n" }, "Edit a file");
  log.ask(lead, [{ type: "text", text: "The two roundings disagree. I make the total round as the tax does." }, note, edit], usage(640, 8300, 380, 160, 20), 9_700_000);
  log.run_call(lead, note, { content: text("Wrote note rounding."), details: { name: "rounding", version: 1 } }, 12);
  log.run_call(lead, edit, { content: text("Changed src/total.rs"), details: { files: ["src/total.rs"], diff: "--- a/src/total.rs\n+++ b/src/total.rs\n@@ -39,5 +39,5 @@\n     pub fn total(&self) -> i64 {\n         let sum: f64 = self.lines.iter().map(Line::price).sum();\n-        let cents = (sum * 100.0).round() as i64;\n+        let cents = (sum * 100.0).round_ties_even() as i64;\n         cents\n     }\n" } }, 30);
  log.add(lead, "turn_finished");
  const look = call("c3_0_0", "screenshot", { page: "/bill/7" }, "Take a picture");
  const keep = call("c3_0_1", "store_memory", { fact: "Totals and tax of the billing crate must round half to even." });
  log.ask(lead, [look, keep], usage(420, 9100, 260, 70), 6_900_000);
  log.run_call(lead, look, { content: [{ type: "image", media_type: "image/png", source: { kind: "base64", data: PIXELS } }] }, 700);
  log.run_call(lead, keep, { content: text("Stored: - [id:f1] Totals and tax of the billing crate must round half to even.") }, 15);
  log.add(lead, "turn_finished");
  log.add(lead, "message_queued", { item: 1, lane: "steering", content: { entry: "user", content: text("Add a line to the changelog too."), origin: { kind: "steering" } } }, 900);
  log.add(lead, "message_placed", { item: 1 });
  log.add(lead, "entry_added", { content: { entry: "user", content: text("Add a line to the changelog too."), origin: { kind: "steering" } } });
  const commit = call("c4_0_0", "run_command", { command: "git commit -am 'Totals round half to even, as the tax does'", timeout_s: 30 }, "Run a command");
  log.ask(lead, [{ type: "text", text: "Done so far:\n\n1. `src/total.rs` rounds **half to even**\n2. the note *rounding* tells why\n\n| crate | tests | failed |\n|---|---|---|\n| billing | 24 | 0 |\n| tax | 11 | 0 |\n\n```rust\nlet cents = (sum * 100.0).round_ties_even() as i64;\n```\nSee [the documentation](https://doc.rust-lang.org/std/primitive.f64.html). Now I commit it." }, commit], usage(380, 9600, 300, 190, 30), 8_800_000);
  log.add(lead, "paused", { pause: { id: "main/c4_0_0", ask: { kind: "approval", prompt: "May run_command run?", data: { why: "it changes the repository", mode: "ask" } }, call: commit, thread: "main", agent: "lead", path: "lead", digest: "d1" } });
  return log.events;
}

/** A text that would do harm as markup, hides, and turns the direction of its line. */
export const nasty = (n) => `<img src=x onerror="window.hacked=${n}"><script>window.hacked=${n}</script>\u202egnp.exe\u0000\u001b[31m\u0007"'\`{{\${7*7}}} ]]> [x](javascript:window.hacked=${n}) ![y](data:text/html,z) שלום عربى\u{e0041}`;

/** Every text of every event replaced by something nasty. */
export function hostile(long = 1_000_000) {
  let n = 0;
  const KEPT = new Set(["event", "thread", "kind", "entry", "type", "status", "outcome", "id", "call", "parent", "agent_id", "stop", "answer", "lane", "media_type", "pause", "mode"]);
  // Tools that the page knows keep their names, so that the views which are made of their calls are filled.
  const tools = new Set(["create_task", "write_note", "edit_file", "store_memory"]);
  const twist = (it, key) => {
    if (key === "name" && tools.has(it)) return it;
    if (typeof it === "string") return KEPT.has(key) ? it : key === "args" ? JSON.stringify(twist(JSON.parse(it))) : nasty(n++);
    if (Array.isArray(it)) return it.map((part) => twist(part, key));
    return it && typeof it === "object" ? Object.fromEntries(Object.entries(it).map(([name, part]) => [name, twist(part, name)])) : it;
  };
  const events = rich().map((it) => twist(it));
  const last = events.at(-1);
  const lead = last.who;
  const more = { seq: last.seq, at_ms: last.at_ms, run: 1, turn: 5, who: lead };
  const add = (event, fields) => events.push({ ...more, seq: (more.seq += 1), event, ...fields });
  for (const kind of ["warning", "denied", "report", "app", "output_refused", "overruled", "something_new", "<b>event</b>"]) {
    add(kind, { warning: { kind: nasty(n++), message: nasty(n++) }, point: nasty(n++), reason: nasty(n++), by: nasty(n++), data: { x: nasty(n++) }, kind: nasty(n++), outcome: { outcome: nasty(n++) } });
  }
  add("app", { kind: "team.message", version: 1, data: { to: nasty(n++), text: nasty(n++) } });
  add("app", { kind: "file.changed", version: 1, data: { path: nasty(n++), before: null } });
  add("app", { kind: "file.changed", version: 1, data: null });
  const odd = call("c8_0_0", nasty(n++), { [nasty(n++)]: nasty(n++) }, nasty(n++));
  const wide = [call("c9_0_0", "write_file", { path: "x".repeat(long), content: `<b>${"y".repeat(long)}` }), call("c9_0_1", "edit_file", { path: nasty(n++), old_text: "a".repeat(long), new_text: "<i>".repeat(long / 3) })];
  add("reply_finished", { reply: { model: nasty(n++), blocks: [{ type: "thinking", text: `<u>${"t".repeat(long)}` }, odd, ...wide], stop: "calls", usage: usage(1, 1, 1, 1) } });
  for (const it of [odd, ...wide]) add("tool_started", { call: it.id, name: it.name, args: it.args, title: nasty(n++) });
  add("tool_finished", { call: odd.id, name: odd.name, result: { status: "failed", content: text(nasty(n++)) } });
  for (const it of wide) add("tool_finished", { call: it.id, name: it.name, result: { status: "ok", content: text("<s>".repeat(long / 3)), details: { diff: `--- ${nasty(n++)}\n+++ ${nasty(n++)}\n+${"d".repeat(long)}` } } });
  add("run_finished", { result: { outcome: { outcome: "failed", failure: { failure: "model", message: nasty(n++), error: { message: nasty(n++) } } }, total_usage: usage(1, 1, 1, 1) } });
  add("run_started", {});
  add("entry_added", { content: { entry: "user", content: text("A".repeat(long)), origin: { kind: "person" } } });
  add("reply_finished", { reply: { model: nasty(n++), blocks: [{ type: "text", text: `${"<b>".repeat(long / 3)}` }, { type: "text", text: "*".repeat(15000) }, { type: "text", text: "[".repeat(15000) }, { type: "text", text: ">".repeat(3000) }, { type: "opaque", issuer: nasty(n++) }], stop: nasty(n++), usage: usage(1, 1, 1, 1) } });
  add("paused", { pause: { id: "q", ask: { kind: "question", prompt: nasty(n++), schema: { enum: [nasty(n++), "b"] } }, thread: "main", agent: nasty(n++), digest: "d2" } });
  return events;
}

/** A long session: so many events, of a lead and its helpers. */
export function many(count) {
  const log = new Log();
  const lead = who("main", "lead");
  log.begin(lead, "Read all of it.");
  for (let n = 0; log.events.length < count; n += 1) {
    const it = n % 7 ? lead : who(`main.h${n % 40}`, `helper-${n % 40}`, "main");
    const read = call(`c${n}_0_0`, "read_file", { path: `src/part${n}.rs`, first_line: n });
    log.ask(it, [{ type: "text", text: `Part ${n}: it reads **well**, \`fn part_${n}()\` and what follows.\n\n- one\n- two` }, read], usage(300 + (n % 90), 4000 + (n % 4000), 120, 60), 2_000_000, "openai/gpt-5.4", 400);
    log.run_call(it, read, { content: text(Array.from({ length: 12 }, (_, row) => `${row}\tlet part_${n}_${row} = ${n * row};`).join("\n")) }, 60);
    log.add(it, "turn_finished");
  }
  return log.events;
}
