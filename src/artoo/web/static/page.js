// artoo's page: follows streams, changes what has changed, and keeps a timeline of any length.
// Everything that a model or a file said arrives as escaped HTML from the server or is set as text: never as markup.

import { plots } from "./plots.js";
import { live } from "./regions.js";
import { Timeline } from "./timeline.js";

const SILENT_SECONDS = 40; // the server says something every 15 s: a stream that is silent for longer has died unheard
const LOOK_MILLISECONDS = 5000, AGAIN_AFTER = 1000;

const offline = document.getElementById("offline"), box = document.getElementById("timeline");

function lost() {
  if (!offline) return;
  offline.hidden = false;
  offline.textContent = offline.dataset.words.replace("{number}", box?.dataset.count ?? "");
}

/* Hears a stream until the page is left: `events` by name; `place` says from where, also when it is opened anew. */
function follow(place, events) {
  const source = new EventSource(place());
  let last = Date.now();
  const again = () => { clearInterval(watch); source.close(); follow(place, events); };
  const watch = setInterval(() => { if (Date.now() - last > SILENT_SECONDS * 1000) { lost(); again(); } }, LOOK_MILLISECONDS);
  source.onopen = () => { last = Date.now(); if (offline) offline.hidden = true; };
  source.onerror = () => {
    lost();
    // A server that is gone for longer than a moment closes the stream for good: then it is opened anew.
    if (source.readyState === EventSource.CLOSED) { clearInterval(watch); setTimeout(again, AGAIN_AFTER); }
  };
  for (const [name, hear] of Object.entries({ beat: () => {}, ...events }))
    source.addEventListener(name, (event) => { last = Date.now(); hear(JSON.parse(event.data)); });
}

function followTask(refresh) {
  const timeline = new Timeline(box, { lost });
  let version = "";
  follow(() => `${box.dataset.stream}?after=${timeline.total.all - 1}`, {
    rows: (message) => { if (!timeline.take(message)) location.reload(); },
    state: (message) => {
      if (message.short !== timeline.total.short) timeline.shorten(message.short);
      if (message.version !== version) { version = message.version; refresh(); }
    },
  });
}

const holders = [...document.querySelectorAll("[data-live]")];
const refreshing = holders.map((holder) => [holder.dataset.event ?? "state", live(holder)]);
plots(document); // after it was noted what the server had sent
if (box) followTask(refreshing[0][1]);
else if (holders.length) follow(() => holders[0].dataset.stream, Object.fromEntries(refreshing));
