// Functions shared by all pages.

/** Creates an element: attributes by name, `on…` as listeners, children as text or elements. Text is never parsed as HTML. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if ((value ?? false) === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "class") made.className = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => (child ?? null) !== null));
  return made;
}

/** Creates an SVG element. */
export const drawing = (name, attributes, text) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
};

export const byID = (name) => document.getElementById(name);

/** Sends a request to larderweb. Throws an error with a text for people. */
export async function ask(path, body) {
  const options = { headers: { Accept: "application/json" }, cache: "no-store", signal: AbortSignal.timeout(15000) };
  if (body !== undefined) {
    options.method = "POST";
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let reply;
  try {
    reply = await fetch(path, options);
  } catch {
    throw new Error("larderweb does not reply");
  }
  if (reply.status === 401) {
    location.assign("/login");
    throw new Error("a token is required");
  }
  const answer = await reply.json().catch(() => ({ error: `larderweb returned ${reply.status} for ${path.split("?")[0]}` }));
  if (!reply.ok || answer.error) throw new Error(answer.error ?? `larderweb returned ${reply.status}`);
  return answer;
}

// Numbers for people

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

/** Makes a function that formats a value; a dash if there is none. */
const format = (work) => (value) => (value === undefined || value === null ? "–" : work(value));

export const number = format((value) => whole.format(value));
export const rate = format((value) => (value >= 100 ? whole : short).format(value));
export const percent = format((value) => `${short.format(value * 100)} %`);

export const bytes = format((value) => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let index = 0;
  for (; value >= 1024 && index < units.length - 1; index += 1) value /= 1024;
  return `${short.format(value)} ${units[index]}`;
});

/** Units of time: each with its length in seconds, and the duration from which the next unit is used. */
const times = [["µs", 1e-6, 0.001], ["ms", 1e-3, 1], ["s", 1, 120], ["min", 60, 7200], ["h", 3600, 172800], ["d", 86400, Infinity]];

/** Formats a duration in seconds. */
export const span = format((value) => {
  if (value < 0) return `-${span(-value)}`;
  if (value === 0) return "0 s";
  const [unit, length] = times.find(([, , end]) => value < end);
  return `${short.format(value / length)} ${unit}`;
});

export const clock = (seconds) =>
  new Date(seconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });

export const instant = (milliseconds) => new Date(milliseconds).toLocaleString();

/** Fills a table's body with rows of cells; a cell is text, or an element. */
export function fill(table, rows, empty) {
  const body = table.tBodies[0];
  const columns = table.tHead.rows[0].cells.length;
  const made = rows.map((cells) =>
    element("tr", {}, ...cells.map((cell, index) => element(index === 0 ? "th" : "td", index === 0 ? { scope: "row" } : {}, cell)))
  );
  if (made.length === 0) made.push(element("tr", {}, element("td", { colspan: columns, class: "empty" }, empty)));
  body.replaceChildren(...made);
}

/** Fills a list with names and values. */
export const fillFacts = (list, facts) =>
  list.replaceChildren(...facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));

/** Escapes the characters that change the direction of the text around them. */
export const visible = (text) => text.replace(/[\u202a-\u202e\u2066-\u2069]/g, (one) => `\\u${one.charCodeAt(0).toString(16)}`);

/** Shows a message, which screen readers announce; no text hides it. */
export function say(place, text) {
  place.textContent = text ?? "";
  place.hidden = !text;
}

// Pages with a problem, a status and a choice of the database

/** Runs `work`, and shows its error. */
export async function attempt(work) {
  try {
    await work();
    say(byID("problem"), null);
  } catch (error) {
    say(byID("problem"), error.message);
  }
}

/** Fills the choice of the database. Returns the settings. */
export async function prepare() {
  const { settings, databases, problem } = await ask("/api/overview");
  byID("logout").hidden = !settings.asksForToken;
  if (problem) throw new Error(`The daemon is not available: ${problem}`);
  const asked = new URLSearchParams(location.search).getAll("database");
  const names = [...new Set(["0", ...(databases ?? []).map((one) => one.name), ...asked])];
  byID("database").replaceChildren(...names.map((name) => element("option", { value: name }, name)));
  byID("database").value = asked[0] ?? databases?.[0]?.name ?? "0";
  return settings;
}

/** Retries until the daemon can be reached, and the page is ready. */
export async function beginWhenPossible(begin) {
  await attempt(begin);
  if (document.body.dataset.ready !== "yes") setTimeout(beginWhenPossible, 2000, begin);
}

const shownMost = 150;
/** The text of a key that shows something: the bytes of a key that is not text, or has only blank characters. */
export const label = (key) => {
  if (key.hex === "") return "(empty)";
  const isBlank = key.text === undefined || /^[\p{C}\p{M}\p{Z}\u115f\u1160\u2800\u3164\uffa0]*$/u.test(key.text);
  const text = visible(isBlank ? `0x${key.hex}` : key.text);
  return text.length > shownMost ? `${text.slice(0, shownMost)}… (${number(key.hex.length / 2)} bytes)` : text;
};

let asked = null;

/** Asks for confirmation before a removal. Resolves to the typed text, or to nothing if cancelled. */
export function question(title, text, labelText, yes) {
  const dialog = byID("question");
  byID("question-title").textContent = title;
  byID("question-text").textContent = text;
  byID("question-label").hidden = !labelText;
  byID("question-label").firstElementChild.textContent = labelText ?? "";
  byID("question-input").value = "";
  byID("question-yes").textContent = yes;
  dialog.returnValue = "no";
  dialog.showModal();
  const mine = (asked = {});
  return new Promise((resolve) => {
    const close = () => {
      // Ignore a late event of the previous question.
      if (asked === mine && dialog.open) return;
      dialog.removeEventListener("close", close);
      resolve(asked === mine && dialog.returnValue === "yes" ? byID("question-input").value : null);
    };
    dialog.addEventListener("close", close);
  });
}

// The name of the page, in its title and in the list of pages

const link = document.querySelector(`nav a[href="${location.pathname}"]`);
link.setAttribute("aria-current", "page");
document.title = `Larder: ${link.textContent.toLowerCase()}`;

// The theme

const media = matchMedia("(prefers-color-scheme: dark)");

const isDark = () => (document.documentElement.dataset.theme ?? (media.matches ? "dark" : "light")) === "dark";

const showTheme = () => byID("theme").setAttribute("aria-pressed", String(isDark()));

byID("theme").addEventListener("click", () => {
  const theme = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("theme", theme);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
  showTheme();
});
media.addEventListener("change", showTheme);
showTheme();

/** Calls `search` if the key `/` is pressed, except in a field. */
export const onSearchKey = (search) =>
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || /INPUT|SELECT|TEXTAREA/.test(event.target.tagName)) return;
    event.preventDefault();
    search();
  });

/** Calls `work` now, and again a number of milliseconds after it has ended. Pauses while the page is hidden. */
export function repeat(milliseconds, work) {
  const run = async () => {
    if (!document.hidden) await work();
    setTimeout(run, milliseconds);
  };
  run();
}
