// snippet
import needle from "needle";
// per request: await needle("get", url)
// end

export const packages = ["needle"];

export async function request(method, url, body) {
  const response = await needle(method.toLowerCase(), url, body ?? null);
  return response.statusCode;
}
