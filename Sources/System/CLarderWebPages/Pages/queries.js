// The page of queries and indexes.

import { ask, attempt, beginWhenPossible, byID, element, fill, label, number, onSearchKey, prepare, question, repeat, say, visible } from "./common.js";

let settings = { allowsChanges: false };
/** The query that was run, and the cursors of its pages so far: none for the first one. The last page is shown. */
let query = {};
let cursors = [];
let following = null;
let isBuilding = false;

const address = (path, parameters) => `/api/${path}?${new URLSearchParams(parameters)}`;
const database = () => byID("database").value;

// Results

const cellMost = 300;
const cut = (text) => (text.length > cellMost ? `${text.slice(0, cellMost)}…` : text);

/** The address of an entry's page. */
const entry = (key) => `/entries?${new URLSearchParams({ database: query.database, ...(key.text === undefined ? { hex: key.hex } : { key: key.text }) })}`;

async function show(cursor) {
  const page = await ask(address("query", { ...query, ...(cursor && { after: cursor }) }));
  const headings = page.columns.map((name) => element("th", { scope: "col" }, visible(cut(name))));
  byID("rows").tHead.rows[0].replaceChildren(...headings);
  const rows = page.rows.map((row) => [
    ...(row.key ? [element("a", { href: entry(row.key) }, label(row.key))] : []),
    ...row.values.map((value) => element("code", {}, value === null ? "–" : visible(cut(value)))),
  ]);
  fill(byID("rows"), rows, "Nothing was found.");
  following = page.next ?? null;
  byID("result").hidden = false;
  byID("next").disabled = following === null;
  say(byID("status"), `${rows.length} ${rows.length === 1 ? "row" : "rows"}${following === null ? "" : ", and more"}`);
}

function showPosition() {
  byID("back").disabled = cursors.length < 2;
  byID("page").textContent = `page ${cursors.length}`;
}

/** Shows how the query is run, concurrently with its result. The result has the same errors. */
async function explain() {
  const mine = query;
  const { text } = await ask(address("explain", mine)).catch(() => ({}));
  if (mine === query) say(byID("explanation"), text && visible(text));
}

byID("search").addEventListener("submit", (event) => {
  event.preventDefault();
  query = { database: database(), query: byID("words").value };
  history.replaceState(null, "", `?${new URLSearchParams(query)}`);
  byID("result").hidden = true;
  attempt(async () => {
    explain();
    await show();
    cursors = [null];
    showPosition();
  });
});
byID("next").addEventListener("click", () =>
  attempt(async () => {
    const cursor = following;
    await show(cursor);
    cursors.push(cursor);
    showPosition();
  })
);
byID("back").addEventListener("click", () =>
  attempt(async () => {
    await show(cursors.at(-2));
    cursors.pop();
    showPosition();
  })
);
onSearchKey(() => byID("words").focus());

// Indexes

async function showIndexes() {
  const indexes = await ask(address("indexes", { database: database() }));
  const rows = indexes.map((one) => [
    one.name,
    visible(one.paths.join(", ")),
    one.prefix.hex === "" ? "" : label(one.prefix),
    one.state === "building" ? `building, ${one.percent} %` : one.state,
    number(one.entries),
    number(one.stale),
    settings.allowsChanges ? element("button", { type: "button", class: "danger", onclick: () => drop(one.name) }, "Drop…") : "",
  ]);
  fill(byID("indexes"), rows, "There are no indexes.");
  isBuilding = indexes.some((one) => one.state === "building");
}

async function drop(index) {
  const [from, text] = [database(), `${index} in database ${database()}`];
  if ((await question("Drop this index?", text, null, "Drop")) === null) return;
  await attempt(async () => {
    await ask("/api/drop-index", { database: from, index });
    await showIndexes();
    say(byID("status"), "The index was dropped.");
  });
}

byID("create").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(async () => {
    await ask("/api/create-index", { database: database(), index: byID("name").value, definition: byID("definition").value });
    byID("create").reset();
    await showIndexes();
    say(byID("status"), "The index was created.");
  });
});
byID("database").addEventListener("change", () => {
  byID("result").hidden = true;
  say(byID("explanation"), null);
  attempt(showIndexes);
});

// Start

beginWhenPossible(async () => {
  settings = await prepare();
  byID("create").hidden = !settings.allowsChanges;
  // A link from another site fills in a query, but does not run it.
  byID("words").value = new URLSearchParams(location.search).get("query") ?? "";
  await showIndexes();
  document.body.dataset.ready = "yes";
});
repeat(2000, () => isBuilding && showIndexes().catch(() => {}));
