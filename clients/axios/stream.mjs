// snippet
import axios from "axios";

const client = axios;
// per request: client.get(url, { responseType: "stream" }), and the stream is not read
// end

export const packages = ["axios"];

export async function request(method, url, data) {
  const response = await client.request({ method, url, data });
  return response.status;
}

export async function unread(url) {
  const response = await client.get(url, { responseType: "stream" });
  return response.status;
}
