// snippet
import http from "node:http";
import https from "node:https";
import needle from "needle";

const httpAgent = new http.Agent({ keepAlive: true });
const httpsAgent = new https.Agent({ keepAlive: true });
// per request: await needle("get", url, { agent: httpsAgent })
// end

export const packages = ["needle"];

export async function request(method, url, body) {
  const agent = url.startsWith("https:") ? httpsAgent : httpAgent;
  const response = await needle(method.toLowerCase(), url, body ?? null, { agent });
  return response.statusCode;
}
