// snippet
import http from "node:http";
import https from "node:https";
import { S3Client } from "@aws-sdk/client-s3";

const settings = () => ({
  requestHandler: {
    httpAgent: new http.Agent({ keepAlive: true }),
    httpsAgent: new https.Agent({ keepAlive: true }),
  },
});

const newClient = (more) => new S3Client({ ...settings(), ...more }); // called once, for all calls
// end

import { GetObjectCommand } from "@aws-sdk/client-s3";

const make = (endpoint) =>
  newClient({ endpoint, region: "us-east-1", credentials: { accessKeyId: "x", secretAccessKey: "x" }, forcePathStyle: true });

export const packages = ["@aws-sdk/client-s3"];
export const getOnly = true;
export const ownService = true;

const clients = new Map();
function clientOf(origin) {
  if (!clients.has(origin)) clients.set(origin, make(origin));
  return clients.get(origin);
}

function send(url) {
  const { origin, pathname } = new URL(url);
  const [, Bucket, ...rest] = pathname.split("/");
  return clientOf(origin).send(new GetObjectCommand({ Bucket, Key: rest.join("/") }));
}

export async function request(method, url) {
  const answer = await send(url);
  await answer.Body.transformToString();
  return answer.$metadata.httpStatusCode;
}

export async function unread(url) {
  const answer = await send(url);
  return answer.$metadata.httpStatusCode;
}
