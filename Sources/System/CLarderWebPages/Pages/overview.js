// The overview: requests figures from larderweb every two seconds, and draws them.

import { ask, byID, bytes, clock, element, fill, fillFacts, number, onSearchKey, percent, rate, repeat, say, span, visible } from "./common.js";
import { TimeChart } from "./charts.js";

/** The charts, each with the labels and names of its figures. */
const charts = [
  ["Commands a second", { commands: "commands", errors: "errors" }, rate],
  ["By command, a second", {}, rate],
  ["Mean time by command", {}, span],
  ["Reads: share of hits, stale and refreshed", { hits: "hits", "served stale": "stale", refreshed: "refreshed" }, percent, { most: 1 }],
  ["Entries", { entries: "entries" }, number],
  ["Ended a second", { expired: "expired", evicted: "evicted" }, rate],
  ["On the disk", { "all files": "disk", journal: "journal" }, bytes, { bytes: true }],
  ["Traffic a second", { received: "netIn", sent: "netOut" }, bytes, { bytes: true }],
  ["Resident memory", { memory: "memory" }, bytes, { bytes: true }],
].map(([title, figures, format, options]) => {
  const series = Object.entries(figures).map(([label, name]) => ({ label, value: (point) => point[name] }));
  return new TimeChart(byID("charts"), title, series, format, options);
});

/** The charts of the most frequent commands, each with the figure that it shows. */
const byCommand = [
  [charts[1], (point) => point.commandRates],
  [charts[2], (point) => point.commandSeconds],
];

let former = null;
let sorting = "rate";
let commands = [];

// Current figures

function tile(name, value, more) {
  return element("div", {}, element("dt", {}, name), element("dd", {}, value, more ? element("small", {}, more) : null));
}

/** `last`: the newest point of the last minutes, if there is one. */
function showTiles(now, last) {
  const allReads = now.keyspace_hits + now.keyspace_misses;
  const limit = now.disk_limit > 0 ? `of ${bytes(now.disk_limit)}` : "no limit";
  byID("tiles").replaceChildren(
    tile("Commands a second", rate(last?.commands), `${number(now.total_commands_processed)} in all`),
    tile("Hit ratio", percent(last?.hits), `${percent(allReads > 0 ? now.keyspace_hits / allReads : undefined)} since the start`),
    tile("Served stale", percent(last?.stale), `${number(now.stale_served)} in all`),
    tile("Refreshed", percent(last?.refreshed), `${number(now.leases)} under way, ${number(now.lease_waiters)} waiting`),
    tile("On the disk", bytes(now.disk_bytes), limit),
    tile("Memory", bytes(now.used_memory_rss), `entries ${bytes(now.memory_tier_bytes)} of ${bytes(now.maxmemory)}`),
    tile("Clients", number(now.connected_clients), `of ${number(now.maxclients)}, ${number(now.blocked_clients)} waiting`),
    tile("Expired, evicted", `${number(now.expired_keys)}, ${number(now.evicted_entries)}`, `99 % reclaimed within ${span((now.expiry_lag_p99_ms ?? 0) / 1000)}`)
  );
}

function showJournal(now, texts) {
  fillFacts(byID("journal"), [
    ["Journal", bytes(now.journal_bytes)],
    ["Not committed yet", bytes(now.pending_bytes)],
    ["Checkpoints", number(now.checkpoints)],
    ["Rewrites", number(now.journal_rewrites)],
    ["Commits in groups", `${number(now.commit_units)} in ${number(now.commit_groups)}`],
    ["Syncs", number(now.syncs)],
    ["Failed commits", number(now.commit_failures)],
    ["Durability", texts.durability ?? "–"],
    ["Purges", number(now.purges)],
    ["Open snapshots", number(now.open_snapshots)],
    ["Scripts run", number(now.script_runs)],
  ]);
}

/** While the larder is empty, shows what a new user can type. */
function showFirstSteps(databases, socket) {
  byID("first").hidden = databases.some((one) => one.entries || one.stale);
  const quoted = /^[\w.\/:@%+=,-]+$/.test(socket) ? socket : `'${socket.replaceAll("'", "'\\''")}'`;
  const program = socket ? `larderctl --socket ${quoted}` : "larderctl";
  byID("first").querySelector("pre").textContent =
    ["set greeting hello --ttl 60", "get greeting", "ttl greeting"].map((call) => `${program} ${call}`).join("\n");
}

function showDatabases(databases) {
  const rows = databases.map((one) => {
    const limit = one.limit
      ? element("span", {}, element("progress", { max: one.limit, value: Math.min(one.bytes, one.limit), "aria-label": `${one.name}: share of its limit` }), ` ${bytes(one.limit)}`)
      : "–";
    const name = element("a", { href: `/entries?database=${encodeURIComponent(one.name)}` }, one.name);
    return [name, one.policy, number(one.entries), number(one.stale), bytes(one.bytes), limit, one.state];
  });
  fill(byID("databases"), rows, "There are no databases yet.");
}

function showCommands(list, seconds) {
  const before = new Map((former?.commands ?? []).map((one) => [one.name, one]));
  commands = list.map((one) => {
    const last = before.get(one.name);
    const added = last && one.calls >= last.calls ? one.calls - last.calls : 0;
    return { ...one, rate: former && seconds > 0 ? added / seconds : 0, mean: one.calls > 0 ? one.seconds / one.calls : 0 };
  });
  drawCommands();
}

