// A page's stream. A browser opens six connections to a server, for all of its tabs together. So a tab that nobody
// sees has no stream; of those that are seen four keep theirs open, and the others open it for a look now and then:
// two connections are left for whatever is pressed or fetched.

const OPEN_AT_ONCE = 4, LOOK_MILLISECONDS = 1000, NEXT_LOOK = 3000;
const SILENT_SECONDS = 40; // the server says something every 15 s: a stream that is silent for longer has died unheard
const WATCH_MILLISECONDS = 5000, AGAIN_AFTER = 1000;

/* Hears a stream until the page is left: `events` by name; `place` says from where, also when it is opened anew.
   `lost` and `found` are told when the connection goes and comes. */
export async function follow(place, events, told) {
  for (;;) {
    await seen();
    const leave = await seat();
    const pause = await heard(place(), events, told, leave === null);
    leave?.();
    await new Promise((done) => setTimeout(done, pause));
  }
}

function seen() {
  if (!document.hidden) return Promise.resolve();
  return new Promise((done) => document.addEventListener("visibilitychange", done, { once: true })).then(seen);
}

/* One of the places of this browser for streams that stay open, as the function that leaves it; null: all are taken. */
async function seat() {
  if (!navigator.locks) return () => {};
  for (let number = 0; number < OPEN_AT_ONCE; number += 1) {
    const leave = await new Promise((answer) => navigator.locks.request(`artoo-stream-${number}`, { ifAvailable: true },
      (lock) => lock ? new Promise((done) => answer(done)) : answer(null)));
    if (leave) return leave;
  }
  return null;
}

/* Hears until the stream is to be opened anew, and says after how many milliseconds. */
function heard(address, events, { lost, found }, look) {
  return new Promise((done) => {
    const source = new EventSource(address), ending = new AbortController();
    let last = Date.now(), looked = null;
    const end = (pause) => { ending.abort(); clearInterval(watch); clearTimeout(looked); source.close(); done(pause); };
    const watch = setInterval(() => { if (Date.now() - last > SILENT_SECONDS * 1000) { lost(); end(0); } }, WATCH_MILLISECONDS);
    source.onopen = () => {
      last = Date.now();
      found();
      if (look) looked = setTimeout(() => end(NEXT_LOOK), LOOK_MILLISECONDS);
    };
    source.onerror = () => {
      lost();
      // A server that is gone for longer than a moment closes the stream for good: then it is opened anew.
      if (source.readyState === EventSource.CLOSED) end(AGAIN_AFTER);
    };
    for (const [name, hear] of Object.entries({ beat: () => {}, ...events }))
      source.addEventListener(name, (event) => { last = Date.now(); hear(JSON.parse(event.data)); });
    document.addEventListener("visibilitychange", () => { if (document.hidden) end(0); }, { signal: ending.signal });
  });
}
