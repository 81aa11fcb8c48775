// Agents behind the Agent Client Protocol, driven by acpx. `cargo xtask protocols` runs it:
// node acp.mjs <folder of node_modules> <what is served, as JSON> <program of `protocols`>. Exit code 1 if something is not as it should.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [packages, told, program] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${packages}/x.js`));
const { createAcpRuntime, createRuntimeStore } = await import(pathToFileURL(require.resolve("acpx/runtime")));
const MOST = 5;
const ALL = [...JSON.parse(told).cases, "question in a form", "left while it asks", "lent by the editor"];
/** How a prompt ends, where that is not `end_turn`. */
const ENDS = { "run failed": "failed", "cancel in mid-stream": "cancelled", "cancel in mid-batch": "cancelled",
  "max turns": "max_turn_requests" };

const check = (holds, what) => { if (!holds) throw new Error(what); };

/** An editor of a case: its sessions outlive its agents. */
class Editor {
  asked = []; pids = []; loads = 0;
  constructor(folder, name) {
    const agent = name === "question in a form" ? "question" : name;
    this.name = name;
    this.runtime = createAcpRuntime({
      cwd: folder, sessionStore: createRuntimeStore({ stateDir: join(folder, "acpx") }),
      agentRegistry: { resolve: () => [program, "acp", agent, join(folder, "sessions/")], list: () => ["adjutant"] },
      permissionMode: name === "lent by the editor" ? "approve-all" : "deny-all", nonInteractivePermissions: "deny",
      elicitationModes: name === "question in a form" ? ["form"] : [],
      processLifecycle: { onSpawned: ({ pid }) => void this.pids.push(pid) },
      onPermissionRequest: async ({ raw }) => this.permit(raw),
    });
  }

  permit(raw) {
    this.asked.push(raw.toolCall);
    check(raw.options.some((it) => it.kind === "reject_once"), "it cannot be refused");
    if (this.name === "left while it asks" && this.asked.length === 1) process.kill(this.pids.at(-1), "SIGKILL");
    return { outcome: this.name === "two approvals" && this.asked.length === 2 ? "reject_once" : "allow_once" };
  }

  async prompt(text) {
    const handle = await this.runtime.ensureSession({ sessionKey: this.name, agent: "adjutant", mode: "persistent" });
    const turn = this.runtime.startTurn({
      handle, text, mode: "prompt", requestId: `${Math.random()}`, timeoutMs: 60_000,
      onElicitation: async ({ mode, requestedSchema }) => {
        check(mode === "form" && requestedSchema.properties.answer, "the form has no field");
        return { action: "accept", content: { answer: "Ada" } };
      },
    });
    const heard = { said: "", calls: new Map() };
    for await (const event of turn.events) {
      if (event.type === "text_delta" && event.stream !== "thought") heard.said += event.text;
      if (event.type === "tool_call") {
        const fresh = Object.fromEntries(Object.entries(event).filter(([, value]) => value !== undefined));
        heard.calls.set(event.toolCallId, { ...heard.calls.get(event.toolCallId), ...fresh });
      }
      const waits = [...heard.calls.values()].some((it) => it.title === "wait" && it.status === "in_progress");
      if (this.name.startsWith("cancel") && (waits || heard.said)) await turn.cancel();
    }
    const result = await turn.result;
    return { ...heard, end: result.status === "completed" ? result.stopReason : result.status, result };
  }
}

const results = ({ calls }) =>
  [...calls.values()].map((it) => (it.content ?? []).map((part) => part.content?.text ?? part.type).join(""));

async function judge(name, folder) {
  const editor = new Editor(folder, name), told = [];
  try {
    let text = "Go.";
    if (name === "lent by the editor") writeFileSync(join(folder, "a.txt"), "old\n");
    for (let turns = 1; ; turns++) {
      check(turns < MOST, "it does not end");
      const heard = await editor.prompt(text);
      told.push(heard);
      const open = [...heard.calls.values()].filter((it) => !["completed", "failed"].includes(it.status));
      if (name === "left while it asks" && turns === 1) {
        check(heard.end === "failed", `a killed agent ends a prompt with ${heard.end}`);
        text = "Go on.";
      } else if (open.length > 0) {
        // The turn ended with a question: the next prompt is its answer.
        check(heard.end === "end_turn" && heard.said, `${open[0].title} is left ${open[0].status}`);
        text = name === "question" ? "Ada" : "Here.";
      } else {
        check(heard.end === (ENDS[name] ?? "end_turn"), `it ends with ${heard.end}: ${JSON.stringify(heard.result)}`);
        break;
      }
    }
    const said = told.map((it) => it.said), all = told.flatMap(results);
    const count = (text) => all.filter((it) => it === text).length;
    if (name === "approval" || name === "left while it asks") check(count("paid 40") === 1, `it paid ${count("paid 40")} times`);
    if (name === "two approvals") check(count("paid 40") === 1 && count("paid 2") === 0, "what was refused was done");
    if (name.startsWith("question")) check(count("Hello, Ada!") === 1, "nobody was greeted");
    if (name === "left while it asks") check(editor.asked.length === 2, `it asked ${editor.asked.length} times`);
    if (name === "lent by the editor") {
      check(count("new\n\n[exit code 3]") === 1, `the terminal shows ${JSON.stringify(all)}`);
      check(readFileSync(join(folder, "a.txt"), "utf8") === "new\n", "the file is as it was");
      check(editor.asked.length === 1, `it asked ${editor.asked.length} times`);
    }
    if (name === "one tool") {
      // Another process goes on with the session.
      await editor.runtime.shutdown();
      const again = new Editor(folder, name), handle = { sessionKey: name, agent: "adjutant" };
      check(await again.runtime.findSession(handle), "the session is forgotten");
      const heard = await again.prompt("Again.").finally(() => again.runtime.shutdown());
      check(heard.end === "end_turn" && heard.said.endsWith("All done."), `after a restart: ${JSON.stringify(heard)}`);
    }
    return { said, results: all, asked: editor.asked.length };
  } finally {
    await editor.runtime.shutdown();
  }
}

let failed = 0;
for (const name of ALL) {
  const folder = mkdtempSync(join(tmpdir(), "acp-"));
  try {
    console.log(`ok     acp ${name}: ${JSON.stringify(await judge(name, folder))}`);
  } catch (error) {
    failed++;
    console.log(`FAILED acp ${name}: ${error?.stack ?? error}`);
  }
  rmSync(folder, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);
