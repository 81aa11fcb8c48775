// The agents of `protocols` over A2A, asked by the official client. `cargo xtask protocols` runs it:
// node a2a.mjs <folder of node_modules> <what is served, as JSON>. Exit code 1 if the client, or what it hears, is not as it must be.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [packages, told] = process.argv.slice(2);
const { url, a2a: cases } = JSON.parse(told);
const require = createRequire(pathToFileURL(`${packages}/x.js`));
const { ClientFactory } = require("@a2a-js/sdk/client");
const { Role, StreamResponse, TaskState, taskStateToJSON } = require("@a2a-js/sdk");
const errors = require("@a2a-js/sdk/errors");
const MOST = 5;

const check = (holds, what) => { if (!holds) throw new Error(what); };
const refused = async (promise, kind) => {
  const error = await promise.then(() => undefined, (error) => error);
  check(error instanceof errors[kind], `${kind} expected: ${error}`);
};
const nameOf = (state) => taskStateToJSON(state).slice("TASK_STATE_".length).toLowerCase();
const part = ({ text, data }) => ({ content: text === undefined ? { $case: "data", value: data } : { $case: "text", value: text },
  metadata: undefined, filename: "", mediaType: "" });
let count = 0;
const message = (parts, of) => ({ messageId: `m${++count}`, role: Role.ROLE_USER, parts: parts.map(part), metadata: undefined,
  contextId: of?.contextId ?? "", taskId: of?.id ?? "", extensions: [], referenceTaskIds: [] });
const request = (message, returnImmediately = false, taskPushNotificationConfig = undefined) => ({ tenant: "", message, metadata: undefined,
  configuration: { acceptedOutputModes: ["text/plain"], taskPushNotificationConfig, returnImmediately } });
const text = (parts) => parts.map(({ content }) => content?.$case === "text" ? content.value : "").join("");
const said = (task) => text(task.artifacts.find((it) => it.artifactId === "answer")?.parts ?? []);

/** A task as a stream tells it, update by update. */
async function followed(stream, heard = () => {}) {
  let task;
  for await (const { payload } of stream) {
    check(task || payload.$case === "task", `it begins with ${payload.$case}`);
    const it = payload.value;
    if (payload.$case === "task") task = it;
    else if (payload.$case === "statusUpdate") task.status = it.status;
    else {
      const known = task.artifacts.find(({ artifactId }) => artifactId === it.artifact.artifactId);
      if (!known) task.artifacts.push(it.artifact);
      else if (it.append) known.parts = [part({ text: text(known.parts) + text(it.artifact.parts) })];
      else known.parts = it.artifact.parts;
    }
    await heard(payload, task);
  }
  return task;
}

/** What is pushed, by task. */
const pushed = new Map();
let came = () => {};
const hook = createServer(async (asked, answer) => {
  let body = "";
  for await (const chunk of asked) body += chunk;
  const { authorization, "x-a2a-notification-token": token } = asked.headers;
  if (authorization !== "Bearer s3cret" || token !== "t0ken") return answer.writeHead(403).end();
  const update = JSON.parse(body);
  const { id, taskId } = Object.values(update)[0];
  pushed.set(taskId ?? id, [...(pushed.get(taskId ?? id) ?? []), update]);
  answer.writeHead(204).end();
  came();
});
await new Promise((listens) => hook.listen(0, "127.0.0.1", listens));
const pushTo = (id, taskId) => ({ tenant: "", id, taskId, url: `http://127.0.0.1:${hook.address().port}/`, token: "t0ken",
  authentication: { scheme: "Bearer", credentials: "s3cret" } });

/** A task as it was pushed, once it is in this state. */
async function pushedUntil(id, state) {
  for (;;) {
    const more = new Promise((comes, fails) => {
      came = comes;
      setTimeout(fails, 30_000, new Error("it is not pushed")).unref();
    });
    more.catch(() => {});
    const task = await followed((async function* () { yield* (pushed.get(id) ?? []).map((it) => StreamResponse.fromJSON(it)); })());
    if (task?.status.state === state) return task;
    await more;
  }
}

/** What somebody answers: the second approval is refused, the first one with other arguments. */
const answer = ({ kind }, at) => {
  if (kind === "question") return "Ada";
  if (kind === "external") return "Here.";
  return at === 0 ? { approved: true, editedArgs: { amount: 39 } } : { approved: false, reason: "too much" };
};

