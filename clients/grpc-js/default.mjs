// snippet
import grpc from "@grpc/grpc-js";

const newClient = (address, credentials) => new grpc.Client(address, credentials); // called once, for all calls
// end

import { readFileSync } from "node:fs";

export const packages = ["@grpc/grpc-js"];
export const http2Only = true;

const clients = new Map();
function clientOf(url) {
  if (!clients.has(url.origin)) {
    const credentials = url.protocol === "https:"
      ? grpc.credentials.createSsl(readFileSync(process.env.INTACT_CA))
      : grpc.credentials.createInsecure();
    clients.set(url.origin, newClient(url.host, credentials));
  }
  return clients.get(url.origin);
}

const same = (bytes) => bytes;

export const request = (method, text) => new Promise((resolve, reject) => {
  const url = new URL(text);
  clientOf(url).makeUnaryRequest(url.pathname, same, same, Buffer.alloc(0), (error) => {
    // the test server has no such method, and says so
    error && error.code !== grpc.status.UNIMPLEMENTED ? reject(error) : resolve(200);
  });
});
