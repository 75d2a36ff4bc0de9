// snippet
import http from "node:http";
import https from "node:https";
// https.get(url) and https.request(url) with nothing set
// end

export function request(method, url, body) {
  return new Promise((resolve, reject) => {
    const { request } = url.startsWith("https:") ? https : http;
    const sent = request(url, { method }, (response) => {
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
    const sent = get(url, {}, (response) => resolve(response.statusCode));
    sent.on("error", reject);
  });
}
