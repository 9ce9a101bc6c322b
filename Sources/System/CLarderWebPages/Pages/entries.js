// The browser of keys and entries.

import {
  ask, attempt, beginWhenPossible, byID, bytes, drawing, element, fill, fillFacts, instant, label, number, onSearchKey, prepare, question, repeat, say,
  span, visible,
} from "./common.js";

const pageSize = 50;
let settings = { allowsChanges: false };
/** The pages so far, each with its keys and the cursor of the next page. The last page is shown. */
let pages = [];
let shown = null;

/** A key in requests to larderweb: its bytes, each as `%xx`. */
const encoded = (hex) => hex.replace(/../g, "%$&");
const hexOf = (text) => Array.from(new TextEncoder().encode(text), (byte) => byte.toString(16).padStart(2, "0")).join("");
/** The head of a request may have 16 KiB, and each byte of a key takes three characters. */
const keyBytesMost = 5000;

// Keys

async function fetchPage(cursor) {
  const query = `database=${encodeURIComponent(byID("database").value)}&prefix=${encoded(hexOf(byID("prefix").value))}&count=${pageSize}`;
  return ask(`/api/keys?${query}${cursor ? `&cursor=${cursor}` : ""}`);
}

function showPage() {
  const page = pages.at(-1);
  const rows = page.keys.map((one) => [
    element("button", { type: "button", class: "key", onclick: (event) => open(one.key, event.currentTarget) }, label(one.key)),
    bytes(one.size),
    one.state === undefined ? "removed" : one.state === "stale" ? "stale" : one.ttl === -1 ? "never" : span(one.ttl / 1000),
  ]);
  fill(byID("keys"), rows, page.next ? "No matches yet: select Next." : "There are no such keys.");
  byID("back").disabled = pages.length < 2;
  byID("next").disabled = !page.next;
  byID("page").textContent = `page ${pages.length}`;
  say(byID("status"), `${page.keys.length} ${page.keys.length === 1 ? "key" : "keys"}${page.next ? ", and more" : ""}`);
}

async function search() {
  pages = [await fetchPage()];
  showPage();
}

byID("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const query = new URLSearchParams({ database: byID("database").value, prefix: byID("prefix").value });
  history.replaceState(null, "", `?${query}`);
  byID("entry").hidden = true;
  attempt(search);
});
byID("database").addEventListener("change", () => byID("search").requestSubmit());
byID("next").addEventListener("click", () =>
  attempt(async () => {
    pages.push(await fetchPage(pages.at(-1).next));
    showPage();
  })
);
byID("back").addEventListener("click", () => {
  pages.pop();
  showPage();
});
onSearchKey(() => byID("prefix").focus());

// One entry

async function load(key) {
  // Hide the previous entry, so that it cannot be taken for the requested one, and removed.
  if (shown === null || shown.key.hex !== key.hex) byID("entry").hidden = true;
  if (key.hex.length / 2 > keyBytesMost) throw new Error(`Keys of more than ${number(keyBytesMost)} bytes cannot be shown here; use larderctl get.`);
  shown = await ask(`/api/entry?database=${encodeURIComponent(byID("database").value)}&key=${encoded(key.hex)}`);
  showEntry();
}

function open(key, button) {
  for (const other of document.querySelectorAll("button.key[aria-current]")) other.removeAttribute("aria-current");
  button?.setAttribute("aria-current", "true");
  return attempt(async () => {
    await load(key);
    // Make the page's address lead to this entry.
    const query = new URLSearchParams(location.search);
    query.set("database", byID("database").value);
    query.delete("key");
    query.delete("hex");
    if (key.text === undefined) query.set("hex", key.hex);
    else query.set("key", key.text);
    history.replaceState(null, "", `?${query}`);
    byID("entry").focus();
  });
}

function showEntry() {
  const entry = shown;
  byID("entry").hidden = false;
  byID("entry-key").textContent = label(entry.key);
  const rule = { governed: `its database's policy, ${entry.policy}`, own: "its own", never: "its own: it never expires" }[entry.rule];
  fillFacts(byID("facts"), [
    ["state", entry.isStale ? "stale: only FETCH returns it" : entry.isUnverified ? "unverified: the origin is not available" : "fresh"],
    ["stored", `${instant(entry.storedAt)}, ${span((entry.now - entry.storedAt) / 1000)} ago`],
    ["fresh until", entry.deadline === undefined ? "forever" : `${instant(entry.deadline)}, ${left(entry.deadline - entry.now)}`],
    ["grace", entry.grace > 0 ? span(entry.grace / 1000) : "none"],
    ["rule", rule],
    ["size", `${number(entry.size)} bytes`],
    ["codec", entry.codec],
    ["tags", entry.tags.length > 0 ? visible(entry.tags.join(", ")) : "none"],
  ]);
  drawLife(entry);
  byID("value").replaceChildren(...valueOf(entry));
  byID("changes").hidden = !settings.allowsChanges || entry.isStale;
}

