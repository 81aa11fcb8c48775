// The streams of `protocols`, read by the official clients of AG-UI and of the AI SDK. `cargo xtask protocols` runs it:
// node protocols.mjs <folder of node_modules> <what is served, as JSON>. Exit code 1 if a client refuses anything.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [packages, told] = process.argv.slice(2);
const { url, cases, staying } = JSON.parse(told);
const require = createRequire(pathToFileURL(`${packages}/x.js`));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { HttpAgent } = await load("@ag-ui/client");
const { isDeepStrictEqual } = await import("node:util");
const { DefaultChatTransport, AbstractChat, lastAssistantMessageIsCompleteWithApprovalResponses: approved,
  lastAssistantMessageIsCompleteWithToolCalls: complete, validateUIMessages, uiMessageChunkSchema } = await load("ai");
const MOST = 5;

const check = (holds, what) => { if (!holds) throw new Error(what); };
// A client only warns of fields and events that it does not know: here that is a failure.
const warned = [];
console.warn = (...words) => warned.push(words.join(" "));

/** What somebody answers: the second approval is refused, the first one with other arguments. */
const payload = (interrupt, at) => {
  if (interrupt.metadata.kind === "question") return "Ada";
  return at === 0 ? { approved: true, editedArgs: { amount: 39 } } : { approved: false, reason: "too much" };
};

/** Where a case is asked: by a run of its own, or at the routes of an agent that stays. */
const place = (protocol, name, stays) => stays
  ? { at: `${staying.url}/v1/agents/${encodeURIComponent(`${protocol} ${name}`)}/${protocol}`, headers: { Authorization: `Bearer ${staying.token}` } }
  : { at: `${url}/${protocol}/${encodeURIComponent(name)}`, headers: {} };

async function agUi(name, stays) {
  const { at, headers } = place("ag-ui", name, stays);
  const agent = new HttpAgent({ url: at, headers, threadId: `ag-ui ${name}` });
  agent.messages = [{ id: "u1", role: "user", content: "Go." }];
  const events = [];
  const subscriber = { onEvent: ({ event }) => void events.push(event) };
  let parameters = {}, asked = 0;
  for (let runs = 1; ; runs++) {
    check(runs < MOST, "it does not end");
    let failed;
    await agent.runAgent(parameters, { ...subscriber, onRunErrorEvent: ({ event }) => void (failed = event) })
      .catch((error) => { if (!failed) throw error; });
    const last = events.at(-1);
    if (name === "run failed") check(failed?.code === "model", "it should have failed");
    else check(last.type === "RUN_FINISHED", `it ends in ${last.type}`);
    const pending = last.outcome?.pendingToolCallIds ?? [];
    if (last.outcome?.type === "interrupt") {
      asked += last.outcome.interrupts.length;
      parameters = { resume: last.outcome.interrupts.map((it, at) => ({
        interruptId: it.id, status: "resolved", payload: payload(it, at) })) };
    } else if (pending.length > 0) {
      asked += pending.length;
      parameters = {};
      agent.addMessages(pending.map((id) => ({ id: `t${id}`, role: "tool", toolCallId: id, content: "Here." })));
    } else break;
  }
  const result = (call) => agent.messages.findLast((it) => it.role === "tool" && it.toolCallId === call)?.content;
  const called = agent.messages.flatMap((it) => it.toolCalls ?? []);
  for (const call of called) check(result(call.id) !== undefined, `${call.id} has no result`);
  if (stays && name !== "run failed") {
    // A page that is loaded anew is told the whole run, as one.
    const other = new HttpAgent({ url: `${at}/connect`, headers, threadId: agent.threadId });
    other.messages = agent.messages.slice(0, 1);
    await other.runAgent();
    const said = ({ messages }) => messages.filter((it) => it.role === "assistant" && it.content).map((it) => it.content);
    check(isDeepStrictEqual(said(other), said(agent)), `told again: ${JSON.stringify(said(other))}`);
  }
  return { said: agent.messages.filter((it) => it.role === "assistant" && it.content).map((it) => it.content),
    results: called.map((call) => result(call.id)), asked,
    below: events.filter((it) => it.type === "SUBAGENT_FINISHED").length };
}

/** The state of a chat without a framework; its messages are replaced, as those of a page are. */
class State {
  messages = []; status = "ready"; error = undefined;
  pushMessage = (message) => { this.messages = [...this.messages, message]; };
  popMessage = () => { this.messages = this.messages.slice(0, -1); };
  replaceMessage = (at, message) => { this.messages = this.messages.with(at, structuredClone(message)); };
  snapshot = (value) => structuredClone(value);
}
class Chat extends AbstractChat { constructor(init) { super({ ...init, state: new State() }); } }

