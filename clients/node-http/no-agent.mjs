// snippet
import http from "node:http";
import https from "node:https";
// per request: https.get(url, { agent: false })
// end

export function request(method, url, body) {
  return new Promise((resolve, reject) => {
    const { request } = url.startsWith("https:") ? https : http;
    const sent = request(url, { method, agent: false }, (response) => {
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
    const sent = get(url, { agent: false }, (response) => resolve(response.statusCode));
    sent.on("error", reject);
  });
}
