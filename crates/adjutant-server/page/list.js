// A list of which only what can be seen is drawn: any number of rows, each of its own height.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./preact.js";

/**
 * `items` are drawn by `row`; `tall` is the height of one that was never seen. With `tail`, the list stays at its end while it is
 * there. `cursor` is the place that must be seen.
 */
export function Windowed({ items, row, tall, keyOf = (it) => it.n, tail, cursor, label, role = "list", kind = "" }) {
  const box = useRef();
  const [, draw] = useState(0);
  const own = useRef({ heights: new Map(), tops: [0], known: 0, top: 0, stuck: true }).current;
  const { heights, tops } = own;
  // The top of each row; only those behind a row that came or changed its height are added up anew.
  if (own.items !== items) Object.assign(own, { items, known: 0 });
  for (; own.known < items.length; own.known += 1) tops[own.known + 1] = tops[own.known] + (heights.get(keyOf(items[own.known])) ?? tall);
  const view = box.current?.clientHeight || 800;
  const search = (y) => {
    let [low, high] = [0, items.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (tops[middle + 1] < y) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  if (tail && own.stuck) own.top = Math.max(tops[items.length] - view, 0);
  const first = search(own.top - 150);
  const last = Math.min(search(own.top + view + 150) + 1, items.length);
  useLayoutEffect(() => {
    let changed = false;
    for (const it of box.current.children[0].children) {
      const [at, now] = [Number(it.dataset.at), it.offsetHeight];
      if (!now || tops[at + 1] - tops[at] === now) continue;
      heights.set(keyOf(items[at]), now); own.known = Math.min(own.known, at); changed = true;
    }
    if (tail && own.stuck) {
      box.current.scrollTop = box.current.scrollHeight; own.top = box.current.scrollTop;
    }
    if (changed) draw((n) => n + 1);
  });
  useEffect(() => {
    if (cursor == null || cursor < 0) return;
    const { scrollTop } = box.current;
    if (tops[cursor] < scrollTop || tops[cursor + 1] > scrollTop + view) box.current.scrollTop = tops[cursor] - view / 4;
  }, [cursor]);
  useEffect(() => {
    const watch = new ResizeObserver(() => draw((n) => n + 1));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const scrolled = () => {
    if (!box.current) return;
    const { scrollTop, scrollHeight, clientHeight } = box.current;
    own.stuck = scrollTop + clientHeight > scrollHeight - 40;
    if (own.top !== scrollTop) draw((own.top = scrollTop));
  };
  const rows = [];
  for (let at = first; at < last; at += 1) {
    const item = items[at];
    rows.push(html`<div key=${keyOf(item)} data-at=${at} role=${role === "list" ? "listitem" : null}>${row(item, at)}</div>`);
  }
  return html`<div class=${`window ${kind}`} ref=${box} onScroll=${scrolled} tabindex="0" role="region" aria-label=${label}>
    <div role=${role} style=${{ paddingTop: `${tops[first]}px`, paddingBottom: `${tops[items.length] - tops[last]}px` }} aria-label=${label}>${rows}</div></div>`;
}
