// snippet
import grpc from "@grpc/grpc-js";

const newClient = (address, credentials) => new grpc.Client(address, credentials); // in the handler, for each call
// end

import { readFileSync } from "node:fs";

export const packages = ["@grpc/grpc-js"];
export const http2Only = true;

function clientOf(url) {
  const credentials = url.protocol === "https:"
    ? grpc.credentials.createSsl(readFileSync(process.env.INTACT_CA))
    : grpc.credentials.createInsecure();
  return newClient(url.host, credentials);
}

const same = (bytes) => bytes;

export const request = (method, text) => new Promise((resolve, reject) => {
  const url = new URL(text);
  const client = clientOf(url);
  client.makeUnaryRequest(url.pathname, same, same, Buffer.alloc(0), (error) => {
    client.close();
    // the test server has no such method, and says so
    error && error.code !== grpc.status.UNIMPLEMENTED ? reject(error) : resolve(200);
  });
});
