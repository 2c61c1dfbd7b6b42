// artoo's page: follows its stream, changes what has changed, and keeps a timeline of any length.
// Everything that a model or a file said arrives as escaped HTML from the server or is set as text: never as markup.

import { composers } from "./composer.js";
import { plots } from "./plots.js";
import { live } from "./regions.js";
import { follow } from "./streams.js";
import { Timeline } from "./timeline.js";

const offline = document.getElementById("offline"), box = document.getElementById("timeline");
const versions = new Map(); // of what is shown, by the name of its event

function lost() {
  versions.clear(); // what was asked for meanwhile may not have come
  if (!offline) return;
  offline.hidden = false;
  offline.textContent = offline.dataset.words.replace("{number}", box?.dataset.count ?? "");
}

function found() {
  if (offline) offline.hidden = true;
}

/* What an event does that tells a version: nothing where that is shown already. */
function whenNew(name, refresh) {
  return ({ version }) => {
    if (versions.get(name) === version) return;
    versions.set(name, version);
    refresh();
  };
}

function followTask(refresh) {
  const timeline = new Timeline(box, { lost }), changed = whenNew("state", refresh);
  follow(() => `${box.dataset.stream}?after=${timeline.total.all - 1}`, {
    rows: (message) => { if (!timeline.take(message)) location.reload(); },
    state: (message) => {
      if (message.short !== timeline.total.short) timeline.shorten(message.short);
      changed(message);
    },
  }, { lost, found });
}

/* The text that a model is writing and what the running command prints: never markup, and in no region. */
function written({ words, printed }) {
  const place = document.getElementById("live"), output = document.getElementById("live-printed");
  if (!place) return;
  const following = innerHeight + scrollY >= document.documentElement.scrollHeight - 80;
  document.getElementById("live-words").textContent = words;
  output.textContent = printed;
  output.hidden = !printed;
  place.hidden = !words && !printed;
  if (following) scrollTo({ top: document.documentElement.scrollHeight });
}

composers();
const holders = [...document.querySelectorAll("[data-live]")];
const refreshing = holders.map((holder) => [holder.dataset.event ?? "state", live(holder)]);
plots(document); // after it was noted what the server had sent
if (box) followTask(refreshing[0][1]);
else if (holders.length) {
  const events = refreshing.map(([name, refresh]) => [name, whenNew(name, refresh)]);
  follow(() => holders[0].dataset.stream, { ...Object.fromEntries(events), live: written }, { lost, found });
}
