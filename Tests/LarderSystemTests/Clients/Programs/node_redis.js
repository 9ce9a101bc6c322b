// Tests a JavaScript program that uses node-redis. Argument: the socket.
"use strict";
const assert = require("node:assert");
const { createClient, commandOptions, ErrorReply, WatchError } = require("redis");

const path = process.argv[2];

async function connected() {
  const client = createClient({ socket: { path } });
  client.on("error", (error) => { throw error; });
  await client.connect();
  return client;
}

async function values(client) {
  assert.strictEqual(await client.ping(), "PONG");
  assert.strictEqual(await client.set("k", "värde\r\n"), "OK");
  assert.strictEqual(await client.get("k"), "värde\r\n");
  assert.strictEqual(await client.get("nothing"), null);
  const bytes = Buffer.from([0, 255, 13, 10]);
  assert.strictEqual(await client.set("bytes", bytes), "OK");
  assert.deepStrictEqual(await client.get(commandOptions({ returnBuffers: true }), "bytes"), bytes);
  assert.strictEqual(await client.set("k", "other", { NX: true }), null);
  assert.strictEqual(await client.set("k", "other", { XX: true, GET: true, EX: 100 }), "värde\r\n");
  assert.ok([99, 100].includes(await client.ttl("k")));
  assert.strictEqual(await client.set("k", "kept", { KEEPTTL: true }), "OK");
  assert.ok([99, 100].includes(await client.ttl("k")));
  assert.strictEqual(await client.persist("k"), true);
  assert.strictEqual(await client.getEx("k", { PX: 100_000 }), "kept");
  assert.strictEqual(await client.pExpireAt("k", 4102444800000), true);
  assert.strictEqual(await client.expireTime("k"), 4102444800);
  assert.strictEqual(await client.getDel("k"), "kept");
  assert.strictEqual(await client.incrBy("n", 42), 42);
  assert.strictEqual(await client.incrByFloat("n", 0.5), "42.5");
  assert.strictEqual(await client.append("n", "!"), 5);
  assert.strictEqual(await client.getRange("n", -1, -1), "!");
  assert.strictEqual(await client.setRange("n", 0, "17"), 5);
  assert.strictEqual(await client.strLen("n"), 5);
  await assert.rejects(client.incr("n"), { name: "Error", message: "ERR value is not an integer or out of range" });
  await assert.rejects(client.sendCommand(["GET"]), ErrorReply);
  assert.strictEqual(await client.mSet({ a: "1", b: "2" }), "OK");
  assert.deepStrictEqual(await client.mGet(["a", "nothing", "b"]), ["1", null, "2"]);
  assert.strictEqual(await client.exists(["a", "b", "nothing"]), 2);
  assert.strictEqual(await client.setBit("bits", 7, 1), 0);
  assert.strictEqual(await client.bitCount("bits"), 1);
  assert.strictEqual(await client.copy("a", "c"), true);
  assert.strictEqual(await client.rename("c", "d"), "OK");
  assert.strictEqual(await client.type("d"), "string");
  assert.strictEqual(await client.del(["a", "b", "nothing"]), 2);
}

async function scanning(client) {
  const written = [];
  for (let index = 0; index < 1000; index += 1) written.push(client.set(`scan:${index}`, String(index)));
  assert.ok((await Promise.all(written)).every((reply) => reply === "OK"));
  const found = new Set();
  for await (const key of client.scanIterator({ MATCH: "scan:*", COUNT: 17 })) found.add(key);
  assert.strictEqual(found.size, 1000);
}

async function transactions(client) {
  assert.deepStrictEqual(
    await client.multi().set("t", "1").incr("t").get("t").mGet(["t", "nothing"]).exec(), ["OK", 2, "2", ["2", null]]);
  await client.executeIsolated(async (isolated) => {
    await isolated.watch("t");
    await client.set("t", "changed");
    await assert.rejects(isolated.multi().set("t", "lost").exec(), WatchError);
    await isolated.watch("t");
    assert.deepStrictEqual(await isolated.multi().set("t", "won").exec(), ["OK"]);
  });
  assert.strictEqual(await client.get("t"), "won");
  // Many tasks increment a counter with WATCH; no increment is lost.
  async function addOne() {
    for (;;) {
      try {
        return await client.executeIsolated(async (isolated) => {
          await isolated.watch("sum");
          const sum = Number(await isolated.get("sum"));
          return isolated.multi().set("sum", String(sum + 1)).exec();
        });
      } catch (error) {
        if (!(error instanceof WatchError)) throw error;
      }
    }
  }
  await Promise.all(Array.from({ length: 50 }, addOne));
  assert.strictEqual(await client.get("sum"), "50");
}

async function messages(client) {
  const subscriber = client.duplicate();
  await subscriber.connect();
  const heard = [];
  let enough;
  const all = new Promise((resolve) => { enough = resolve; });
  const listen = (kind) => (message, channel) => {
    heard.push(`${kind} ${channel} ${message}`);
    if (heard.length === 4) enough();
  };
  await subscriber.subscribe("news", listen("exact"));
  await subscriber.pSubscribe("n?ws", listen("pattern"));
  assert.deepStrictEqual(await client.pubSubChannels(), ["news"]);
  assert.strictEqual(await client.publish("news", "first"), 2);
  assert.strictEqual(await client.publish("weather", "nobody hears"), 0);
  assert.strictEqual(await client.publish("news", "second"), 2);
  await all;
  assert.deepStrictEqual(heard.sort(), [
    "exact news first", "exact news second", "pattern news first", "pattern news second"]);
  await subscriber.unsubscribe("news");
  await subscriber.pUnsubscribe();
  assert.strictEqual(await client.publish("news", "third"), 0);
  // After subscriber mode, the connection can send commands again.
  assert.strictEqual(await subscriber.get("sum"), "50");
  await subscriber.quit();
}

async function server(client) {
  assert.match(await client.info("server"), /redis_version:7\.0\./);
  assert.strictEqual((await client.configGet("maxclients")).maxclients, "10000");
  assert.strictEqual(await client.clientSetName("node"), "OK");
  assert.strictEqual(await client.clientGetName(), "node");
  assert.ok((await client.commandCount()) > 30);
  assert.ok(Math.abs((await client.time()).getTime() - Date.now()) < 60_000);
  assert.ok((await client.sendCommand(["DBSIZE"])) > 1000);
  await client.select(1);
  assert.strictEqual(await client.dbSize(), 0);
  await client.select(0);
  assert.strictEqual(await client.flushAll(), "OK");
}

async function main() {
  const client = await connected();
  await values(client);
  await scanning(client);
  await transactions(client);
  await messages(client);
  await server(client);
  await client.quit();
  console.log("all is well");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
