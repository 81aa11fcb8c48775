// What somebody says to a session: answers to what waits, messages, a fork.
import { html, useEffect, useRef, useState } from "./preact.js";
import { textOf } from "./fold.js";
import { Change } from "./views.js";
import { Pre, t, ago, line, pretty } from "./text.js";

/** Something that is sent once at a time; what goes wrong is told beside it. */
export function useSend(send) {
  const [state, set] = useState({});
  const go = async (...said) => {
    set({ busy: true }); set(await Promise.resolve(send(...said)).then(() => ({}), (error) => ({ trouble: error.message })));
  };
  return [go, state.busy, state.trouble && html`<p class="bad" role="alert">${line(state.trouble, 500)}</p>`];
}

const values = (form) => Object.fromEntries(new FormData(form));
const json = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("This is no JSON: look at quotes and commas.");
  }
};

/** One thing that waits: what is asked, about what, and the answers that it takes. */
export function Pause({ of: { pause, at }, answer }) {
  const { ask, call, id } = pause;
  const box = useRef();
  const [edited, edit] = useState(null);
  const approval = ask.kind === "approval" || ask.kind === "authorisation";
  const choices = ask.schema?.enum;
  const make = (what, text) => ({
    approve: () => (edited == null ? {} : json(edited) && { args: edited }),
    always: () => ({ answer: "approve", for_run: true }),
    deny: () => ({ reason: text }),
    give: () => ({ value: choices || (ask.schema && ask.schema.type !== "string") ? json(text) : text }),
    return: () => ({ result: { status: "ok", content: [{ type: "text", text }] } }),
    extend: () => ({ by: Number(text) || 0 }),
    decline: () => (text ? { message: text } : {}),
  })[what]();
  const [send, busy, trouble] = useSend(async (what) => answer({ pause: id, answer: { answer: what, ...make(what, values(box.current).text) }, shown: pause.digest }));
  const button = (what, label, kind = "") => html`<button type="button" class=${kind} disabled=${busy} onClick=${() => send(what)}>${label}</button>`;
  const main = { question: "give", external: "return", limit: "extend" }[ask.kind] ?? "give";
  const word = { give: "Your answer", return: "The result of the call", extend: "How much more" }[!approval && main] ?? "Why not, for the model";
  const field = choices ? html`<select name="text" aria-label=${word}>${choices.map((it) => html`<option value=${JSON.stringify(it)}>${line(it)}</option>`)}</select>`
    : html`<input name="text" aria-label=${word} placeholder=${word} type=${ask.kind === "limit" ? "number" : "text"} min="1" autocomplete="off" />`;
  // Enter in the field for a reason is no approval.
  return html`<form class="pause" ref=${box} onSubmit=${(event) => (event.preventDefault(), approval || send(main))} aria-label=${`Waits: ${line(call?.name ?? ask.kind)}`}>
    <p><b>${t(pause.agent || "The run")}</b> asks${call ? html` about <b>${t(call.name)}</b>` : ""} <small>${ago(at)}${pause.deadline_ms && `, until ${new Date(pause.deadline_ms).toLocaleString()}`}</small></p>
    <${Pre} text=${(call && ask.data?.why) || ask.prompt} kind="plain" />
    ${ask.data?.always?.length > 0 && html`<${Pre} text=${"Always: " + ask.data.always.join("\n")} kind="plain" />`}
    ${pause.refused?.map((it) => html`<p class="bad">Refused before: ${t(it, 500)}</p>`)}
    ${call && (edited == null ? html`<${Change} name=${call.name} args=${call.args} />` : html`<label>Arguments, as JSON<textarea rows="8" spellcheck="false" value=${edited} onInput=${(event) => edit(event.target.value)}></textarea></label>`)}
    ${answer && html`<div class="row">${approval ? html`${button("approve", edited == null ? "Approve" : "Approve as edited", "main")}
        ${call && ask.kind === "approval" && html`<button type="button" onClick=${() => edit(edited == null ? pretty(call.args) : null)}>${edited == null ? "Edit the arguments" : "Leave them"}</button>`}
        ${edited == null && ask.kind === "approval" && button("always", ask.data?.always?.length > 0 ? "Always allow just this" : "Always in this run")}${field}${button("deny", "Deny", "danger")}`
      : html`${field}${button(main, "Send", "main")}${button("decline", "Decline")}`}</div>`}${trouble}</form>`;
}

