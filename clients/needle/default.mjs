// snippet
import needle from "needle";

async function send(method, url, body = null) {
  const response = await needle(method, url, body); // with nothing set
  return response.statusCode;
}
// end

export const packages = ["needle"];

export const request = (method, url, body) => send(method.toLowerCase(), url, body ?? null);
