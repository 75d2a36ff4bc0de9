// snippet
import http from "node:http";
import https from "node:https";
import got from "got";

const client = got.extend({
  agent: {
    http: new http.Agent({ keepAlive: true }),
    https: new https.Agent({ keepAlive: true }),
  },
});
// end

export const packages = ["got"];

export async function request(method, url, body) {
  const response = await client(url, { method, body });
  return response.statusCode;
}
