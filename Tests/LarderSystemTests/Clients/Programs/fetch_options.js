// Tests the options of Examples/clients/node/cached.js. Argument: the socket.
"use strict";
const assert = require("node:assert");
const { createClient } = require("redis");
const { cached, Unavailable } = require("../../../../Examples/clients/node/cached.js");

const path = process.argv[2];

async function connected() {
  const client = createClient({ socket: { path } });
  client.on("error", (error) => { throw error; });
  await client.connect();
  return client;
}

function within(number, least, most) {
  assert.ok(number > least && number <= most, `${number} is not within ${least} and ${most}`);
}

async function main() {
  const client = await connected();
  const other = await connected();
  const call = (key, options, origin) => cached(client, () => key, options, origin)();
  // The state of a key and its remaining time, as another connection sees them. Releases a lease that FETCH grants.
  const asked = async (key) => {
    const [state, , token, , , left] = await other.sendCommand(["FETCH", key]);
    if (token !== null) await other.sendCommand(["RELEASE", key, token]);
    return [state, left];
  };

  // The lifetime of an entry.
  const value = [1, "two"];
  assert.deepStrictEqual(await call("stored", { ttl: 100.5, grace: 60, jitter: 0 }, async () => value), value);
  within(await other.sendCommand(["PTTL", "stored"]), 30000, 100500);
  const meta = await other.sendCommand(["META", "stored"]);
  assert.strictEqual(meta[meta.indexOf("grace") + 1], 60000);
  assert.deepStrictEqual(await call("stored", {}, async () => null), value);
  await assert.rejects(call("jitter", { ttl: 100, jitter: 1000 }, async () => 1), /jitter|JITTER/);

  // Remembered absences and failures of the origin.
  assert.strictEqual(await call("absent", { absentFor: 100.5 }, async () => null), null);
  const [absent, rest] = await asked("absent");
  assert.strictEqual(absent, "absent");
  within(rest, 30000, 100500);
  assert.strictEqual(await call("asked again", { absentFor: 0 }, async () => null), null);
  assert.strictEqual((await asked("asked again"))[0], "lead");
  for (const [key, backOff, wanted] of [["failed", 100.5, "failed"], ["tried again", 0, "lead"]]) {
    await assert.rejects(call(key, { backOff }, async () => { throw new Error("down"); }), /down/);
    const [state, left] = await asked(key);
    assert.strictEqual(state, wanted, key);
    if (state === "failed") within(left, 30000, 100500);
  }

  // The lease, and how long other clients wait.
  const five = await call("leased", { lease: 100.5 }, async () => {
    const [state, left] = await asked("leased");
    assert.strictEqual(state, "wait");
    within(left, 30000, 100500);
    const third = await connected();
    await assert.rejects(cached(third, () => "leased", { wait: 0.05 }, async () => 1)(), Unavailable);
    await third.disconnect();
    return 5;
  });
  assert.strictEqual(five, 5);
  await other.disconnect();
  await client.disconnect();
  console.log("all is well");
}

main().catch((error) => { console.error(error); process.exit(1); });
