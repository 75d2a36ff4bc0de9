// snippet
import { Redis } from "@upstash/redis";

const newClient = (url, token) => new Redis({ url, token, enableTelemetry: false, enableAutoPipelining: false });
// end

export const packages = ["@upstash/redis"];
export const postOnly = true;
export const ownService = true;

const clients = new Map();

export async function request(method, url) {
  if (!clients.has(url)) clients.set(url, newClient(url, "x"));
  try {
    await clients.get(url).get("key");
  } catch (error) {
    // the test server answers, but does not speak Redis
    if (error.name !== "UpstashJSONParseError") throw error;
  }
  return 200;
}
