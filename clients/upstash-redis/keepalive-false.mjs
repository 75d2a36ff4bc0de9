// snippet
import { Redis } from "@upstash/redis";

const settings = { keepAlive: false };
// new Redis({ url, token, ...settings })
// end

export const packages = ["@upstash/redis"];
export const postOnly = true;
export const ownService = true;

const clients = new Map();

export async function request(method, url) {
  if (!clients.has(url)) clients.set(url, new Redis({ ...settings, url, token: "x", enableTelemetry: false, enableAutoPipelining: false }));
  try {
    await clients.get(url).get("key");
  } catch (error) {
    // the test server answers, but does not speak Redis
    if (error.name !== "UpstashJSONParseError") throw error;
  }
  return 200;
}
