const idleMs = Number(process.env.INTACT_IDLE_MS ?? 4000);
// snippet
import http from "node:http";
import https from "node:https";
import axios from "axios";

const options = { keepAlive: true, timeout: idleMs };
const client = axios.create({
  httpAgent: new http.Agent(options),
  httpsAgent: new https.Agent(options),
});
// end

export const packages = ["axios"];

export async function request(method, url, data) {
  const response = await client.request({ method, url, data });
  return response.status;
}
