const idleMs = Number(process.env.INTACT_IDLE_MS ?? 4000);
// snippet
import http from "node:http";
import https from "node:https";
import got from "got";

const options = { keepAlive: true, timeout: idleMs };
const client = got.extend({
  agent: {
    http: new http.Agent(options),
    https: new https.Agent(options),
  },
});
// end

export const packages = ["got"];

export async function request(method, url, body) {
  const response = await client(url, { method, body });
  return response.statusCode;
}