/** A message to the run, or the next prompt. */
export function Composer({ state, say }) {
  const box = useRef();
  const [send, busy, trouble] = useSend(async (control) => {
    const text = box.current.value;
    if (control !== "stop" && !text.trim()) return;
    await say(control === "stop" ? { control } : { control, text });
    if (control !== "stop") box.current.value = "";
  });
  const works = state === "working" || state === "waiting";
  const main = works ? "steer" : "prompt";
  const key = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault(); send(main);
  };
  return html`<form class="say" onSubmit=${(event) => (event.preventDefault(), send(event.submitter?.value ?? main))}>
    <textarea ref=${box} rows="1" aria-label="Message" placeholder=${works ? "Say something to the run" : "What is to be done next?"} onKeyDown=${key}></textarea>
    <button class="main" value=${main} disabled=${busy}>${works ? "Steer" : "Prompt"}</button>
    ${works && html`<button value="follow_up" disabled=${busy} title="Heard when the run would end">Follow up</button><button class="danger" value="stop" disabled=${busy}>Stop</button>`}${trouble}</form>`;
}

/** Asks how a fork is to differ. */
export function Fork({ of: it, session, fork, close }) {
  const box = useRef();
  useEffect(() => box.current.showModal(), []);
  const call = it.call?.result && it.call;
  const [send, busy, trouble] = useSend(async (form) => {
    const { to, model, prompt, result } = values(form);
    const at = call?.seq ?? it.seq;
    const changed = call && result.replace(/\r\n/g, "\n") !== textOf(call.result.content);
    await fork({ to, at, ...(model && { model }), ...(prompt && { prompt }), ...(changed && { result: { call: call.id, text: result } }) });
  });
  const [name] = useState(() => `${session}-${new Date().toISOString().slice(11, 19).replaceAll(":", "")}`);
  return html`<dialog ref=${box} onClose=${close} aria-labelledby="fork"><form onSubmit=${(event) => (event.preventDefault(), send(event.target))}>
    <h2 id="fork">Fork at record ${call?.seq ?? it.seq}</h2><p class="dim">A new session that begins as this one, up to there. This one stays as it is.</p>
    <label>Name<input name="to" required maxlength="128" defaultValue=${name} /></label>
    <label>Another model <small>(as provider/name; empty: the same)</small><input name="model" autocomplete="off" /></label>
    <label>A prompt to go on with <small>(empty: none)</small><textarea name="prompt" rows="2"></textarea></label>
    ${call && html`<label>The result of ${t(call.name)}<textarea name="result" rows="6">${textOf(call.result.content)}</textarea></label>`}
    ${trouble}<div class="row"><button class="main" disabled=${busy}>Fork</button><button type="button" onClick=${() => box.current.close()}>Cancel</button></div></form></dialog>`;
}

/** Shows what an undo puts back, and asks for it. */
export function Undo({ of: { run, files }, undo, close }) {
  const box = useRef();
  const [done, end] = useState(null);
  useEffect(() => box.current.showModal(), []);
  const [send, busy, trouble] = useSend(async () => end(await undo()));
  const list = done ? done.files.map((path) => [path]) : files;
  return html`<dialog ref=${box} onClose=${close} aria-labelledby="undo"><form onSubmit=${(event) => (event.preventDefault(), send())}>
    <h2 id="undo">Undo what run ${run} changed in files</h2>
    <p>${!done ? "Each of these is put back as it was before that run, unless somebody else has changed one of them since." : list.length ? "These were put back:" : "Nothing was left to put back."}</p>
    <ul>${list.slice(0, 200).map(([path, made]) => html`<li>${t(path, 500)}${made && html` <small>deleted: it was not there</small>`}</li>`)}</ul>${list.length > 200 && html`<p>${list.length - 200} more</p>`}
    ${done?.uncovered && html`<p class="bad">${t(done.uncovered, 500)}</p>`}${trouble}
    <div class="row">${!done && html`<button class="danger" disabled=${busy}>Put ${files.length} back</button>`}<button type="button" onClick=${() => box.current.close()}>${done ? "Close" : "Cancel"}</button></div></form></dialog>`;
}
