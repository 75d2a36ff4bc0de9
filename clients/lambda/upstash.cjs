// get, and with BOTH=1 a set when it was not there: a cache miss. TURN=1 lets the event loop turn once in between.
const { Redis } = require("@upstash/redis");
const e = process.env, name = `keepalive=${e.KEEPALIVE},outside=${e.OUTSIDE},turn=${e.TURN}`;
const make = () => new Redis({ url: e.INTACT_TLS_URL, token: name, keepAlive: e.KEEPALIVE === "1", responseEncoding: false, enableTelemetry: false });
const outside = e.OUTSIDE === "1" ? make() : null;
exports.handler = async () => {
  const redis = outside ?? make();
  const found = await redis.get("key");
  if (e.TURN === "1") await new Promise(setImmediate);
  if (e.BOTH === "1" && found === null) await redis.set("key", "value");
  return found;
};