function drawCommands() {
  const sorted = [...commands].sort((a, b) => (b[sorting] ?? 0) - (a[sorting] ?? 0) || b.calls - a.calls);
  const rows = sorted.map((one) => [
    commandName(one.name), rate(one.rate), number(one.calls), span(one.mean), span(one.p50), span(one.p99),
    span(one.p999), number(one.failed),
  ]);
  fill(byID("commands"), rows, "No commands have been sent yet.");
}

for (const head of byID("commands").tHead.rows[0].cells) {
  head.querySelector("button")?.addEventListener("click", () => {
    sorting = head.dataset.sort;
    for (const other of byID("commands").tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", "descending");
    drawCommands();
  });
}

function showStatus(now, texts) {
  say(
    byID("status"),
    `larderd ${texts.larder_version ?? ""} at ${texts.unixsocket ?? ""}, larder ${texts.directory ?? ""}, up for ${span(now.uptime_in_seconds)}; ` +
      `as of ${clock(now.server_time_usec / 1e6)}`
  );
}

repeat(2000, async () => {
  try {
    const answer = await ask("/api/overview");
    byID("logout").hidden = !answer.settings.asksForToken;
    say(byID("note"), answer.settings.historyNote);
    document.body.dataset.away = answer.problem ? "yes" : "no";
    if (answer.problem) {
      former = null;
      await showHistory();
      throw new Error(`The daemon is not available: ${answer.problem}`);
    }
    const now = answer.numbers;
    if (former && former.texts.run_id !== answer.texts.run_id) former = null;
    const seconds = former ? (now.server_time_usec - former.numbers.server_time_usec) / 1e6 : 0;
    say(byID("problem"), null);
    showStatus(now, answer.texts);
    showTiles(now, await showHistory());
    showJournal(now, answer.texts);
    if (answer.databases) {
      showDatabases(answer.databases);
      showFirstSteps(answer.databases, answer.texts.unixsocket);
    }
    showCommands(answer.commands, seconds);
    // Two answers within half a second have the same figures.
    if (seconds > 0 || !former) former = answer;
    document.body.dataset.ready = "yes";
  } catch (error) {
    say(byID("problem"), error.message);
  }
});

// History

const range = () => document.querySelector("input[name=range]:checked").value;

/** The fetched points, and the number of points to show. Only new points are requested. */
const history = { recent: { points: [], most: 300 }, day: { points: [], most: 1440 } };

async function fetchHistory(name) {
  const kept = history[name];
  const since = kept.points.at(-1)?.time ?? 0;
  const added = await ask(`/api/history?range=${name}&since=${since}`);
  // If the clock was set back, the answer has all points.
  if (added.length > 0 && added[0].time <= since) kept.points = [];
  // Another call may have added the same points in the meantime.
  const last = kept.points.at(-1)?.time ?? 0;
  kept.points = [...kept.points, ...added.filter((point) => point.time > last)].slice(-kept.most);
  return kept.points;
}

const commandName = (name) => name.toUpperCase().replace("|", " ");

/** The most frequent commands, one for each color, sorted by name, so that each keeps its color. */
function mostCalled(points) {
  const sums = new Map();
  for (const point of points) {
    for (const [name, value] of Object.entries(point.commandRates ?? {})) sums.set(name, (sums.get(name) ?? 0) + value);
  }
  return [...sums].sort((a, b) => b[1] - a[1]).slice(0, 4).map(([name]) => name).sort();
}

/** Draws the charts. Returns the newest point of the last minutes. */
async function showHistory() {
  const recent = await fetchHistory("recent");
  const points = range() === "recent" ? recent : await fetchHistory("day");
  const names = mostCalled(points);
  for (const [chart, figures] of byCommand) {
    chart.setSeries(names.map((name) => ({ label: commandName(name), value: (point) => figures(point)?.[name] })));
  }
  for (const chart of charts) chart.show(points);
  return recent.at(-1);
}

byID("range").addEventListener("change", () => showHistory().catch((error) => say(byID("problem"), error.message)));

// Figures that are requested less often

function endsBar(one) {
  const parts = [
    ["minute", one.minute], ["hour", one.hour - one.minute], ["day", one.day - one.hour], ["later", 1 - one.day - one.never],
    ["never", one.never],
  ];
  const bar = element("div", { class: "bar", "aria-hidden": "true" });
  for (const [name, share] of parts) {
    const part = element("span", { class: `ends-${name}` });
    part.style.width = `${Math.max(0, share) * 100}%`;
    bar.append(part);
  }
  return bar;
}

/** Calls `work` repeatedly. The overview reports errors. */
const repeatQuietly = (milliseconds, work) => repeat(milliseconds, () => work().catch(() => {}));

repeatQuietly(10000, async () => {
  const list = await ask("/api/freshness");
  const rows = list.map((one) => [one.database, percent(one.minute), percent(one.hour), percent(one.day), percent(one.never), endsBar(one)]);
  fill(byID("freshness"), rows, "There are no entries.");
});

repeatQuietly(5000, async () => {
  const slow = await ask("/api/slow");
  const commands = slow.map((one) => [clock(one.time), span(one.seconds), element("code", {}, visible(one.words.join(" ")))]);
  fill(byID("slow"), commands, "No command took longer than slowlog-log-slower-than.");
  const clients = await ask("/api/clients");
  const rows = clients.map((one) => [one.id, visible(one.name ?? "–"), one.db, one.cmd, span(+one.age), span(+one.idle), bytes(+one.omem)]);
  fill(byID("clients"), rows, "There are no connections.");
});

// The search field is on the other page.
onSearchKey(() => location.assign("/entries#prefix"));
