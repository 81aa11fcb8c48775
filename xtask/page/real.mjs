// The real program: agents of `adjutant up` with a model of our own, and a stored session of `adjutant view`.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { model } from "./model.mjs";

const manifest = (url) => `adjutant: 1
name: clerk
model: loop/small
instructions: You write files.
toolboxes: [files, edits]
providers:
  - { name: loop, wire: chat, base_url: "${url}", key_optional: true }
models:
  - { id: loop/small, context_window: 100000, max_output_tokens: 4000, price: { input: 1, output: 4, cache_read: 0.1 } }
  - { id: loop/large, context_window: 100000, max_output_tokens: 4000, price: { input: 3, output: 12 } }
`;
const NASTY = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script> \u202egnp.exe \u001b[31m שלום [x](javascript:hacked)`;

/** Starts a command of the program, and waits until it says something that fits. */
async function start(program, args, env, fits) {
  const child = spawn(program, args, { env });
  let said = "";
  const found = await new Promise((found, lost) => {
    const hear = (part) => {
      said += part;
      const hit = fits.exec(said);
      if (hit) found(hit[0]);
    };
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    child.on("close", (code) => lost(new Error(`${args.join(" ")} ended with ${code}: ${said}`)));
    setTimeout(() => lost(new Error(`it did not come to ${fits} in 60 s: ${said}`)), 60_000).unref();
  });
  const ended = new Promise((done) => child.on("exit", done));
  const end = () => (child.kill("SIGTERM"), ended);
  return { found, end, ended };
}

/** The status of a request with these headers. */
const status = (url, path, { method = "GET", headers = {}, body } = {}) => new Promise((done, failed) => {
  const { hostname, port } = new URL(url);
  const asked = request({ hostname, port, path, method, headers }, (answer) => (answer.resume(), done(answer.statusCode)));
  asked.on("error", failed);
  asked.end(body);
});

export async function drive(program, out, { open, check, must, shots }) {
  const home = mkdtempSync(join(out, "real-"));
  const work = join(home, "work");
  mkdirSync(work);
  const env = { PATH: process.env.PATH, HOME: home, XDG_STATE_HOME: join(home, "state"), XDG_DATA_HOME: join(home, "data"), XDG_CONFIG_HOME: join(home, "config") };
  const mind = await model();
  writeFileSync(join(work, "adjutant.yaml"), manifest(mind.url));
  const up = await start(program, ["up", work, "--trust"], env, /clerk: ready/);
  const told = spawnSync(program, ["view", "--agents", "--directory", work, "--no-open"], { env });
  const address = String(told.stdout).trim();
  must(/^http:.*#token=/.test(address), `view --agents: ${told.stdout}${told.stderr}`);
  const origin = new URL(address).origin;
  const page = await open(address);
  const seen = (text, on = page) => on.getByText(text).first().waitFor();
  const is = (state, on = page) => on.locator(".head .state", { hasText: state }).waitFor();
  const prompt = async (text) => {
    await page.getByLabel("Message").fill(text);
    await page.getByRole("button", { name: "Prompt", exact: true }).click();
  };

  await check("the token leaves the address and becomes a cookie no script sees", async () => {
    await page.getByRole("button", { name: "New session" }).waitFor();
    must(!page.url().includes("token"), page.url());
    must(await page.evaluate(() => document.cookie) === "", "a script sees the cookie");
    const [cookie] = await page.context().cookies();
    must(cookie?.httpOnly && cookie.sameSite === "Strict", JSON.stringify(cookie));
  });

  await check("requests without token, with foreign Host or Origin, or without the header are refused", async () => {
    const token = /token=(\w+)/.exec(address)[1];
    const [cookie] = await page.context().cookies();
    const by = { Cookie: `${cookie.name}=${cookie.value}` };
    const json = { "Content-Type": "application/json" };
    const post = { method: "POST", body: `{"control":"stop"}` };
    const control = "/v1/agents/clerk/control?session=x";
    const table = [
      ["no token", 401, "/v1/agents", {}], ["a wrong token", 401, "/v1/agents", { headers: { Authorization: "Bearer x" } }], ["a wrong cookie", 401, "/v1/agents", { headers: { Cookie: `${cookie.name}=x` } }],
      ["the token", 200, "/v1/agents", { headers: { Authorization: `Bearer ${token}` } }], ["the cookie", 200, "/v1/agents", { headers: by }],
      ["a foreign host", 403, "/v1/agents", { headers: { ...by, Host: "evil.example" } }], ["a foreign origin", 403, "/v1/agents", { headers: { ...by, Origin: "http://evil.example" } }],
      ["a post by cookie without the header", 403, control, { ...post, headers: { ...by, ...json } }], ["a post of a foreign origin", 403, control, { ...post, headers: { ...by, ...json, "X-Adjutant": "1", Origin: "http://evil.example" } }],
      ["the page of a foreign host", 403, "/", { headers: { Host: "evil.example" } }],
    ];
    const wrong = [];
    for (const [what, wanted, path, options] of table) {
      const got = await status(origin, path, options);
      if (got !== wanted) wrong.push(`${what}: ${got}, not ${wanted}`);
    }
    must(!wrong.length, wrong.join("\n"));
    return `${table.length} rows`;
  });

  let second;
  await check("a live run is watched, reloaded in its middle, steered, and approved with other arguments, in two tabs", async () => {
    await page.getByRole("button", { name: "New session" }).click();
    const go = mind.say({ text: "I write the file, as you wish. Here it comes.", call: "write_file", args: { path: "hello.txt", content: "hello" }, held: true });
    await prompt("Write hello into hello.txt.");
    await is("working");
    await seen("I write the");
    must(!(await page.getByText("Here it comes.").count()), "the reply is there before it was said");
    await page.screenshot({ path: join(shots, "real-live.png") });
    second = await page.context().newPage();
    await second.goto(page.url());
    await is("working", second);
    await page.reload();
    await is("working");
    await page.getByLabel("Message").fill("Use capital letters.");
    await page.getByRole("button", { name: "Steer" }).click();
    await seen("Use capital letters.");
    go();
    await seen("Here it comes.");
    await is("waiting");
    await second.locator(".pause").waitFor();
    await page.screenshot({ path: join(shots, "real-waits.png") });
    await page.getByRole("button", { name: "Edit the arguments" }).click();
    await page.getByLabel("Arguments, as JSON").fill(`{"path": "hello.txt", "content": "HELLO"`);
    await page.getByRole("button", { name: "Approve as edited" }).click();
    await seen("This is no JSON");
    mind.say({ text: "It is written, in capital letters." });
    await page.getByLabel("Arguments, as JSON").fill(`{"path": "hello.txt", "content": "HELLO"}`);
    await page.getByRole("button", { name: "Approve as edited" }).click();
    for (const on of [page, second]) {
      await seen("It is written, in capital letters.", on);
      await is("finished", on);
      must(!(await on.locator(".pause").count()), "the question is still there");
    }
    const last = mind.asked.at(-1).body;
    must(last.includes("Use capital letters."), "the model never heard the steering");
    const files = spawnSync("grep", ["-rl", "HELLO", home, "--include=hello.txt"]).stdout.toString();
    must(files.includes("hello.txt"), "the file was not written with the edited content");
    await page.screenshot({ path: join(shots, "real-done.png") });
  });

  await check("a run is stopped", async () => {
    const go = mind.say({ text: "I count for a long time. And on.", held: true });
    await prompt("Count.");
    await seen("I count for");
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    await is("cancelled");
    go();
  });

  await check("a question is denied with a reason", async () => {
    mind.say({ text: "One more file.", call: "write_file", args: { path: "more.txt", content: NASTY } });
    await prompt("Another one.");
    await is("waiting");
    mind.say({ text: `Then not. ${NASTY}` });
    await page.getByLabel("Why not, for the model").fill("No more files.");
    await page.getByRole("button", { name: "Deny" }).click();
    await is("finished");
    must(mind.asked.at(-1).body.includes("No more files."), "the model never heard the reason");
    const hacked = await page.evaluate(() => window.hacked);
    must(hacked === undefined && !(await page.locator("#page script, #page [onerror]").count()), "markup of the model is alive");
  });

  const original = decodeURIComponent(new URL(page.url()).hash.split("/")[2]);
  await check("time travel shows the session as it was", async () => {
    await page.getByRole("slider").fill("3");
    await seen("as at record 3");
    must(await page.getByText("Write hello into hello.txt.").count(), "the prompt is not there");
    must(!(await page.getByText("It is written, in capital letters.").count()), "the future is there");
    await page.getByRole("button", { name: "Now" }).click();
    await seen("Then not.");
  });

  await check("a fork at a record goes on with another model and prompt", async () => {
    await page.getByLabel("Find").fill("It is written");
    await page.locator(".item").getByRole("button", { name: "Fork" }).last().click({ force: true });
    mind.say({ text: "The large one speaks." });
    await page.getByLabel("Name", { exact: true }).fill("forked");
    await page.getByLabel("Another model").fill("loop/large");
    await page.getByLabel("A prompt to go on with").fill("Say it again.");
    await page.getByRole("dialog").getByRole("button", { name: "Fork" }).click();
    await seen("The large one speaks.");
    await is("finished");
    must(mind.asked.at(-1).name === "large" && mind.asked.at(-1).body.includes("Say it again."), `asked: ${mind.asked.at(-1).name}`);
    must(!(await page.getByText("Then not.").count()), "the fork has what came later");
  });

  await check("a fork with an edited result goes on from it", async () => {
    await page.goto(`${origin}/#/clerk/${encodeURIComponent(original)}`);
    await page.getByLabel("Find").fill("write_file");
    await page.locator(".item.call").first().getByRole("button", { name: "Fork" }).click({ force: true });
    mind.say({ text: "So the disk is full." });
    await page.getByLabel("Name", { exact: true }).fill("full");
    await page.getByLabel("The result of").fill("The disk is full.");
    await page.getByRole("dialog").getByRole("button", { name: "Fork" }).click();
    await seen("So the disk is full.");
    must(mind.asked.at(-1).body.includes("The disk is full."), "the model was not shown the edited result");
  });

  await check("two runs stand side by side where they part", async () => {
    await page.goto(`${origin}/#/clerk/forked/Forks`);
    await page.getByLabel("Another session").fill(original);
    await page.getByRole("button", { name: "Compare" }).last().click();
    await seen("The same through record");
    must(await page.locator("table.diff tbody tr").count() > 0, "no row");
    await page.screenshot({ path: join(shots, "real-diff.png") });
  });

  await check("every request is seen by category, and exactly", async () => {
    await page.goto(`${origin}/#/clerk/${encodeURIComponent(original)}/Context`);
    await page.locator(".request").nth(1).click();
    await seen("The request of record");
    await seen("You write files.");
    const told = await page.locator(".request").nth(1).textContent();
    must(/system \d/.test(told) && /results \d/.test(told), `no categories: ${told}`);
    await page.screenshot({ path: join(shots, "real-context.png") });
  });

  await check("an exported run needs no server", async () => {
    const loaded = page.waitForEvent("download");
    await page.getByRole("link", { name: "Export" }).click();
    const file = join(home, "run.html");
    await (await loaded).saveAs(file);
    const alone = await open(pathToFileURL(file).href);
    const asked = [];
    alone.on("request", (it) => asked.push(it.url()));
    await seen("Then not.", alone);
    await alone.getByRole("tab", { name: "Timeline" }).click();
    await alone.locator(".span").first().waitFor();
    await alone.getByRole("slider").fill("3");
    await seen("as at record 3", alone);
    must(await alone.evaluate(() => window.hacked) === undefined, "markup of the model is alive");
    must(!asked.some((it) => it.startsWith("http")), `asked: ${asked}`);
    await alone.getByRole("button", { name: "Now" }).click();
    await alone.getByRole("tab", { name: "Transcript" }).click();
    await seen("Then not.", alone);
    await alone.screenshot({ path: join(shots, "real-export.png") });
    return `${Math.round(readFileSync(file).length / 1024)} kB`;
  });
  await up.end();

  await check("a stored session is shown by `view`, and a worker's", async () => {
    const store = join(home, "kept.db");
    const run = spawnSync(program, ["run", "--root", work, "--store", store, "--session", NASTY.slice(0, 60), "What is in this folder?"], { env: { ...env, ADJUTANT_MODEL: "offline/planner" } });
    must(run.status === 0, String(run.stderr));
    const view = await start(program, ["view", "--store", store, "--no-open"], env, /http:\S+#token=\w+/);
    const on = await open(view.found);
    await on.locator("a.session").first().click();
    await seen("What is in this folder?", on);
    await is("finished", on);
    await on.getByRole("link", { name: "Workers" }).click();
    await on.getByText("due").first().waitFor();
    must(await on.evaluate(() => window.hacked) === undefined, "the name of a session is alive");
    await on.screenshot({ path: join(shots, "real-view.png") });
    await view.end();
  });

  await check("what a run changed in files is put back from the page", async () => {
    const store = join(home, "edited.db");
    mind.say({ text: "I write.", call: "write_file", args: { path: "undone.txt", content: "x" } });
    mind.say({ text: "Written." });
    const args = ["run", "Write a file.", "--root", work, "--store", store, "--session", "edit", "--mode", "edits", "--model", "openai-chat/gpt-5"];
    await (await start(program, args, { ...env, OPENAI_API_KEY: "none", OPENAI_BASE_URL: mind.url }, /Written\./)).ended;
    const written = () => readFileSync(join(work, "undone.txt"), "utf8");
    must(written() === "x", "it was not written");
    const view = await start(program, ["view", "--store", store, "--no-open"], env, /http:\S+#token=\w+/);
    const on = await open(view.found);
    await on.locator("a.session").first().click();
    await on.getByRole("button", { name: "Undo" }).click();
    await on.getByText("deleted: it was not there").waitFor();
    must(written() === "x", "it was put back before somebody said so");
    await on.getByRole("button", { name: "Put 1 back" }).click();
    await on.getByText("These were put back:").waitFor();
    must(!existsSync(join(work, "undone.txt")), "it is there still");
    await view.end();
  });
  mind.close();
  rmSync(home, { recursive: true, force: true });
}
