// snippet
import http from "node:http";
import https from "node:https";

const httpAgent = new http.Agent();
const httpsAgent = new https.Agent();
// end

export function request(method, url, body) {
  return new Promise((resolve, reject) => {
    const { request } = url.startsWith("https:") ? https : http;
    const sent = request(url, { method, agent: url.startsWith("https:") ? httpsAgent : httpAgent }, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode));
      response.on("error", reject);
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

export function unread(url) {
  return new Promise((resolve, reject) => {
    const { get } = url.startsWith("https:") ? https : http;
    const sent = get(url, { agent: url.startsWith("https:") ? httpsAgent : httpAgent }, (response) => resolve(response.statusCode));
    sent.on("error", reject);
  });
}
