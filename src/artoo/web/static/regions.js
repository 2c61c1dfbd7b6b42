// What changes on a page: regions of the server's own HTML. They are changed in place, so that what somebody has
// pressed, opened, typed or reached by keyboard stays what it is while the words around it change.

import { plots } from "./plots.js";

const AGAIN_AFTER = 250;
// A request on a connection that died unheard, as after a laptop slept, would never end and hold back all later ones.
const ANSWER_WITHIN = 15_000;

/* A function that fetches the regions of `holder` anew and changes what differs. */
export function live(holder) {
  const shown = new Map();
  for (const region of holder.querySelectorAll("[data-region]")) shown.set(region.dataset.region, region.innerHTML);
  let busy = false, again = false;

  function change(fresh) {
    for (const region of fresh.querySelectorAll("[data-region]")) {
      const name = region.dataset.region, html = region.innerHTML;
      const old = holder.querySelector(`[data-region="${name}"]`);
      if (!old || shown.get(name) === html) continue;
      shown.set(name, html);
      const reached = old.contains(document.activeElement) ? document.activeElement : null;
      children(old, region);
      if (reached && !reached.isConnected) document.getElementById("main").focus({ preventScroll: true });
      plots(old);
    }
  }

  return async function refresh() {
    if (busy) { again = true; return; }
    busy = true;
    const request = new AbortController();
    const late = setTimeout(() => { again = true; request.abort(); }, ANSWER_WITHIN);
    try {
      const answer = await fetch(holder.dataset.live, { headers: { accept: "text/html" }, signal: request.signal });
      if (answer.ok) change(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch (error) {
      // TypeError: the connection is gone. The stream says so, and comes back.
      if (!(error instanceof TypeError || request.signal.aborted)) throw error;
    } finally {
      clearTimeout(late);
      busy = false;
      if (again) { again = false; setTimeout(refresh, AGAIN_AFTER); }
    }
  };
}

/* Makes the children of `old` be those of `fresh`. Elements with an id are the same wherever they stand, others by
   their place; a plot is its own. */
function children(old, fresh) {
  const named = new Map();
  for (const child of old.children) if (child.id) named.set(child.id, child);
  let next = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    let same = child.id ? named.get(child.id) : next;
    if (!same || same.nodeName !== child.nodeName || (same.id ?? "") !== (child.id ?? "")) same = null;
    if (!same) { old.insertBefore(child, next); continue; }
    if (same === next) next = next.nextSibling;
    else old.insertBefore(same, next);
    alike(same, child);
  }
  while (next) { const gone = next; next = next.nextSibling; gone.remove(); }
}

function alike(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  if (!old.hasAttribute("data-plot")) children(old, fresh);
}
