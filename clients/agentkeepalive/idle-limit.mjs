const idleMs = Number(process.env.INTACT_IDLE_MS ?? 4000);
// snippet
import http from "node:http";
import https from "node:https";
import { HttpAgent, HttpsAgent } from "agentkeepalive";

const httpAgent = new HttpAgent({ freeSocketTimeout: idleMs });
const httpsAgent = new HttpsAgent({ freeSocketTimeout: idleMs });
// per request: https.get(url, { agent: httpsAgent })
// end

export const packages = ["agentkeepalive"];

export function request(method, url, body) {
  return new Promise((resolve, reject) => {
    const isSecure = url.startsWith("https:");
    const options = { method, agent: isSecure ? httpsAgent : httpAgent };
    const sent = (isSecure ? https : http).request(url, options, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode));
      response.on("error", reject);
    });
    sent.on("error", reject);
    sent.end(body);
  });
}
