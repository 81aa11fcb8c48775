// A server of made sessions: the page's files under the policy that the real one sends, and events as it sends them.
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

const POLICY = "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const TYPES = { js: "text/javascript", css: "text/css", html: "text/html" };

/** `sessions`: name → { events, row?, rest? }. What is posted is kept in `posted`. */
export async function serve(page, sessions) {
  const posted = [];
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, "http://x");
    const send = (status, type, body) => response.writeHead(status, { "Content-Type": type, "Content-Security-Policy": POLICY }).end(body);
    const json = (it, status = 200) => send(status, "application/json", JSON.stringify(it));
    if (url.pathname === "/" || url.pathname.startsWith("/app/")) {
      const name = url.pathname === "/" ? "index.html" : url.pathname.slice(5);
      return readFile(join(page, name)).then((body) => send(200, TYPES[name.split(".").pop()], body), () => send(404, "text/plain", "none"));
    }
    const name = url.searchParams.get("session");
    const session = sessions.get(name);
    const route = url.pathname.split("/").pop();
    if (request.method === "POST") {
      let body = "";
      for await (const part of request) body += part;
      posted.push({ route, name, csrf: request.headers["x-adjutant"], ...JSON.parse(body || "{}") });
      if (route === "session") return response.writeHead(204).end();
      if (route === "undo") return json({ files: ["src/total.rs"], uncovered: "not put back: what commands changed; 1 ran since then" });
      return json({ heard: true, name: JSON.parse(body || "{}").to }, 202);
    }
    if (route === "agents") return json({ agents: [{ agent: "store", status: "ready" }] });
    if (route === "sessions") {
      const search = url.searchParams.get("search")?.toLowerCase() ?? "";
      const state = url.searchParams.get("state");
      const rows = [...sessions].map(([key, it]) => ({ name: key, changed_ms: Date.now() - 60000, records: it.events.length, labels: [], state: "done", ...it.row }));
      return json({ sessions: rows.filter((it) => (it.title + it.name).toLowerCase().includes(search) && (!state || it.state === state)).slice(0, Number(url.searchParams.get("limit"))) });
    }
    const hostile = [...sessions.values()].flatMap((it) => it.fleet ?? []);
    if (route === "fleet") return json({ due: 1, at_work: 2, parked: 1, aside: 1, oldest_ms: 4000, sessions: hostile.concat([...sessions].slice(0, 4).map(([log, it], n) => ({ log, is_owned: n < 2, owner: n < 2 ? `process ${4711 + n}@build-1, 5f2a-1` : undefined, work: [{ work: "open" }, { work: "open" }, { work: "parked", on: "an approval" }, { work: "aside", why: "5 owners in a row left its run open" }][n], updated_ms: Date.now() - n * 50000, head: it.events.length }))) });
    if (!session) return json({ error: { kind: "missing", message: `there is no session ${name}` } }, 404);
    if (route === "events") {
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      const after = Number(url.searchParams.get("after"));
      const rows = session.events.filter((it) => it.seq > after).map((it) => `id: ${it.seq}\nevent: ${it.event}\ndata: ${JSON.stringify(it)}\n\n`);
      // Cut where the test wants it, also between two events of one record.
      if (session.cut) return response.write(rows.slice(0, session.cut).join(""), () => setTimeout(() => response.destroy(), 30));
      for (let at = 0; at < rows.length; at += 500) if (!response.write(rows.slice(at, at + 500).join(""))) await new Promise((go) => response.once("drain", go));
      (session.listeners ??= new Set()).add(response);
      return request.on("close", () => session.listeners.delete(response));
    }
    if (session.rest?.[route]) return json(session.rest[route](url.searchParams));
    return json({ error: { kind: "missing", message: `there is no route ${route}` } }, 404);
  });
  await new Promise((go) => server.listen(0, "127.0.0.1", go));
  const tell = (name, event) => {
    const session = sessions.get(name);
    session.events.push(event);
    for (const it of session.listeners ?? []) it.write(`id: ${event.seq}\nevent: ${event.event}\ndata: ${JSON.stringify(event)}\n\n`);
  };
  return { url: `http://127.0.0.1:${server.address().port}`, posted, tell, close: () => (server.closeAllConnections(), server.close()) };
}
