// snippet
import needle from "needle";

const options = { connection: "keep-alive" };
// per request: await needle("get", url, options)
// end

export const packages = ["needle"];

export async function request(method, url, body) {
  const response = await needle(method.toLowerCase(), url, body ?? null, options);
  return response.statusCode;
}