async function judge(name) {
  const client = await new ClientFactory().createFromUrl(url, `/a2a/${encodeURIComponent(name)}/agent-card.json`);
  const first = message([{ text: "Go." }]);
  const stops = name === "cancel in mid-stream";
  let asked = 0, updates = 0, isStopped = false;
  let task = await followed(client.sendMessageStream(request(first, false, pushTo("", ""))), async ({ $case }, { id }) => {
    updates++;
    if (stops && $case === "artifactUpdate" && !isStopped) {
      isStopped = true;
      check((await client.cancelTask({ tenant: "", id, metadata: undefined })).status.state === TaskState.TASK_STATE_CANCELED,
        "it is not cancelled");
    }
  });
  for (let rounds = 1; task.status.state === TaskState.TASK_STATE_INPUT_REQUIRED; rounds++) {
    check(rounds < MOST, "it does not end");
    const waiting = task.status.message.parts.filter((it) => it.content.$case === "data").map((it) => it.content.value);
    asked += waiting.length;
    // A plain text answers a question, what is more has a name.
    const parts = waiting.length === 1 && waiting[0].kind === "question" ? [{ text: "Ada" }]
      : waiting.map((it, at) => ({ data: { pause: it.pause, answer: answer(it, at) } }));
    const given = message(parts, task);
    // Whoever lost the connection while it waited hears how it goes on.
    let again;
    await new Promise((begun, failed) => {
      again = followed(client.resubscribeTask({ tenant: "", id: task.id }), begun);
      again.catch(failed);
    });
    const begun = await client.sendMessage(request(given, true));
    check(begun.id === task.id, "an answer begins another task");
    check((await client.sendMessage(request(given))).id === task.id, "an answer that comes twice is another task");
    task = await again;
    check(task.status.state !== TaskState.TASK_STATE_WORKING, "it is left at work");
  }
  const { id } = task;
  const stored = await client.getTask({ tenant: "", id, historyLength: undefined });
  check(said(stored) === said(task), `the log says ${said(stored)}, the stream ${said(task)}`);
  check(stored.status.state === task.status.state, "the log says another state");
  check(said(await pushedUntil(id, task.status.state)) === said(task), "what is pushed says something else");
  check((await client.createTaskPushNotificationConfig(pushTo("other", id))).id === "other", "it has another id");
  const other = { tenant: "", taskId: id, id: "other" };
  check((await client.getTaskPushNotificationConfig(other)).url === pushTo().url, "it is pushed elsewhere");
  await client.deleteTaskPushNotificationConfig(other);
  await refused(client.getTaskPushNotificationConfig(other), "TaskNotFoundError");
  check(stored.history[0].messageId === first.messageId && text(stored.history[0].parts) === "Go.", "the prompt is not there");
  check((await client.getTask({ tenant: "", id, historyLength: 0 })).history.length === 0, "history that nobody wants");
  check((await client.sendMessage(request(first))).id === id, "a message that comes twice is two tasks");
  const listed = await client.listTasks({ tenant: "", contextId: task.contextId, status: 0, pageToken: "" });
  check(listed.tasks.length === 1 && listed.totalSize === 1 && listed.tasks[0].id === id, "the list is another one");
  await refused(client.cancelTask({ tenant: "", id: `9${id}`, metadata: undefined }), "TaskNotFoundError");
  if (task.status.state !== TaskState.TASK_STATE_CANCELED) {
    await refused(client.cancelTask({ tenant: "", id, metadata: undefined }), "TaskNotCancelableError");
  }
  await refused(client.sendMessage(request(message([{ text: "More." }], task))), "UnsupportedOperationError");
  await refused(followed(client.resubscribeTask({ tenant: "", id })), "UnsupportedOperationError");
  return { state: nameOf(task.status.state), said: said(task), asked, updates,
    why: task.status.message && text(task.status.message.parts), history: stored.history.length };
}

let isWell = true;
for (const name of cases) {
  let line;
  try {
    line = await judge(name);
  } catch (error) {
    [line, isWell] = [{ error: `${error?.stack ?? error}` }, false];
  }
  console.log(`${line.error ? "FAILED" : "ok    "} a2a ${name}: ${JSON.stringify(line.error ?? line)}`);
}
process.exit(isWell ? 0 : 1);
