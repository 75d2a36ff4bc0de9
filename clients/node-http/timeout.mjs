const timeoutMs = Number(process.env.INTACT_TIMEOUT_MS ?? 10000);
// snippet
import http from "node:http";
import https from "node:https";

const agents = [http, https].map(({ Agent }) => new Agent({ keepAlive: true }));

function send(url, options, body) {
  return new Promise((resolve, reject) => {
    const isTls = url.startsWith("https:");
    const { request } = isTls ? https : http;
    const agent = agents[Number(isTls)];
    // for the whole exchange; `timeout` alone only emits an event
    const signal = AbortSignal.timeout(timeoutMs);
    const sent = request(url, { ...options, agent, signal }, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode));
      response.on("error", reject);
    });
    sent.on("error", reject);
    sent.end(body);
  });
}
// end

export const request = (method, url, body) => send(url, { method }, body);
