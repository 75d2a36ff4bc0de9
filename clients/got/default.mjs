// snippet
import got from "got";

const client = got;
// end

export const packages = ["got"];

export async function request(method, url, body) {
  const response = await client(url, { method, body });
  return response.statusCode;
}
