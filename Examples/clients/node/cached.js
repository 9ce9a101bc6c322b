#!/usr/bin/env node
// Fetch through larderd with node-redis: of all processes that want a value, one asks the origin.
//
// As a module:
//
//     const weather = cached(client, city => `weather:${city}`, { ttl: 600, grace: 3600 }, askOrigin);
//     await weather("oslo");           // asks the origin if no process has done so for ten minutes
//
// As a program: cached.js SOCKET CITY
"use strict";

/** There is no value to be had now: the origin failed a short time ago, or somebody else still asks it. */
class Unavailable extends Error {}

/**
 * Makes a function that asks an origin only if it has to. What the origin returns must be JSON; null means that it has
 * no value. Times are in seconds: `ttl` and `grace` of the entry, `wait` for another process, `lease` that the origin may
 * take (without it: 30, and others take over at once when this process ends), `backOff` after an error of the origin,
 * `absentFor` after null; with 0 the origin is asked again at once.
 *
 * As many calls can wait at the same time as the client's isolation pool has connections: one, unless its
 * `isolationPoolOptions` say more.
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
        // A FETCH that waits holds up its connection: it gets another one than what the program shares.
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
        // Nothing is stored if the entry was written or purged meanwhile. What was found is right all the same.
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
