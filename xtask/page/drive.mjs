// Drives the page in a browser. First against made sessions (looks, hostile text, a long session, axe-core), then against the
// real program with a model of our own, if it is given. Prints a line for each check; the exit code tells whether all hold.
//
// usage: node drive.mjs PAGE OUT BROWSER [PROGRAM]
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { hostile, many, nasty, rich } from "./events.mjs";
import { serve } from "./fixture.mjs";

const [folder, out, executablePath, program] = process.argv.slice(2);
const require = createRequire(join(out, "x.js"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const shots = join(out, "screenshots");
mkdirSync(shots, { recursive: true });

const only = process.env.PAGE_ONLY;
let failed = 0;
export async function check(name, work) {
  if (only && !name.includes(only)) return;
  const from = performance.now();
  const told = await work().then((it) => it ?? "", (error) => ((failed += 1), `FAILED: ${error.stack ?? error}`));
  console.log(`${told.startsWith?.("FAILED") ? "FAIL" : "ok  "} ${name} (${((performance.now() - from) / 1000).toFixed(1)} s) ${told}`);
}
export const must = (holds, what) => {
  if (!holds) throw new Error(what);
};

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const troubles = [];
export async function open(url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1360, height: 860 }, colorScheme: "light", acceptDownloads: true, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  page.on("pageerror", (error) => troubles.push(String(error.stack)));
  page.on("console", (it) => it.type() === "error" && !/status of 4\d\d|net::ERR_/.test(it.text()) && troubles.push(it.text()));
  await page.goto(url);
  return page;
}

const TABS = ["Transcript", "Agents", "Timeline", "Cost", "Context", "Shared", "Forks"];
const categories = { system: 1900, tools: 2400, user: 300, reminders: 120, summaries: 0, replies: 700, thinking: 260, calls: 340, results: 2600, media: 800 };
const session = rich();
const replies = session.filter((it) => it.event === "reply_finished");
const rest = {
  context: () => ({ requests: replies.map((it, n) => ({ seq: it.seq - 1, thread: it.who.thread, turn: it.turn, tokens: Object.fromEntries(Object.entries(categories).map(([name, size], at) => [name, it.who.depth ? (at < 3 ? size : 90 * n) : at < 3 ? size : Math.round((size * n) / 7)])) })) }),
  request: (asked) => ({ seq: Number(asked.get("seq")), model: "anthropic/claude-sonnet-5", system: "You mend programs.\nSay what you did.", entries: session.filter((it) => it.event === "entry_added").map((it, id) => ({ id, entry: it.content })), tools: [{ name: "edit_file", digest: "5f" }, { name: "run_command", digest: "a1" }], options: { max_output_tokens: 8000 }, tokens: categories, estimated: 9420, counted: 9391 }),
  tree: () => ({ ancestors: [], branches: [{ depth: 0, info: { log: "bills/rounding", head: session.length, updated_ms: Date.now() - 9e4 } }, { depth: 1, info: { log: "bills/rounding-haiku", head: 41, updated_ms: Date.now() - 4e4 } }], is_cut: false }),
  diff: () => ({ shared: 33, beyond: [21, 8], fields: [{ at: "/record/replied/reply/blocks/0/text", sides: ["The two roundings disagree. I make the total round as the tax does.", "I round the tax as the total does."] }], lines: [{ at: 34, sides: ["lead: The two roundings disagree.", "lead: I round the tax as the total does."] }, { at: 35, sides: ["lead calls write_note", "lead calls edit_file"] }, { at: 36, sides: ["lead calls edit_file", null] }] }),
  explain: () => ({ again: [{ thread: "main", text: "run_command waits for a word, and is asked about again" }] }),
};
const row = { title: "The failing rounding", state: "waiting", usage: { input_uncached: 48_000, cache_read: 0, cache_write: 0, output: 848 }, cost: 87_800_000 };
const named = (name, it) => [name, { events: rich().slice(0, 20), row: it }];
const sessions = new Map([
  ["bills/rounding", { events: session, row, rest }],
  named("bills/rounding-haiku", { title: "The same, by a smaller model", state: "done", usage: { input_uncached: 21_000, cache_read: 0, cache_write: 0, output: 610 }, cost: 21_300_000 }),
  named("papers/summary", { title: "Summary of 40 papers", state: "working", usage: { input_uncached: 910_000, cache_read: 0, cache_write: 0, output: 31_000 }, cost: 1_830_000_000 }),
  named("release/notes", { title: "Release notes", state: "done", usage: { input_uncached: 15_000, cache_read: 0, cache_write: 0, output: 2_200 }, cost: 61_000_000 }),
  named("nightly/audit", { state: "failed", usage: { input_uncached: 4_100, cache_read: 0, cache_write: 0, output: 90 }, cost: 9_000_000 }),
]);
const server = await serve(folder, sessions);
const at = (name, tab = "") => `${server.url}/#/store/${encodeURIComponent(name)}/${tab}`;

/** What axe-core finds wrong, in words. */
async function violations(page) {
  await page.addScriptTag({ content: axe }).catch(() => page.evaluate(axe));
  const { violations: found } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return found.map((it) => `${it.id}: ${it.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
}

for (const [look, options] of Object.entries({ light: {}, dark: { colorScheme: "dark" }, narrow: { viewport: { width: 390, height: 800 } } })) {
  await check(`axe-core finds nothing in any view, ${look}`, async () => {
    const page = await open(`${server.url}/`, { ...options, bypassCSP: true });
    const found = [];
    const look_at = async (name) => {
      await page.screenshot({ path: join(shots, `${name}-${look}.png`) });
      found.push(...(await violations(page)).map((it) => `${name}: ${it}`));
    };
    await page.getByText("The failing rounding").first().waitFor();
    await look_at("Workers");
    for (const tab of TABS) {
      await page.goto(at("bills/rounding", tab));
      await page.getByRole("tab", { name: tab, selected: true }).waitFor();
      await page.locator("#view").waitFor();
      if (tab === "Context") {
        await page.locator(".request").nth(5).click();
        await page.getByText("The request of record").waitFor();
      }
      if (tab === "Forks") await page.getByRole("button", { name: "Compare" }).first().click();
      await page.waitForTimeout(150);
      await look_at(tab);
    }
    await page.goto(at("bills/rounding"));
    await page.getByRole("button", { name: "Edit the arguments" }).click();
    await look_at("Edit");
    await page.getByRole("slider").fill("30");
    await page.getByText("as at record 30").waitFor();
    await look_at("Past");
    await page.locator(".item").last().getByRole("button", { name: "Fork" }).click({ force: true });
    await page.getByRole("dialog").waitFor();
    await look_at("Fork");
    must(!found.length, found.join("\n"));
    return `${TABS.length + 4} views`;
  });
}

await check("the picture of the README is made", async () => {
  const page = await open(at("bills/rounding"), { viewport: { width: 1280, height: 1000 } });
  await page.locator(".pause").waitFor();
  await page.evaluate(() => (document.querySelector("#view .window").scrollTop = 1500));
  await page.waitForTimeout(500);
  await page.screenshot({ path: join(out, "view.png") });
});

await check("each kind of question has its answers, and Enter in the reason approves nothing", async () => {
  const ask = (kind, more = {}) => ({ id: `main/${kind}`, ask: { kind, prompt: `What about ${kind}?`, ...more }, call: { id: "c9_0_0", name: "pay", args: `{"cents": 12345678901234567890}` }, thread: "main", agent: "lead", digest: `d-${kind}` });
  const answers = [
    ["approval", {}, async (form) => form.getByRole("button", { name: "Approve" }).click(), { answer: "approve" }],
    ["approval", {}, async (form) => form.getByRole("button", { name: "Always" }).click(), { answer: "approve", for_run: true }],
    ["approval", {}, async (form) => { await form.getByLabel("Why not").fill("no"); await form.getByLabel("Why not").press("Enter"); await form.getByRole("button", { name: "Deny" }).click(); }, { answer: "deny", reason: "no" }],
    ["approval", {}, async (form) => { await form.getByRole("button", { name: "Edit" }).click(); await form.getByRole("button", { name: "as edited" }).click(); }, { answer: "approve", args: `{\n  "cents": 12345678901234567890\n}` }],
    ["question", {}, async (form) => { await form.getByLabel("Your answer").fill("blue"); await form.getByLabel("Your answer").press("Enter"); }, { answer: "give", value: "blue" }],
    ["question", { schema: { enum: [1, "two"] } }, async (form) => { await form.getByLabel("Your answer").selectOption("1"); await form.getByRole("button", { name: "Send" }).click(); }, { answer: "give", value: 1 }],
    ["question", { schema: { type: "object" } }, async (form) => { await form.getByLabel("Your answer").fill(`{"a": [1]}`); await form.getByRole("button", { name: "Send" }).click(); }, { answer: "give", value: { a: [1] } }],
    ["limit", {}, async (form) => { await form.getByLabel("How much more").fill("500"); await form.getByRole("button", { name: "Send" }).click(); }, { answer: "extend", by: 500 }],
    ["external", {}, async (form) => { await form.getByLabel("The result").fill("done"); await form.getByRole("button", { name: "Send" }).click(); }, { answer: "return", result: { status: "ok", content: [{ type: "text", text: "done" }] } }],
    ["authorisation", {}, async (form) => form.getByRole("button", { name: "Approve" }).click(), { answer: "approve" }],
    ["question", {}, async (form) => form.getByRole("button", { name: "Decline" }).click(), { answer: "decline" }],
  ];
  for (const [n, [kind, more, act, wanted]] of answers.entries()) {
    const events = session.slice(0, 3);
    sessions.set(`ask${n}`, { events: [...events, { ...events[0], seq: 4, event: "paused", pause: ask(kind, more) }] });
    const page = await open(at(`ask${n}`));
    server.posted.length = 0;
    await act(page.locator(".pause"));
    for (let tries = 0; !server.posted.length && tries < 50; tries += 1) await page.waitForTimeout(20);
    const told = JSON.stringify(server.posted.map((it) => [it.csrf, it.control, it.answers]));
    must(told === JSON.stringify([["1", "answer", [{ pause: `main/${kind}`, answer: wanted, shown: `d-${kind}` }]]]), `${kind}: ${told}`);
    await page.context().close();
  }
  return `${answers.length} rows`;
});

await check("a stream that is cut is attached again: nothing is missing, nothing is there twice", async () => {
  // Two events a record, so that a cut after an odd number is in the middle of one.
  const events = session.slice(0, 12).map((it, at) => ({ ...it, seq: 1 + (at >> 1) }));
  sessions.set("whole", { events });
  sessions.set("cut", { events, cut: 5 });
  const pages = [await open(at("whole"), { viewport: { width: 1360, height: 2400 } }), await open(at("cut"), { viewport: { width: 1360, height: 2400 } })];
  const read = (page) => page.evaluate(() => [...document.querySelectorAll("article")].map((it) => it.getAttribute("aria-label")).join("\n"));
  await pages[0].getByText("of 6").waitFor();
  await pages[1].getByText("of 6").waitFor();
  await pages[1].waitForTimeout(200);
  const [whole, cut] = await Promise.all(pages.map(read));
  must(whole === cut && whole.split("\n").length > 5, `${whole}\n--- and with cuts:\n${cut}`);
});

await check("an undo shows what it puts back, asks, and tells what became of it", async () => {
  const [begun] = session;
  const changed = (seq, path, before) => ({ ...begun, seq, event: "app", kind: "file.changed", version: 1, data: { path, before, after: "a" } });
  const runs = [begun, changed(2, "old.rs", "b"), { ...begun, seq: 5, run: 2 }, changed(6, "src/total.rs", "b"), changed(7, "new.md", null), changed(8, "src/total.rs", "a"), { ...begun, seq: 9, run: 3 }];
  sessions.set("undo", { events: runs });
  const page = await open(at("undo"));
  server.posted.length = 0;
  await page.getByRole("button", { name: "Undo" }).click();
  const dialog = page.getByRole("dialog", { name: "Undo what run 2 changed" });
  const files = async () => (await dialog.locator("li").allTextContents()).join("; ");
  must(await files() === "src/total.rs; new.md deleted: it was not there", await files());
  await dialog.getByRole("button", { name: "Cancel" }).click();
  must(!server.posted.length, "it was not asked");
  await page.getByRole("button", { name: "Undo" }).click();
  await page.screenshot({ path: join(shots, "undo-light.png") });
  await dialog.getByRole("button", { name: "Put 2 back" }).click();
  await dialog.getByText("These were put back:").waitFor();
  await dialog.getByText("1 ran since then").waitFor();
  const told = JSON.stringify(server.posted.map((it) => [it.route, it.name, it.csrf, it.to]));
  must(told === JSON.stringify([["undo", "undo", "1", 4]]), told);
});

await check("a hidden page leaves its connection to others, and goes on when it is seen", async () => {
  sessions.set("hidden", { events: rich() });
  const page = await open(at("hidden"));
  const hide = (is) => page.evaluate((is) => {
    Object.defineProperty(document, "hidden", { value: is, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, is);
  const kept = sessions.get("hidden");
  const streams = async (wanted) => {
    for (let tries = 0; kept.listeners.size !== wanted && tries < 100; tries += 1) await page.waitForTimeout(20);
    must(kept.listeners.size === wanted, `${kept.listeners.size} streams, not ${wanted}`);
  };
  await page.getByText(`of ${session.length}`).waitFor();
  const before = kept.listeners.size;
  await hide(true);
  await streams(before - 1);
  server.tell("hidden", { ...kept.events[0], seq: session.length + 1, event: "app", kind: "while.hidden", version: 1, data: 1 });
  await hide(false);
  await page.getByText("while.hidden").waitFor();
  await streams(before);
});

await check("everything is reached by keys", async () => {
  const page = await open(at("bills/rounding"));
  await page.locator(".pause").waitFor();
  const key = (it) => page.keyboard.press(it);
  for (const it of ["j", "j", "j", "k"]) await key(it);
  await page.locator('article.cursor[aria-label="entry of lead, record 2"]').waitFor();
  await key("f");
  await page.getByRole("dialog").getByText("Fork at record 2").waitFor();
  await key("Escape");
  // Its fields have the keys until the browser has drawn once more.
  await page.waitForFunction(() => document.activeElement === document.body);
  await key("3");
  await page.getByRole("tab", { name: "Timeline", selected: true }).waitFor();
  await key("[");
  await page.getByText("as at record 53").waitFor();
  await key("l");
  await page.getByText("record 54 of").waitFor();
  await key("1");
  await key("/");
  await page.keyboard.type("half to even");
  await page.locator("article").first().waitFor();
  await page.getByRole("tab", { name: "Transcript" }).focus();
  await key("ArrowRight");
  await page.getByRole("tab", { name: "Agents", selected: true }).waitFor();
  await key("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
});

// Its name, what the other routes tell of it, and who drives it are as bad as its events.
const bad = nasty(0).replace(/[\0-\x1f]/g, "");
const twisted = (it) => (typeof it === "string" ? nasty(1) : Array.isArray(it) ? it.map(twisted) : it && typeof it === "object" ? Object.fromEntries(Object.entries(it).map(([key, part]) => [key, key === "log" ? bad : twisted(part)])) : it);
const worse = Object.fromEntries(Object.entries(rest).map(([route, tell]) => [route, (asked) => (route === "context" ? { requests: [] } : twisted(tell(asked)))]));
const drives = (work) => ({ log: bad, is_owned: true, owner: nasty(2), work, updated_ms: 1, head: 1 });
sessions.set(bad, { events: hostile(), row: { title: nasty(3), state: nasty(4) }, rest: worse, fleet: [drives({ work: "open" }), drives({ work: "parked", on: nasty(5) }), drives({ work: "aside", why: nasty(6) }), drives({ work: nasty(7) }), drives(nasty(8))] });
await check("hostile text is shown as text in every view", async () => {
  const page = await open(at(bad));
  let asked = 0;
  page.on("request", (it) => (asked += !it.url().startsWith(server.url) && !it.url().startsWith("data:")));
  for (const tab of [...TABS, "Workers", "Undo"]) {
    await page.goto(tab === "Workers" ? `${server.url}/#/store` : at(bad, tab === "Undo" ? "" : tab));
    if (TABS.includes(tab)) await page.getByRole("tab", { name: tab, selected: true }).waitFor();
    await page.waitForTimeout(300);
    if (tab === "Context") await page.locator(".request").first().click();
    if (tab === "Forks") await page.getByRole("button", { name: "Compare" }).first().click();
    if (tab === "Undo") await page.getByRole("button", { name: "Undo" }).click();
    for (let n = 0; n < 12; n += 1) {
      await page.evaluate(() => document.querySelectorAll("#view details:not([open]) > summary").forEach((it) => it.click()));
      await page.evaluate(() => document.querySelectorAll("#view .window, .scroll").forEach((it) => (it.scrollTop += 700)));
      await page.waitForTimeout(60);
    }
    const found = await page.evaluate(() => ({
      hacked: window.hacked,
      markup: document.querySelectorAll("#page script, #page iframe, #page [onerror], #page img:not([src^='data:image/'])").length,
      links: [...document.querySelectorAll("#page a")].filter((it) => !/^(https?:|#)/.test(it.getAttribute("href")) && !it.hasAttribute("download")).length,
      raw: /.{0,40}[\u0000\u001b\u202e\u{e0041}]/u.exec(document.body.innerText)?.[0],
    }));
    must(found.hacked === undefined && !found.markup && !found.links && !found.raw, `${tab}: ${JSON.stringify(found)}`);
    must(await page.locator({ Workers: "main", Undo: "dialog" }[tab] ?? "#view").getByText("onerror=").count(), `${tab}: the text is not seen`);
    await page.screenshot({ path: join(shots, `hostile-${tab}.png`) });
  }
  must(!asked, `${asked} requests elsewhere`);
});

/**
 * The longest frame of some work: by the clock, and by what the page's thread itself worked in it. The second one is judged: the
 * first one also counts what other programs of a busy machine do meanwhile.
 */
async function longest(page, name, work) {
  await browser.startTracing(page, { categories: ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline", "__metadata"] });
  const wall = page.evaluate(() => new Promise((done) => {
    let [last, worst] = [performance.now(), 0];
    window.stop_frames = () => done(worst);
    const frame = (now) => {
      worst = Math.max(worst, now - last);
      last = now;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }));
  await work();
  await page.evaluate(() => window.stop_frames());
  const events = JSON.parse((await browser.stopTracing()).toString()).traceEvents;
  const mains = new Set(events.filter((it) => it.name === "thread_name" && it.args.name === "CrRendererMain").map((it) => `${it.pid}/${it.tid}`));
  const sums = new Map();
  for (const it of events.filter((it) => mains.has(`${it.pid}/${it.tid}`)).sort((one, two) => one.ts - two.ts)) {
    const sum = sums.get(it.pid) ?? sums.set(it.pid, { now: 0, worst: 0, tasks: 0 }).get(it.pid);
    if (it.name === "FireAnimationFrame") sum.now = 0;
    if (it.name !== "RunTask" || it.tdur == null) continue;
    sum.now += it.tdur / 1000;
    sum.tasks += 1;
    sum.worst = Math.max(sum.worst, sum.now);
  }
  const most = [...sums.values()].sort((one, two) => two.tasks - one.tasks)[0];
  must(most?.tasks > 0, "the trace holds no task of the page");
  return { name, wall: Math.round(await wall), worked: Math.round(most.worst) };
}

sessions.set("long", { events: many(100_000), rest });
await check("100,000 events: no frame takes longer than 100 ms", async () => {
  const page = await open(`${server.url}/`);
  const worst = (name, work) => longest(page, name, work);
  const told = [];
  told.push(await worst("load", async () => {
    await page.evaluate((to) => (location.hash = to), "#/store/long");
    await page.getByText(`of ${sessions.get("long").events.at(-1).seq}`).waitFor({ timeout: 60_000 });
  }));
  told.push(await worst("scroll", async () => {
    for (let n = 0; n < 40; n += 1) {
      await page.evaluate((n) => (document.querySelector("#view .window").scrollTop = n * 90_000), n);
      await page.waitForTimeout(30);
    }
  }));
  told.push(await worst("time travel", async () => {
    for (const seq of [50_000, 1_000, 99_000, 20]) {
      await page.getByRole("slider").fill(String(seq));
      await page.getByText(`as at record ${seq} `).waitFor();
      await page.waitForTimeout(300);
    }
    await page.getByRole("button", { name: "Live" }).click();
  }));
  told.push(await worst("find", async () => {
    await page.locator("#find").fill("part_9000_3");
    await page.locator("article").first().waitFor();
    await page.waitForTimeout(1500);
    await page.locator("#find").fill("");
  }));
  for (const tab of TABS.slice(1, 6)) {
    told.push(await worst(tab, async () => {
      await page.evaluate((to) => (location.hash = to), `#/store/long/${tab}`);
      await page.waitForTimeout(700);
    }));
  }
  told.push(await worst("live", async () => {
    for (let n = 0; n < 100; n += 1) {
      const last = sessions.get("long").events.at(-1);
      server.tell("long", { ...last, seq: last.seq + 1, event: "app", kind: "x", version: 1, data: n });
      await page.waitForTimeout(10);
    }
  }));
  const words = `longest frames, worked and by the clock, in ms: ${told.map((it) => `${it.name} ${it.worked}/${it.wall}`).join(", ")}`;
  must(told.every((it) => it.worked <= 100), words);
  return words;
});

if (program) await (await import("./real.mjs")).drive(program, out, { open, check, must, shots });
else console.log("skipped: the real program: none was given");
await check("the page reported no error", async () => must(!troubles.length, [...new Set(troubles)].slice(0, 5).join("\n")));
await browser.close();
server.close();
process.exit(failed ? 1 : 0);