const left = (milliseconds) => (milliseconds > 0 ? `in ${span(milliseconds / 1000)}` : `${span(-milliseconds / 1000)} ago`);

/** Draws the time line of an entry: when it was stored, until when it is fresh and kept for its grace, and the current time. */
function drawLife(entry) {
  const place = byID("life");
  const width = Math.max(place.clientWidth, 200);
  const [start, end, height] = [8, width - 8, 92];
  const ends = entry.deadline === undefined ? null : entry.deadline + entry.grace;
  const last = Math.max(ends ?? 0, entry.now, entry.storedAt + 1);
  // The line of an entry that does not expire extends beyond the current time.
  const scale = (end - start) / ((ends === null ? entry.storedAt + (last - entry.storedAt) * 1.5 : last) - entry.storedAt);
  const at = (time) => start + (time - entry.storedAt) * scale;
  const middle = 46;
  const line = (kind, from, to) => drawing("line", { class: kind, x1: from, x2: to, y1: middle, y2: middle, "stroke-width": 8, "stroke-linecap": "butt" });
  const text = (x, y, words, kind = "") => {
    const anchor = x < width * 0.25 ? "start" : x > width * 0.75 ? "end" : "middle";
    return drawing("text", { x: Math.min(Math.max(x, start), end), y, "text-anchor": anchor, class: kind }, words);
  };
  const parts = [line("axis", start, end)];
  parts.push(line("fresh", start, entry.deadline === undefined ? end : at(entry.deadline)));
  if (entry.deadline !== undefined && entry.grace > 0) parts.push(line("grace", at(entry.deadline), at(ends)));
  const now = at(entry.now);
  parts.push(drawing("line", { class: "now", x1: now, x2: now, y1: middle - 12, y2: middle + 12, "stroke-width": 2 }));
  parts.push(drawing("circle", { class: "now-mark", cx: now, cy: middle - 12, r: 3 }));
  parts.push(text(now, middle - 20, "now"));
  parts.push(text(start, middle + 24, "stored", "muted"));
  if (entry.deadline === undefined) {
    parts.push(text(end, middle + 24, "never expires", "muted"));
  } else {
    const isNear = entry.grace > 0 && at(ends) - at(entry.deadline) < 150;
    parts.push(text(at(entry.deadline), middle + (isNear ? 40 : 24), "fresh until", "muted"));
    if (entry.grace > 0) parts.push(text(at(ends), middle + 24, "grace until", "muted"));
  }
  place.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const until = entry.deadline === undefined ? "never expires" : `fresh until ${instant(entry.deadline)}`;
  const grace = entry.grace > 0 && ends !== null ? `, kept until ${instant(ends)}` : "";
  place.setAttribute("aria-label", `Stored ${instant(entry.storedAt)}, ${until}${grace}, now ${instant(entry.now)}`);
  place.replaceChildren(...parts);
}

addEventListener("resize", () => {
  if (shown && !byID("entry").hidden) drawLife(shown);
});

// Values

function valueOf(entry) {
  if (!entry.value) return [];
  const note = entry.isCut ? [element("p", { class: "note" }, "The value is truncated.")] : [];
  if (entry.value.text === undefined) return [element("pre", { tabindex: 0, "aria-label": "Value, hexadecimal" }, hexDump(entry.value.hex)), ...note];
  if (!entry.isCut) {
    try {
      const value = JSON.parse(entry.value.text, exactly);
      if (typeof value === "object" && value !== null) {
        return [element("div", { class: "json", tabindex: 0, "aria-label": "Value, JSON" }, folded(null, value, 0))];
      }
    } catch {
      // The text is not JSON.
    }
  }
  return [element("pre", { tabindex: 0, "aria-label": "Value, text" }, entry.value.text), ...note];
}

function hexDump(hex) {
  const lines = [];
  for (let start = 0; start < hex.length; start += 32) {
    const pairs = hex.slice(start, start + 32).match(/../g);
    const letters = pairs.map((pair) => parseInt(pair, 16)).map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : "."));
    lines.push(`${(start / 2).toString(16).padStart(6, "0")}  ${pairs.join(" ").padEnd(47)}  ${letters.join("")}`);
  }
  return lines.join("\n");
}

