// snippet
import http from "node:http";
import https from "node:https";

function send(url, options, body) {
  return new Promise((resolve, reject) => {
    const { request } = url.startsWith("https:") ? https : http;
    const sent = request(url, options, (response) => { // no agent is set
      response.resume(); // the body is read to its end
      response.on("end", () => resolve(response.statusCode));
      response.on("error", reject);
    });
    sent.on("error", reject);
    sent.end(body);
  });
}
// end

export const request = (method, url, body) => send(url, { method }, body);

export function unread(url) {
  return new Promise((resolve, reject) => {
    const { get } = url.startsWith("https:") ? https : http;
    const sent = get(url, {}, (response) => resolve(response.statusCode));
    sent.on("error", reject);
  });
}