/** Chunks that the schema takes as they are; each is kept. */
class Checked extends DefaultChatTransport {
  chunks = [];
  processResponseStream(stream) {
    const [one, other] = stream.tee();
    this.text = new Response(other).text();
    return super.processResponseStream(one).pipeThrough(new TransformStream({
      transform: (chunk, to) => { this.chunks.push(chunk); to.enqueue(chunk); },
    }));
  }
}

/** What a page shows of the agent's message, but for what is told only while it runs. */
const shown = ({ messages }) => messages[1].parts.map(({ type, text, toolCallId, input, approval, data }) => [type, text, toolCallId, input, approval?.id, type === "data-agent" ? null : data]);

async function aiSdk(name, stays) {
  const { at, headers } = place("ai-sdk", name, stays);
  const transport = new Checked({ api: at, headers });
  let error, asked = 0;
  const chat = new Chat({ id: `ai-sdk ${name}`, transport, onError: (it) => { error = it; } });
  await chat.sendMessage({ text: "Go." });
  const { validate } = uiMessageChunkSchema();
  for (let rounds = 1; ; rounds++) {
    check(rounds < MOST, "it does not end");
    if (name === "run failed") check(error, "it should have failed");
    else if (error) throw error;
    const text = await transport.text;
    check(text.endsWith("data: [DONE]\n\n"), "it does not end in [DONE]");
    for (const line of text.split("\n\n").filter((it) => it && it !== "data: [DONE]")) {
      const { success } = await validate(JSON.parse(line.slice("data: ".length)));
      check(success, `no chunk: ${line}`);
    }
    const parts = () => chat.messages.at(-1).parts;
    const waiting = parts().filter((it) => it.state === "approval-requested");
    const questions = parts().filter((it) => it.type === "data-pause")
      .filter(({ data }) => parts().some((it) => it.toolCallId === data.toolCallId && it.state === "input-available"));
    asked += waiting.length + questions.length;
    if (stays) {
      // A page that is loaded anew is shown what waits; nothing, if nothing does.
      const other = new Chat({ id: chat.id, transport: new Checked({ api: at, headers }), onError: (it) => { error = it; } });
      other.messages = chat.messages.slice(0, 1);
      await other.resumeStream();
      const waits = waiting.length + questions.length > 0;
      check(other.messages.length === (waits ? 2 : 1) && (!waits || isDeepStrictEqual(shown(other), shown(chat))), `resumed: ${JSON.stringify(other.messages)}`);
    }
    for (const [at, part] of waiting.entries()) {
      await chat.addToolApprovalResponse({ id: part.approval.id, approved: at === 0, reason: "too much" });
    }
    for (const { data } of questions) {
      const output = data.kind === "question" ? "Ada" : "Here.";
      const { type } = parts().find((it) => it.toolCallId === data.toolCallId);
      await chat.addToolOutput({ tool: type.slice("tool-".length), toolCallId: data.toolCallId, output });
    }
    const { messages } = chat;
    if (waiting.length + questions.length === 0) break;
    check(waiting.length === 0 || name === "approval below" || approved({ messages }), "approvals are not complete");
    check(questions.length === 0 || complete({ messages }), "outputs are not complete");
    await chat.sendMessage();
  }
  await validateUIMessages({ messages: chat.messages });
  check(chat.messages.length === 2, `${chat.messages.length} messages`);
  const parts = chat.messages[1].parts, tools = parts.filter((it) => it.toolCallId);
  for (const it of parts.filter((it) => it.type === "text")) check(it.state === "done", "a text is left open");
  for (const it of tools) check(it.state.startsWith("output-"), `${it.toolCallId} is left ${it.state}`);
  return { said: parts.filter((it) => it.type === "text").map((it) => it.text),
    results: tools.map((it) => it.output ?? it.errorText ?? "denied"), asked,
    below: parts.filter((it) => it.type === "data-agent").length };
}

const results = [];
for (const [name, stays] of [...cases.map((name) => [name, false]), ...staying.cases.map((name) => [name, true])]) {
  for (const [protocol, judge] of Object.entries({ "ag-ui": agUi, "ai-sdk": aiSdk })) {
    const line = { protocol, name, ...(stays && { stays }) };
    try {
      Object.assign(line, await judge(name, stays));
      check(warned.length === 0, warned.join("; "));
    } catch (error) {
      line.error = `${error?.message ?? error}`;
    }
    warned.length = 0;
    results.push(line);
    console.log(`${line.error ? "FAILED" : "ok    "} ${protocol} ${name}: ${JSON.stringify(line.error ?? line)}`);
  }
}
process.exit(results.some((it) => it.error) ? 1 : 0);
