// A model that says what the driver tells it to: Chat Completions over loopback, a piece at a time, held where the driver wants.
import { createServer } from "node:http";

/** `said` of an answer: text, or { call, args }; `hold` keeps it open after its first piece until `go` is called. */
export async function model() {
  const [queue, asked] = [[], []];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    const { model: name, messages } = JSON.parse(body);
    asked.push({ name, messages, body });
    const answer = queue.shift() ?? { text: "Nothing more to say." };
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    const send = (delta, finish_reason = null) => response.write(`data: ${JSON.stringify({ id: "r", object: "chat.completion.chunk", created: 0, model: name, choices: [{ index: 0, delta, finish_reason }] })}\n\n`);
    send({ role: "assistant", content: "" });
    const pieces = answer.text?.match(/[^]{1,12}/gu) ?? [];
    for (const [at, piece] of pieces.entries()) {
      send({ content: piece });
      if (at === 0) await answer.hold;
    }
    if (answer.call) send({ tool_calls: [{ index: 0, id: `w${asked.length}`, type: "function", function: { name: answer.call, arguments: JSON.stringify(answer.args) } }] });
    send({}, answer.call ? "tool_calls" : "stop");
    response.write(`data: ${JSON.stringify({ id: "r", object: "chat.completion.chunk", created: 0, model: name, choices: [], usage: { prompt_tokens: 900 + body.length % 500, completion_tokens: 40, total_tokens: 940, prompt_tokens_details: { cached_tokens: 512 } } })}\n\n`);
    response.end("data: [DONE]\n\n");
  });
  await new Promise((go) => server.listen(0, "127.0.0.1", go));
  const say = (answer) => {
    let go = () => {};
    if (answer.held) answer.hold = new Promise((free) => (go = free));
    queue.push(answer);
    return go;
  };
  return { url: `http://127.0.0.1:${server.address().port}/v1`, say, asked, close: () => (server.closeAllConnections(), server.close()) };
}
