// snippet
import axios from "axios";

const client = axios;
// end

export const packages = ["axios"];

export async function request(method, url, data) {
  const response = await client.request({ method, url, data });
  return response.status;
}
