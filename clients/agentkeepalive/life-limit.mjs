const lifeMs = Number(process.env.INTACT_LIFE_MS ?? 4000);
// snippet
import http from "node:http";
import https from "node:https";
import { HttpAgent, HttpsAgent } from "agentkeepalive";

const httpAgent = new HttpAgent({ socketActiveTTL: lifeMs });
const httpsAgent = new HttpsAgent({ socketActiveTTL: lifeMs });
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
