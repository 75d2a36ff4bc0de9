const idleMs = Number(process.env.INTACT_IDLE_MS ?? 4000);
// snippet
import http from "node:http";
import https from "node:https";
import needle from "needle";

const httpAgent = new http.Agent({ keepAlive: true, timeout: idleMs });
const httpsAgent = new https.Agent({ keepAlive: true, timeout: idleMs });
// per request: await needle("get", url, { agent: httpsAgent })
// end

export const packages = ["needle"];

export async function request(method, url, body) {
  const agent = url.startsWith("https:") ? httpsAgent : httpAgent;
  const response = await needle(method.toLowerCase(), url, body ?? null, { agent });
  return response.statusCode;
}
