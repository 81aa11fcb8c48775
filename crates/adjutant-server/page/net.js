// The door to the server, or to the events that an exported page carries: everything that is asked or said goes through here.
import { PASSING } from "./fold.js";

const carried = document.getElementById("exported");
export const exported = carried && JSON.parse(carried.textContent);

/** Asks the server; with a body, says something to it. */
export async function ask(path, body, method = body ? "POST" : "GET") {
  const headers = body ? { "Content-Type": "application/json", "X-Adjutant": "1" } : {};
  const answer = await fetch(`/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
  const said = await answer.text();
  const json = said.startsWith("{") ? JSON.parse(said) : {};
  if (!answer.ok) throw Object.assign(new Error(json.error?.message ?? `status ${answer.status}`), { status: answer.status });
  return json;
}

const query = (fields) => `?${Object.entries(fields).filter(([, it]) => it != null && it !== "").map((it) => it.map(encodeURIComponent).join("=")).join("&")}`;

export const at = (agent, what, fields = {}) => `/agents/${encodeURIComponent(agent)}/${what}${query(fields)}`;

/** The token of the address becomes a cookie, and leaves the address. */
export async function enter() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return;
  history.replaceState(null, "", "#/");
  await fetch("/v1/session", { method: "POST", headers: { Authorization: `Bearer ${token}`, "X-Adjutant": "1" } });
}

/** Lets the page draw: after a frame, or soon if it is hidden. */
export const breathe = () => new Promise((go) => {
  const timer = setTimeout(go, 60);
  requestAnimationFrame(() => setTimeout(() => (clearTimeout(timer), go())));
});

/** Lets the page draw now and then. */
const pacer = (until = performance.now() + 8) => () => performance.now() > until && breathe().then(() => (until = performance.now() + 8));

/** Work in slices, so that no frame waits for it. */
export async function sliced(list, work, signal) {
  const pace = pacer();
  for (const it of list) {
    await pace();
    if (signal.aborted) return;
    work(it);
  }
}

/** A signal for while the page is seen: a browser has few connections to a server, and hidden pages leave them to others. */
async function seen(signal) {
  if (document.hidden) await new Promise((go) => document.addEventListener("visibilitychange", go, { once: true }));
  const left = new AbortController();
  document.addEventListener("visibilitychange", () => left.abort(), { once: true });
  return AbortSignal.any([signal, left.signal]);
}

/** The events of a session, and those to come, until the signal; it attaches again by itself. */
export async function follow(agent, session, hear, tell, signal) {
  // A stream may be cut between two events of one record: that record is asked for again, and what of it was heard is passed over.
  let [newest, heard, pace] = [0, new Set(), pacer()];
  for (let wait = 500; !signal.aborted; wait = Math.min(wait * 2, 4000)) {
    const now = await seen(signal);
    try {
      const after = Math.max(newest - 1, 0);
      const answer = await fetch(`/v1${at(agent, "events", { session, after, follow: true })}`, { signal: now });
      if (!answer.ok) throw Object.assign(new Error((await answer.json()).error.message), { status: answer.status });
      tell(null);
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = []; ;) {
        const { done, value } = await reader.read();
        if (done) break;
        rest.push(value);
        if (!value.includes("\n\n") && !/^\n/.test(value)) continue;
        const frames = rest.join("").split("\n\n");
        rest = [frames.pop()];
        for (const frame of frames) {
          const data = frame.split("\n").filter((row) => row.startsWith("data:")).map((row) => row.slice(5)).join("\n");
          const event = data ? JSON.parse(data) : {};
          if (event.error) throw new Error(event.error.message);
          if (event.seq > newest) [newest, heard] = [event.seq, new Set()];
          if (event.event && !heard.has(data)) hear(event);
          if (!PASSING.has(event.event)) heard.add(data);
          await pace();
        }
        wait = 500;
      }
      tell("the stream was cut off");
    } catch (error) {
      if (signal.aborted || error.status === 401) return tell(error.message, error.status);
      if (!now.aborted) tell(error.message, error.status);
    }
    await new Promise((go) => setTimeout(go, now.aborted ? 0 : wait));
  }
}
