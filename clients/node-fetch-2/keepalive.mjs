// snippet
import http from "node:http";
import https from "node:https";
import fetch from "node-fetch";

const httpAgent = new http.Agent({ keepAlive: true });
const httpsAgent = new https.Agent({ keepAlive: true });
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
