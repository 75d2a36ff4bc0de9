// snippet
import { S3Client, GetObjectCommand } from "@aws-sdk/client-s3";

const settings = () => ({});
// in the handler: await new S3Client(settings()).send(...)
// end

const make = (endpoint) =>
  new S3Client({ ...settings(), endpoint, region: "us-east-1", credentials: { accessKeyId: "x", secretAccessKey: "x" }, forcePathStyle: true });

export const packages = ["@aws-sdk/client-s3"];
export const getOnly = true;
export const ownService = true;

function clientOf(origin) {
  return make(origin);
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
