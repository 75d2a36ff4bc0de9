// snippet
import http from "node:http";
import https from "node:https";
import superagent from "superagent";

const httpAgent = new http.Agent({ keepAlive: true });
const httpsAgent = new https.Agent({ keepAlive: true });
// per request: await superagent.get(url).agent(httpsAgent)
// end

export const packages = ["superagent"];

export async function request(method, url, body) {
  const agent = url.startsWith("https:") ? httpsAgent : httpAgent;
  const response = await superagent(method, url).agent(agent).send(body);
  return response.status;
}
