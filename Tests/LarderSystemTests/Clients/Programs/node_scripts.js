// Scripts that JavaScript programs send with node-redis: a rate limit and a lock. Argument: the socket.
const assert = require("node:assert").strict;
const { randomUUID } = require("node:crypto");
const { createClient, defineScript } = require("redis");

// Counts a hit in one script; the first hit of a window sets the window's end.
const hit = defineScript({
  NUMBER_OF_KEYS: 1,
  SCRIPT: `
    local count = redis.call("INCR", KEYS[1])
    local left = redis.call("PTTL", KEYS[1])
    if count == 1 or left < 0 then
      redis.call("PEXPIRE", KEYS[1], ARGV[1])
      left = tonumber(ARGV[1])
    end
    return { count, left }`,
  transformArguments: (key, window) => [key, String(window)],
  transformReply: ([count, left]) => ({ count, left }),
});

// A lock on several keys, taken for all or none of them. Only its holder can extend or release it.
const take = defineScript({
  NUMBER_OF_KEYS: 2,
  SCRIPT: `
    for _, key in ipairs(KEYS) do
      if redis.call("exists", key) == 1 then return 0 end
    end
    for _, key in ipairs(KEYS) do redis.call("set", key, ARGV[1], "PX", ARGV[2]) end
    return #KEYS`,
  transformArguments: (first, second, token, time) => [first, second, token, String(time)],
});
const own = (action) => defineScript({
  NUMBER_OF_KEYS: 2,
  SCRIPT: `
    local count = 0
    for _, key in ipairs(KEYS) do
      if redis.call("get", key) == ARGV[1] then
        ${action}
        count = count + 1
      end
    end
    return count`,
  transformArguments: (first, second, token, time) => [first, second, token, String(time)],
});
const scripts = {
  hit, take,
  extend: own(`redis.call("pexpire", key, ARGV[2])`),
  release: own(`redis.call("del", key)`),
};

async function main(path) {
  const client = createClient({ socket: { path }, scripts });
  await client.connect();

  const hits = [];
  for (let turn = 0; turn < 5; turn++) hits.push(await client.hit("limit:ann", 100_000));
  assert.deepEqual(hits.map(({ count }) => count), [1, 2, 3, 4, 5]);
  assert(hits.every(({ left }) => left > 0 && left <= 100_000));
  const many = await Promise.all(Array.from({ length: 500 }, () => client.hit("limit:many", 100_000)));
  assert.deepEqual(many.map(({ count }) => count), Array.from({ length: 500 }, (_, index) => index + 1));

  const [mine, other] = [randomUUID(), randomUUID()];
  assert.equal(await client.take("a", "b", mine, 100_000), 2);
  assert.equal(await client.take("b", "c", other, 100_000), 0);
  assert.equal(await client.exists("c"), 0);
  assert.equal(await client.extend("a", "b", other, 200_000), 0);
  assert.equal(await client.extend("a", "b", mine, 200_000), 2);
  assert([199, 200].includes(await client.ttl("b")));
  assert.equal(await client.release("a", "b", other, 0), 0);
  // The server no longer has the scripts, as after a restart.
  await client.scriptFlush();
  assert.equal(await client.release("a", "b", mine, 0), 2);
  assert.equal(await client.take("b", "c", other, 100_000), 2);

  // Several connections increment a number under the lock; no increment is lost.
  let sum = 0;
  await Promise.all(Array.from({ length: 8 }, async (_, index) => {
    const connection = client.duplicate();
    await connection.connect();
    for (let turn = 0; turn < 10; turn++) {
      const token = randomUUID();
      while (await connection.take("sum", "sum:2", token, 100_000) === 0);
      const before = sum;
      await connection.ping();
      sum = before + 1;
      assert.equal(await connection.release("sum", "sum:2", token, 0), 2);
    }
    await connection.quit();
  }));
  assert.equal(sum, 80);
  assert.equal(await client.flushAll(), "OK");
  await client.quit();
}

main(process.argv[2]).then(() => console.log("all is well"), (error) => {
  console.error(error);
  process.exit(1);
});
