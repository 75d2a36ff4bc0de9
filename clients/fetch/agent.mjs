// snippet
import http from "node:http";
import https from "node:https";

const httpAgent = new http.Agent({ keepAlive: false });
const httpsAgent = new https.Agent({ keepAlive: false });
// per request: fetch(url, { agent: httpsAgent })
// end

const agentOf = (url) => (url.startsWith("https:") ? httpsAgent : httpAgent);

export async function request(method, url, body) {
  const response = await fetch(url, { method, body, agent: agentOf(url) });
  await response.text();
  return response.status;
}

export async function unread(url) {
  const response = await fetch(url, { agent: agentOf(url) });
  return response.status;
}
