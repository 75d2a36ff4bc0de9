const idleMs = Number(process.env.INTACT_IDLE_MS ?? 4000);
// snippet
import http from "node:http";
import https from "node:https";
import fetch from "node-fetch";

const options = { keepAlive: true, timeout: idleMs };
const httpAgent = new http.Agent(options);
const httpsAgent = new https.Agent(options);
const agent = (url) => (url.protocol === "https:" ? httpsAgent : httpAgent);
// per request: fetch(url, { agent })
// end

export const packages = ["node-fetch"];

export async function request(method, url, body) {
  const response = await fetch(url, { method, body, agent });
  await response.text();
  return response.status;
}

export async function unread(url) {
  const response = await fetch(url, { agent });
  return response.status;
}