const depthMax = 60;
const membersMax = 500;

/** A number that JavaScript would not show as it is written, such as one of more than 15 digits. */
class WrittenNumber {
  constructor(text) {
    this.text = text;
  }
}

/** Keeps a number as it is written. Browsers that do not report the source text of numbers show them as JavaScript does. */
const exactly = (_, value, context) =>
  typeof value === "number" && (context?.source ?? String(value)) !== String(value) ? new WrittenNumber(context.source) : value;

/** JSON that can be folded; the first two levels are open. Members are drawn when they are opened for the first time. */
function folded(name, value, depth) {
  const title = name === null ? [] : [element("span", { class: "name" }, name), ": "];
  if (typeof value !== "object" || value === null || value instanceof WrittenNumber) {
    const isNumber = typeof value === "number" || value instanceof WrittenNumber;
    const kind = typeof value === "string" ? "string" : isNumber ? "number" : "word";
    return element("div", {}, ...title, element("span", { class: kind }, value?.text ?? JSON.stringify(value)));
  }
  const members = Object.entries(value);
  const count = Array.isArray(value) ? `[${members.length}]` : `{${members.length}}`;
  const place = element("details", {}, element("summary", {}, ...title, element("span", { class: "count" }, count)));
  let isDrawn = false;
  const draw = () => {
    if (isDrawn) return;
    isDrawn = true;
    if (depth >= depthMax) return place.append(element("div", {}, "…"));
    place.append(...members.slice(0, membersMax).map(([key, member]) => folded(key, member, depth + 1)));
    if (members.length > membersMax) place.append(element("div", {}, `… and ${number(members.length - membersMax)} more`));
  };
  place.addEventListener("toggle", () => place.open && draw());
  if (depth < 2) {
    draw();
    place.open = true;
  }
  return place;
}

// Changes

byID("delete").addEventListener("click", async () => {
  const entry = shown;
  const answer = await question("Remove this entry?", `${label(entry.key)} in database ${entry.database}`, null, "Remove");
  if (answer === null) return;
  await attempt(async () => {
    const { done } = await ask("/api/delete", { database: entry.database, key: entry.key.hex });
    byID("entry").hidden = true;
    await search();
    say(byID("status"), done ? "The entry was removed." : "The entry no longer exists.");
  });
});

byID("change").addEventListener("click", () =>
  attempt(async () => {
    const { done } = await ask("/api/policy", { database: shown.database, key: shown.key.hex, policy: byID("policy").value });
    if (!done) throw new Error("The entry no longer exists.");
    await load(shown.key);
    say(byID("status"), "The entry has its new policy.");
  })
);

byID("purge-database").addEventListener("click", async () => {
  const database = byID("database").value;
  const typed = await question("Empty this database?", `All entries of database ${database} will be removed.`, "Type its name:", "Empty it");
  if (typed === null) return;
  await attempt(async () => {
    const { entries } = await ask("/api/purge", { database, confirm: typed });
    await search();
    say(byID("status"), `The database was emptied: ${number(entries)} entries.`);
  });
});

byID("purge-tag").addEventListener("click", async () => {
  const database = byID("database").value;
  const tag = await question("Remove all entries with a tag?", `All entries of database ${database} with this tag will be removed.`, "Tag:", "Remove them");
  if (!tag) return;
  await attempt(async () => {
    await ask("/api/purge", { database, tag, confirm: database });
    byID("entry").hidden = true;
    await search();
    say(byID("status"), `All entries with the tag ${tag} were removed.`);
  });
});

// Start

beginWhenPossible(async () => {
  settings = await prepare();
  byID("purges").hidden = !settings.allowsChanges;
  const query = new URLSearchParams(location.search);
  byID("prefix").value = query.get("prefix") ?? "";
  await search();
  if (/^([0-9a-f]{2})+$/.test(query.get("hex"))) await load({ hex: query.get("hex") });
  else if (query.has("key")) await load({ hex: hexOf(query.get("key")) });
  document.body.dataset.ready = "yes";
  if (location.hash === "#prefix") byID("prefix").focus();
});
// Move the current time in the time line of the open entry.
repeat(1000, async () => {
  if (!shown || byID("entry").hidden) return;
  shown.now += 1000;
  if (shown.deadline !== undefined && !shown.isStale && shown.now >= shown.deadline) shown.isStale = true;
  drawLife(shown);
});
