const timeoutMs = Number(process.env.INTACT_TIMEOUT_MS ?? 10000);
// snippet
import http from "node:http";
import https from "node:https";
import axios from "axios";

const client = axios.create({
  timeout: timeoutMs, // for the whole exchange
  httpAgent: new http.Agent({ keepAlive: true }),
  httpsAgent: new https.Agent({ keepAlive: true }),
});
// end

export const packages = ["axios"];

export async function request(method, url, data) {
  const response = await client.request({ method, url, data });
  return response.status;
}
