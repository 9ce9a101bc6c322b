#!/usr/bin/env node
// Fetches through larderd with node-redis: of all processes that need a value, only one asks the origin.
//
// As a module:
//
//     const weather = cached(client, city => `weather:${city}`, { ttl: 600, grace: 3600 }, askOrigin);
//     await weather("oslo");           // asks the origin if no process has done so for ten minutes
//
// As a program: cached.js SOCKET CITY
"use strict";

/** No value is available now: the origin failed a short time ago, or another process is still asking it. */
class Unavailable extends Error {}

/**
 * Returns a function that asks an origin only if necessary. The origin's value must be convertible to JSON; null means
 * that it has none. Times are in seconds. `ttl` and `grace` are those of the entry. `wait` limits the wait for another
 * process. `lease` limits the call of the origin; by default it is 30, and another process takes over at once if this one
 * exits. The origin is not asked for `backOff` after it failed, and for `absentFor` after it returned null; 0 means that
 * it is asked again at once.
 *
 * Each waiting call uses a connection of the client's isolation pool, which has one connection by default: see
 * `isolationPoolOptions`.
 */
function cached(client, key, options, ask) {
    const { ttl, grace, jitter, wait = 30, lease, backOff = 5, absentFor = 60 } = options;
    const milliseconds = (seconds) => String(Math.round(seconds * 1000));
    const storing = [];
    if (ttl !== undefined) storing.push("PX", milliseconds(ttl));
    for (const [word, value] of [["GRACE", grace], ["JITTER", jitter]]) {
        if (value !== undefined) storing.push(word, String(value));
    }
    const asking = ["WAIT", milliseconds(wait)];
    if (lease !== undefined) asking.push("LEASE", milliseconds(lease));
    const release = (name, token, word, seconds) =>
        client.sendCommand(["RELEASE", name, token, ...(seconds > 0 ? [word, milliseconds(seconds)] : [])]);

    return async (...words) => {
        const name = key(...words);
        // A waiting FETCH blocks its connection, so use another one than the program's shared connection.
        const [state, value, token] = await client.executeIsolated((own) =>
            own.sendCommand(["FETCH", name, ...asking]));
        if (state === "absent") return null;
        if (state === "failed" || state === "wait") throw new Unavailable(`${name}: ${state}`);
        if (state !== "lead") return JSON.parse(value);
        let found;
        try {
            found = await ask(...words);
        } catch (error) {
            await release(name, token, "FAILED", backOff);
            if (value === null) throw error;
            return JSON.parse(value);
        }
        if (found === null || found === undefined) {
            await release(name, token, "ABSENT", absentFor);
            return null;
        }
        // If the entry was written or purged in the meantime, this stores nothing. The value is still correct.
        await client.sendCommand(["SET", name, JSON.stringify(found), ...storing, "TOKEN", token]);
        return found;
    };
}

module.exports = { cached, Unavailable };

async function main(words) {
    if (words.length !== 2) {
        console.error("usage: cached.js SOCKET CITY");
        return 2;
    }
    const { createClient } = require("redis");
    const client = createClient({ socket: { path: words[0] }, isolationPoolOptions: { max: 10 } });
    await client.connect();
    const weather = cached(client, (city) => `weather:${city}`, { ttl: 600, grace: 3600 }, async (city) => {
        console.error("node asks the origin");
        if (city === "atlantis") return null;
        if (city === "hell") throw new Error("the origin does not answer");
        return { city, sky: "rain" };
    });
    try {
        const found = await weather(words[1]);
        if (found === null) return 1;
        console.log(`${found.city}: ${found.sky}`);
        return 0;
    } catch (error) {
        console.error(error.message);
        return 3;
    } finally {
        await client.disconnect();
    }
}

if (require.main === module) main(process.argv.slice(2)).then((code) => { process.exitCode = code; });
